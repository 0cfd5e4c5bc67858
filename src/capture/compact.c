/* SPDX-License-Identifier: BSD-2-Clause */
#include "compact.h"

/* Of a sample's fields those that stand before its period. */
#define BEFORE_PERIOD                                                                              \
	(PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME |            \
	 PERF_SAMPLE_ADDR | PERF_SAMPLE_ID | PERF_SAMPLE_STREAM_ID | PERF_SAMPLE_CPU)

/* perf's own record types, without a trailer, begin here (tools/lib/perf/include/perf/event.h). */
#define USER_TYPES 64

struct compact {
	bool no_id, no_period;
	bool has_trailer;
	size_t period_word; /* of a sample's body as it comes */
	uint64_t record[(UINT16_MAX + 1) / sizeof(uint64_t)];
};

/*
 * The clocks run at a period that is fixed when they are opened, also if a frequency was asked for
 * (perf_swevent_init_hrtimer). Counters that are sampled by period keep it. Samples of other
 * software events and of tracepoints state how much was counted at once.
 */
static bool has_fixed_period(const struct perf_event_attr *a)
{
	if (!(a->sample_type & PERF_SAMPLE_PERIOD) || !a->sample_period)
		return false;
	return event_is_clock(a) ||
	       (!a->freq && (a->type == PERF_TYPE_HARDWARE || a->type == PERF_TYPE_HW_CACHE ||
			     a->type == PERF_TYPE_RAW));
}

int compact_new(const struct event_table *events, struct event_table *ret_events,
		struct compact **ret)
{
	struct compact *c = calloc(1, sizeof(*c));
	const struct event_desc *e = events->events.v;
	struct perf_event_attr attr = e->attr;
	int err;

	if (!c)
		return -ENOMEM;
	c->no_id = attr.sample_type & PERF_SAMPLE_IDENTIFIER;
	c->no_period = has_fixed_period(&attr);
	c->has_trailer = attr.sample_id_all;
	c->period_word = (size_t)__builtin_popcountll(attr.sample_type & BEFORE_PERIOD);
	attr.sample_type &= ~(uint64_t)PERF_SAMPLE_IDENTIFIER;
	if (c->no_period) {
		attr.sample_type &= ~(uint64_t)PERF_SAMPLE_PERIOD;
		if (attr.freq)
			attr.sample_period = NSEC_PER_SEC / attr.sample_freq;
		attr.freq = 0;
	}
	err = event_table_add(ret_events, &attr, e->name);
	for (size_t i = 0; i < e->ids.n && !err; i++)
		err = event_table_add_id(ret_events, 0, e->ids.v[i]);
	if (err) {
		free(c);
		return err;
	}
	*ret = c;
	return 0;
}

void compact_free(struct compact *c)
{
	free(c);
}

/* Copies the words from `from` up to `to` of a record. */
static uint64_t *copy_words(uint64_t *out, const uint64_t *words, size_t from, size_t to)
{
	memcpy(out, words + from, (to - from) * sizeof(*words));
	return out + (to - from);
}

const struct perf_event_header *compact_record(struct compact *c,
					       const struct perf_event_header *record)
{
	const uint64_t *words = (const uint64_t *)(const void *)record;
	struct perf_event_header *header = (struct perf_event_header *)c->record;
	size_t n = record->size / sizeof(*words), period = 1 + c->period_word;
	uint64_t *out = c->record;

	if (record->size % sizeof(*words) || record->type >= USER_TYPES)
		return record;
	if (record->type == PERF_RECORD_SAMPLE) {
		if (n <= period)
			return record;
		out = copy_words(out, words, 0, 1);
		out = copy_words(out, words, 1 + c->no_id, period);
		out = copy_words(out, words, period + c->no_period, n);
	} else {
		if (!c->no_id || !c->has_trailer || n < 2)
			return record;
		out = copy_words(out, words, 0, n - 1);
	}
	header->size = (uint16_t)((size_t)(out - c->record) * sizeof(*words));
	return header;
}
