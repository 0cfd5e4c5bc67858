/* SPDX-License-Identifier: BSD-2-Clause */
#include <inspect/baseline.h>
#include <math.h>

/* Runs that may be left out, of each so many. */
#define OUTLIER_SHARE 5

const char *gate_verdict_name(enum gate_verdict v)
{
	static const char *const names[] = {"passed", "regression", "inconclusive"};

	return names[v];
}

/* The series without its outliers; malloc'ed values. */
static int judged_runs(struct series s, struct series *ret, size_t *ret_outliers)
{
	CLEANUP(freep) bool *marks = calloc(s.n + 1, sizeof(*marks));
	CLEANUP(freep) double *v = malloc((s.n + 1) * sizeof(*v));
	size_t n = 0, outliers;

	if (!marks || !v)
		return -ENOMEM;
	outliers = series_outliers(s, marks);
	if (outliers > s.n / OUTLIER_SHARE)
		outliers = 0;
	for (size_t i = 0; i < s.n; i++)
		if (!outliers || !marks[i])
			v[n++] = s.v[i];
	*ret = (struct series){TAKE_PTR(v), n};
	*ret_outliers = outliers;
	return 0;
}

static void series_freep(struct series *s)
{
	free((double *)s->v);
}

/* What a new value may be at most (falling: at least) beside an old one. With two limits both have
 * to be exceeded: the one further out decides. */
static double allowed(const struct limit *l, double base)
{
	double sign = l->falling ? -1 : 1;
	double by_percent = l->has_percent ? fabs(base) * l->percent / 100 : 0;
	double by_amount = l->has_absolute ? l->absolute : 0;

	return base + sign * MAX(by_percent, by_amount);
}

static bool is_beyond(const struct limit *l, double base, double now)
{
	return l->falling ? now < allowed(l, base) : now > allowed(l, base);
}

static enum gate_verdict judge_pairs(const struct limit *l, struct series base, struct series now,
				     struct gate_decision *decision)
{
	size_t pairs = base.n * now.n, k = rank_interval(base.n, now.n), beyond = 0;

	for (size_t i = 0; i < base.n; i++)
		for (size_t j = 0; j < now.n; j++)
			beyond += is_beyond(l, base.v[i], now.v[j]);
	if (!k) {
		size_t n = MIN(base.n, now.n);

		while (!rank_interval(MAX(base.n, n), MAX(now.n, n)))
			n++;
		decision->runs_needed = n;
		return GATE_INCONCLUSIVE;
	}
	if (beyond >= pairs - k + 1)
		return GATE_REGRESSION;
	return pairs - beyond >= pairs - k + 1 ? GATE_PASSED : GATE_INCONCLUSIVE;
}

int limit_judge(const struct limit *l, struct series base, struct series now, enum gate_mode mode,
		struct gate_decision *ret)
{
	CLEANUP(series_freep) struct series old = {0};
	CLEANUP(series_freep) struct series new = {0};
	struct gate_decision decision = {0};
	int err;

	if (!base.n || !now.n)
		return -EINVAL;
	err = judged_runs(base, &old, &decision.outliers_base);
	if (!err)
		err = judged_runs(now, &new, &decision.outliers_now);
	if (err)
		return err;
	decision.base = series_median(old);
	decision.now = series_median(new);
	err = series_ratio(old, new, &decision.ratio);
	if (err && err != -ERANGE)
		return err;
	decision.has_ratio = !err;
	if (mode == GATE_MEDIAN)
		decision.verdict =
			is_beyond(l, decision.base, decision.now) ? GATE_REGRESSION : GATE_PASSED;
	else
		decision.verdict = judge_pairs(l, old, new, &decision);
	*ret = decision;
	return 0;
}

static bool is_within(const struct budget *b, double v)
{
	switch (b->compare) {
	case BUDGET_LT:
		return v < b->value;
	case BUDGET_LE:
		return v <= b->value;
	case BUDGET_GT:
		return v > b->value;
	default:
		return v >= b->value;
	}
}

int budget_judge(const struct budget *b, struct series now, enum gate_mode mode,
		 struct gate_decision *ret)
{
	CLEANUP(series_freep) struct series runs = {0};
	struct gate_decision decision = {.base = b->value};
	struct summary sum;
	bool low, high;
	int err;

	if (!now.n)
		return -EINVAL;
	err = judged_runs(now, &runs, &decision.outliers_now);
	if (!err)
		err = series_summary(runs, &sum);
	if (err)
		return err;
	decision.now = sum.median;
	decision.low = sum.low;
	decision.high = sum.high;
	low = is_within(b, mode == GATE_MEDIAN ? sum.median : sum.low);
	high = is_within(b, mode == GATE_MEDIAN ? sum.median : sum.high);
	decision.verdict = low && high   ? GATE_PASSED
			   : low || high ? GATE_INCONCLUSIVE
					 : GATE_REGRESSION;
	*ret = decision;
	return 0;
}
