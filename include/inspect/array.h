/* SPDX-License-Identifier: BSD-2-Clause */
/* Growing arrays: `ARRAY(struct row) rows = {0};` has .v, .n and .cap; array_release frees. */
#ifndef INSPECT_ARRAY_H
#define INSPECT_ARRAY_H

#include <inspect/base.h>

#define ARRAY(type)                                                                                \
	struct {                                                                                   \
		type *v;                                                                           \
		size_t n, cap;                                                                     \
	}

/* Makes *v hold at least `want` elements of `size` bytes. Returns 0 or -ENOMEM. */
static inline int array_grow_(void **v, size_t *cap, size_t want, size_t size)
{
	size_t next = *cap ? *cap : 8;
	void *moved;

	if (want <= *cap)
		return 0;
	while (next < want)
		next += next / 2 + 1;
	if (next > SIZE_MAX / size)
		return -ENOMEM;
	moved = realloc(*v, next * size);
	if (!moved)
		return -ENOMEM;
	*v = moved;
	*cap = next;
	return 0;
}

/* Room for `want` elements in all. 0 or -ENOMEM. */
#define array_reserve(a, want) array_grow_((void **)&(a)->v, &(a)->cap, (want), sizeof(*(a)->v))

/* Appends one element, given as an expression of the element type. 0 or -ENOMEM. */
#define array_push(a, ...)                                                                         \
	({                                                                                         \
		int err_ = array_reserve((a), (a)->n + 1);                                         \
		if (!err_)                                                                         \
			(a)->v[(a)->n++] = (__VA_ARGS__);                                          \
		err_;                                                                              \
	})

/* Frees the storage (not what the elements own). */
#define array_release(a)                                                                           \
	do {                                                                                       \
		free((a)->v);                                                                      \
		(a)->v = NULL;                                                                     \
		(a)->n = (a)->cap = 0;                                                             \
	} while (0)

#endif
