/* SPDX-License-Identifier: BSD-2-Clause */
#include "range_store.h"

#include <inspect/clock.h>

#define REST_NS (100 * NSEC_PER_MSEC) /* longer than any walk takes */

void range_store_init(struct range_store *s, int ranges_fd, size_t budget_bytes)
{
	*s = (struct range_store){
		.chunks = {.outer_fd = ranges_fd,
			   .name = "unwind_range",
			   .element_bytes = sizeof(struct unwind_range),
			   .shift = UNWIND_RANGE_SHIFT,
			   .n_max = UNWIND_RANGE_CHUNKS,
			   .budget_bytes = budget_bytes},
	};
}

void range_store_release(struct range_store *s)
{
	chunks_release(&s->chunks);
	for (size_t i = 0; i < RANGE_CLASSES; i++)
		array_release(&s->free[i]);
	array_release(&s->resting);
}

/* What has rested long enough can be had again; the oldest comes first. */
static int wake(struct range_store *s)
{
	uint64_t now_ns = clock_now_ns();
	size_t n = 0;
	int err = 0;

	while (n < s->resting.n && !err && now_ns - s->resting.v[n].since_ns > REST_NS) {
		struct range_place p = s->resting.v[n].place;

		err = array_push(&s->free[p.class], p.first);
		n += !err;
	}
	memmove(s->resting.v, s->resting.v + n, (s->resting.n - n) * sizeof(*s->resting.v));
	s->resting.n -= n;
	return err;
}

int range_store_put(struct range_store *s, const struct unwind_range *v, size_t n,
		    struct range_place *ret)
{
	struct range_place place = {0};
	int err;

	while (place.class < RANGE_CLASSES && (size_t)1 << place.class < n)
		place.class ++;
	if (place.class == RANGE_CLASSES)
		return -ENOSPC;
	err = s->resting.n ? wake(s) : 0;
	if (err)
		return err;
	if (s->free[place.class].n) {
		place.first = s->free[place.class].v[--s->free[place.class].n];
	} else {
		err = chunks_reserve(&s->chunks, s->n + (1u << place.class));
		if (err)
			return err;
		place.first = (uint32_t)s->n;
		s->n += 1u << place.class;
	}
	chunks_write(&s->chunks, place.first, v, n);
	*ret = place;
	return 0;
}

int range_store_drop(struct range_store *s, struct range_place place, uint64_t now_ns)
{
	int err = array_reserve(&s->resting, s->resting.n + 1);

	if (err)
		return err;
	s->resting.v[s->resting.n].place = place;
	s->resting.v[s->resting.n++].since_ns = now_ns;
	return 0;
}
