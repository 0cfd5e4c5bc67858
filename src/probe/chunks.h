/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One long array for BPF programs, made of fixed-size mmapable arrays in an array of maps: it grows
 * while programs read it, and costs only what is used.
 */
#ifndef PROBE_CHUNKS_H
#define PROBE_CHUNKS_H

#include <inspect/array.h>

struct chunks {
	int outer_fd; /* borrowed */
	const char *name;
	uint32_t element_bytes, shift, n_max; /* 1 << shift elements in each of n_max chunks */
	size_t budget_bytes;
	ARRAY(uint8_t *) mapped; /* the chunks, by index */
};

void chunks_release(struct chunks *c);

/* Makes the elements below `end` exist, which takes tens of milliseconds. 0, -ENOSPC (the budget or
 * the last index), or -errno. */
int chunks_reserve(struct chunks *c, uint64_t end);

/* Elements first … first + n - 1, which exist. */
void chunks_write(struct chunks *c, uint64_t first, const void *elements, size_t n);

#endif
