/* SPDX-License-Identifier: BSD-2-Clause */
/* Strings stored once, known by a small id. Id 0 is "". Ids are dense and in order of arrival. */
#ifndef INSPECT_INTERN_H
#define INSPECT_INTERN_H

#include <inspect/arena.h>
#include <inspect/array.h>
#include <inspect/hashmap.h>

struct intern_string {
	const char *s; /* NUL-terminated; may hold NULs inside */
	uint32_t n;
};

struct intern {
	struct arena arena;
	struct hashmap map;
	ARRAY(struct intern_string) strings;
};

int intern_init(struct intern *t); /* 0 or -ENOMEM */
void intern_release(struct intern *t);

/* The id of n bytes, added if new. 0, -ENOMEM, or -E2BIG (over 4 GiB, or 2^31 strings). */
int intern_add(struct intern *t, const char *s, size_t n, uint32_t *ret_id);
int intern_puts(struct intern *t, const char *s, uint32_t *ret_id);

static inline const char *intern_str(const struct intern *t, uint32_t id)
{
	return t->strings.v[id].s;
}

#endif
