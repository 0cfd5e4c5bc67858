#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Profiles as text, for the shell tests: a second opinion that shares no code with the tool.

  through NAME [COMM]   % of the weight of folded stacks (stdin) that go through the frame NAME,
                        all or those of one thread name
  roots                 folded stacks -> `PERCENT ROOT` by the first frame after the thread name
  perf-self [EVENT]     `perf script -F comm,tid,event,ip,sym,dso` -> `COUNT NAME` by leaf; with -G,
                        as perf shows no frame at all of a chain with a broken entry
  report-self [EVENT]   `inspect report --json --all` -> the same
  perf-shares           `perf report --stdio --no-children -F overhead[,pid],symbol` ->
                        `PERCENT NAME`
  report-shares         `inspect report --json --all` -> the same
  perf-header           perf script text -> `COUNT EVENT`: samples by event
  same-stacks TEXT FILE two files of folded stacks are equal: each stack once, without marks of kind
                        and of truncation, and whatever has no name told by its module alone. TEXT
                        is from perf, which keeps what is no code at the root of a stack
  cut-samples FILE PART `BYTES SAMPLES` of a perf.data file that is cut after this part of its data
  sample-heads FILE     the most bytes of a sample beside its frames, without context marks
  same-shares A B       two lists of `PERCENT NAME` are equal within 0.01
"""
import collections
import json
import re
import struct
import sys

UNKNOWN = "[unknown]"


def folded(stream):
    for line in stream:
        stack, weight = line.rstrip("\n").rsplit(" ", 1)
        yield stack.split(";"), float(weight)


def unknown_to_perf(name):
    """perf 6.1 numbers the stubs of .plt.sec and .plt.got wrongly or not at all, and knows only the
    BPF programs that its own recording has told it of."""
    return name.endswith("@plt") or name.startswith("bpf_prog_")


def plain(name):
    """A frame without its kind, and one mark for whatever has no name."""
    name = re.sub(r"_\[[kjiw]\]$", "", name)
    if re.fullmatch(r"\[.*\+0x[0-9a-f]+\]|\[\w+\] 0x[0-9a-f]+", name):
        return UNKNOWN
    if unknown_to_perf(name):
        return UNKNOWN
    return re.sub(r"\+0x[0-9a-f]+$", "", name)


def print_counts(counts):
    for name, count in sorted(counts.items(), key=lambda item: (-item[1], item[0])):
        print(f"{count}\t{name}")


def through(name, comm=None):
    total = hits = 0
    for stack, weight in folded(sys.stdin):
        if comm is not None and stack[0] != comm:
            continue
        total += weight
        hits += weight * (name in [plain(frame) for frame in stack[1:]])
    print(f"{100 * hits / total if total else 0:.2f}")


def roots():
    by_root, total = collections.Counter(), 0
    for stack, weight in folded(sys.stdin):
        by_root[plain(stack[1])] += weight
        total += weight
    for root, weight in by_root.most_common():
        print(f"{100 * weight / total:.2f} {root}")


def perf_samples(stream):
    """(event, [frame names, leaf first]) of each sample of perf script's text."""
    event, frames = None, []
    frame = re.compile(r"\s*[0-9a-f]+ (.*?) \(.*\)$")
    for line in stream:
        line = line.rstrip("\n")
        if line.startswith("\t"):
            frames.append(frame.match(line).group(1))
            continue
        if event:
            yield event, frames
            event, frames = None, []
        if line:
            # `comm tid event:` and, without stacks, the sample's own frame; a comm may hold spaces
            header = re.match(r"\s*.*?\s+-?\d+\s+(\S+):\s*(.*)$", line)
            event = header.group(1)
            frames = [frame.match(header.group(2)).group(1)] if header.group(2) else []
    if event:
        yield event, frames


def perf_self(event=None):
    counts = collections.Counter()
    for name, frames in perf_samples(sys.stdin):
        if event in (None, name):
            counts[plain(frames[0]) if frames else UNKNOWN] += 1
    print_counts(counts)


def functions(event):
    for row in json.load(sys.stdin)["functions"]:
        if event in (None, row.get("event")):
            yield row


def report_self(event=None):
    counts = collections.Counter()
    for row in functions(event):
        counts[plain(row["function"])] += row["self_samples"]
    print_counts(+counts)


def perf_shares():
    shares = collections.Counter()
    for line in sys.stdin:
        match = re.match(r"\s*(\d+\.\d+)%\s+(?:\S+\s+)?\[.\] (.*?)\s*$", line)
        if match:
            name = match.group(2)
            name = UNKNOWN if re.fullmatch(r"(0x)?[0-9a-f]{6,16}", name) else plain(name)
            shares[name] += float(match.group(1))
    print_counts(shares)


def report_shares():
    shares = collections.Counter()
    for row in functions(None):
        shares[plain(row["function"])] += row["self_percent"]
    print_counts(shares)


