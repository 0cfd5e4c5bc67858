/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the program that times how long mutexes are held and the tool exchange. */
#ifndef BPF_HOLDS_ABI_H
#define BPF_HOLDS_ABI_H

#include "syscalls.abi.h"

enum { HOLDS_MAX = 16384, HOLDS_ROWS_MAX = 4096 };

/* A mutex that a thread has. */
struct hold_key {
	__u64 user_va;
	__u32 tid; /* of the initial pid namespace */
	__u32 pad;
};

struct hold {
	__u64 since_ns;
	__u32 pid, tid; /* as the tool's pid namespace numbers them */
};

/* Counted for all CPUs. */
struct holds_shared {
	__u64 held_from_before; /* given back, and not seen to be taken: since before the start */
	__u64 holds_full;       /* taken, for which there was no room */
	__u64 rows_full;        /* holds whose mutex found no row */
};

_Static_assert(sizeof(struct hold_key) == 16, "no hidden padding");
_Static_assert(sizeof(struct hold) == 16, "no hidden padding");

#endif
