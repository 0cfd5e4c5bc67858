/* SPDX-License-Identifier: BSD-2-Clause */
/* The Mann-Whitney test, and the interval that belongs to it. */
#include <inspect/statistics.h>
#include <math.h>

/* Up to here the number of arrangements, C(50, 25), and all steps to it are exact in a double. */
#define EXACT_RUNS_MAX 50U
#define ALPHA 0.05

/*
 * How many of the C(na + nb, na) arrangements have each U from 0 to na·nb: the coefficients of the
 * Gaussian binomial, ∏ (1 - q^(nb+i)) / (1 - q^i) for i = 1…na. malloc'ed, NULL without memory.
 */
static double *arrangements(size_t na, size_t nb)
{
	size_t top = na * nb;
	double *c = calloc(top + 1, sizeof(*c));

	if (!c)
		return NULL;
	c[0] = 1;
	for (size_t i = 1; i <= na; i++) {
		for (size_t u = top; u >= nb + i; u--)
			c[u] -= c[u - nb - i];
		for (size_t u = i; u <= top; u++)
			c[u] += c[u - i];
	}
	return c;
}

static double total_arrangements(const double *c, size_t top)
{
	double total = 0;

	for (size_t u = 0; u <= top; u++)
		total += c[u];
	return total;
}

static double normal_above(double z)
{
	return erfc(z / sqrt(2)) / 2;
}

size_t rank_interval(size_t na, size_t nb)
{
	CLEANUP(freep) double *c = NULL;
	double total, below = 0, n = (double)na * (double)nb, k;
	size_t u = 0;

	if (!na || !nb)
		return 0;
	if (na + nb > EXACT_RUNS_MAX) {
		k = floor(n / 2 - 1.959964 * sqrt(n * ((double)na + (double)nb + 1) / 12));
		return k > 0 ? (size_t)k : 0;
	}
	c = arrangements(na, nb);
	if (!c)
		return 0;
	total = total_arrangements(c, na * nb);
	/* The largest k with P(U < k) ≤ α/2. */
	while (u < na * nb && (below + c[u]) / total <= ALPHA / 2)
		below += c[u++];
	return u;
}

/* Twice U of b, so that ties count whole: 2 for each pair in which b is larger, 1 if equal. */
static uint64_t doubled_u(struct series a, struct series b, bool *ret_ties)
{
	uint64_t u = 0;

	*ret_ties = false;
	for (size_t i = 0; i < a.n; i++)
		for (size_t j = 0; j < b.n; j++) {
			u += b.v[j] > a.v[i] ? 2 : b.v[j] == a.v[i];
			*ret_ties |= b.v[j] == a.v[i];
		}
	return u;
}

static int compare_doubles(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* Σ (t³ - t) over the groups of equal values in both series. */
static int tie_term(struct series a, struct series b, double *ret)
{
	size_t n = a.n + b.n;
	CLEANUP(freep) double *v = malloc(n * sizeof(*v));
	double sum = 0;

	if (!v)
		return -ENOMEM;
	memcpy(v, a.v, a.n * sizeof(*v));
	memcpy(v + a.n, b.v, b.n * sizeof(*v));
	qsort(v, n, sizeof(*v), compare_doubles);
	for (size_t i = 0, next; i < n; i = next) {
		double t;

		for (next = i + 1; next < n && v[next] == v[i]; next++)
			;
		t = (double)(next - i);
		sum += t * t * t - t;
	}
	*ret = sum;
	return 0;
}

static int normal_p(struct series a, struct series b, double u, double *ret)
{
	double n = (double)a.n + (double)b.n, nm = (double)a.n * (double)b.n, ties, variance, z;
	int err = tie_term(a, b, &ties);

	if (err)
		return err;
	variance = nm / 12 * (n + 1 - ties / (n * (n - 1)));
	/* All values are equal. */
	if (!(variance > 0)) {
		*ret = 1;
		return 0;
	}
	z = MAX(fabs(u - nm / 2) - 0.5, 0.0) / sqrt(variance);
	*ret = MIN(2 * normal_above(z), 1.0);
	return 0;
}

int mann_whitney(struct series a, struct series b, struct rank_test *ret)
{
	CLEANUP(freep) double *c = NULL;
	double below = 0;
	uint64_t u2, low;
	bool ties;

	if (!a.n || !b.n)
		return -EINVAL;
	u2 = doubled_u(a, b, &ties);
	if (ties || a.n + b.n > EXACT_RUNS_MAX) {
		ret->exact = false;
		return normal_p(a, b, (double)u2 / 2, &ret->p);
	}
	c = arrangements(a.n, b.n);
	if (!c)
		return -ENOMEM;
	low = MIN(u2 / 2, a.n * b.n - u2 / 2);
	for (uint64_t u = 0; u <= low; u++)
		below += c[u];
	*ret = (struct rank_test){
		.p = MIN(2 * below / total_arrangements(c, a.n * b.n), 1.0),
		.exact = true,
	};
	return 0;
}
