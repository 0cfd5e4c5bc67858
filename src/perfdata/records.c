/* SPDX-License-Identifier: BSD-2-Clause */
/* The walk over the records, and what those mean that describe the recording itself. */
#include "reader.h"

/* Where a walk hands its records to. */
struct walk {
	struct perfdata_reader *r;
	record_fn *fn;
	void *ctx;
};

/* Ends the walk; its callers take it as the end of the records. */
#define WALK_ENDED 1

/* --- records that describe the recording ----------------------------------------------------- */

static int take_attr(struct perfdata_reader *r, const uint8_t *v, size_t n)
{
	struct perf_event_attr attr;
	uint32_t attr_bytes;
	uint64_t id;
	int err;

	if (!r->pipe_mode)
		return 0;
	if (n < sizeof(struct perf_event_header) + PERF_ATTR_SIZE_VER0)
		return -EBADMSG;
	v += sizeof(struct perf_event_header);
	n -= sizeof(struct perf_event_header);
	memcpy(&attr_bytes, v + offsetof(struct perf_event_attr, size), sizeof(attr_bytes));
	if (!attr_bytes)
		attr_bytes = PERF_ATTR_SIZE_VER0;
	if (attr_bytes > n)
		return -EBADMSG;
	err = reader_attr(r, v, attr_bytes, &attr);
	if (!err)
		err = event_table_add(&r->events, &attr, NULL);
	for (size_t at = attr_bytes; at + 8 <= n && !err; at += 8) {
		memcpy(&id, v + at, sizeof(id));
		err = event_table_add_id(&r->events, (uint32_t)(r->events.events.n - 1), id);
	}
	return err;
}

/* {header, u64 what, u64 id, text}: a later name for an event. */
static int take_event_update(struct perfdata_reader *r, const uint8_t *v, size_t n)
{
	uint64_t what_id[2];
	const char *name;
	int event;

	if (n < sizeof(struct perf_event_header) + sizeof(what_id))
		return -EBADMSG;
	memcpy(what_id, v + sizeof(struct perf_event_header), sizeof(what_id));
	name = (const char *)v + sizeof(struct perf_event_header) + sizeof(what_id);
	event = event_table_find_id(&r->events, what_id[1]);
	if (what_id[0] != EVENT_UPDATE_NAME || event < 0)
		return 0;
	if (!memchr(name, '\0', n - (size_t)((const uint8_t *)name - v)))
		return -EBADMSG;
	return *name ? event_table_rename(&r->events, (uint32_t)event, name) : 0;
}

static int take_feature(struct perfdata_reader *r, const uint8_t *v, size_t n)
{
	size_t head = sizeof(struct perf_event_header) + sizeof(uint64_t);
	uint64_t feature;

	if (n < head)
		return -EBADMSG;
	memcpy(&feature, v + sizeof(struct perf_event_header), sizeof(feature));
	/* An empty one ends the list of features. */
	if (feature >= FEATURE_BITS || n == head)
		return 0;
	return reader_feature(r, (unsigned)feature, v + head, n - head);
}

static int take_round(struct perfdata_reader *r, const uint8_t *v UNUSED, size_t n UNUSED)
{
	r->rounds++;
	return 0;
}

static const struct {
	uint32_t type;
	int (*take)(struct perfdata_reader *r, const uint8_t *v, size_t n);
} takers[] = {
	{RECORD_HEADER_ATTR, take_attr},       {RECORD_EVENT_UPDATE, take_event_update},
	{RECORD_HEADER_FEATURE, take_feature}, {RECORD_HEADER_BUILD_ID, reader_build_id},
	{RECORD_FINISHED_ROUND, take_round},
};

static int take_record(struct perfdata_reader *r, uint32_t type, const uint8_t *v, size_t n)
{
	for (size_t i = 0; i < ARRAY_SIZE(takers) && type >= RECORD_HEADER_ATTR; i++)
		if (takers[i].type == type)
			return takers[i].take(r, v, n);
	return 0;
}

/* --- the walk -------------------------------------------------------------------------------- */

static int ended_damaged(struct perfdata_reader *r, const struct perf_event_header *h)
{
	reader_set_damage(
		r, "damaged at byte %llu (type %u, %u bytes): %llu records in %llu rounds read",
		(unsigned long long)r->record_off, h->type, h->size, (unsigned long long)r->records,
		(unsigned long long)r->rounds);
	return WALK_ENDED;
}

/* The bytes end inside a record, or before the stated end of the data. */
static int ended_short(struct perfdata_reader *r)
{
	unsigned long long records = r->records, rounds = r->rounds;

	if (!r->in.file)
		reader_set_damage(
			r, "the stream is cut at byte %llu: %llu records in %llu rounds read",
			(unsigned long long)r->record_off, records, rounds);
	else if (r->open_ended)
		reader_set_damage(r, "cut at byte %zu: %llu records in %llu rounds read",
				  r->in.file_bytes, records, rounds);
	else if (r->in.end < r->in.file_bytes)
		reader_set_damage(
			r,
			"damaged at byte %llu (a record reaches past the end of the data): "
			"%llu records in %llu rounds read",
			(unsigned long long)r->record_off, records, rounds);
	else
		reader_set_damage(r, "cut at byte %zu of %llu: %llu records in %llu rounds read",
				  r->in.file_bytes,
				  (unsigned long long)(r->data.off + r->data.size_bytes), records,
				  rounds);
	return WALK_ENDED;
}

