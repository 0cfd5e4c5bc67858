# SPDX-License-Identifier: BSD-2-Clause
"""fold.py: perf-script text on stdin to folded stacks, slowly and plainly, by regular expressions.

The oracle of tests/cmd/text_input.t. Written from the rules, not from the program.
"""
import collections
import re
import sys

HEADER = re.compile(r"^\s*(\S.*?)\s+(?:-?\d+/)?-?\d+\s+(?:\[\d+\]\s+)?\d+\.\d+:\s+(?:(\d+)\s+)?(\S+):\s*(.*)$")
# Names of C++ have ` (` too: the module is behind the offset, or else in the last brackets.
FRAMES = [re.compile(r"^\s*[0-9a-f]+\s+(.+?)\+0x[0-9a-f]+ \((.*)\)$"),
          re.compile(r"^\s*[0-9a-f]+\s+(.+) \(((?:[^()]|\(deleted\))*)\)$")]
KERNEL = re.compile(r"^\[kernel\.kallsyms\]|^\[guest\.kernel|^\[(?!vdso|vsyscall|unknown|heap|stack)\w+\]$|"
                    r"\.ko(\.\w+)?$|/vmlinux|^bpf_prog_")


def frame(text):
    found = FRAMES[0].match(text) or FRAMES[1].match(text)
    if not found:
        return None
    name, module = found.groups()
    suffix = ""
    if module == "inlined":
        suffix = "_[i]"
    elif KERNEL.search(module):
        suffix = "_[k]"
    elif re.match(r"/tmp/perf-\d+\.map$", module):
        suffix = "_[j]"
    if name == "[unknown]" and module != "[unknown]":
        short = re.sub(r" \(deleted\)$", "", module).rsplit("/", 1)[-1]
        short = "[kernel]" if short.startswith("[kernel.kallsyms]") else short
        name = short if short.startswith("[") else f"[{short}]"
    return name.replace(";", ":") + suffix


def main():
    folded = collections.Counter()
    comm, weight, stack = None, 0, []

    def end():
        if comm is not None:
            folded[";".join([comm, *reversed(stack)])] += weight

    for line in sys.stdin.read().split("\n"):
        header = HEADER.match(line)
        if not line.strip():
            end()
            comm, stack = None, []
        elif header and not line.startswith("\t"):
            end()
            comm, weight, stack = header[1].replace(" ", "_").replace(";", ":"), int(header[2] or 1), []
            one = frame(header[4])
            if one:
                stack.append(one)
        elif comm is not None:
            stack.append(frame(line))
    end()
    for key, value in sorted(folded.items()):
        print(key, value)


main()
