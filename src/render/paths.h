/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Rows as sequences of keys, sorted: what the merged tree and folded text are both made from.
 * A key is the rank of a name in the wanted order, so that sorting compares numbers only.
 */
#ifndef RENDER_PATHS_H
#define RENDER_PATHS_H

#include <inspect/profile.h>

struct path {
	size_t first; /* in keys */
	uint32_t n;
	uint64_t weight, count;
};

struct paths {
	ARRAY(uint32_t) keys;
	ARRAY(struct path) rows;
};

void paths_release(struct paths *ps);

/* Orders the rows by their keys; a path comes before those that go on from it. 0 or -ENOMEM. */
int paths_sort(struct paths *ps);

/* The number of keys at the start that both have. */
uint32_t paths_common(const struct paths *ps, const struct path *a, const struct path *b);

/* Sums that stick at the end of the range: weights of text input may be anything. */
static inline uint64_t sum_u64(uint64_t a, uint64_t b)
{
	uint64_t sum;

	return __builtin_add_overflow(a, b, &sum) ? UINT64_MAX : sum;
}

#endif
