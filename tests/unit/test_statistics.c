/* SPDX-License-Identifier: BSD-2-Clause */
/* Against published tables (Mann and Whitney's critical values) and arithmetic done by hand. */
#include <inspect/statistics.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#define SERIES(...)                                                                                \
	((struct series){(const double[]){__VA_ARGS__},                                            \
			 sizeof((const double[]){__VA_ARGS__}) / sizeof(double)})

static void assert_near(double got, double want, double tolerance)
{
	if (fabs(got - want) > tolerance)
		fail_msg("got %.10g, wanted %.10g", got, want);
}

static void test_summary(void **state UNUSED)
{
	struct summary s;

	assert_int_equal(series_summary(SERIES(2, 4, 4, 4, 5, 5, 7, 9), &s), 0);
	assert_near(s.mean, 5, 1e-12);
	assert_near(s.sd, sqrt(32.0 / 7), 1e-12);
	assert_near(s.median, 4.5, 1e-12);
	assert_near(s.mad, 0.5, 1e-12);
	assert_near(s.min, 2, 0);
	assert_near(s.max, 9, 0);
	assert_int_equal(s.n, 8);
	/* The bootstrap's interval is near that of the normal distribution, mean ± 1.96 σ/√n. */
	assert_near(s.low, 5 - 1.96 * s.sd / sqrt(8), 0.35);
	assert_near(s.high, 5 + 1.96 * s.sd / sqrt(8), 0.35);
	assert_true(s.low < s.mean && s.mean < s.high);
}

static void test_single(void **state UNUSED)
{
	struct summary s;

	assert_int_equal(series_summary(SERIES(42), &s), 0);
	assert_near(s.mean, 42, 0);
	assert_near(s.sd, 0, 0);
	assert_near(s.low, 42, 0);
	assert_near(s.high, 42, 0);
	assert_int_equal(s.outliers, 0);
	assert_int_equal(series_summary((struct series){NULL, 0}, &s), -EINVAL);
}

/* Large values that differ little keep their digits. */
static void test_large_offset(void **state UNUSED)
{
	struct summary s;

	assert_int_equal(series_summary(SERIES(1e15 + 1, 1e15 + 2, 1e15 + 3), &s), 0);
	assert_near(s.mean - 1e15, 2, 0.2);
	assert_near(s.sd, 1, 0.2);
}

static void test_outliers(void **state UNUSED)
{
	bool marks[10];

	assert_int_equal(series_outliers(SERIES(10, 11, 12, 11, 10, 11, 12, 10, 11, 30), marks), 1);
	for (int i = 0; i < 10; i++)
		assert_int_equal(marks[i], i == 9);
	/* A MAD of 0: most values are equal. */
	assert_int_equal(series_outliers(SERIES(5, 5, 5, 5, 5, 5, 5, 5, 5, 6), marks), 1);
	assert_true(marks[9]);
	assert_int_equal(series_outliers(SERIES(5, 5, 5, 5, 5), NULL), 0);
	/* Of four values none can be called one. */
	assert_int_equal(series_outliers(SERIES(1, 1, 1, 1000), NULL), 0);
}

/* Critical values of U, two-sided 5 % (Mann and Whitney 1947; Milton 1964): k is one more. */
static void test_rank_interval(void **state UNUSED)
{
	static const struct {
		size_t a, b;
		size_t critical; /* SIZE_MAX: none */
	} table[] = {
		{3, 3, SIZE_MAX}, {3, 4, SIZE_MAX}, {3, 5, 0},     {4, 4, 0},         {5, 5, 2},
		{5, 8, 6},        {6, 6, 5},        {7, 7, 8},     {8, 8, 13},        {10, 10, 23},
		{10, 20, 55},     {15, 15, 64},     {20, 20, 127}, {1, 10, SIZE_MAX}, {2, 8, 0},
	};

	for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
		size_t want = table[i].critical == SIZE_MAX ? 0 : table[i].critical + 1;

		if (rank_interval(table[i].a, table[i].b) != want)
			fail_msg("%zu and %zu: %zu, wanted %zu", table[i].a, table[i].b,
				 rank_interval(table[i].a, table[i].b), want);
		assert_int_equal(rank_interval(table[i].b, table[i].a), want);
	}
	/* The normal approximation goes on where the exact one ends. */
	assert_near((double)rank_interval(25, 25), 212, 0);
	assert_near((double)rank_interval(26, 26), 231, 1);
}

static void test_mann_whitney(void **state UNUSED)
{
	struct rank_test t;

	/* No overlap: 2 / C(10, 5). */
	assert_int_equal(mann_whitney(SERIES(1, 2, 3, 4, 5), SERIES(6, 7, 8, 9, 10), &t), 0);
	assert_true(t.exact);
	assert_near(t.p, 2.0 / 252, 1e-12);
	assert_int_equal(mann_whitney(SERIES(6, 7, 8, 9, 10), SERIES(1, 2, 3, 4, 5), &t), 0);
	assert_near(t.p, 2.0 / 252, 1e-12);
	/* U = 1 of 3 and 3: 2 · (1 + 1) / C(6, 3). */
	assert_int_equal(mann_whitney(SERIES(1, 2, 4), SERIES(3, 5, 6), &t), 0);
	assert_near(t.p, 4.0 / 20, 1e-12);
	/* With ties: U = 18.5, σ² = 25/12 · (11 - 54/90), z = (18.5 - 12.5 - 0.5)/σ. */
	assert_int_equal(mann_whitney(SERIES(1, 2, 2, 3, 4), SERIES(2, 3, 3, 4, 5), &t), 0);
	assert_false(t.exact);
	assert_near(t.p, erfc(5.5 / sqrt(25.0 / 12 * (11 - 54.0 / 90)) / sqrt(2)), 1e-9);
	/* Equal values prove nothing. */
	assert_int_equal(mann_whitney(SERIES(7, 7, 7), SERIES(7, 7, 7, 7), &t), 0);
	assert_near(t.p, 1, 0);
	assert_int_equal(mann_whitney(SERIES(1), (struct series){NULL, 0}, &t), -EINVAL);
}

static void test_ratio(void **state UNUSED)
{
	struct ratio r;

	assert_int_equal(series_ratio(SERIES(1, 2, 4), SERIES(2, 4, 8), &r), 0);
	assert_near(r.estimate, 2, 1e-12);
	assert_false(r.has_interval);
	assert_int_equal(
		series_ratio(SERIES(10, 10.1, 10.2, 10.3), SERIES(20, 20.1, 20.2, 20.3), &r), 0);
	assert_true(r.has_interval);
	assert_near(r.low, 20 / 10.3, 1e-12); /* of 4 and 4 the extremes */
	assert_near(r.high, 20.3 / 10, 1e-12);
	assert_int_equal(series_ratio(SERIES(0, 1), SERIES(1, 1), &r), -ERANGE);
	assert_int_equal(series_ratio((struct series){NULL, 0}, SERIES(1), &r), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_summary),       cmocka_unit_test(test_single),
		cmocka_unit_test(test_large_offset),  cmocka_unit_test(test_outliers),
		cmocka_unit_test(test_rank_interval), cmocka_unit_test(test_mann_whitney),
		cmocka_unit_test(test_ratio),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
