/* SPDX-License-Identifier: BSD-2-Clause */
#include "record_builder.h"
#include <inspect/clock.h>
#include <inspect/decode.h>

#include <setjmp.h>
#include <stdarg.h>
/* after the headers that it needs */
#include <cmocka.h>

/* Records of 16-48 bytes whose first word tells which they are. */
struct numbered {
	struct perf_event_header header;
	uint64_t number;
	uint64_t padding[4];
};

struct received {
	ARRAY(uint64_t) numbers;
	const void *last;
	size_t fail_after; /* 0: never */
};

static int receive(void *ctx, const struct perf_event_header *record, size_t size_bytes)
{
	const struct numbered *n = (const struct numbered *)record;
	struct received *got = ctx;

	assert_int_equal(record->size, size_bytes);
	assert_int_equal((uintptr_t)record % 8, 0);
	assert_int_equal(size_bytes, 16 + n->number % 5 * 8);
	got->last = record;
	if (got->fail_after && !--got->fail_after)
		return -EIO;
	return array_push(&got->numbers, n->number);
}

static struct numbered numbered(uint64_t number)
{
	return (struct numbered){
		.header = {.type = 9, .size = (uint16_t)(16 + number % 5 * 8)},
		.number = number,
	};
}

static int add(struct reorder *r, uint64_t time_ns, uint64_t number)
{
	struct numbered n = numbered(number);

	return reorder_add(r, time_ns, &n.header, n.header.size, false);
}

static void expect(struct received *got, const uint64_t *numbers, size_t n)
{
	assert_int_equal(got->numbers.n, n);
	for (size_t i = 0; i < n; i++)
		assert_int_equal(got->numbers.v[i], numbers[i]);
	got->numbers.n = 0;
}

#define EXPECT(got, ...)                                                                           \
	expect((got), (const uint64_t[]){__VA_ARGS__},                                             \
	       sizeof((const uint64_t[]){__VA_ARGS__}) / sizeof(uint64_t))

/* At the end of a round goes what the round before had seen. */
static void test_rounds(void **state UNUSED)
{
	struct received got = {0};
	struct reorder *r;

	assert_int_equal(reorder_new(1 << 20, receive, &got, &r), 0);
	assert_int_equal(add(r, 30, 3), 0);
	assert_int_equal(add(r, 10, 1), 0);
	assert_int_equal(reorder_round(r), 0);
	expect(&got, NULL, 0);
	assert_int_equal(add(r, 20, 2), 0);
	assert_int_equal(add(r, 40, 4), 0);
	assert_int_equal(reorder_round(r), 0);
	EXPECT(&got, 1, 2, 3);
	assert_int_equal(reorder_round(r), 0);
	EXPECT(&got, 4);
	assert_int_equal(reorder_late(r), 0);

	/* Too late for its place, but not lost. */
	assert_int_equal(add(r, 35, 5), 0);
	assert_int_equal(add(r, 50, 6), 0);
	assert_int_equal(reorder_flush(r), 0);
	EXPECT(&got, 5, 6);
	assert_int_equal(reorder_late(r), 1);
	reorder_free(r);
	array_release(&got.numbers);
}

static void test_ties_and_no_time(void **state UNUSED)
{
	struct received got = {0};
	struct reorder *r;

	assert_int_equal(reorder_new(1 << 20, receive, &got, &r), 0);
	assert_int_equal(add(r, 5, 1), 0);
	assert_int_equal(add(r, 7, 2), 0);
	assert_int_equal(add(r, 5, 3), 0);
	assert_int_equal(add(r, 0, 4), 0);
	assert_int_equal(add(r, 7, 5), 0);
	assert_int_equal(add(r, 5, 6), 0);
	assert_int_equal(add(r, 0, 7), 0);
	EXPECT(&got, 4, 7);
	assert_int_equal(reorder_flush(r), 0);
	EXPECT(&got, 1, 3, 6, 2, 5);
	assert_int_equal(reorder_late(r), 0);
	reorder_free(r);
	array_release(&got.numbers);
}

