/* SPDX-License-Identifier: BSD-2-Clause */
#include <inspect/statistics.h>
#include <math.h>

#define BOOTSTRAP_ROUNDS 2000U
#define BOOTSTRAP_SEED 0x696e7370656374ULL
#define OUTLIER_SCORE 3.5
#define OUTLIER_RUNS_MIN 5U

static int compare_doubles(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* A sorted copy, malloc'ed. */
static double *sorted_copy(struct series s)
{
	double *v = malloc((s.n + 1) * sizeof(*v));

	if (!v)
		return NULL;
	memcpy(v, s.v, s.n * sizeof(*v));
	qsort(v, s.n, sizeof(*v), compare_doubles);
	return v;
}

static double median_of_sorted(const double *v, size_t n)
{
	if (!n)
		return 0;
	return n % 2 ? v[n / 2] : (v[n / 2 - 1] + v[n / 2]) / 2;
}

double series_median(struct series s)
{
	CLEANUP(freep) double *v = s.n ? sorted_copy(s) : NULL;

	return v ? median_of_sorted(v, s.n) : 0;
}

/* Median of |x - center|. */
static int deviation_of(struct series s, double center, double *ret)
{
	CLEANUP(freep) double *v = malloc((s.n + 1) * sizeof(*v));

	if (!v)
		return -ENOMEM;
	for (size_t i = 0; i < s.n; i++)
		v[i] = fabs(s.v[i] - center);
	*ret = series_median((struct series){v, s.n});
	return 0;
}

size_t series_outliers(struct series s, bool *marks)
{
	double median = series_median(s), mad = 0, unit = 0;
	size_t n = 0;

	if (marks)
		memset(marks, 0, s.n * sizeof(*marks));
	if (s.n < OUTLIER_RUNS_MIN || deviation_of(s, median, &mad))
		return 0;
	if (mad > 0) {
		unit = mad / 0.6745;
	} else {
		for (size_t i = 0; i < s.n; i++)
			unit += fabs(s.v[i] - median) * 1.253314 / (double)s.n;
	}
	for (size_t i = 0; i < s.n; i++) {
		bool is_outlier = unit > 0 && fabs(s.v[i] - median) > OUTLIER_SCORE * unit;

		n += is_outlier;
		if (marks)
			marks[i] = is_outlier;
	}
	return n;
}

/* --- the mean's interval ---------------------------------------------------------------------- */

/* splitmix64 (Steele, Lea, Flood 2014) */
static uint64_t next_random(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15ULL;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ z >> 27) * 0x94d049bb133111ebULL;
	return z ^ z >> 31;
}

/* An index below n, from the upper half: unbiased enough for n far below 2^32. */
static size_t random_index(uint64_t *state, size_t n)
{
	return (size_t)((next_random(state) >> 32) * (uint64_t)n >> 32);
}

static int bootstrap_mean(struct series s, double *ret_low, double *ret_high)
{
	CLEANUP(freep) double *means = malloc(BOOTSTRAP_ROUNDS * sizeof(*means));
	uint64_t state = BOOTSTRAP_SEED;

	if (!means)
		return -ENOMEM;
	for (size_t round = 0; round < BOOTSTRAP_ROUNDS; round++) {
		double sum = 0;

		for (size_t i = 0; i < s.n; i++)
			sum += s.v[random_index(&state, s.n)];
		means[round] = sum / (double)s.n;
	}
	qsort(means, BOOTSTRAP_ROUNDS, sizeof(*means), compare_doubles);
	*ret_low = means[BOOTSTRAP_ROUNDS / 40];
	*ret_high = means[BOOTSTRAP_ROUNDS - 1 - BOOTSTRAP_ROUNDS / 40];
	return 0;
}

int series_summary(struct series s, struct summary *ret)
{
	CLEANUP(freep) double *v = s.n ? sorted_copy(s) : NULL;
	struct summary sum = {.n = s.n};
	double squares = 0;
	int err;

	if (!s.n)
		return -EINVAL;
	if (!v)
		return -ENOMEM;
	sum.min = v[0];
	sum.max = v[s.n - 1];
	sum.median = median_of_sorted(v, s.n);
	/* From the smallest deviation on: large values with small differences keep their digits. */
	for (size_t i = 0; i < s.n; i++)
		sum.mean += (v[i] - v[0]) / (double)s.n;
	sum.mean += v[0];
	for (size_t i = 0; i < s.n; i++)
		squares += (v[i] - sum.mean) * (v[i] - sum.mean);
	sum.sd = s.n > 1 ? sqrt(squares / (double)(s.n - 1)) : 0;
	sum.outliers = series_outliers(s, NULL);
	err = deviation_of(s, sum.median, &sum.mad);
	if (!err)
		err = bootstrap_mean(s, &sum.low, &sum.high);
	if (err)
		return err;
	*ret = sum;
	return 0;
}

int series_ratio(struct series a, struct series b, struct ratio *ret)
{
	size_t n = a.n * b.n, k = rank_interval(a.n, b.n);
	CLEANUP(freep) double *pairs = NULL;

	if (!a.n || !b.n || b.n > SIZE_MAX / sizeof(*pairs) / a.n)
		return -EINVAL;
	pairs = malloc(n * sizeof(*pairs));
	if (!pairs)
		return -ENOMEM;
	for (size_t i = 0; i < a.n; i++) {
		if (!(a.v[i] > 0))
			return -ERANGE;
		for (size_t j = 0; j < b.n; j++)
			pairs[i * b.n + j] = b.v[j] / a.v[i];
	}
	qsort(pairs, n, sizeof(*pairs), compare_doubles);
	*ret = (struct ratio){.estimate = median_of_sorted(pairs, n), .has_interval = k != 0};
	if (k) {
		ret->low = pairs[k - 1];
		ret->high = pairs[n - k];
	}
	return 0;
}
