/* SPDX-License-Identifier: BSD-2-Clause */
#include <inspect/intern.h>

int intern_init(struct intern *t)
{
	uint32_t empty;
	int err;

	*t = (struct intern){0};
	err = intern_add(t, "", 0, &empty);
	if (err)
		intern_release(t);
	return err;
}

void intern_release(struct intern *t)
{
	array_release(&t->strings);
	hashmap_release(&t->map);
	arena_release(&t->arena);
}

int intern_add(struct intern *t, const char *s, size_t n, uint32_t *ret_id)
{
	uint64_t hash = hash_bytes(s, n);
	struct intern_string copy;
	uint32_t at, i, id = (uint32_t)t->strings.n;
	int err;

	hashmap_each_candidate(&t->map, hash, at, i) {
		const struct intern_string *known = &t->strings.v[i];

		if (known->n == n && (!n || memcmp(known->s, s, n) == 0)) {
			*ret_id = i;
			return 0;
		}
	}
	if (n > UINT32_MAX)
		return -E2BIG;
	copy.s = arena_strndup(&t->arena, s, n);
	copy.n = (uint32_t)n;
	if (!copy.s)
		return -ENOMEM;
	/* The array first: an index in the map always has its element. */
	err = array_reserve(&t->strings, t->strings.n + 1);
	if (err)
		return err;
	err = hashmap_insert(&t->map, hash, id);
	if (err)
		return err;
	t->strings.v[t->strings.n++] = copy;
	*ret_id = id;
	return 0;
}

int intern_puts(struct intern *t, const char *s, uint32_t *ret_id)
{
	return intern_add(t, s, strlen(s), ret_id);
}
