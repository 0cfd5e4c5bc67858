/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What repeated runs say, and whether two series differ. Everything is deterministic: the same
 * values give the same numbers, bootstrap included.
 */
#ifndef INSPECT_STATISTICS_H
#define INSPECT_STATISTICS_H

#include <inspect/base.h>

/* Values of one metric, one for each run. Borrowed. */
struct series {
	const double *v;
	size_t n;
};

struct summary {
	double mean, sd; /* sd of the sample (n - 1); 0 of a single value */
	double median;
	double mad; /* median absolute deviation from the median, not scaled */
	double min, max;
	double low, high; /* bootstrap 95 % interval of the mean; both the value when n is 1 */
	size_t n, outliers;
};

/* n must be at least 1. 0, -EINVAL or -ENOMEM. */
int series_summary(struct series s, struct summary *ret);

/* 0 of an empty series or without memory. */
double series_median(struct series s);

/*
 * Marks values whose modified z-score, 0.6745 |x - median| / MAD, exceeds 3.5 (Iglewicz and
 * Hoaglin, How to Detect and Handle Outliers, 1993; with a MAD of 0 the mean absolute deviation
 * takes its place). Fewer than 5 values have none. `marks` may be NULL. Returns how many; 0
 * without memory.
 */
size_t series_outliers(struct series s, bool *marks);

struct rank_test {
	double p;   /* two-sided */
	bool exact; /* else the normal approximation, corrected for ties and continuity */
};

/* Mann-Whitney U: whether one of two series tends to larger values. 0, -EINVAL (an empty one) or
 * -ENOMEM. */
int mann_whitney(struct series a, struct series b, struct rank_test *ret);

/*
 * Of the na × nb pairs of two series, in order of how they differ, the one that bounds the 95 %
 * interval of the difference: the k-th from below, and from above (Moses; Hollander and Wolfe,
 * Nonparametric Statistical Methods, 4.3). 0: too few values for any 95 % interval.
 */
size_t rank_interval(size_t na, size_t nb);

/* b in units of a: the median of all b_j / a_i (Hodges and Lehmann) with its 95 % interval. */
struct ratio {
	double estimate;
	bool has_interval;
	double low, high;
};

/* 0; -ERANGE when an a is not above 0, -EINVAL for an empty series, -ENOMEM. */
int series_ratio(struct series a, struct series b, struct ratio *ret);

#endif
