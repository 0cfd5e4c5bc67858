# SPDX-License-Identifier: BSD-2-Clause
"""Prints results of bench.py: as a table, or as docs/performance.md."""
import os
import platform
import subprocess

BUSY = """
**The machine was busy with other work (load {load}): times are longer than on a quiet one, and
goals in seconds can't be judged by them.**
"""

HEADINGS = ("what", "inspect", "other", "ratio", "goal")


def first_line(argv):
    return subprocess.run(argv, capture_output=True, text=True, check=False).stdout.split("\n")[0]


def machine():
    """The machine in words that name no one."""
    with open("/proc/cpuinfo", encoding="utf-8") as cpuinfo:
        text = cpuinfo.read()
    model = next((line.split(":", 1)[1].strip() for line in text.splitlines()
                  if line.startswith("model name")), platform.machine())
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return {"cpu": model, "cpus": os.cpu_count(), "memory_gb": round(memory / 1e9),
            "virtual": " hypervisor" in text, "load": round(os.getloadavg()[0], 1),
            "kernel": ".".join(platform.release().split(".")[:2]),
            "perf": first_line(["perf", "--version"])}


def number(value):
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.3g}"


def values(spread, unit):
    if not spread:
        return "-"
    unit = "" if unit == "count" else " " + unit
    return f"{number(spread['median'])}{unit} ({number(spread['min'])}…{number(spread['max'])})"


def cells(row):
    """A row as texts, in the order of HEADINGS."""
    ratio = f"{number(row['ratio'])}x" if row["ratio"] else "-"
    goal = "-"
    if row["goal"]:
        said = {True: "met", False: "MISSED", None: "not comparable"}[row["met"]]
        goal = f"{row['goal']}: {said}"
    return row["what"], values(row["ours"], row["unit"]), values(row["theirs"], row["unit"]), ratio, goal


def table(results):
    rows = [HEADINGS] + [cells(row) for row in results["rows"]]
    widths = [max(len(row[i]) for row in rows) for i in range(len(HEADINGS))]
    for row in rows:
        print("  ".join(text.ljust(width) for text, width in zip(row, widths)).rstrip())
    print("\nmedian (min…max); ratio: the other's median by ours")
    for peer in dict.fromkeys(row["peer"] for row in results["rows"] if row["theirs"]):
        keys = [row["what"].split(",")[0] for row in results["rows"]
                if row["peer"] == peer and row["theirs"]]
        print(f"other of '{keys[0]}'{' and so on' if len(keys) > 1 else ''}: {peer}")


def busy(box):
    """Whether something else was running when it began, which makes all times too long."""
    return box["load"] > box["cpus"] / 2


def markdown(results):
    box = results["machine"]
    kind = "virtual machine" if box["virtual"] else "machine"
    print(f"""# Performance

What `make bench` measured last (`tests/bench/run.sh --markdown` writes this page).

{kind.capitalize()}: {box["cpus"]} CPUs, {box["cpu"]}, {box["memory_gb"]} GB of memory, Linux {box["kernel"]},
{box["perf"]}, no hardware counters needed (`cpu-clock`). Each number is the median of
{results["rows"][0]["ours"]["runs"]} runs with the smallest and largest in parentheses; ours and the other's runs take turns.
{BUSY.format(**box) if busy(box) else ""}
| what | inspect | other | other's command | ratio | goal |
|---|---|---|---|---|---|""")
    for row in results["rows"]:
        what, ours, theirs, ratio, goal = cells(row)
        peer = "`" + row["peer"].replace("|", "\\|") + "`" if row["theirs"] else "-"
        print(f"| {what} | {ours} | {theirs} | {peer} | {ratio} | {goal} |")
    print("""
How it is measured:

- **Recorder**: `tests/bench/busy.c` burns two CPUs 20 calls deep; user and system time of the
  whole recorder process (`wait4`), its start and end included. What the kernel spends in the target's
  own context to take a sample is the same for both and in neither.
- **Stacks without frame pointers**: `tests/bench/deep.c` works 20 calls deep in two threads, which
  count the time in which they stand still for 0.5 to 200 µs without another thread having its turn:
  interrupts, and what a BPF program or a
  stack copy takes is charged to the target in the same way. The slowdown is how much more of that
  there is while it is sampled than in the windows before and after. The first row says what that
  gives with no recorder at all: smaller differences are noise. The share of whole stacks is read by
  `inspect` from all three files.
- **Bytes per sample**: file size by samples, counted by a reader of its own in `tests/bench/measure.py`.
- **report** and **flame**: a file that `perf record -g -F 5000` wrote of `tests/bench/mixed.c`: two
  threads, 200 call paths 20 to 60 deep, through libc, zlib, zstd and the kernel. The SVG holds every
  frame; flamegraph.pl leaves out those below a tenth of a pixel.
- **500 MB of text**: `tests/bench/gen_perf_script.c`, 210,000 samples with 160,000 different stacks;
  memory is what is not the mapped input (`RssAnon`, looked at every 5 ms).""")
