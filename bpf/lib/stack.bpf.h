/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Registers of the user code that a task runs, or ran when it entered the kernel. */
#ifndef BPF_LIB_STACK_BPF_H
#define BPF_LIB_STACK_BPF_H

#include "compat.bpf.h"
#include "unwind_step.h"

/* Into the slots of unwind_step.h. A macro: the context of a perf_event program and the registers
 * saved on the kernel's stack are read in different ways for the same names. */
#if defined(__TARGET_ARCH_x86)
#define STATE_FROM_REGS(s, from)                                                                   \
	do {                                                                                       \
		(s)->pc = (from)->ip;                                                              \
		(s)->r[0] = (from)->ax;                                                            \
		(s)->r[1] = (from)->dx;                                                            \
		(s)->r[2] = (from)->cx;                                                            \
		(s)->r[3] = (from)->bx;                                                            \
		(s)->r[4] = (from)->si;                                                            \
		(s)->r[5] = (from)->di;                                                            \
		(s)->r[6] = (from)->bp;                                                            \
		(s)->r[7] = (from)->sp;                                                            \
		(s)->r[8] = (from)->r8;                                                            \
		(s)->r[9] = (from)->r9;                                                            \
		(s)->r[10] = (from)->r10;                                                          \
		(s)->r[11] = (from)->r11;                                                          \
		(s)->r[12] = (from)->r12;                                                          \
		(s)->r[13] = (from)->r13;                                                          \
		(s)->r[14] = (from)->r14;                                                          \
		(s)->r[15] = (from)->r15;                                                          \
		(s)->known = 0xffff;                                                               \
	} while (0)
#elif defined(__TARGET_ARCH_arm64)
#define STATE_FROM_REGS(s, from)                                                                   \
	do {                                                                                       \
		(s)->pc = (from)->pc;                                                              \
		(s)->r[0] = (from)->regs[16];                                                      \
		(s)->r[1] = (from)->regs[17];                                                      \
		(s)->r[2] = (from)->regs[30];                                                      \
		(s)->r[3] = (from)->regs[19];                                                      \
		(s)->r[6] = (from)->regs[29];                                                      \
		(s)->r[7] = (from)->sp;                                                            \
		(s)->r[8] = (from)->regs[9];                                                       \
		(s)->r[9] = (from)->regs[10];                                                      \
		(s)->r[10] = (from)->regs[11];                                                     \
		(s)->r[11] = (from)->regs[12];                                                     \
		(s)->r[12] = (from)->regs[20];                                                     \
		(s)->r[13] = (from)->regs[21];                                                     \
		(s)->r[14] = (from)->regs[22];                                                     \
		(s)->r[15] = (from)->regs[23];                                                     \
		(s)->known = 0xffcf;                                                               \
	} while (0)
#endif

#endif
