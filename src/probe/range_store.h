/* SPDX-License-Identifier: BSD-2-Clause */
/* Places for the ranges of processes. One that is given up is used again only a while later: a
 * program may still be reading it. */
#ifndef PROBE_RANGE_STORE_H
#define PROBE_RANGE_STORE_H

#include "chunks.h"

#include <lib/unwind.abi.h>

enum { RANGE_CLASSES = UNWIND_RANGE_STEPS + 1 };

struct range_place {
	uint32_t first;
	uint8_t class; /* room for 1 << class ranges */
};

struct range_store {
	struct chunks chunks;
	uint64_t n; /* places ever given out */
	ARRAY(uint32_t) free[RANGE_CLASSES];
	ARRAY(struct {
		struct range_place place;
		uint64_t since_ns;
	})
	resting;
};

void range_store_init(struct range_store *s, int ranges_fd, size_t budget_bytes);
void range_store_release(struct range_store *s);

/* Room for n ranges, written there. 0, -ENOSPC, or -errno. */
int range_store_put(struct range_store *s, const struct unwind_range *v, size_t n,
		    struct range_place *ret);
/* Gives a place up. 0 or -ENOMEM: it is never used again. */
int range_store_drop(struct range_store *s, struct range_place place, uint64_t now_ns);

#endif
