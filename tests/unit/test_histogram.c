/* SPDX-License-Identifier: BSD-2-Clause */
/* Percentiles against sorted values, and every slot's range against the slot of its ends. */
#include <inspect/histogram.h>
#include <inspect/term.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void test_slots(void **state UNUSED)
{
	uint64_t before = 0;

	for (uint32_t i = 0; i < LOG_LINEAR_SLOTS; i++) {
		uint64_t low, high;

		histogram_slot_range(i, &low, &high);
		assert_true(low == before && high > low);
		assert_int_equal(log_linear_slot(low), i);
		assert_int_equal(log_linear_slot(high - 1), i);
		/* Half of it, from the middle: 3.2 % at most. */
		if (i >= LOG_LINEAR_SUB && high != UINT64_MAX)
			assert_true((double)(high - low) / 2 / (double)low <= 0.032);
		before = high;
	}
	assert_int_equal(log_linear_slot(UINT64_MAX), LOG_LINEAR_SLOTS - 1);
	/* By hand: 1000 = 2^9 + 488, of which 2^5 are one slot. */
	assert_int_equal(log_linear_slot(1000), (9 - 4 + 1) * 16 + 488 / 32);
}

static int by_value(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static void test_percentiles(void **state UNUSED)
{
	static const double percents[] = {1, 25, 50, 90, 99, 99.9, 100};
	enum { N = 20000 };
	uint64_t *values = calloc(N, sizeof(*values)), seed = 1, sum = 0;
	struct histogram h = {0};

	assert_non_null(values);
	for (size_t i = 0; i < N; i++) {
		seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
		values[i] = (seed >> 33) >> (seed >> 59 & 31) % 25; /* over 7 orders of magnitude */
		histogram_add(&h, values[i], 1);
		sum += values[i];
	}
	qsort(values, N, sizeof(*values), by_value);
	for (size_t i = 0; i < ARRAY_SIZE(percents); i++) {
		size_t rank = (size_t)(N * percents[i] / 100 + 0.5);
		double want = (double)values[rank ? rank - 1 : 0];
		double got = (double)histogram_percentile(&h, percents[i]);

		if (got > want * 1.032 + 0.5 || got < want * 0.968 - 0.5)
			fail_msg("p%g is %g, wanted %g", percents[i], got, want);
	}
	assert_true(h.n == N && h.sum == sum && h.max == values[N - 1]);
	assert_int_equal(histogram_mean(&h), sum / N);
	free(values);
}

static void test_small(void **state UNUSED)
{
	struct histogram h = {0}, other = {0};

	assert_int_equal(histogram_percentile(&h, 50), 0);
	histogram_add(&h, 7, 1);
	assert_int_equal(histogram_percentile(&h, 0), 7);
	assert_int_equal(histogram_percentile(&h, 50), 7);
	histogram_add(&other, 1 << 20, 3);
	histogram_merge(&h, &other);
	assert_int_equal(histogram_percentile(&h, 25), 7);
	assert_int_equal(histogram_percentile(&h, 99), 1 << 20); /* the exact maximum */
	/* Longer than the scale: the maximum stands for all of them. */
	histogram_add(&h, UINT64_C(1) << 60, 100);
	assert_true(histogram_percentile(&h, 99) == UINT64_C(1) << 60);
}

static void test_bars(void **state UNUSED)
{
	struct histogram h = {0};
	struct histogram_bar bars[20];
	size_t n;

	assert_int_equal(histogram_bars(&h, bars, 20), 0);
	for (uint64_t v = 1000; v < 9000; v++)
		histogram_add(&h, v, 1);
	n = histogram_bars(&h, bars, 20);
	assert_in_range(n, 11, 20);
	for (size_t i = 0; i < n; i++) {
		uint64_t low = MAX(bars[i].low, 1000U), high = MIN(bars[i].high, 9000U);

		assert_int_equal(bars[i].count, high - low);
		assert_true(!i || bars[i].low == bars[i - 1].high);
	}
	n = histogram_bars(&h, bars, 5); /* 512 to 16384: powers of two */
	assert_int_equal(n, 5);
	assert_int_equal(bars[1].low, 1024);
	assert_int_equal(bars[1].count, 1024);
	assert_int_equal(histogram_bars(&h, bars, 1), 1);
	assert_int_equal(bars[0].count, 8000);
}

static void assert_bar(uint64_t count, uint64_t most, bool ascii, const char *want)
{
	CLEANUP(strbuf_release) struct strbuf b = {0};

	histogram_put_bar(&b, count, most, 8, ascii);
	assert_string_equal(strbuf_str(&b), want);
	assert_int_equal(term_columns(strbuf_str(&b)), 8);
}

static void test_drawing(void **state UNUSED)
{
	assert_bar(0, 100, false, "        ");
	assert_bar(100, 100, false, "████████");
	assert_bar(50, 100, false, "████    ");
	assert_bar(33, 64, false, "████▏   ");
	assert_bar(1, 1000000, false, "▏       ");
	assert_bar(50, 100, true, "####    ");
	assert_bar(1, 1000000, true, "#       ");
	assert_bar(UINT64_MAX, UINT64_MAX, true, "########");
	assert_bar(0, 0, true, "        ");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_slots),   cmocka_unit_test(test_percentiles),
		cmocka_unit_test(test_small),   cmocka_unit_test(test_bars),
		cmocka_unit_test(test_drawing),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
