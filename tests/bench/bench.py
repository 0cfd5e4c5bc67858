# SPDX-License-Identifier: BSD-2-Clause
"""Measures inspect beside perf (tests/bench/run.sh): medians of several runs, as ratios."""
import argparse
import json
import os
import pathlib
import shutil
import subprocess
import sys

import report
import unwind
from measure import in_turn, run, samples_in, spread

OUT = pathlib.Path(os.environ.get("O", "build"))
DIR = OUT / "bench"
INSPECT = str(OUT / "inspect")
TEXT_BYTES = 500_000_000
SAMPLES = 100_000
MIXED_HZ = 5000  # of CPU time
MB = 1_000_000


def tool(name):
    """A Perl script of FlameGraph, from $FLAMEGRAPH_DIR or PATH; None when it isn't there."""
    folder = os.environ.get("FLAMEGRAPH_DIR")
    path = os.path.join(folder, name) if folder else shutil.which(name)
    return path if path and os.access(path, os.X_OK) else None


def row(key, what, unit, ours, theirs=None, peer="perf", goal=None, met=None):
    """One line of the table. ours and theirs: lists of values."""
    result = {"key": key, "what": what, "unit": unit, "ours": spread(ours), "peer": peer,
              "theirs": spread(theirs) if theirs else None, "ratio": None, "goal": goal, "met": None}
    if theirs and unit != "count":
        result["ratio"] = result["theirs"]["median"] / result["ours"]["median"]
    if met:
        result["met"] = met(result)
    return result


def at_least(ratio):
    """A goal: theirs is this many times ours."""
    return {"goal": f"{ratio}x less", "met": lambda result: result["ratio"] >= ratio}


def at_most(limit, text):
    """A goal: ours is below the limit, in the row's unit."""
    return {"goal": text, "met": lambda result: result["ours"]["median"] <= limit}


# --- what is measured ----------------------------------------------------------------------------

def record(options):
    """The recorder's own CPU time, and what a sample takes in its file."""
    busy = subprocess.Popen([str(DIR / "busy"), "2", "20"], stdout=subprocess.PIPE)
    ours, theirs = str(DIR / "ours.data"), str(DIR / "theirs.data")
    sampling = ["-F", "999", "-e", "cpu-clock", "-p", busy.stdout.readline().decode().strip()]

    def per_sample(path):
        return os.path.getsize(path) / samples_in(path)

    def record_ours():
        cost = run([INSPECT, "record", *sampling, "-d", str(options.seconds), "-o", ours])
        return cost.cpu * 1000, per_sample(ours), samples_in(ours)

    def record_theirs():
        cost = run(["perf", "record", "-g", *sampling, "-o", theirs, "--", "sleep",
                    str(options.seconds)])
        return cost.cpu * 1000, per_sample(theirs), samples_in(theirs)

    try:
        mine, others = in_turn(options.runs, record_ours, record_theirs)
    finally:
        busy.kill()
        busy.wait()
    ours_cpu, ours_bytes, ours_n = zip(*mine)
    theirs_cpu, theirs_bytes, theirs_n = zip(*others)
    what = f"{options.seconds} s at 999 Hz on 2 busy threads"
    return [row("record_cpu", f"record: CPU time of the recorder, {what}", "ms", ours_cpu,
                theirs_cpu, "perf record -g"),
            row("record_samples", "record: samples in that time", "count", ours_n, theirs_n,
                "perf record -g"),
            row("record_bytes_per_sample", "record: bytes per sample in the file (20 calls deep)",
                "bytes", ours_bytes, theirs_bytes, "perf record -g")]


def unwinding(options):
    """Stacks without frame pointers, beside both of perf's ways."""
    return unwind.rows(options, INSPECT, str(DIR), row)


def big_file():
    """A perf.data file of about 100,000 samples by perf itself, made once."""
    path = DIR / "mixed.data"
    if not path.exists():
        part = str(path) + ".part"
        run(["perf", "record", "-g", "-F", str(MIXED_HZ), "-e", "cpu-clock", "-o", part,
             str(DIR / "mixed"), str(SAMPLES / MIXED_HZ), "2"])
        os.rename(part, path)
    return str(path)


def report_file(options):
    """The table of a big file."""
    path = big_file()
    count = samples_in(path)
    ours, theirs, flat = in_turn(
        options.runs,
        lambda: run([INSPECT, "report", path]),
        lambda: run(["perf", "report", "--stdio", "-i", path]),
        lambda: run(["perf", "report", "--stdio", "--no-children", "-g", "none", "-i", path]))
    what = f"{count:,} samples"
    return [row("report_time", f"report: time, {what}", "s", [c.wall for c in ours],
                [c.wall for c in theirs], "perf report --stdio", **at_least(10)),
            row("report_memory", f"report: peak memory, {what}", "MB",
                [c.peak_rss / MB for c in ours], [c.peak_rss / MB for c in theirs],
                "perf report --stdio", **at_least(10)),
            row("report_time_flat", "report: time, beside perf without its call graphs", "s",
                [c.wall for c in ours], [c.wall for c in flat],
                "perf report --stdio --no-children -g none")]


