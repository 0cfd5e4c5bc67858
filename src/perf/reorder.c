/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Pending records are an array in order of arrival. Each ring is nearly sorted already, so a merge
 * sort of the natural runs orders them in about log2(rings) passes, and keeps arrival order where
 * times are equal. Copies live in slabs that are used again once all their records have gone.
 */
#include <inspect/decode.h>

#define SLAB_BYTES (256U << 10)
#define SLAB_NONE UINT32_MAX

struct slab {
	uint64_t *v;         /* SLAB_BYTES, aligned for records */
	uint32_t used_bytes; /* only grows while live > 0 */
	uint32_t live;       /* pending records in it */
};

struct pending {
	uint64_t time_ns;
	const struct perf_event_header *record;
	uint32_t slab; /* SLAB_NONE: the bytes are not ours */
	uint32_t size_bytes;
};

struct reorder {
	size_t max_bytes, held_bytes; /* copies and the entries themselves */
	record_fn *out;
	void *ctx;
	ARRAY(struct pending) pending;
	ARRAY(struct pending) merged; /* the other half of the merge sort */
	ARRAY(size_t) runs;           /* ends of sorted stretches */
	ARRAY(struct slab) slabs;
	ARRAY(uint32_t) free_slabs;
	uint32_t slab;        /* being filled, SLAB_NONE: none */
	uint64_t newest_ns;   /* ever seen */
	uint64_t round_ns;    /* newest at the end of the last round: goes out with the next */
	uint64_t released_ns; /* everything up to here has gone out */
	uint64_t late;
};

int reorder_new(size_t max_bytes, record_fn *out, void *ctx, struct reorder **ret)
{
	struct reorder *r = calloc(1, sizeof(*r));

	if (!r)
		return -ENOMEM;
	r->max_bytes = max_bytes;
	r->out = out;
	r->ctx = ctx;
	r->slab = SLAB_NONE;
	*ret = r;
	return 0;
}

void reorder_free(struct reorder *r)
{
	if (!r)
		return;
	for (size_t i = 0; i < r->slabs.n; i++)
		free(r->slabs.v[i].v);
	array_release(&r->slabs);
	array_release(&r->free_slabs);
	array_release(&r->pending);
	array_release(&r->merged);
	array_release(&r->runs);
	free(r);
}

uint64_t reorder_late(const struct reorder *r)
{
	return r->late;
}

/* --- copies ---------------------------------------------------------------------------------- */

static int slab_next(struct reorder *r)
{
	uint64_t *v;
	int err;

	if (r->free_slabs.n) {
		r->slab = r->free_slabs.v[--r->free_slabs.n];
		return 0;
	}
	/* Room for its return, so that freeing a slab cannot fail. */
	err = array_reserve(&r->free_slabs, r->slabs.n + 1);
	if (!err)
		err = array_reserve(&r->slabs, r->slabs.n + 1);
	v = err ? NULL : malloc(SLAB_BYTES);
	if (!v)
		return -ENOMEM;
	r->slab = (uint32_t)r->slabs.n;
	r->slabs.v[r->slabs.n++] = (struct slab){.v = v};
	return 0;
}

/* Copies a record into the current slab and points the entry to it. */
static int slab_copy(struct reorder *r, struct pending *p)
{
	uint32_t room_bytes = (uint32_t)ALIGN_UP(p->size_bytes, 8U);
	struct slab *slab = r->slab == SLAB_NONE ? NULL : &r->slabs.v[r->slab];
	uint8_t *copy;
	int err;

	if (slab && slab->live == 0)
		slab->used_bytes = 0;
	if (!slab || slab->used_bytes + room_bytes > SLAB_BYTES) {
		err = slab_next(r);
		if (err)
			return err;
		slab = &r->slabs.v[r->slab];
	}
	copy = (uint8_t *)slab->v + slab->used_bytes;
	memcpy(copy, p->record, p->size_bytes);
	slab->used_bytes += room_bytes;
	slab->live++;
	p->record = (const struct perf_event_header *)(const void *)copy;
	p->slab = r->slab;
	return 0;
}

static void slab_drop(struct reorder *r, uint32_t index)
{
	struct slab *slab = &r->slabs.v[index];

	if (--slab->live || index == r->slab)
		return;
	slab->used_bytes = 0;
	r->free_slabs.v[r->free_slabs.n++] = index;
}