def perf_header():
    print_counts(collections.Counter(name for name, _ in perf_samples(sys.stdin)))


def without_address(frame):
    frame = re.sub(r"_\[[kjiw]\]$", "", frame)
    frame = re.sub(r"^\[(unmapped|jit|kernel)\] 0x[0-9a-f]+$", UNKNOWN, frame)
    return re.sub(r"^\[([^]]*)\+0x[0-9a-f]+\]$", r"[\1]", frame)


def read_merged(path):
    weights = collections.Counter()
    with open(path, encoding="utf-8", errors="surrogateescape") as stream:
        for stack, weight in folded(stream):
            frames = (without_address(frame) for frame in stack if not frame.startswith("[truncated"))
            weights[tuple(frames)] += int(weight)
    return weights


def without_garbage(stack):
    """A stack without the words at its root that are no code."""
    first = 1
    while first < len(stack) - 1 and stack[first] == UNKNOWN:
        first += 1
    return stack[:1] + stack[first:]


def loose(frame):
    """What perf gives another name or none, as a frame without a name."""
    return UNKNOWN if unknown_to_perf(frame) or re.fullmatch(r"\[[^]]*\]", frame) else frame


def same_stacks(text, file):
    theirs, ours = collections.Counter(), read_merged(file)
    for stack, weight in read_merged(text).items():
        theirs[stack if stack in ours else without_garbage(stack)] += weight
    different = collections.Counter(ours)
    different.subtract(theirs)
    left = collections.Counter()
    for stack, weight in different.items():
        left[tuple(map(loose, stack))] += weight
    # The address after a call that never returns may lie behind all functions: perf names that one.
    for text_stack in [stack for stack, weight in left.items() if weight < 0]:
        for stack in [stack for stack, weight in left.items() if weight > 0]:
            if len(stack) == len(text_stack) and all(
                    a in (b, UNKNOWN) for a, b in zip(text_stack, stack)):
                both = min(-left[text_stack], left[stack])
                left[text_stack] += both
                left[stack] -= both
    for stack, weight in sorted(left.items()):
        if weight:
            print(f"{';'.join(stack)}: {weight:+} in the file")
    sys.exit(any(left.values()) or not ours)


def cut_samples(path, part):
    """Where a file ends that has only this part of its records, and how many samples those are."""
    with open(path, "rb") as file:
        content = file.read()
    at, size = struct.unpack_from("<QQ", content, 40)
    end = at + int(size * float(part))
    samples = 0
    while at + 8 <= end:
        kind, _, record_bytes = struct.unpack_from("<IHH", content, at)
        at += record_bytes
        samples += kind == 9 and at <= end  # PERF_RECORD_SAMPLE
    print(end, samples)


def sample_heads(path):
    before_chain = 0x101CF  # IP, TID, TIME, ADDR, ID, STREAM_ID, CPU, PERIOD, IDENTIFIER
    with open(path, "rb") as file:
        content = file.read()
    attrs, _, at, size = struct.unpack_from("<QQQQ", content, 24)
    sample_type, = struct.unpack_from("<Q", content, attrs + 24)
    words = bin(sample_type & before_chain).count("1")
    end, most = at + size, 0
    while at < end:
        kind, _, record_bytes = struct.unpack_from("<IHH", content, at)
        if kind == 9:  # PERF_RECORD_SAMPLE
            n, = struct.unpack_from("<Q", content, at + 8 + 8 * words)
            chain = struct.unpack_from(f"<{n}Q", content, at + 16 + 8 * words)
            most = max(most, record_bytes - 8 * sum(ip < 2**64 - 4095 for ip in chain))
        at += record_bytes
    print(most)


def same_shares(a, b):
    def read(path):
        with open(path, encoding="utf-8") as lines:
            return dict(reversed(line.rstrip("\n").split("\t")) for line in lines)
    first, second = read(a), read(b)
    different = 0
    # This stands for many entries of perf's, each of which is rounded.
    for name in sorted((set(first) | set(second)) - {UNKNOWN}):
        x, y = float(first.get(name, 0)), float(second.get(name, 0))
        if abs(x - y) > 0.0101:
            print(f"{name}: {x} {y}")
            different += 1
    sys.exit(different != 0 or not first)


COMMANDS = {"through": through, "roots": roots, "perf-self": perf_self, "report-self": report_self,
            "perf-shares": perf_shares, "report-shares": report_shares, "perf-header": perf_header,
            "same-stacks": same_stacks, "cut-samples": cut_samples,
            "sample-heads": sample_heads, "same-shares": same_shares}

if __name__ == "__main__":
    sys.stdin.reconfigure(errors="surrogateescape")
    sys.stdout.reconfigure(errors="surrogateescape")
    COMMANDS[sys.argv[1]](*sys.argv[2:])
