# SPDX-License-Identifier: BSD-2-Clause
"""Loops of BPF objects that Linux before 6.8 refuses: there, what is no jump may not lead back to an
instruction on the way to it (check_cfg in kernel/bpf/verifier.c: "back-edge"). Prints each."""
import sys

from bpf_object import CALL, EXIT, JA, JMP, JMP32, Object


def followers(code, i):
    """In the order in which the kernel looks at them, and whether it lets one lead back."""
    kind, what = code[i].opcode & 7, code[i].opcode & 0xf0
    if kind not in (JMP, JMP32) or (kind == JMP and what == CALL):
        return [(i + 1, False)]
    if kind == JMP and what == EXIT:
        return []
    if kind == JMP and what == JA:
        return [(i + 1 + code[i].offset, True)]
    return [(i + 1, True), (i + 1 + code[i].offset, True)]


def refused(code):
    on_the_way, done, stack = {0}, set(), [(0, iter(followers(code, 0)))]
    while stack:
        i, rest = stack[-1]
        to, may_lead_back = next(rest, (None, True))
        if to is None:
            stack.pop()
            on_the_way.discard(i)
            done.add(i)
        elif to in on_the_way:
            if not may_lead_back:
                yield i
        elif to not in done and to < len(code):
            on_the_way.add(to)
            stack.append((to, iter(followers(code, to))))


for path in sys.argv[1:]:
    for function in Object(path).functions.values():
        for i in refused(function.code):
            print(f"{path}: {function.name}: a loop ends in instruction {i}, which is no jump")
