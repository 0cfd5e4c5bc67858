/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A stack is sent once and then meant by its id: what is counted by stacks has that as key. */
#ifndef BPF_LIB_STACKS_ABI_H
#define BPF_LIB_STACKS_ABI_H

#include "unwind_step.h"

enum {
	STACK_KERNEL_FRAMES = 127, /* kernel.perf_event_max_stack's default */
	STACK_USER_FRAMES = UNWIND_MAX_STACK,
	STACK_CHAIN = STACK_KERNEL_FRAMES + STACK_USER_FRAMES,
	STACKS_MAX = 65536,
	STACK_MARK = 0x4b415453, /* "STAK": which message it is */
};

/* The message: the head and the used part of the chain, kernel frames first, each leaf first. */
struct stack_record {
	__u64 id; /* never 0: a hash of pid and chain, and how it ended */
	__u32 mark;
	__u32 pid; /* as the tool's pid namespace numbers it */
	__u32 tid; /* of whom it was seen first: not part of the id */
	__u16 n_kernel, n_user;
	__u8 stop;    /* enum unwind_stop */
	__u8 guessed; /* a user frame was found by frame pointer where there is no row */
	__u16 pad[3];
	__u64 chain[STACK_CHAIN];
};
#define STACK_HEAD_BYTES 32

_Static_assert(offsetof(struct stack_record, chain) == STACK_HEAD_BYTES, "no hidden padding");

/* Set before loading. */
struct stack_setup {
	__u32 max_user_frames;
	__u8 with_kernel, with_user;
	__u16 pad;
	/* The kernel's function between a tracepoint and its programs when there are several. */
	__u64 iterator_from_va, iterator_to_va;
};

/* Counted by the program, by CPU. */
struct stack_losses {
	__u64 unsent; /* the ring had no room: sent with the next wait there */
	__u64 full;   /* more than STACKS_MAX stacks */
};

_Static_assert(sizeof(struct stack_setup) == 24, "shared with the tool");
_Static_assert(sizeof(struct stack_losses) == 16, "shared with the tool");

#endif
