/* SPDX-License-Identifier: BSD-2-Clause */
#include "paths.h"

void paths_release(struct paths *ps)
{
	array_release(&ps->keys);
	array_release(&ps->rows);
}

/* 0 stands for the end of the path, so that it sorts first. */
static uint64_t key_at(const struct paths *ps, const struct path *r, uint32_t depth)
{
	return depth < r->n ? (uint64_t)ps->keys.v[r->first + depth] + 1 : 0;
}

static bool path_less(const struct paths *ps, const struct path *a, const struct path *b,
		      uint32_t depth)
{
	for (;; depth++) {
		uint64_t x = key_at(ps, a, depth), y = key_at(ps, b, depth);

		if (x != y)
			return x < y;
		if (!x)
			return false;
	}
}

static void swap_rows(struct path *a, struct path *b)
{
	struct path kept = *a;

	*a = *b;
	*b = kept;
}

/* Rows lo … lo + n - 1 agree in their first `depth` keys. */
struct range {
	size_t lo, n;
	uint32_t depth;
};

static void insertion_sort(struct paths *ps, const struct range *r)
{
	struct path *v = ps->rows.v + r->lo;

	for (size_t i = 1; i < r->n; i++) {
		struct path row = v[i];
		size_t at = i;

		for (; at > 0 && path_less(ps, &row, &v[at - 1], r->depth); at--)
			v[at] = v[at - 1];
		v[at] = row;
	}
}

/* Three-way split around one row's key: less … equal … greater. */
static void split(struct paths *ps, const struct range *r, struct range ret[3])
{
	struct path *v = ps->rows.v;
	size_t less = r->lo, at = r->lo, end = r->lo + r->n;
	size_t chosen = r->lo + hash_u64(r->lo ^ (uint64_t)r->n << 20 ^ r->depth) % r->n;
	uint64_t pivot = key_at(ps, &v[chosen], r->depth);

	while (at < end) {
		uint64_t key = key_at(ps, &v[at], r->depth);

		if (key < pivot)
			swap_rows(&v[less++], &v[at++]);
		else if (key > pivot)
			swap_rows(&v[at], &v[--end]);
		else
			at++;
	}
	ret[0] = (struct range){r->lo, less - r->lo, r->depth};
	ret[1] = (struct range){less, pivot ? end - less : 0, r->depth + 1};
	ret[2] = (struct range){end, r->lo + r->n - end, r->depth};
}

/* Multikey quicksort (Bentley and Sedgewick 1997): a shared start is passed over once, not once
 * for each comparison. The ranges still to do are kept on the heap: stacks can be very deep. */
int paths_sort(struct paths *ps)
{
	enum { SMALL = 12 };
	ARRAY(struct range) todo = {0};
	int err = ps->rows.n > 1 ? array_push(&todo, (struct range){0, ps->rows.n, 0}) : 0;

	while (!err && todo.n) {
		struct range r = todo.v[--todo.n], parts[3];

		if (r.n <= SMALL) {
			insertion_sort(ps, &r);
			continue;
		}
		split(ps, &r, parts);
		for (size_t i = 0; i < ARRAY_SIZE(parts) && !err; i++)
			if (parts[i].n > 1)
				err = array_push(&todo, parts[i]);
	}
	array_release(&todo);
	return err;
}

uint32_t paths_common(const struct paths *ps, const struct path *a, const struct path *b)
{
	uint32_t n = MIN(a->n, b->n), i = 0;

	while (i < n && ps->keys.v[a->first + i] == ps->keys.v[b->first + i])
		i++;
	return i;
}