def flame_file(options):
    """The picture of a big file."""
    path = big_file()
    collapse, draw = tool("stackcollapse-perf.pl"), tool("flamegraph.pl")
    whole = bool(collapse and draw)
    theirs = f"perf script -i {path}"
    if whole:
        theirs += f" | {collapse} | {draw} >/dev/null"
    ours, others = in_turn(options.runs, lambda: run([INSPECT, "flame", path]), lambda: run(theirs))
    if whole:
        return [row("flame_time", "flame: time from perf.data to SVG", "s", [c.wall for c in ours],
                    [c.wall for c in others],
                    "perf script | stackcollapse-perf.pl | flamegraph.pl", **at_least(20))]
    print("bench: no FlameGraph scripts in PATH or $FLAMEGRAPH_DIR: compared with `perf script` "
          "alone, which is only the first part of their work", file=sys.stderr)
    return [row("flame_time", "flame: time from perf.data to SVG", "s", [c.wall for c in ours],
                [c.wall for c in others], "perf script alone (no FlameGraph scripts here)",
                goal="20x less", met=lambda result: result["ratio"] >= 20 or None)]


def big_text():
    """500 MB of perf-script text, made once."""
    path = DIR / "script.txt"
    if not path.exists():
        part = str(path) + ".part"
        with open(part, "wb") as out:
            subprocess.run([str(DIR / "gen_perf_script")], stdout=out, check=True)
        os.rename(part, path)
    return str(path)


def flame_text(options):
    """The picture of 500 MB of text: time, and memory that is not the input's."""
    path = big_text()
    size = os.path.getsize(path)
    if size < TEXT_BYTES * 0.95:
        sys.exit(f"bench: {path} has {size} bytes, not {TEXT_BYTES}")
    with open(path, "rb") as warm:
        while warm.read(1 << 24):
            pass
    costs, = in_turn(options.runs, lambda: run([INSPECT, "flame", "-"], stdin=path, watch=True))
    what = f"{size / MB:.0f} MB of perf-script text"
    return [row("flame_text_time", f"flame: time, {what} on stdin", "s", [c.wall for c in costs],
                **at_most(2, "2 s")),
            row("flame_text_cpu", f"flame: CPU time, {what}", "s", [c.cpu for c in costs]),
            row("flame_text_memory", f"flame: memory beyond the input, {what}", "MB",
                [c.anonymous / MB for c in costs], **at_most(400, "400 MB"))]


PARTS = {"record": record, "unwind": unwinding, "report": report_file, "flame": flame_file, "text": flame_text}


def main():
    parser = argparse.ArgumentParser(prog="tests/bench/run.sh", description=__doc__)
    parser.add_argument("--runs", type=int, default=5, help="of each command (default 5)")
    parser.add_argument("--seconds", type=int, default=10,
                        help="of each recording (default 10)")
    parser.add_argument("--only", metavar="PART,…", help=f"of {', '.join(PARTS)}")
    parser.add_argument("--json", action="store_true", help="print the results as JSON")
    parser.add_argument("--markdown", action="store_true", help="print docs/performance.md")
    parser.add_argument("--last", action="store_true",
                        help="print the results of the last whole run again, without measuring")
    options = parser.parse_args()
    names = options.only.split(",") if options.only else list(PARTS)
    unknown = [name for name in names if name not in PARTS]
    if unknown:
        parser.error(f"no part {', '.join(unknown)} (of {', '.join(PARTS)})")
    last = DIR / "results.json"
    if options.last:
        if not last.exists():
            sys.exit(f"bench: no {last}: run without --last first")
        results = json.loads(last.read_text(encoding="utf-8"))
    else:
        if not shutil.which("perf"):
            sys.exit("bench: no perf here to compare with")
        machine = report.machine()
        if report.busy(machine):
            print(f"bench: the machine is busy (load {machine['load']}): times will be too long",
                  file=sys.stderr)
        DIR.mkdir(parents=True, exist_ok=True)
        rows = []
        for name in names:
            print(f"bench: {name} …", file=sys.stderr)
            rows += PARTS[name](options)
        results = {"schema": "inspect.bench/1", "machine": machine, "rows": rows}
        if not options.only:
            last.write_text(json.dumps(results, indent=1), encoding="utf-8")
    if options.json:
        json.dump(results, sys.stdout, indent=1)
        print()
    elif options.markdown:
        report.markdown(results)
    else:
        report.table(results)


if __name__ == "__main__":
    main()
