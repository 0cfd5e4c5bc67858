/* SPDX-License-Identifier: BSD-2-Clause */
/* Many small allocations, freed together. Memory is 16-byte aligned and not cleared. */
#ifndef INSPECT_ARENA_H
#define INSPECT_ARENA_H

#include <inspect/base.h>

struct arena_chunk;

struct arena {
	struct arena_chunk *chunks; /* newest first */
	size_t used_bytes;          /* handed out since the last clear */
};

void arena_release(struct arena *a);

/* Forgets everything; keeps one chunk for reuse. */
void arena_clear(struct arena *a);

void *arena_alloc(struct arena *a, size_t size_bytes); /* NULL when out of memory */

/* A NUL-terminated copy, or NULL. */
char *arena_strndup(struct arena *a, const char *s, size_t n);

#endif
