# SPDX-License-Identifier: BSD-2-Clause
"""Chains of calls in BPF objects whose frames are more than 512 bytes together, which Linux before
6.13 refuses: each counts rounded up to 32, and a function that a helper calls counts as called where
it is handed over (check_max_stack_depth in kernel/bpf/verifier.c). And chains of more than 8 frames,
which every kernel refuses. Prints the longest of each program."""
import sys

from bpf_object import ALU, ALU64, CALL, JMP, LD, LDX, ST, STX, Object

STACK_BYTES, UNIT_BYTES, FRAMES, FRAME_POINTER = 512, 32, 8, 10
ADD, MOV, OF_REGISTER = 0x00, 0xb0, 0x08


def frame_bytes(code):
    """What is reached below r10: by it, or by a register that was it and had a number added."""
    at, deepest = {FRAME_POINTER: 0}, 0
    for insn in code:
        kind, what = insn.opcode & 7, insn.opcode & 0xf0
        base = insn.source if kind == LDX else insn.target if kind in (ST, STX) else None
        if base in at:
            deepest = min(deepest, at[base] + insn.offset)
        if kind == ALU64 and what == MOV and insn.opcode & OF_REGISTER and insn.source in at:
            at[insn.target] = at[insn.source]
        elif kind == ALU64 and what == ADD and not insn.opcode & OF_REGISTER and insn.target in at:
            at[insn.target] += insn.number
            deepest = min(deepest, at[insn.target])
        elif kind in (LD, LDX, ALU, ALU64):
            at.pop(insn.target, None)
        elif kind == JMP and what == CALL:
            for register in range(6):
                at.pop(register, None)
    return max(1, (UNIT_BYTES - 1 - deepest) // UNIT_BYTES) * UNIT_BYTES


def most_frames(bpf, function, known):
    if function.name not in known:
        rest = max((most_frames(bpf, callee, known) for callee in bpf.callees(function)),
                   key=len, default=[])
        known[function.name] = [function.name] + rest
    return known[function.name]


def deepest_chain(bpf, function, known):
    if function.name not in known:
        frame = frame_bytes(function.code)
        rest = max((deepest_chain(bpf, callee, known) for callee in bpf.callees(function)),
                   default=(0, []))
        known[function.name] = (frame + rest[0], [f"{function.name} {frame}"] + rest[1])
    return known[function.name]


for path in sys.argv[1:]:
    bpf = Object(path)
    called = {callee.name for function in bpf.functions.values() for callee in bpf.callees(function)}
    known, longest = {}, {}
    for function in bpf.functions.values():
        frames = most_frames(bpf, function, longest)
        if len(frames) > FRAMES and function.name not in called:
            print(f"{path}: {len(frames)} frames: {' > '.join(frames)}")
        total, chain = deepest_chain(bpf, function, known)
        if total > STACK_BYTES and function.name not in called:
            print(f"{path}: {total} bytes: {' > '.join(chain)}")
