/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The maps that every unwinding program shares with the tool (src/probe/unwind_maps.c). */
#ifndef BPF_LIB_UNWIND_ABI_H
#define BPF_LIB_UNWIND_ABI_H

#include "unwind_step.h"

/*
 * Rows and ranges lie in chunks, mmapable arrays that are made when they are needed; an index
 * counts on through all chunks of a kind: chunk = index >> SHIFT.
 */
enum {
	UNWIND_ROW_SHIFT = 16,
	UNWIND_ROW_CHUNKS = 1024,
	UNWIND_RANGE_SHIFT = 12,
	UNWIND_RANGE_CHUNKS = 256,
	UNWIND_RULES_MAX = 65536, /* of all files together: equal ones are one */
	UNWIND_PROCESSES_MAX = 16384,
	UNWIND_REQUESTS_BYTES = 65536,

	UNWIND_ROW_STEPS = 26, /* of a binary search: 2^26 rows in all */
	UNWIND_RANGE_STEPS = 20,

	/* Rules that are always there. */
	UNWIND_RULE_INDEX_NONE = 0,
	UNWIND_RULE_INDEX_FP = 1,
	UNWIND_RULE_INDEX_FIRST = 2,
};

enum unwind_range_kind {
	UNWIND_RANGE_ROWS,
	UNWIND_RANGE_FP,   /* made at run time: frame pointers */
	UNWIND_RANGE_STOP, /* no rows for the reason in `stop`; a frame pointer may still help */
};

/* Executable memory of a process, [start, end). */
struct unwind_range {
	__u64 start_va, end_va;
	__u64 bias; /* added to an address: what rows count in (struct unwind_row.off) */
	__u32 first_row, n_rows;
	__u8 kind, stop;
	__u16 pad;
	__u32 generation; /* that of the process whose range this is now */
};

/* Of a process, by its pid: its ranges, sorted, disjoint. Copied to its children, which may then
 * refer to ranges that are another's by now: the generation tells. */
struct unwind_process {
	__u32 first, n;
	__u32 generation; /* 0: none yet */
	__u8 waiting;     /* the tool was asked for new ranges */
	__u8 fresh;       /* the last time it was, there were some: there may be more */
	__u8 pad[2];
	__u64 quiet_until_ns; /* do not ask before */
};

/* A process whose ranges are missing or old. */
struct unwind_request {
	__u32 pid;
	__u32 pad;
};

_Static_assert(sizeof(struct unwind_range) == 40, "shared with the tool");
_Static_assert(sizeof(struct unwind_process) == 24, "shared with the tool");
_Static_assert(sizeof(struct unwind_request) == 8, "shared with the tool");

#endif
