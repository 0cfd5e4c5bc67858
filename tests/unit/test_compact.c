/* SPDX-License-Identifier: BSD-2-Clause */
/* What the file leaves out of each record, by the event, and that it reads the same. */
#include "../../src/capture/compact.h"

#include <inspect/decode.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#define SAMPLED                                                                                    \
	(PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME |            \
	 PERF_SAMPLE_CPU | PERF_SAMPLE_PERIOD | PERF_SAMPLE_CALLCHAIN)

struct record {
	struct perf_event_header header;
	uint64_t body[16];
};

/* id, ip, pid and tid, time, cpu, period, chain */
static const struct record sample = {
	{PERF_RECORD_SAMPLE, PERF_RECORD_MISC_USER, 8 + 9 * 8},
	{5, 0x1000, 7ULL | 8ULL << 32, 555, 3, 1001001, 2, (uint64_t)PERF_CONTEXT_USER, 0x1000},
};
/* COMM: pid and tid, name; pid and tid, time, cpu, id */
static const struct record comm = {
	{PERF_RECORD_COMM, 0, 8 + 6 * 8},
	{7ULL | 8ULL << 32, 'x', 7ULL | 8ULL << 32, 444, 3, 5},
};

struct fixture {
	struct event_table full, stated;
	struct compact *compact;
};

static void prepare(struct fixture *f, struct perf_event_attr attr)
{
	*f = (struct fixture){0};
	attr.sample_type = SAMPLED;
	attr.sample_id_all = 1;
	assert_int_equal(event_table_add(&f->full, &attr, "one"), 0);
	assert_int_equal(event_table_add_id(&f->full, 0, 5), 0);
	assert_int_equal(compact_new(&f->full, &f->stated, &f->compact), 0);
}

static void release(struct fixture *f)
{
	compact_free(f->compact);
	event_table_release(&f->full);
	event_table_release(&f->stated);
}

/* What the file's reader makes of a record is what ours made of it; its words are so many less. */
static void check(struct fixture *f, const struct record *from, unsigned words_less)
{
	const struct perf_event_header *out = compact_record(f->compact, &from->header);
	struct event want, got;

	assert_int_equal(out->size, from->header.size - 8 * words_less);
	assert_int_equal(decode_record(&f->full, &from->header, from->header.size, &want), 0);
	assert_int_equal(decode_record(&f->stated, out, out->size, &got), 0);
	assert_int_equal(got.type, want.type);
	assert_int_equal(got.time_ns, want.time_ns);
	assert_int_equal(got.cpu, want.cpu);
	if (got.type != EVENT_SAMPLE)
		return;
	assert_int_equal(got.sample.ip, want.sample.ip);
	assert_int_equal(got.sample.tid, want.sample.tid);
	assert_int_equal(got.sample.weight, want.sample.weight);
	assert_int_equal(got.sample.n_chain, want.sample.n_chain);
	assert_memory_equal(got.sample.chain, want.sample.chain, 16);
}

static void test_clock_by_frequency(void **state UNUSED)
{
	struct fixture f;

	prepare(&f, (struct perf_event_attr){.type = PERF_TYPE_SOFTWARE,
					     .config = PERF_COUNT_SW_CPU_CLOCK,
					     .sample_freq = 999,
					     .freq = 1});
	check(&f, &sample, 2);
	check(&f, &comm, 1);
	assert_false(f.stated.events.v[0].attr.freq);
	assert_int_equal(f.stated.events.v[0].attr.sample_period, 1001001);
	assert_int_equal(f.stated.events.v[0].ids.v[0], 5);
	release(&f);
}

static void test_counter_by_period(void **state UNUSED)
{
	struct fixture f;

	prepare(&f, (struct perf_event_attr){.type = PERF_TYPE_RAW, .sample_period = 1001001});
	check(&f, &sample, 2);
	release(&f);
}

/* The kernel changes the period of a counter to keep the frequency, and counts others in lumps. */
static void test_periods_that_differ_stay(void **state UNUSED)
{
	static const struct perf_event_attr attrs[] = {
		{.type = PERF_TYPE_HARDWARE, .sample_freq = 999, .freq = 1},
		{.type = PERF_TYPE_SOFTWARE,
		 .config = PERF_COUNT_SW_PAGE_FAULTS,
		 .sample_period = 1},
		{.type = PERF_TYPE_TRACEPOINT, .sample_period = 1},
	};

	for (size_t i = 0; i < ARRAY_SIZE(attrs); i++) {
		struct fixture f;

		prepare(&f, attrs[i]);
		check(&f, &sample, 1);
		check(&f, &comm, 1);
		assert_int_equal(f.stated.events.v[0].attr.freq, attrs[i].freq);
		release(&f);
	}
}

static void test_what_has_no_trailer(void **state UNUSED)
{
	static const struct record round = {{RECORD_FINISHED_ROUND, 0, 8}, {0}};
	static const struct record cut = {{PERF_RECORD_SAMPLE, 0, 8 + 3 * 8}, {0}};
	struct fixture f;

	prepare(&f, (struct perf_event_attr){.type = PERF_TYPE_HARDWARE, .sample_period = 9});
	assert_ptr_equal(compact_record(f.compact, &round.header), &round.header);
	assert_ptr_equal(compact_record(f.compact, &cut.header), &cut.header);
	release(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_clock_by_frequency),
		cmocka_unit_test(test_counter_by_period),
		cmocka_unit_test(test_periods_that_differ_stay),
		cmocka_unit_test(test_what_has_no_trailer),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
