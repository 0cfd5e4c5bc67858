/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the program that times functions and events and the tool exchange. */
#ifndef BPF_PROBES_ABI_H
#define BPF_PROBES_ABI_H

#include "syscalls.abi.h"

enum {
	PROBES_ARGS = 6,
	PROBES_RESULT = PROBES_ARGS + 1, /* as a value's number; arguments are 1 to 6 */
	PROBES_CONDITIONS = 4,
	PROBES_DEPTH = 16, /* calls of a recursive function that are told apart */
};

enum probes_operator {
	PROBES_EQUAL,
	PROBES_NOT_EQUAL,
	PROBES_LESS,
	PROBES_LESS_EQUAL,
	PROBES_GREATER,
	PROBES_GREATER_EQUAL,
};

struct probes_condition {
	__s64 value;
	__u32 what; /* argument, or PROBES_RESULT */
	__u32 is;   /* enum probes_operator */
};

/* A field of a tracepoint's record that stands for an argument, or a word that a function of the
 * kernel takes or gives, by its type. */
struct probes_field {
	__u16 offset;
	__u8 size_bytes; /* 0: there is none */
	__u8 is_signed;
};

/* Set before loading. */
struct probes_setup {
	__u32 by;      /* enum syscalls_by: thread, comm, value */
	__u8 by_value; /* argument, or PROBES_RESULT */
	__u8 measured; /* 0: latency; else argument, or PROBES_RESULT */
	__u8 has_end;  /* a second event ends what the first began */
	__u8 n_conditions;
	struct probes_condition conditions[PROBES_CONDITIONS];
	struct probes_field begin_fields[PROBES_ARGS], end_fields[PROBES_ARGS];
};

enum probes_count {
	PROBES_END_WITHOUT_BEGIN,
	PROBES_TOO_DEEP,
	PROBES_KEYS_FULL, /* events whose key found no room: in the totals */
	PROBES_THREADS_FULL,
	PROBES_EVENTS, /* that belonged to the target and fulfilled the conditions */
	PROBES_COUNTS,
};

_Static_assert(sizeof(struct probes_setup) == 8 + 16 * PROBES_CONDITIONS + 8 * PROBES_ARGS,
	       "no hidden padding");

#endif
