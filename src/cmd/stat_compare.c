/* SPDX-License-Identifier: BSD-2-Clause */
/* --vs: two commands that ran in turns. */
#include "stat.h"

#include <math.h>

#define ALPHA 0.05

static const struct column columns[] = {
	{"metric", "metric", CELL_TEXT, 0},
	{"a", "A", CELL_NUMBER, 0},
	{"b", "B", CELL_NUMBER, 0},
	{"ratio", "B/A", CELL_NUMBER, 0},
	{"low", "95 % from", CELL_NUMBER, 0},
	{"high", "to", CELL_NUMBER, 0},
	{"", "p", CELL_TEXT, COLUMN_TABLE_ONLY | COLUMN_SPARE},
	{"p", "", CELL_NUMBER, COLUMN_DATA_ONLY},
	{"verdict", "B has", CELL_TEXT, 0},
	{"test", "", CELL_TEXT, COLUMN_DATA_ONLY},
	{"unit", "", CELL_TEXT, COLUMN_DATA_ONLY},
};

struct comparison {
	struct series a, b;
	struct ratio ratio;
	bool has_ratio;
	struct rank_test test;
};

static void comparison_release(struct comparison *c)
{
	free((double *)c->a.v);
	free((double *)c->b.v);
}

static int compare(const struct stat_session *s, size_t metric, struct comparison *c)
{
	int err = stat_metric_series(s, metric, 0, &c->a);

	if (!err)
		err = stat_metric_series(s, metric, 1, &c->b);
	if (err || !c->a.n || !c->b.n)
		return err;
	err = mann_whitney(c->a, c->b, &c->test);
	if (err)
		return err;
	err = series_ratio(c->a, c->b, &c->ratio);
	c->has_ratio = !err;
	return err == -ERANGE ? 0 : err;
}

static const char *test_text(struct result *r, const struct comparison *c)
{
	return result_text(r, "Mann-Whitney U, two-sided, %s, %zu and %zu runs",
			   c->test.exact ? "exact" : "normal approximation", c->a.n, c->b.n);
}

static void add_row(const struct stat_metric *m, const struct comparison *c, struct result *r,
		    size_t section)
{
	double a = series_median(c->a), b = series_median(c->b);
	const char *verdict = c->test.p >= ALPHA ? "no difference" : b > a ? "more" : "less";
	const char *none = c->has_ratio ? "too few runs for a 95 % interval" : "A is 0";
	bool interval = c->has_ratio && c->ratio.has_interval;

	result_row(r, section,
		   (const struct cell[]){
			   cell_text(r, m->name),
			   stat_cell(a, m->unit, true),
			   stat_cell(b, m->unit, true),
			   c->has_ratio ? cell_double(CELL_NUMBER, c->ratio.estimate)
					: cell_null(r, none),
			   interval ? cell_double(CELL_NUMBER, c->ratio.low) : cell_null(r, none),
			   interval ? cell_double(CELL_NUMBER, c->ratio.high) : cell_null(r, none),
			   cell_text(r, result_text(r, "%.2g", c->test.p)),
			   cell_double(CELL_NUMBER, c->test.p),
			   cell_text(r, verdict),
			   cell_text(r, test_text(r, c)),
			   cell_text(r, unit_name(m->unit)),
		   });
}

/* Of time there is a sentence: that is what most ask for. */
static void add_sentence(const struct comparison *c, struct result *r)
{
	double change = 100 * (c->ratio.estimate - 1);
	const char *text;

	if (!c->has_ratio)
		return;
	if (c->test.p >= ALPHA)
		text = result_text(r, "no difference in time between A and B (p %.3g, %s)",
				   c->test.p, test_text(r, c));
	else if (c->ratio.has_interval)
		text = result_text(
			r, "B is %.1f %% %s than A (95 %% interval %+.1f to %+.1f %%; p %.2g, %s)",
			fabs(change), change > 0 ? "slower" : "faster", 100 * (c->ratio.low - 1),
			100 * (c->ratio.high - 1), c->test.p, test_text(r, c));
	else
		text = result_text(r, "B is %.1f %% %s than A (p %.2g, %s)", fabs(change),
				   change > 0 ? "slower" : "faster", c->test.p, test_text(r, c));
	result_fact(r, "comparison_summary", "comparison", cell_text(r, text));
}

int stat_comparison_section(const struct stat_session *s, struct result *r)
{
	size_t section =
		result_section(r, "comparison", "B compared with A", columns, ARRAY_SIZE(columns));
	int err = 0;

	for (size_t i = 0; i < s->metrics.n && !err; i++) {
		CLEANUP(comparison_release) struct comparison c = {0};

		err = compare(s, i, &c);
		if (err || !c.a.n || !c.b.n)
			continue;
		add_row(&s->metrics.v[i], &c, r, section);
		if (s->metrics.v[i].source == FROM_WALL)
			add_sentence(&c, r);
	}
	return err;
}
