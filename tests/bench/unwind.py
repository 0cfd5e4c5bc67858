# SPDX-License-Identifier: BSD-2-Clause
"""Stacks without frame pointers: what they cost the target and the recorder, and how many are whole.

The target's threads do the same piece of work again and again, and count the time in which they stand
still for less than a scheduler's turn: timer interrupts, and with a recorder, what a sample takes. Every
recording stands between two windows without one: what it adds is the slowdown. A recorder that does
nothing (sleep) has its turn as well, and shows what such a figure is worth on this machine. The CPU time
of a piece is compared too; it has what samples do to caches in it, and the noise of those."""
import concurrent.futures
import math
import os
import statistics
import subprocess
import time

from measure import run, sample_sizes

DEPTH = 20
PLAIN_S = 2   # of a window without a recorder
SETTLE_S = 1  # from the start of a recorder to its window, and from that to its end


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
        """Pieces of work done, their CPU time and the time they stood still in ns."""
        print("", file=self.child.stdin, flush=True)
        return [int(word) for word in self.child.stdout.readline().split()]

    def window(self, seconds):
        """CPU time of a piece in ns, % of it that the threads stood still, and CPUs used."""
        first = self.now()
        begin = time.monotonic()
        time.sleep(seconds)
        pieces, cpu_ns, still_ns = (b - a for a, b in zip(first, self.now()))
        wall = time.monotonic() - begin
        return cpu_ns / pieces, 100 * still_ns / cpu_ns, cpu_ns / 1e9 / wall


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


def record(target, seconds, argv, pool):
    """A recorder while the target goes on: the target's window, and % of a CPU of its own."""
    begin = time.monotonic()
    recorder = pool.submit(run, argv)
    time.sleep(SETTLE_S)
    window = target.window(seconds - 2 * SETTLE_S)
    cost = recorder.result()
    return *window, 100 * cost.cpu / (time.monotonic() - begin)


def measure(options, inspect, folder):
    """By recorder: a list of dicts of slowdown (by standing still, and by pieces; % of the target's CPU
    time), own and cost (with what the target loses; % of a CPU), and of its file the bytes of a sample,
    the file's bytes for each, the share of whole stacks and the frames of one."""
    target = Target(os.path.join(folder, "deep"))
    path = os.path.join(folder, "unwind.data")
    sampling = ["-F", "999", "-e", "cpu-clock", "-p", target.pid]
    seconds = max(options.seconds, 2 * SETTLE_S + 2)
    sleep = ["sleep", str(seconds)]
    recorders = {
        "none": sleep,
        "inspect": [inspect, "record", *sampling, "-d", str(seconds), "-o", path],
        "perf record -g": ["perf", "record", "-g", *sampling, "-o", path, "--", *sleep],
        "perf record --call-graph dwarf,65528": [
            "perf", "record", "--call-graph", "dwarf,65528", *sampling, "-o", path, "--", *sleep],
    }
    results = {name: [] for name in recorders}
    try:
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            before = target.window(PLAIN_S)
            for _ in range(options.runs):
                for name, argv in recorders.items():
                    piece_ns, still, cpus, own = record(target, seconds, argv, pool)
                    after = target.window(PLAIN_S)
                    slowdown = still - (before[1] + after[1]) / 2
                    one = {"slowdown": slowdown, "own": own, "cost": slowdown * cpus + own,
                           "pieces": 100 * (2 * piece_ns / (before[0] + after[0]) - 1)}
                    if name != "none":
                        one["whole"], one["frames"] = whole(inspect, path)
                        sizes = sample_sizes(path)
                        one["bytes"] = statistics.mean(sizes)
                        one["file"] = os.path.getsize(path) / len(sizes)
                        os.unlink(path)
                    results[name].append(one)
                    before = after
    finally:
        target.end()
    return results


def rows(options, inspect, folder, row):
    """Lines of the table; row as in bench.py."""
    results = measure(options, inspect, folder)
    none, ours = results.pop("none"), results.pop("inspect")

    def values(runs, key):
        return [one[key] for one in runs]

    # Two standard errors, in % of a CPU for two busy threads
    doubt = 2 * 2 * statistics.pstdev(values(none, "slowdown")) / math.sqrt(len(none))

    def costs_no_more(result):
        more = result["ours"]["median"] - result["theirs"]["median"]
        return True if more <= 0 else None if more <= doubt else False

    out = [row("unwind_none", "stacks without frame pointers: slowdown that is measured without a "
               "recorder", "%", values(none, "slowdown")),
           row("unwind_none_pieces", "the same by the CPU time of a piece of work", "%",
               values(none, "pieces"))]
    for peer, theirs in results.items():
        dwarf = "dwarf" in peer
        out += [
            row("unwind_slowdown", "slowdown of the target, in the kernel", "%",
                values(ours, "slowdown"), values(theirs, "slowdown"), peer),
            row("unwind_slowdown_pieces", "the same by the CPU time of a piece of work", "%",
                values(ours, "pieces"), values(theirs, "pieces"), peer),
            row("unwind_own", "the recorder's own CPU time, in % of a CPU", "%", values(ours, "own"),
                values(theirs, "own"), peer),
            row("unwind_cost", "both together, in % of a CPU", "%", values(ours, "cost"),
                values(theirs, "cost"), peer, goal="no more", met=costs_no_more),
            row("unwind_bytes", f"bytes of a sample ({ours[0]['frames']:.1f} frames)", "bytes",
                values(ours, "bytes"), values(theirs, "bytes"), peer, goal="64 + 8 x frames",
                met=lambda r: r["ours"]["median"] <= 64 + 8 * max(values(ours, "frames"))),
            row("unwind_file", "bytes of the whole file for each sample", "bytes", values(ours, "file"),
                values(theirs, "file"), peer),
            row("unwind_whole", "stacks that reach their thread's entry", "%", values(ours, "whole"),
                values(theirs, "whole"), peer, goal="as many" if dwarf else None,
                met=(lambda r: r["ours"]["median"] >= r["theirs"]["median"] - 0.5) if dwarf else None),
        ]
    for one in out:
        one["ratio"] = None if one["unit"] == "%" else one["ratio"]
    return out
