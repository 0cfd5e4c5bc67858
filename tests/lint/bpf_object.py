# SPDX-License-Identifier: BSD-2-Clause
"""The functions of a BPF object, and whom they call."""
import collections
import struct

LD, LDX, ST, STX, ALU, JMP, JMP32, ALU64 = range(8)  # kinds: the low bits of an opcode
JA, CALL, EXIT = 0x00, 0x80, 0x90
LOAD_64 = 0x18  # an instruction of two words
PSEUDO_CALL, PSEUDO_FUNCTION = 1, 4
SHF_EXECINSTR, SHT_SYMTAB, SHT_REL, STT_FUNC = 4, 2, 9, 2

Insn = collections.namedtuple("Insn", "opcode target source offset number")
Function = collections.namedtuple("Function", "name section start code")


class Object:
    def __init__(self, path):
        with open(path, "rb") as file:
            elf = file.read()
        offset, = struct.unpack_from("<Q", elf, 40)
        size, count, _ = struct.unpack_from("<HHH", elf, 58)
        sections = [struct.unpack_from("<IIQQQQIIQQ", elf, offset + i * size) for i in range(count)]
        self.functions, self.relocated, symbols = {}, {}, []
        for _, kind, _, _, start, length, link, _, _, each in sections:
            for at in range(start, start + length, each) if kind == SHT_SYMTAB else ():
                name, info, _, section, value, n = struct.unpack_from("<IBBHQQ", elf, at)
                symbols.append((section, value))
                if info & 15 != STT_FUNC or section >= count or not sections[section][2] & SHF_EXECINSTR:
                    continue
                text, names = sections[section][4] + value, sections[link][4] + name
                code = [Insn(opcode, both & 15, both >> 4, jump, number)
                        for opcode, both, jump, number in struct.iter_unpack("<BBhi", elf[text:text + n])]
                self.functions[section, value] = Function(
                    elf[names:elf.index(b"\0", names)].decode(), section, value, code)
        for _, kind, _, _, start, length, _, section, _, each in sections:
            for at in range(start, start + length, each) if kind == SHT_REL else ():
                where, info = struct.unpack_from("<QQ", elf, at)
                self.relocated[section, where] = symbols[info >> 32]

    def callees(self, function):
        """Those it calls, and those it hands to a helper that calls them, as libbpf finds them."""
        for i, insn in enumerate(function.code):
            where = function.start + 8 * i
            section, start = self.relocated.get((function.section, where), (function.section, None))
            if insn.opcode == JMP | CALL and insn.source == PSEUDO_CALL:
                start = 8 * (insn.number + 1) + (where if start is None else start)
            elif insn.opcode == LOAD_64 and start is not None:
                start += insn.number
            else:
                continue
            if (section, start) in self.functions:
                yield self.functions[section, start]
