/* SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "record_builder.h"
#include <inspect/capture.h>

#define PID 77

struct fixture {
	struct event_table events;
	struct profile *profile;
	struct pipeline *pipeline;
};

static void setup(struct fixture *f, const struct sample_filter *filter)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_CPU_CLOCK,
		.size = sizeof(attr),
		.freq = 1,
		.sample_freq = 99,
		.sample_id_all = 1,
		.sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME |
			       PERF_SAMPLE_PERIOD | PERF_SAMPLE_CALLCHAIN,
	};

	memset(f, 0, sizeof(*f));
	assert_int_equal(event_table_add(&f->events, &attr, NULL), 0);
	assert_int_equal(profile_new(&f->profile), 0);
	assert_int_equal(pipeline_new(&f->events, f->profile, filter, false, &f->pipeline), 0);
}

static void teardown(struct fixture *f)
{
	pipeline_free(f->pipeline);
	profile_free(f->profile);
	event_table_release(&f->events);
}

static void feed(struct fixture *f, struct record_builder *b)
{
	assert_int_equal(pipeline_record(f->pipeline, &b->header, b->n, false), 0);
}

/* /bin/app at 0x400000, of one page from file offset 0x1000. */
static void map_app(struct fixture *f)
{
	struct record_builder b;

	record_begin(&b, PERF_RECORD_MMAP2, PERF_RECORD_MISC_USER);
	record_u32(&b, PID);
	record_u32(&b, PID);
	record_u64(&b, 0x400000);
	record_u64(&b, 0x1000);
	record_u64(&b, 0x1000);
	for (int i = 0; i < 4; i++) /* device, inode, generation */
		record_u32(&b, i == 2 ? 5 : 0);
	record_u64(&b, 0);
	record_u32(&b, 5); /* PROT_READ | PROT_EXEC */
	record_u32(&b, 2);
	record_string(&b, "/bin/app");
	record_u32(&b, PID); /* sample_id */
	record_u32(&b, PID);
	record_u64(&b, 0);
	feed(f, &b);
}

static void sample(struct fixture *f, uint64_t time_ns, const uint64_t *chain, size_t n)
{
	struct record_builder b;

	record_begin(&b, PERF_RECORD_SAMPLE, PERF_RECORD_MISC_USER);
	record_u64(&b, chain[1]);
	record_u32(&b, PID);
	record_u32(&b, PID);
	record_u64(&b, time_ns);
	record_u64(&b, 1000000);
	record_u64(&b, n);
	record_put(&b, chain, n * sizeof(*chain));
	feed(f, &b);
}

/* The locations of the only stack, root first. */
static void assert_stack(const struct profile *p, const uint64_t *want, size_t n)
{
	uint32_t stack;

	assert_int_equal(p->rows.n, 1);
	stack = p->rows.v[0].stack;
	for (size_t i = n; i > 0; i--) {
		assert_int_not_equal(stack, STACK_ROOT);
		assert_int_equal(p->frames.v[p->stacks.v[stack].frame].loc, want[i - 1]);
		stack = p->stacks.v[stack].parent;
	}
	assert_int_equal(stack, STACK_ROOT);
}

static void test_offsets(void **state)
{
	static const uint64_t chain[] = {
		(uint64_t)PERF_CONTEXT_KERNEL, 0xffffffff81000010, 0xffffffff81000100,
		(uint64_t)PERF_CONTEXT_USER,   0x400020,           0x400040};
	/* Callers lie before their return address; leaves are where they are. */
	static const uint64_t want[] = {0x103f, 0x1020, 0xffffffff810000ff, 0xffffffff81000010};
	struct fixture f;

	(void)state;
	setup(&f, NULL);
	map_app(&f);
	sample(&f, 10, chain, ARRAY_SIZE(chain));
	assert_int_equal(pipeline_finish(f.pipeline), 0);
	assert_stack(f.profile, want, ARRAY_SIZE(want));
	assert_int_equal(f.profile->rows.v[0].weight, 1000000);
	assert_int_equal(f.profile->losses.samples, 1);
	teardown(&f);
}

static void test_garbage_at_the_end(void **state)
{
	static const uint64_t chain[] = {
		(uint64_t)PERF_CONTEXT_USER, 0x400020, 0x400040, 0xdeadbeef, 0xe9b5dba5b5c0fbce, 7};
	static const uint64_t want[] = {0x103f, 0x1020};
	struct fixture f;

	(void)state;
	setup(&f, NULL);
	map_app(&f);
	sample(&f, 10, chain, ARRAY_SIZE(chain));
	assert_int_equal(pipeline_finish(f.pipeline), 0);
	assert_stack(f.profile, want, ARRAY_SIZE(want));
	teardown(&f);
}

static void test_unknown_process_keeps_all(void **state)
{
	static const uint64_t chain[] = {(uint64_t)PERF_CONTEXT_USER, 0x400020, 0x400040};
	static const uint64_t want[] = {0x40003f, 0x400020};
	struct fixture f;

	(void)state;
	setup(&f, NULL);
	sample(&f, 10, chain, ARRAY_SIZE(chain));
	assert_int_equal(pipeline_finish(f.pipeline), 0);
	assert_stack(f.profile, want, ARRAY_SIZE(want));
	assert_int_equal(f.profile->frames.v[0].dso, DSO_ID_UNKNOWN);
	teardown(&f);
}

static void test_time_filter(void **state)
{
	static const uint64_t chain[] = {(uint64_t)PERF_CONTEXT_USER, 0x400020};
	struct sample_filter filter = {.time_from_ns = 100, .time_to_ns = 200};
	struct fixture f;

	(void)state;
	setup(&f, &filter);
	map_app(&f);
	/* Out of order in the ring: the first sample is the earliest, not the first to come. */
	for (uint64_t t = 10; t > 0; t--)
		sample(&f, 1000 + (t - 1) * 50, chain, ARRAY_SIZE(chain));
	assert_int_equal(pipeline_finish(f.pipeline), 0);
	assert_int_equal(f.profile->start_ns, 1000);
	assert_int_equal(f.profile->rows.v[0].count, 2);
	assert_int_equal(f.profile->losses.filtered, 8);
	teardown(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_offsets),
		cmocka_unit_test(test_garbage_at_the_end),
		cmocka_unit_test(test_unknown_process_keeps_all),
		cmocka_unit_test(test_time_filter),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