/* Hands on one record of n bytes, aligned, and lasting if that was promised. */
static int hand_on(struct walk *w, const uint8_t *v, size_t n, bool lasting)
{
	struct perfdata_reader *r = w->r;
	void *copy;

	r->records++;
	if ((uintptr_t)v % 8 || (r->stable && !lasting)) {
		copy = r->stable ? arena_alloc(&r->kept, n) : r->scratch;
		if (!copy)
			return -ENOMEM;
		memcpy(copy, v, n);
		v = copy;
	}
	return w->fn(w->ctx, (const struct perf_event_header *)(const void *)v, n);
}

static int inflated_record(void *ctx, const struct perf_event_header *record, size_t n)
{
	struct walk *w = ctx;
	const uint8_t *v = (const uint8_t *)record;
	uint32_t type;
	int err;

	memcpy(&type, v, sizeof(type));
	err = take_record(w->r, type, v, n);
	if (err)
		return err == -EBADMSG ? INFLATE_DAMAGED : err;
	return hand_on(w, v, n, false);
}

/* A compressed record. The size of a COMPRESSED2 stands in its second word: the header's may have
 * wrapped. */
static int walk_compressed(struct walk *w, const struct perf_event_header *h)
{
	struct input *in = &w->r->in;
	uint64_t left = h->size - sizeof(*h), padding = 0;
	size_t head = sizeof(*h);
	int err = 0;

	if (h->type == RECORD_COMPRESSED2) {
		const uint8_t *v = input_need(in, head + sizeof(left));

		if (!v)
			return in->err ? in->err : ended_short(w->r);
		memcpy(&left, v + head, sizeof(left));
		head += sizeof(left);
		padding = -left % 8;
	}
	input_advance(in, head);
	while (left && !err) {
		size_t piece = (size_t)MIN(left, (uint64_t)INPUT_NEED_MAX);
		const uint8_t *v = input_need(in, piece);

		if (!v)
			return in->err ? in->err : ended_short(w->r);
		err = inflate_feed(&w->r->inflate, v, piece, inflated_record, w);
		if (err == INFLATE_DAMAGED)
			return ended_damaged(w->r, h);
		input_advance(in, piece);
		left -= piece;
	}
	if (err)
		return err;
	return input_skip(in, padding) ? 0 : ended_short(w->r);
}

/* Bytes that follow a record without being one; false when the record is too short to say. */
static bool payload_bytes(const struct perf_event_header *h, const uint8_t *v, uint64_t *ret)
{
	uint32_t size_bytes = 0;

	*ret = 0;
	v += sizeof(*h);
	if (h->type == RECORD_HEADER_TRACING_DATA) {
		if (h->size < sizeof(*h) + sizeof(size_bytes))
			return false;
		memcpy(&size_bytes, v, sizeof(size_bytes));
		*ret = size_bytes;
	} else if (h->type == RECORD_AUXTRACE) {
		if (h->size < sizeof(*h) + sizeof(*ret))
			return false;
		memcpy(ret, v, sizeof(*ret));
	}
	return true;
}

/* All that was announced has been read. */
static bool at_end(struct perfdata_reader *r)
{
	struct input *in = &r->in;

	if (input_need(in, 1) || in->err)
		return false;
	return !in->file || r->open_ended || in->pos - r->data.off == r->data.size_bytes;
}

/* One record: 0, WALK_ENDED, or what failed. */
static int walk_record(struct walk *w)
{
	struct perfdata_reader *r = w->r;
	struct input *in = &r->in;
	struct perf_event_header h;
	const uint8_t *v = input_need(in, sizeof(h));
	uint64_t payload;
	int err;

	r->record_off = in->pos;
	if (!v)
		return at_end(r) ? WALK_ENDED : in->err ? in->err : ended_short(r);
	memcpy(&h, v, sizeof(h));
	if (h.type != RECORD_COMPRESSED2 && h.size < sizeof(h))
		return ended_damaged(r, &h);
	if (h.type == RECORD_COMPRESSED || h.type == RECORD_COMPRESSED2)
		return walk_compressed(w, &h);
	v = input_need(in, h.size);
	if (!v)
		return in->err ? in->err : ended_short(r);
	if (!payload_bytes(&h, v, &payload))
		return ended_damaged(r, &h);
	err = take_record(r, h.type, v, h.size);
	if (err == -EBADMSG)
		return ended_damaged(r, &h);
	if (!err)
		err = hand_on(w, v, h.size, true);
	if (err)
		return err;
	input_advance(in, h.size);
	return input_skip(in, payload) ? 0 : in->err ? in->err : ended_short(r);
}

int perfdata_read(struct perfdata_reader *r, record_fn *fn, void *ctx, struct diag *d)
{
	struct walk w = {.r = r, .fn = fn, .ctx = ctx};
	int err = 0;

	if (!r->pipe_mode) {
		r->in.pos = r->data.off;
		r->records = r->rounds = 0;
		inflate_free(TAKE_PTR(r->inflate));
	}
	while (!err)
		err = walk_record(&w);
	if (r->in.err)
		return diag_errno(d, r->in.err, "cannot read %s", r->name);
	if (err != WALK_ENDED)
		return err;
	if (!inflate_is_whole(r->inflate) && !r->info.damage)
		reader_set_damage(r, "the compressed data ends inside a record: %llu records read",
				  (unsigned long long)r->records);
	return 0;
}