/* --- order ----------------------------------------------------------------------------------- */

static int find_runs(struct reorder *r)
{
	const struct pending *v = r->pending.v;
	int err;

	r->runs.n = 0;
	for (size_t i = 1; i <= r->pending.n; i++) {
		if (i < r->pending.n && v[i].time_ns >= v[i - 1].time_ns)
			continue;
		err = array_push(&r->runs, i);
		if (err)
			return err;
	}
	return 0;
}

/* Merges [from, middle) and [middle, to) of src into dst; equal times stay in their order. */
static void merge_two(const struct pending *src, size_t from, size_t middle, size_t to,
		      struct pending *dst)
{
	size_t a = from, b = middle;

	for (size_t i = from; i < to; i++)
		dst[i] = b >= to || (a < middle && src[a].time_ns <= src[b].time_ns) ? src[a++]
										     : src[b++];
}

static int sort_pending(struct reorder *r)
{
	int err = find_runs(r);

	if (!err && r->runs.n > 1)
		err = array_reserve(&r->merged, r->pending.cap);
	if (err)
		return err;
	while (r->runs.n > 1) {
		size_t from = 0, kept = 0;
		__typeof__(r->pending) sorted;

		for (size_t i = 0; i < r->runs.n; i += 2) {
			size_t middle = r->runs.v[i];
			size_t to = i + 1 < r->runs.n ? r->runs.v[i + 1] : middle;

			merge_two(r->pending.v, from, middle, to, r->merged.v);
			r->runs.v[kept++] = from = to;
		}
		r->runs.n = kept;
		sorted.v = r->merged.v;
		sorted.n = r->pending.n;
		sorted.cap = r->merged.cap;
		r->merged.v = r->pending.v;
		r->merged.cap = r->pending.cap;
		r->pending.v = sorted.v;
		r->pending.cap = sorted.cap;
	}
	return 0;
}

/* Hands out the first n of the sorted pending records, or fewer when the receiver fails. */
static int release(struct reorder *r, size_t n)
{
	int err = 0;
	size_t i;

	for (i = 0; i < n && !err; i++) {
		struct pending *p = &r->pending.v[i];

		err = r->out(r->ctx, p->record, p->size_bytes);
		r->released_ns = MAX(r->released_ns, p->time_ns);
		r->held_bytes -= sizeof(*p);
		if (p->slab == SLAB_NONE)
			continue;
		r->held_bytes -= p->size_bytes;
		slab_drop(r, p->slab);
	}
	r->pending.n -= i;
	if (i && r->pending.n)
		memmove(r->pending.v, r->pending.v + i, r->pending.n * sizeof(*r->pending.v));
	return err;
}

static int release_until(struct reorder *r, uint64_t limit_ns)
{
	size_t n = 0;
	int err = sort_pending(r);

	if (err)
		return err;
	while (n < r->pending.n && r->pending.v[n].time_ns <= limit_ns)
		n++;
	return release(r, n);
}

int reorder_add(struct reorder *r, uint64_t time_ns, const struct perf_event_header *record,
		size_t size_bytes, bool stable)
{
	struct pending p = {.time_ns = time_ns, .record = record, .slab = SLAB_NONE};
	int err;

	if (!time_ns)
		return r->out(r->ctx, record, size_bytes);
	if (size_bytes > UINT16_MAX)
		return -EMSGSIZE; /* header.size has 16 bits */
	p.size_bytes = (uint32_t)size_bytes;
	err = array_reserve(&r->pending, r->pending.n + 1);
	if (!err && !stable)
		err = slab_copy(r, &p);
	if (err)
		return err;
	r->pending.v[r->pending.n++] = p;
	r->held_bytes += sizeof(p) + (stable ? 0 : size_bytes);
	r->newest_ns = MAX(r->newest_ns, time_ns);
	r->late += time_ns < r->released_ns;
	if (r->held_bytes <= r->max_bytes)
		return 0;
	err = sort_pending(r);
	return err ? err : release(r, (r->pending.n + 1) / 2);
}

int reorder_round(struct reorder *r)
{
	int err = release_until(r, r->round_ns);

	r->round_ns = r->newest_ns;
	return err;
}

int reorder_flush(struct reorder *r)
{
	int err = release_until(r, UINT64_MAX);

	r->round_ns = r->newest_ns;
	return err;
}
