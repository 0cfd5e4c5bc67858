/* SPDX-License-Identifier: BSD-2-Clause */
#include "map_set.h"

struct map_set *map_set_new(void)
{
	struct map_set *s = calloc(1, sizeof(*s));

	if (s)
		s->users = 1;
	return s;
}

struct map_set *map_set_share(struct map_set *s)
{
	if (s)
		s->users++;
	return s;
}

void map_set_drop(struct map_set *s)
{
	if (!s || --s->users)
		return;
	array_release(&s->maps);
	free(s);
}

static int make_private(struct map_set **set)
{
	struct map_set *copy;

	if (*set && (*set)->users == 1)
		return 0;
	copy = map_set_new();
	if (!copy)
		return -ENOMEM;
	if (*set) {
		if (array_reserve(&copy->maps, (*set)->maps.n + 1)) {
			map_set_drop(copy);
			return -ENOMEM;
		}
		memcpy(copy->maps.v, (*set)->maps.v, (*set)->maps.n * sizeof(*copy->maps.v));
		copy->maps.n = (*set)->maps.n;
		map_set_drop(*set);
	}
	*set = copy;
	return 0;
}

/* Index of the first mapping that ends above va. */
static size_t first_above(const struct map_set *s, uint64_t va)
{
	size_t low = 0, high = s->maps.n;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (s->maps.v[mid].end_va > va)
			high = mid;
		else
			low = mid + 1;
	}
	return low;
}

static struct mapping upper_part(const struct mapping *m, uint64_t from_va)
{
	struct mapping part = *m;

	part.pgoff_bytes += from_va - m->start_va;
	part.start_va = from_va;
	return part;
}

int map_set_put(struct map_set **set, const struct mapping *m)
{
	struct mapping keep[3];
	size_t first, last, n_keep = 0;
	struct map_set *s;
	int err;

	if (m->start_va >= m->end_va)
		return 0;
	err = make_private(set);
	if (err)
		return err;
	s = *set;
	first = last = first_above(s, m->start_va);
	while (last < s->maps.n && s->maps.v[last].start_va < m->end_va)
		last++;
	err = array_reserve(&s->maps, s->maps.n + 2);
	if (err)
		return err;
	if (first < last && s->maps.v[first].start_va < m->start_va) {
		keep[n_keep] = s->maps.v[first];
		keep[n_keep++].end_va = m->start_va;
	}
	keep[n_keep++] = *m;
	if (first < last && s->maps.v[last - 1].end_va > m->end_va)
		keep[n_keep++] = upper_part(&s->maps.v[last - 1], m->end_va);
	memmove(s->maps.v + first + n_keep, s->maps.v + last,
		(s->maps.n - last) * sizeof(*s->maps.v));
	memcpy(s->maps.v + first, keep, n_keep * sizeof(*keep));
	s->maps.n += n_keep - (last - first);
	return 0;
}

const struct mapping *map_set_find(const struct map_set *s, uint64_t va)
{
	size_t i;

	if (!s)
		return NULL;
	i = first_above(s, va);
	return i < s->maps.n && s->maps.v[i].start_va <= va ? &s->maps.v[i] : NULL;
}
