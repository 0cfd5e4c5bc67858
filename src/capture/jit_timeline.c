/* SPDX-License-Identifier: BSD-2-Clause */
#include "jit_timeline.h"

/* For each address that is asked for: the places over it, by pid and time. A dump in which
 * everything lies over everything is cut short at this many. */
#define LAYERS_MAX (1U << 24)

struct address {
	uint64_t va;
	uint32_t first, n; /* in layers */
};

struct jit_timeline {
	ARRAY(struct jit_place) places; /* as they were added */
	ARRAY(uint32_t) order;          /* places by start */
	ARRAY(struct address) addresses;
	ARRAY(uint32_t) layers; /* places */
};

int jit_timeline_new(struct jit_timeline **ret)
{
	struct jit_timeline *t = calloc(1, sizeof(*t));

	if (!t)
		return -ENOMEM;
	*ret = t;
	return 0;
}

void jit_timeline_free(struct jit_timeline *t)
{
	if (!t)
		return;
	array_release(&t->places);
	array_release(&t->order);
	array_release(&t->addresses);
	array_release(&t->layers);
	free(t);
}

int jit_timeline_add(struct jit_timeline *t, const struct jit_place *place)
{
	if (place->start_va >= place->end_va || t->places.n >= UINT32_MAX / 2)
		return 0;
	return array_push(&t->places, *place);
}

int jit_timeline_ask(struct jit_timeline *t, uint64_t va)
{
	return array_push(&t->addresses, (struct address){.va = va});
}

static int by_va(const void *a, const void *b)
{
	const struct address *x = a, *y = b;

	return x->va < y->va ? -1 : x->va > y->va;
}

static int by_start(const void *a, const void *b, void *ctx)
{
	const struct jit_timeline *t = ctx;
	uint32_t i = *(const uint32_t *)a, k = *(const uint32_t *)b;
	const struct jit_place *x = &t->places.v[i], *y = &t->places.v[k];

	if (x->start_va != y->start_va)
		return x->start_va < y->start_va ? -1 : 1;
	return i < k ? -1 : i > k;
}

/* By pid, then time, then the order in which they were added. */
static int by_time(const void *a, const void *b, void *ctx)
{
	const struct jit_timeline *t = ctx;
	uint32_t i = *(const uint32_t *)a, k = *(const uint32_t *)b;
	const struct jit_place *x = &t->places.v[i], *y = &t->places.v[k];

	if (x->pid != y->pid)
		return x->pid < y->pid ? -1 : 1;
	if (x->from_ns != y->from_ns)
		return x->from_ns < y->from_ns ? -1 : 1;
	return i < k ? -1 : i > k;
}

typedef ARRAY(uint32_t) indexes;

/* Takes the places over one address out of those that began at or before it; those that ended are
 * forgotten. */
static int take_layers(struct jit_timeline *t, struct address *a, indexes *begun)
{
	size_t kept = 0;
	int err = 0;

	a->first = (uint32_t)t->layers.n;
	for (size_t i = 0; i < begun->n && !err; i++) {
		uint32_t place = begun->v[i];

		if (t->places.v[place].end_va <= a->va)
			continue;
		begun->v[kept++] = place;
		if (t->layers.n < LAYERS_MAX)
			err = array_push(&t->layers, place);
	}
	begun->n = kept;
	a->n = (uint32_t)t->layers.n - a->first;
	if (!err && a->n)
		qsort_r(t->layers.v + a->first, a->n, sizeof(*t->layers.v), by_time, t);
	return err;
}

int jit_timeline_sort(struct jit_timeline *t)
{
	indexes begun = {0};
	size_t next = 0;
	int err = 0;

	for (uint32_t i = 0; i < t->places.n && !err; i++)
		err = array_push(&t->order, i);
	if (!err && t->order.n)
		qsort_r(t->order.v, t->order.n, sizeof(*t->order.v), by_start, t);
	if (t->addresses.n)
		qsort(t->addresses.v, t->addresses.n, sizeof(*t->addresses.v), by_va);
	for (size_t i = 0; i < t->addresses.n && !err; i++) {
		struct address *a = &t->addresses.v[i];

		for (; next < t->order.n && !err; next++) {
			if (t->places.v[t->order.v[next]].start_va > a->va)
				break;
			err = array_push(&begun, t->order.v[next]);
		}
		if (!err)
			err = take_layers(t, a, &begun);
	}
	array_release(&begun);
	return err;
}

static bool is_later(const struct jit_place *p, uint32_t pid, uint64_t time_ns)
{
	return p->pid != pid ? p->pid > pid : p->from_ns > time_ns;
}

struct jit_place *jit_timeline_find(struct jit_timeline *t, uint32_t pid, uint64_t va,
				    uint64_t time_ns)
{
	const struct address key = {.va = va};
	const struct address *a =
		t->addresses.n ? bsearch(&key, t->addresses.v, t->addresses.n, sizeof(key), by_va)
			       : NULL;
	size_t low = 0, high = a ? a->n : 0;
	struct jit_place *found;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (is_later(&t->places.v[t->layers.v[a->first + middle]], pid, time_ns))
			high = middle;
		else
			low = middle + 1;
	}
	if (!low)
		return NULL;
	found = &t->places.v[t->layers.v[a->first + low - 1]];
	if (found->pid != pid || (found->until_ns && time_ns >= found->until_ns))
		return NULL;
	return found;
}
