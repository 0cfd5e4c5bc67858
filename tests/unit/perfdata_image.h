/* SPDX-License-Identifier: BSD-2-Clause */
/* perf.data files in memory, put together without the writer, and what a reader makes of a file. */
#ifndef PERFDATA_IMAGE_H
#define PERFDATA_IMAGE_H

#include "record_builder.h"
#include <inspect/decode.h>
#include <inspect/perfdata.h>

#define IMAGE_ID 100 /* of event i: IMAGE_ID + i */
#define IMAGE_SAMPLE_TYPE                                                                          \
	(PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME |            \
	 PERF_SAMPLE_PERIOD | PERF_SAMPLE_CALLCHAIN)

static inline void image_u64(struct strbuf *b, uint64_t v)
{
	strbuf_add(b, (const char *)&v, sizeof(v));
}

static inline void image_set_u64(struct strbuf *b, size_t at, uint64_t v)
{
	memcpy(b->v + at, &v, sizeof(v));
}

static inline void image_record(struct strbuf *b, const struct record_builder *r)
{
	strbuf_add(b, (const char *)r->v, r->n);
}

static inline struct perf_event_attr image_attr(unsigned i)
{
	return (struct perf_event_attr){
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(struct perf_event_attr),
		.config = i ? PERF_COUNT_SW_PAGE_FAULTS : PERF_COUNT_SW_CPU_CLOCK,
		.sample_type = IMAGE_SAMPLE_TYPE,
		.sample_id_all = 1,
	};
}

/* Header, attrs with attr_bytes each, one id each, and the data; no features. */
static inline void image_file(struct strbuf *b, unsigned n_events, size_t attr_bytes,
			      const struct strbuf *data)
{
	uint64_t ids_off = 104 + n_events * (attr_bytes + 16);

	strbuf_puts(b, "PERFILE2");
	image_u64(b, 104);
	image_u64(b, attr_bytes + 16);
	image_u64(b, 104);
	image_u64(b, n_events * (attr_bytes + 16));
	image_u64(b, ids_off + 8 * n_events);
	image_u64(b, data->n);
	for (int i = 0; i < 6; i++)
		image_u64(b, 0);
	for (unsigned i = 0; i < n_events; i++) {
		struct perf_event_attr attr = image_attr(i);

		strbuf_add(b, (const char *)&attr, MIN(attr_bytes, sizeof(attr)));
		for (size_t k = sizeof(attr); k < attr_bytes; k++)
			strbuf_putc(b, '\0');
		image_u64(b, ids_off + 8 * i);
		image_u64(b, 8);
	}
	for (unsigned i = 0; i < n_events; i++)
		image_u64(b, IMAGE_ID + i);
	strbuf_add(b, strbuf_str(data), data->n);
}

/* The same events as a stream. */
static inline void image_stream_head(struct strbuf *b, unsigned n_events)
{
	strbuf_puts(b, "PERFILE2");
	image_u64(b, 16);
	for (unsigned i = 0; i < n_events; i++) {
		struct perf_event_attr attr = image_attr(i);
		struct record_builder r;

		record_begin(&r, RECORD_HEADER_ATTR, 0);
		record_put(&r, &attr, sizeof(attr));
		record_u64(&r, IMAGE_ID + i);
		image_record(b, &r);
	}
}

/* Sample number i of an event, with a chain of i % 7 + 2 entries. */
static inline void image_sample(struct strbuf *b, unsigned event, uint64_t i)
{
	struct record_builder r;

	record_begin(&r, PERF_RECORD_SAMPLE, PERF_RECORD_MISC_USER);
	record_u64(&r, IMAGE_ID + event);
	record_u64(&r, 0x400000 + i);
	record_u32(&r, 7);
	record_u32(&r, 8);
	record_u64(&r, 1000 + i);
	record_u64(&r, 10 + i);
	record_u64(&r, i % 7 + 2);
	record_u64(&r, PERF_CONTEXT_USER);
	for (uint64_t k = 0; k < i % 7 + 1; k++)
		record_u64(&r, 0x400000 + i + k);
	image_record(b, &r);
}

static inline void image_round(struct strbuf *b)
{
	struct record_builder r;

	record_begin(&r, RECORD_FINISHED_ROUND, 0);
	r.header.size = sizeof(r.header);
	image_record(b, &r);
}

/* What was read. */
struct tally {
	const struct perfdata_reader *reader;
	uint64_t records, samples, rounds, undecoded;
	uint64_t weights;     /* sum over the samples */
	uint64_t chain_words; /* likewise */
	uint64_t by_event[4];
	FILE *lines; /* a line a sample, or NULL */
};

static inline void tally_sample(struct tally *t, const struct event *e)
{
	const struct sample *s = &e->sample;
	const struct event_desc *desc = &perfdata_events(t->reader)->events.v[s->event];
	uint64_t sp = s->regs.v ? s->regs.v[7] : 0; /* PERF_REG_X86_SP, all below it recorded */

	t->samples++;
	t->weights += s->weight;
	for (size_t i = 0; i < s->n_chain; i++)
		t->chain_words += s->chain[i] != 0 || i == 0; /* every word is read */
	if (s->event < ARRAY_SIZE(t->by_event))
		t->by_event[s->event]++;
	if (t->lines)
		fprintf(t->lines, "%llu %d/%d 0x%llx %llu nr %zu sp %llx stack %zu %s\n",
			(unsigned long long)e->time_ns, (int)s->pid, (int)s->tid,
			(unsigned long long)s->ip, (unsigned long long)s->weight, s->n_chain,
			(unsigned long long)sp, s->stack_bytes, desc->name);
}

static inline int tally_record(void *ctx, const struct perf_event_header *record, size_t size_bytes)
{
	struct tally *t = ctx;
	struct event e;
	uint64_t time_ns;

	t->records++;
	t->rounds += record->type == RECORD_FINISHED_ROUND;
	decode_time(perfdata_events(t->reader), record, size_bytes, &time_ns);
	if (decode_record(perfdata_events(t->reader), record, size_bytes, &e))
		t->undecoded++;
	else if (e.type == EVENT_SAMPLE)
		tally_sample(t, &e);
	return 0;
}

static inline int tally_read(struct tally *t, struct perfdata_reader *reader, struct diag *d)
{
	t->reader = reader;
	return perfdata_read(reader, tally_record, t, d);
}

#endif
