# SPDX-License-Identifier: BSD-2-Clause
"""unwind_kinds.py HZ PERF <kinds: checks auto.folded, dwarf.folded and, where PERF is not empty, the
leaves of perf.script, for lines `COMM FRAME`: whether the stacks of that thread name are complete, go
through the frame, and have perf's shares. Prints lines `RESULT NAME` with 0 for what holds."""
import collections
import math
import re
import sys

import profiles

# In a copy of the stack that begins at sp: a handler with a stack of its own hides what it interrupted.
OWN_STACK = ("dwarf", "uw_signal_other", "[truncated: copy of a signal handler's own stack]")
KERNEL = re.compile(r"_\[k\]$")


def read_folded(how, hz):
    """comm -> [(frames from the root, samples)], of stacks with a user part."""
    stacks = collections.defaultdict(list)
    with open(f"{how}.folded", encoding="utf-8", errors="replace") as stream:
        for stack, weight in profiles.folded(stream):
            if len(stack) > 1 and not KERNEL.search(stack[1]):
                stacks[stack[0]].append((stack[1:], weight * hz / 1e9))
    return stacks


def leaves_of(stacks):
    """Samples by user function that was running."""
    count = collections.Counter()
    for frames, samples in stacks:
        if not KERNEL.search(frames[-1]):
            count[profiles.plain(frames[-1])] += samples
    return count


def read_perf():
    """comm -> samples by user function."""
    count = collections.defaultdict(collections.Counter)
    with open("perf.script", encoding="utf-8", errors="replace") as stream:
        for line in stream:
            match = re.match(r"\s*(\S+)\s+([0-9a-f]+) (\S+)", line)
            if match and not match.group(2).startswith("ffff"):
                name = re.sub(r"@@?[A-Z][A-Za-z_]*_[0-9.]+$", "", match.group(3))
                # What lies before the entries of the PLT, which perf has no names for.
                plain = profiles.UNKNOWN if name == "_init" else profiles.plain(name)
                count[match.group(1)][plain] += 1
    return count


def say(holds, text):
    print(0 if holds else 1, text)


def in_mid_air(frames, frame):
    """Whether a stack of an exception begins somewhere, and nothing says so."""
    in_flight = any("thrower" in f or f.startswith("_Unwind_") for f in frames)
    return in_flight and frame not in frames and not frames[0].startswith("[truncated")


def check_complete(how, name, frame, stacks):
    total = sum(samples for _, samples in stacks)
    cut = through = 0
    for frames, samples in stacks:
        allowed = (how, name, frames[0]) == OWN_STACK
        cut += samples if frames[0].startswith("[truncated") and not allowed else 0
        through += samples if frame in frames or allowed else 0
    # 1 %, and three standard deviations of what chance adds
    most = total / 100 + 3 * math.sqrt(total / 100)
    say(total > 20 and cut <= most,
        f"{name}, {how}: complete stacks (all but {cut:.0f} of {total:.0f})")
    if name == "uw_exceptions":
        stray = sum(samples for frames, samples in stacks if in_mid_air(frames, frame))
        say(stray == 0, f"{name}, {how}: no other beginning ({stray:.0f} of {total:.0f})")
    # The rest is before main: the loader, and exec's last moments.
    say(through >= 0.9 * total, f"{name}, {how}: through {frame} ({through:.0f} of {total:.0f})")


def check_shares(how, name, ours, theirs):
    """Within 3 points, and three standard deviations of either: two samplers do not tick together."""
    n, m = sum(ours.values()), sum(theirs.values())
    worst = (-1, "nothing", 0, 0)
    for function in set(ours) | set(theirs):
        a, b = ours[function] / max(n, 1), theirs[function] / max(m, 1)
        p = (ours[function] + theirs[function]) / max(n + m, 1)
        chance = 3 * math.sqrt(p * (1 - p) * (1 / max(n, 1) + 1 / max(m, 1)))
        worst = max(worst, (abs(a - b) - 0.03 - chance, function, 100 * a, 100 * b))
    say(n > 20 and m > 20 and worst[0] <= 0,
        f"{name}, {how}: perf's shares (farthest: {worst[1]} {worst[2]:.1f} %, perf {worst[3]:.1f} %)")


def main():
    hz, has_perf = float(sys.argv[1]), sys.argv[2]
    perf = read_perf() if has_perf else None
    kinds = [line.split() for line in sys.stdin if line.strip()]
    for how in "auto", "dwarf":
        stacks = read_folded(how, hz)
        for name, frame in kinds:
            check_complete(how, name, frame, stacks[name])
            if perf:
                check_shares(how, name, leaves_of(stacks[name]), perf[name])


main()
