# SPDX-License-Identifier: BSD-2-Clause
"""Stacks without frame pointers: what they cost the target and the recorder, and how many are whole."""
import os
import subprocess
import time

from measure import in_turn, run, samples_in

DEPTH = 20


class Target:
    """tests/bench/deep.c while it runs."""

    def __init__(self, path):
        self.child = subprocess.Popen([path, "2", str(DEPTH)], stdin=subprocess.PIPE,
                                      stdout=subprocess.PIPE, text=True)
        self.pid = self.child.stdout.readline().strip()

    def end(self):
        self.child.kill()
        self.child.wait()

    def now(self):
        """Pieces of work done, and their CPU time in ns."""
        print("", file=self.child.stdin, flush=True)
        return [int(word) for word in self.child.stdout.readline().split()]

    def piece_ns(self, during):
        """CPU time of a piece while something else happens."""
        pieces, cpu_ns = self.now()
        result = during()
        later, later_ns = self.now()
        return (later_ns - cpu_ns) / (later - pieces), result


def whole(inspect, path):
    """The share of samples whose stack reaches the thread's entry, and frames in a sample."""
    folded = subprocess.run([inspect, "flame", "--folded", "--no-inline", path], check=True,
                            capture_output=True, text=True).stdout
    weight = reached = frames = 0
    for line in folded.splitlines():
        stack, count = line.rsplit(" ", 1)
        weight += int(count)
        frames += int(count) * stack.count(";")
        reached += int(count) * (";thread_main;" in stack + ";")
    return 100 * reached / weight, frames / weight


def measure(options, inspect, folder):
    """For ours, perf's -g and its dwarf: lists of (slowdown, recorder, both, bytes, whole, frames);
    costs in % of a CPU, of which the target uses two."""
    target = Target(os.path.join(folder, "deep"))
    path = os.path.join(folder, "unwind.data")
    sampling = ["-F", "999", "-e", "cpu-clock", "-p", target.pid]
    seconds = str(options.seconds)

    def with_command(argv):
        def once():
            plain_ns, _ = target.piece_ns(lambda: time.sleep(options.seconds))
            cpu_before = target.now()[1]
            begin = time.monotonic()
            piece_ns, cost = target.piece_ns(lambda: run(argv))
            wall = time.monotonic() - begin
            cpus = (target.now()[1] - cpu_before) / 1e9 / wall
            slowdown = 100 * (piece_ns / plain_ns - 1)
            own = 100 * cost.cpu / wall
            complete, frames = whole(inspect, path)
            return (slowdown, own, slowdown * cpus + own, os.path.getsize(path) / samples_in(path),
                    complete, frames)
        return once

    tail = ["-o", path, "--", "sleep", seconds]
    try:
        return in_turn(options.runs,
                       with_command([inspect, "record", *sampling, "-d", seconds, "-o", path]),
                       with_command(["perf", "record", "-g", *sampling, *tail]),
                       with_command(["perf", "record", "--call-graph", "dwarf,65528", *sampling,
                                     *tail]))
    finally:
        target.end()


def rows(options, inspect, folder, row):
    """Lines of the table; row as in bench.py."""
    results = [list(zip(*runs)) for runs in measure(options, inspect, folder)]
    ours, others = results[0], {"perf record -g": results[1],
                                "perf record --call-graph dwarf,65528": results[2]}
    out = []
    for peer, theirs in others.items():
        dwarf = "dwarf" in peer
        out += [
            row("unwind_slowdown", "stacks without frame pointers: slowdown of the target, in the "
                "kernel", "%", ours[0], theirs[0], peer),
            row("unwind_own", "the recorder's own CPU time, in % of a CPU", "%", ours[1], theirs[1],
                peer),
            row("unwind_cost", "both together, in % of a CPU", "%", ours[2], theirs[2], peer,
                goal="no more", met=lambda r: r["ours"]["median"] <= r["theirs"]["median"]),
            row("unwind_bytes", f"bytes per sample in the file ({DEPTH} calls deep)", "bytes", ours[3],
                theirs[3], peer, goal="64 + 8 x frames",
                met=lambda r: r["ours"]["median"] <= 64 + 8 * max(ours[5])),
            row("unwind_whole", "stacks that reach their thread's entry", "%", ours[4], theirs[4],
                peer, goal="as many" if dwarf else None,
                met=(lambda r: r["ours"]["median"] >= r["theirs"]["median"] - 0.5) if dwarf else None),
        ]
    for one in out:
        one["ratio"] = None if one["unit"] == "%" else one["ratio"]
    return out
