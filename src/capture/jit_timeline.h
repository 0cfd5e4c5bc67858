/* SPDX-License-Identifier: BSD-2-Clause */
/* What code lay at an address at a time. Filled first, then asked. */
#ifndef JIT_TIMELINE_H
#define JIT_TIMELINE_H

#include <inspect/array.h>

/* Code, or (name_n 0) the absence of it, in [start, end) of pid from a time on. */
struct jit_place {
	uint64_t start_va, end_va;
	uint64_t from_ns, until_ns; /* until 0: no end */
	uint64_t name_off;          /* the name: in a file of the owner's, … */
	const char *name;           /* … or in memory, borrowed */
	uint32_t name_n;
	uint32_t pid;
	uint32_t source; /* for the owner */
	uint32_t code;   /* for the owner; 0 at first */
};

struct jit_timeline;

int jit_timeline_new(struct jit_timeline **ret); /* 0 or -ENOMEM */
void jit_timeline_free(struct jit_timeline *t);

/* Of places with one time the one that was added later counts. 0 or -ENOMEM. */
int jit_timeline_add(struct jit_timeline *t, const struct jit_place *place);
/* An address that will be asked for. 0 or -ENOMEM. */
int jit_timeline_ask(struct jit_timeline *t, uint64_t va);
/* After the last of both, before the first find. 0 or -ENOMEM. */
int jit_timeline_sort(struct jit_timeline *t);

/* What was put last over an address up to a time, or NULL: nothing, or its program had ended. */
struct jit_place *jit_timeline_find(struct jit_timeline *t, uint32_t pid, uint64_t va,
				    uint64_t time_ns);

#endif
