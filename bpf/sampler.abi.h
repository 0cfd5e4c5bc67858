/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the sampler's program and the tool exchange. Fixed widths, explicit padding. */
#ifndef BPF_SAMPLER_ABI_H
#define BPF_SAMPLER_ABI_H

#ifndef __VMLINUX_H__
#include <linux/types.h>
#endif

#include "lib/unwind_step.h"

enum {
	SAMPLER_KERNEL_FRAMES = 127, /* kernel.perf_event_max_stack's default */
	SAMPLER_USER_FRAMES = UNWIND_MAX_STACK,
	SAMPLER_CHAIN = SAMPLER_KERNEL_FRAMES + SAMPLER_USER_FRAMES,
	SAMPLER_STACK_PIECE = 256, /* bytes: what can be read is read in pieces */
	SAMPLER_STACK_PIECES = 128,
	SAMPLER_ABSENT_PIECES = 16, /* at most a page, at the beginning */
	SAMPLER_EARLY_CPUS = 1024,  /* a power of two: later ones send none */
};

/* One sample: the head and the used part of the chain, kernel frames first, each leaf first. */
struct sampler_record {
	__u64 event_id;
	__u64 period;
	__u64 ip;
	__u32 pid, tid; /* as the tool's pid namespace numbers them; 0: not in it */
	__u16 n_kernel, n_user;
	__u8 stop;    /* enum unwind_stop */
	__u8 in_user; /* ip is user code */
	__u8 guessed; /* a user frame was found by frame pointer where there is no row */
	__u8 early;   /* a sampler_early instead */
	__u64 chain[SAMPLER_CHAIN];
};
#define SAMPLER_HEAD_BYTES 40
/* Set in event_id where perf's own sample of the tick has the id too: the kernel counts them up
 * from 1, so that with the top bit it is nobody's. */
#define SAMPLER_COPIED (1ULL << 63)

_Static_assert(offsetof(struct sampler_record, chain) == SAMPLER_HEAD_BYTES, "no hidden padding");

/*
 * A sample in code whose rows are not there yet: registers and what could be read of the stack, for
 * the tool to unwind when it has read what was mapped. Of the stack the used pieces are sent.
 */
struct sampler_early {
	__u8 head[SAMPLER_HEAD_BYTES]; /* of a sampler_record, without user frames */
	__u64 pc, r[UNWIND_REGS];      /* slots, as in struct unwind_state */
	__u64 kernel[SAMPLER_KERNEL_FRAMES];
	__u8 stack[SAMPLER_STACK_PIECES * SAMPLER_STACK_PIECE]; /* from sp up */
};

_Static_assert(sizeof(struct sampler_early) % 8 == 0, "no padding at the end");

/* Set before loading. */
struct sampler_setup {
	__u32 max_user_frames;
	__u8 with_chain, with_kernel;
	__u8 with_copy;    /* perf's own sample of the tick is wanted too */
	__u8 both_limited; /* max_user_frames is for kernel and user frames together */
	__u8 with_early;   /* samples of new code go to the tool to be unwound */
	__u8 pad[3];
};

_Static_assert(sizeof(struct sampler_setup) == 12, "shared with the tool");

#endif
