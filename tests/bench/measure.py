# SPDX-License-Identifier: BSD-2-Clause
"""What a command costs: wall time, CPU time of it and its children, peak memory."""
import os
import statistics
import struct
import subprocess
import sys
import threading
import time

PERF_RECORD_SAMPLE = 9


class Cost:
    """Of one run; times in seconds, memory in bytes."""

    def __init__(self, wall, usage, anonymous):
        self.wall = wall
        self.cpu = usage.ru_utime + usage.ru_stime
        self.peak_rss = usage.ru_maxrss * 1024
        self.anonymous = anonymous


def anonymous_bytes(pid):
    """Memory of a process that is not a mapped file; 0 when it has ended."""
    try:
        with open(f"/proc/{pid}/status", encoding="ascii", errors="replace") as status:
            fields = dict(line.split(":", 1) for line in status)
        return sum(int(fields[key].split()[0]) * 1024 for key in ("RssAnon",))
    except (OSError, KeyError, ValueError):
        return 0


def run(argv, stdin=None, ok=(0,), watch=False):
    """Runs argv (a list, or text for bash) to its end; its output goes nowhere.
    watch: also looks every 5 ms how much of its memory is its own."""
    if isinstance(argv, str):
        argv = ["bash", "-o", "pipefail", "-c", argv]
    peak = [0]
    source = open(stdin, "rb") if stdin else subprocess.DEVNULL
    begin = time.monotonic()
    child = subprocess.Popen(argv, stdin=source, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    errors = []
    reader = threading.Thread(target=lambda: errors.append(child.stderr.read()))
    reader.start()
    stop = threading.Event()

    def look():
        while not stop.wait(0.005):
            peak[0] = max(peak[0], anonymous_bytes(child.pid))

    watcher = threading.Thread(target=look)
    if watch:
        watcher.start()
    _, status, usage = os.wait4(child.pid, 0)
    wall = time.monotonic() - begin
    child.returncode = os.waitstatus_to_exitcode(status)
    stop.set()
    reader.join()
    if watch:
        watcher.join()
    if stdin:
        source.close()
    if child.returncode not in ok:
        text = errors[0].decode(errors="replace")
        sys.exit(f"bench: exit {child.returncode} of {' '.join(argv)}\n{text}")
    return Cost(wall, usage, peak[0])


def sample_sizes(path):
    """Bytes of each sample in an uncompressed perf.data file, read by no tool that is measured."""
    with open(path, "rb") as file:
        header = file.read(104)
        if header[:8] != b"PERFILE2":
            sys.exit(f"bench: {path} is no perf.data file")
        start, size = struct.unpack_from("<QQ", header, 40)
        file.seek(start)
        data = file.read(size)
    sizes, position = [], 0
    while position + 8 <= len(data):
        kind, _, length = struct.unpack_from("<IHH", data, position)
        if length < 8:
            break
        if kind == PERF_RECORD_SAMPLE:
            sizes.append(length)
        position += length
    return sizes


def samples_in(path):
    return len(sample_sizes(path))


def spread(values):
    """The middle of the values with their range; a ready shape for JSON."""
    return {"median": statistics.median(values), "min": min(values), "max": max(values),
            "runs": len(values)}


def in_turn(repeat, *makers):
    """Each maker's costs over `repeat` rounds, taken in turn, so that a busy moment of the machine
    hits all of them."""
    costs = [[] for _ in makers]
    for _ in range(repeat):
        for values, make in zip(costs, makers):
            values.append(make())
    return costs
