#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# What `inspect stat -- true` costs beside `perf stat true` (goal: no more). Run in turns.
set -eu
cd "$(dirname "$0")/../.."
O=${O:-build}
command -v perf >/dev/null || {
	echo "bench: no perf to compare with"
	exit 0
}
LC_ALL=C exec python3 - "$O/inspect" <<'END'
import statistics, subprocess, sys, time

ROUNDS = 60
commands = {"inspect": [sys.argv[1], "stat", "--", "true"], "perf": ["perf", "stat", "true"]}
times = {name: [] for name in commands}
for _ in range(ROUNDS):
    for name, command in commands.items():
        start = time.perf_counter()
        subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL, check=True)
        times[name].append((time.perf_counter() - start) * 1e3)
ours, theirs = (statistics.median(times[name]) for name in ("inspect", "perf"))
least = min(times["inspect"]) / min(times["perf"])
print(f"stat -- true: inspect {ours:.1f} ms, perf {theirs:.1f} ms (medians of {ROUNDS}): "
      f"{ours / theirs:.2f}x, best runs {least:.2f}x (goal: at most 1x)")
END