/* Above the limit the older half goes early; what comes before it then is late. */
static void test_limit(void **state UNUSED)
{
	struct received got = {0};
	struct reorder *r;

	assert_int_equal(reorder_new(4096, receive, &got, &r), 0);
	for (uint64_t i = 1; i <= 1000; i++)
		assert_int_equal(add(r, 1000 + i, i), 0);
	assert_in_range(got.numbers.n, 850, 999);
	assert_int_equal(reorder_late(r), 0);
	assert_int_equal(add(r, 1001, 2000), 0);
	assert_int_equal(reorder_late(r), 1);
	assert_int_equal(reorder_flush(r), 0);
	assert_int_equal(got.numbers.n, 1001);
	reorder_free(r);
	array_release(&got.numbers);
}

/* Stable bytes are handed on where they lie. */
static void test_stable(void **state UNUSED)
{
	struct numbered n = numbered(5);
	struct received got = {0};
	struct reorder *r;

	assert_int_equal(reorder_new(1 << 20, receive, &got, &r), 0);
	assert_int_equal(reorder_add(r, 1, &n.header, n.header.size, true), 0);
	assert_int_equal(reorder_flush(r), 0);
	assert_ptr_equal(got.last, &n);
	assert_int_equal(reorder_add(r, 2, &n.header, n.header.size, false), 0);
	assert_int_equal(reorder_flush(r), 0);
	assert_ptr_not_equal(got.last, &n);
	assert_int_equal(reorder_add(r, 2, &n.header, 65536, false), -EMSGSIZE);
	reorder_free(r);
	array_release(&got.numbers);
}

static void test_receiver_fails(void **state UNUSED)
{
	struct received got = {.fail_after = 2};
	struct reorder *r;

	assert_int_equal(reorder_new(1 << 20, receive, &got, &r), 0);
	for (uint64_t i = 1; i <= 4; i++)
		assert_int_equal(add(r, i, i), 0);
	assert_int_equal(reorder_flush(r), -EIO);
	EXPECT(&got, 1);
	assert_int_equal(reorder_flush(r), 0);
	EXPECT(&got, 3, 4);
	reorder_free(r);
	array_release(&got.numbers);
}

/* A million records of 8 rings, each nearly sorted, in rounds: the order is that of a stable sort
 * by time, in a time that a recording can afford. */
static void test_million(void **state UNUSED)
{
	enum { RINGS = 8, ROUNDS = 125, PER_ROUND = 1000 };
	struct received got = {0};
	struct reorder *r;
	uint64_t number = 0, start_ns = clock_own_cpu_ns(), spent_ns;
	uint64_t *times = malloc(sizeof(*times) * RINGS * ROUNDS * PER_ROUND);

	assert_non_null(times);
	assert_int_equal(reorder_new(64 << 20, receive, &got, &r), 0);
	for (uint64_t round = 0; round < ROUNDS; round++) {
		for (uint64_t ring = 0; ring < RINGS; ring++)
			for (uint64_t i = 0; i < PER_ROUND; i++) {
				/* Rings read later have seen more; some records swap places. */
				uint64_t at = round * PER_ROUND + i + ring * 100 + 1;

				times[number] = at / 4 * 4 + hash_u64(number) % 16;
				assert_int_equal(add(r, times[number], number), 0);
				number++;
			}
		assert_int_equal(reorder_round(r), 0);
	}
	assert_int_equal(reorder_flush(r), 0);
	spent_ns = clock_own_cpu_ns() - start_ns;
	assert_int_equal(got.numbers.n, number);
	assert_int_equal(reorder_late(r), 0);
	for (size_t i = 1; i < got.numbers.n; i++) {
		uint64_t a = got.numbers.v[i - 1], b = got.numbers.v[i];

		if (times[a] > times[b] || (times[a] == times[b] && a > b))
			fail_msg("records %zu and %zu are out of order", i - 1, i);
	}
	print_message("# %llu ms for a million records\n", (unsigned long long)spent_ns / 1000000);
	assert_true(spent_ns < 3 * NSEC_PER_SEC);
	reorder_free(r);
	array_release(&got.numbers);
	free(times);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rounds),         cmocka_unit_test(test_ties_and_no_time),
		cmocka_unit_test(test_limit),          cmocka_unit_test(test_stable),
		cmocka_unit_test(test_receiver_fails), cmocka_unit_test(test_million),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
