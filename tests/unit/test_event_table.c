/* SPDX-License-Identifier: BSD-2-Clause */
#include <inspect/event.h>

#include <setjmp.h>
#include <stdarg.h>
/* after the headers that it needs */
#include <cmocka.h>

#define CACHE(cache, op, result)                                                                   \
	((uint64_t)PERF_COUNT_HW_CACHE_##cache | (uint64_t)PERF_COUNT_HW_CACHE_OP_##op << 8 |      \
	 (uint64_t)PERF_COUNT_HW_CACHE_RESULT_##result << 16)

/* Names as `perf list` prints them; units of one weight. */
static void test_names(void **state UNUSED)
{
	static const struct {
		uint32_t type;
		uint64_t config;
		const char *name, *unit;
	} cases[] = {
		{PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES, "cycles", "cycles"},
		{PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_MISSES, "branch-misses", "branch-misses"},
		{PERF_TYPE_HARDWARE, 4ULL << 32 | PERF_COUNT_HW_INSTRUCTIONS, "instructions",
		 "instructions"},
		{PERF_TYPE_HARDWARE, 10, "type 0 config 0xa", "count"},
		{PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK, "cpu-clock", "ns"},
		{PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK, "task-clock", "ns"},
		{PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS_MAJ, "major-faults", "major-faults"},
		{PERF_TYPE_SOFTWARE, PERF_COUNT_SW_BPF_OUTPUT, "bpf-output", "count"},
		{PERF_TYPE_SOFTWARE, 99, "type 1 config 0x63", "count"},
		{PERF_TYPE_HW_CACHE, CACHE(L1D, READ, MISS), "L1-dcache-load-misses",
		 "L1-dcache-load-misses"},
		{PERF_TYPE_HW_CACHE, CACHE(LL, WRITE, ACCESS), "LLC-stores", "LLC-stores"},
		{PERF_TYPE_HW_CACHE, CACHE(ITLB, PREFETCH, MISS), "iTLB-prefetch-misses",
		 "iTLB-prefetch-misses"},
		{PERF_TYPE_HW_CACHE, 7, "type 3 config 0x7", "type 3 config 0x7"},
		{PERF_TYPE_RAW, 0x1c2, "raw 0x1c2", "count"},
		{PERF_TYPE_TRACEPOINT, 316, "tracepoint 316", "count"},
		{12, 0xabc, "type 12 config 0xabc", "count"},
	};
	struct event_table t = {0};
	char buf[64];

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct perf_event_attr attr = {.type = cases[i].type, .config = cases[i].config};

		assert_string_equal(event_attr_name(&attr, buf, sizeof(buf)), cases[i].name);
		assert_int_equal(event_table_add(&t, &attr, NULL), 0);
		assert_string_equal(t.events.v[i].name, cases[i].name);
		assert_string_equal(event_unit(&t.events.v[i]), cases[i].unit);
	}
	event_table_release(&t);
}

static void test_ids(void **state UNUSED)
{
	struct perf_event_attr attr = {.type = PERF_TYPE_SOFTWARE};
	struct event_table t = {0};

	assert_int_equal(event_table_find_id(&t, 1), -ENOENT);
	assert_int_equal(event_table_add_id(&t, 0, 1), -EINVAL);
	for (int i = 0; i < 3; i++)
		assert_int_equal(event_table_add(&t, &attr, "name"), 0);
	for (uint64_t id = 1; id <= 3000; id++)
		assert_int_equal(event_table_add_id(&t, (uint32_t)(id % 3), id << 40), 0);
	for (uint64_t id = 1; id <= 3000; id++)
		assert_int_equal(event_table_find_id(&t, id << 40), id % 3);
	assert_int_equal(event_table_find_id(&t, 3001ULL << 40), -ENOENT);
	assert_int_equal(t.events.v[1].ids.n, 1000);

	/* The first owner keeps an id. */
	assert_int_equal(event_table_add_id(&t, 2, 1ULL << 40), 0);
	assert_int_equal(event_table_find_id(&t, 1ULL << 40), 1);
	assert_int_equal(t.events.v[2].ids.n, 1000);

	assert_int_equal(event_table_rename(&t, 1, "cycles:u"), 0);
	assert_string_equal(t.events.v[1].name, "cycles:u");
	assert_int_equal(event_table_rename(&t, 3, "x"), -EINVAL);
	event_table_release(&t);
	assert_int_equal(t.events.n, 0);
}

/* Where records carry the id, while all events agree. */
static void test_id_words(void **state UNUSED)
{
	struct perf_event_attr attr = {.sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_TID |
						      PERF_SAMPLE_TIME | PERF_SAMPLE_ID |
						      PERF_SAMPLE_CPU | PERF_SAMPLE_PERIOD};
	struct event_table t = {0};

	assert_int_equal(event_table_add(&t, &attr, NULL), 0);
	assert_int_equal(t.sample_id_word, 3);
	assert_int_equal(t.trailer_id_word, 2);
	attr.sample_type |= PERF_SAMPLE_CALLCHAIN;
	assert_int_equal(event_table_add(&t, &attr, NULL), 0);
	assert_int_equal(t.sample_id_word, 3);
	attr.sample_type |= PERF_SAMPLE_ADDR;
	assert_int_equal(event_table_add(&t, &attr, NULL), 0);
	assert_int_equal(t.sample_id_word, -1);
	assert_int_equal(t.trailer_id_word, 2);
	event_table_release(&t);

	attr.sample_type |= PERF_SAMPLE_IDENTIFIER;
	assert_int_equal(event_table_add(&t, &attr, NULL), 0);
	assert_int_equal(t.sample_id_word, 0);
	assert_int_equal(t.trailer_id_word, 1);
	attr.sample_type = PERF_SAMPLE_IP;
	assert_int_equal(event_table_add(&t, &attr, NULL), 0);
	assert_int_equal(t.sample_id_word, -1);
	assert_int_equal(t.trailer_id_word, -1);
	event_table_release(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_ids),
		cmocka_unit_test(test_id_words),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
