# SPDX-License-Identifier: BSD-2-Clause
"""Loops of BPF objects that Linux before 6.8 refuses: there, what is no jump may not lead back to an
instruction on the way to it (check_cfg in kernel/bpf/verifier.c: "back-edge"). Prints each."""
import struct
import sys

JMP, JMP32, JA, CALL, EXIT = 5, 6, 0x00, 0x80, 0x90
SHF_EXECINSTR, SHT_SYMTAB, STT_FUNC = 4, 2, 2


def functions(elf):
    offset, = struct.unpack_from("<Q", elf, 40)
    size, count, _ = struct.unpack_from("<HHH", elf, 58)
    sections = [struct.unpack_from("<IIQQQQIIQQ", elf, offset + i * size) for i in range(count)]
    for _, kind, _, _, start, length, link, _, _, each in sections:
        for at in range(start, start + length if kind == SHT_SYMTAB else start, each or 1):
            name, info, _, section, value, n = struct.unpack_from("<IBBHQQ", elf, at)
            if info & 15 != STT_FUNC or section >= count or not sections[section][2] & SHF_EXECINSTR:
                continue
            text, names = sections[section][4] + value, sections[link][4] + name
            yield elf[names:elf.index(b"\0", names)].decode(), elf[text:text + n]


def followers(code, i):
    """In the order in which the kernel looks at them, and whether it lets one lead back."""
    opcode, _, jump = struct.unpack_from("<BBh", code, 8 * i)
    kind, what = opcode & 7, opcode & 0xf0
    if kind not in (JMP, JMP32) or (kind == JMP and what == CALL):
        return [(i + 1, False)]
    if kind == JMP and what == EXIT:
        return []
    if kind == JMP and what == JA:
        return [(i + 1 + jump, True)]
    return [(i + 1, True), (i + 1 + jump, True)]


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
        elif to not in done and 8 * to < len(code):
            on_the_way.add(to)
            stack.append((to, iter(followers(code, to))))


for path in sys.argv[1:]:
    with open(path, "rb") as file:
        for name, code in functions(file.read()):
            for i in refused(code):
                print(f"{path}: {name}: a loop ends in instruction {i}, which is no jump")
