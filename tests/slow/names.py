# SPDX-License-Identifier: BSD-2-Clause
"""names.py FILE [SYMBOLS]: 10,000 random addresses of FILE as inspect names them, beside addr2line -fi
where it has debug information, and nm (of SYMBOLS, its debug file) where not. Prints the counts, and
what differs without being one of these exceptions:

alias    several symbols at one address: perf's choice among them is shown, DWARF has another one.
linker   bfd puts the name of the symbol at the address where DWARF gives a function no linkage name,
         for inlined functions too; inspect keeps the name that the function has.
padding  bytes between functions: they have no name, addr2line gives them to the function before.
clone    the linker's name of a part or copy of a function, f.cold or f.constprop.0, where DWARF has f.
llvm     bfd 2.40 names the wrong file for lines in parts of functions: llvm-addr2line agrees with us.
plt      entries of the procedure linkage table, which neither of them names."""
import bisect
import collections
import json
import os
import re
import shutil
import subprocess
import sys

INSPECT = os.environ["INSPECT"]
PERFDATA = os.environ["PERFDATA"]
N = 10_000


def output(argv, **kwargs):
    return subprocess.run(argv, check=True, capture_output=True, text=True, errors="replace", **kwargs).stdout


class Symbols:
    """Functions by nm: all names of an address, and what covers it."""

    def __init__(self, path, dynamic):
        self.names = collections.defaultdict(set)
        self.sized, self.labels = [], []
        text = output(["nm", "--format=posix", "--defined-only", *(["-D"] if dynamic else []), path])
        for line in text.splitlines():
            name, kind, *numbers = line.split()
            if kind not in "tTwWiuV" or not numbers:
                continue
            start, size = int(numbers[0], 16), int(numbers[1], 16) if len(numbers) > 1 else 0
            self.names[start].add(name.split("@")[0])
            self.labels.append(start)
            if size:
                self.sized.append((start, start + size))
        self.sized.sort()
        self.labels.sort()
        self.starts = [start for start, _ in self.sized]
        self.starts_set = set(self.starts)

    def covering(self, address):
        """Names of the innermost functions over the address."""
        at = bisect.bisect_right(self.starts, address)
        for start, end in reversed(self.sized[max(0, at - 200):at]):
            if start <= address < end:
                return self.names[start]
        at = bisect.bisect_right(self.labels, address)
        last = self.labels[at - 1] if at else 0
        # A label without a size reaches to the next one.
        return set() if not at or last in self.starts_set else self.names[last]


def ours(path, addresses):
    text = "".join(f"{a:x}\n" for a in addresses)
    subprocess.run(["python3", PERFDATA, "names.data", path, str(len(addresses))], check=True,
                   input=text, text=True)
    report = json.loads(output([INSPECT, "report", "--json", "--no-demangle", "--all", "--sort",
                                "comm,srcline,symbol", "names.data"]))
    found = collections.defaultdict(list)
    for row in report["functions"]:
        if row["function"] != "[truncated]":
            found[int(row["comm"], 16)].append((row["function"], row["file"], row["line"]))
    return found


def by_addr2line(tool, path, addresses):
    """Innermost first: (name, file, line)."""
    text = "".join(f"0x{a:x}\n" for a in addresses)
    found, frames = {}, None
    lines = iter(output([tool, "-afi", "-e", path], input=text).splitlines())
    for line in lines:
        if line.startswith("0x"):
            frames = found.setdefault(int(line, 16), [])
            continue
        file, _, number = next(lines).partition(" (disc")[0].rpartition(":")
        number = int(number) if number.isdigit() else 0
        frames.append((line, file, number) if number else (line, None, None))
    return found


def places(frames):
    return sorted((file, line) for _, file, line in set(frames) if file)


def base(name):
    """Without a version, and without what the linker's name of a part or copy ends in."""
    return re.sub(r"(\.(cold|part|isra|constprop|lto_priv)(\.\d+)*)+$", "", name.split("@")[0])


def excuse(got, want, covering):
    """Why they may differ, or None."""
    if not covering:
        return "padding" if all(name.startswith("[") for name, _, _ in got) else None
    if any(name.endswith("@plt") for name, _, _ in got):
        return "plt"
    if places(got) != places(want):
        return None
    mine, theirs = {name for name, _, _ in got}, {name.split("@")[0] for name, _, _ in want}
    odd, missed = mine - theirs, theirs - mine
    if {base(name) for name in odd} == missed and odd <= covering:
        return "clone"
    aliases = covering | {base(name) for name in covering}
    if odd <= covering and missed <= aliases:
        return "alias"
    return "linker" if missed <= aliases and not any(n.startswith("_Z") for n in odd - covering) else None


def compare(path, symbols, with_lines):
    addresses = sorted(int(line, 16) for line in output(["python3", PERFDATA, "--random", str(N), path]).split())
    got = ours(path, addresses)
    want = by_addr2line("addr2line", path, addresses) if with_lines else {}
    counts, open_cases = collections.Counter(), []
    for address in addresses:
        mine, covering = got[address], symbols.covering(address)
        theirs = want.get(address, [])
        described = any(file for _, file, _ in theirs)
        if described and len(theirs) > 1:
            counts["with inlined functions"] += 1
        if described and sorted(mine, key=str) == sorted(set(theirs), key=str):
            counts["equal"] += 1
            continue
        if not described:
            names = {name for name, _, _ in mine}
            same = names <= covering if covering else all(n.startswith("[") for n in names)
            if same or any(n.endswith("@plt") for n in names):
                counts["equal to nm"] += 1
                continue
        why = excuse(mine, theirs, covering)
        if why:
            counts[why] += 1
        else:
            open_cases.append(address)
    others = by_addr2line("llvm-addr2line", SYMBOLS, open_cases) if shutil.which("llvm-addr2line") else {}
    for address in open_cases:
        mine, other, covering = got[address], others.get(address, []), symbols.covering(address)
        if other and (set(other) == set(mine) or excuse(mine, other, covering)):
            counts["llvm"] += 1
            continue
        counts["different"] += 1
        if counts["different"] <= 5:
            print(f"# {address:x}: got {mine}, want {want.get(address) or covering}", file=sys.stderr)
    return counts


path, SYMBOLS = sys.argv[1], sys.argv[-1]
sections = output(["readelf", "-SW", SYMBOLS])
counts = compare(path, Symbols(SYMBOLS, ".symtab" not in sections), "debug_info" in sections)
print(f"# {path}: " + ", ".join(f"{n} {what}" for what, n in counts.most_common()), file=sys.stderr)
print(counts["different"], counts["equal"] + counts["equal to nm"])
