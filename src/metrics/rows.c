/* SPDX-License-Identifier: BSD-2-Clause */
/* Rows: made, judged, put into order. */
#include "readings.h"

#include <stdarg.h>

enum { ROWS_MAX = 4000, KINDS_MAX = 64 };

static const char *copy_text(struct use_report *r, const char *s, size_t n)
{
	const char *copy = arena_strndup(&r->arena, s, n);

	if (copy)
		return copy;
	r->failed = true;
	return "";
}

const char *report_text(struct use_report *r, const char *fmt, ...)
{
	char buf[1024];
	va_list args;
	int n;

	va_start(args, fmt);
	n = vsnprintf(buf, sizeof(buf), fmt, args);
	va_end(args);
	return copy_text(r, buf, MIN((size_t)MAX(n, 0), sizeof(buf) - 1));
}

void report_note(struct use_report *r, const char *fmt, ...)
{
	char buf[1024];
	va_list args;

	va_start(args, fmt);
	vsnprintf(buf, sizeof(buf), fmt, args);
	va_end(args);
	for (size_t i = 0; i < r->notes.n; i++)
		if (str_eq(r->notes.v[i], buf))
			return;
	if (array_push(&r->notes, copy_text(r, buf, strlen(buf))))
		r->failed = true;
}

/* The pointer is good until the next row. */
struct use_row *row_add(struct use_report *r, const char *scope, const char *resource,
			const char *device)
{
	struct use_row row = {
		.scope = scope,
		.resource = resource,
		.device = copy_text(r, device, strlen(device)),
	};

	if (r->rows.n >= ROWS_MAX || array_push(&r->rows, row)) {
		r->failed |= r->rows.n < ROWS_MAX;
		return NULL;
	}
	return &r->rows.v[r->rows.n - 1];
}

struct use_value *row_put(struct use_report *r, struct use_row *row, const char *key, double v)
{
	size_t metric = use_metric_find(key);
	struct use_value *value;

	if (!row || metric == n_use_metrics || row->n_values == USE_VALUES_MAX) {
		r->failed = true;
		return NULL;
	}
	value = &row->values[row->n_values++];
	*value = (struct use_value){.metric = (unsigned)metric, .v = v};
	if (isnan(v))
		value->reason = "not readable";
	return value;
}

void row_lacks(struct use_report *r, struct use_row *row, const char *key, const char *reason)
{
	struct use_value *value = row_put(r, row, key, NAN);

	if (value)
		value->reason = reason;
}

struct use_value *row_put_or(struct use_report *r, struct use_row *row, const char *key, double v,
			     const char *reason)
{
	struct use_value *value = row_put(r, row, key, v);

	if (value && isnan(v))
		value->reason = reason;
	return value;
}

const struct use_value *use_row_value(const struct use_row *row, const char *key)
{
	for (size_t i = 0; i < row->n_values; i++)
		if (str_eq(use_metrics[row->values[i].metric].key, key))
			return &row->values[i];
	return NULL;
}

const struct use_row *use_report_worst(const struct use_report *r, const char *key)
{
	const struct use_row *worst = NULL;
	double highest = -INFINITY;

	for (size_t i = 0; i < r->rows.n; i++) {
		const struct use_value *v = use_row_value(&r->rows.v[i], key);

		if (!v || isnan(v->v) || v->not_judged)
			continue;
		if (worst && worst->foreign != r->rows.v[i].foreign ? !worst->foreign
								    : v->v <= highest)
			continue;
		highest = v->v;
		worst = &r->rows.v[i];
	}
	return worst;
}

/* --- verdicts --------------------------------------------------------------------------------- */

struct use_limit use_limit_of(const struct use_limit *limits, size_t metric)
{
	struct use_limit limit = {use_metrics[metric].warn, use_metrics[metric].critical};

	if (limits && !isnan(limits[metric].warn))
		limit = limits[metric];
	return limit;
}

/* 1 at the critical limit; what only warns gets no further than 0.99 of it. */
static double score_of(double v, struct use_limit limit)
{
	double score;

	if (isnan(limit.warn) || v <= 0)
		return 0;
	if (isnan(limit.critical))
		return v > limit.warn ? 0.99 : 0.8 * v / limit.warn;
	score = limit.critical > 0 ? v / limit.critical : 2;
	return v > limit.critical ? 1 + score : MIN(score, 0.99);
}

static void judge_value(struct use_value *value, const struct use_limit *limits,
			struct use_row *row)
{
	struct use_limit limit = use_limit_of(limits, value->metric);

	value->verdict = isnan(value->v)                              ? USE_NO_DATA
			 : value->not_judged && value->v > limit.warn ? USE_NOT_JUDGED
								      : USE_OK;
	if (isnan(value->v) || value->not_judged)
		return;
	if (value->v > limit.critical)
		value->verdict = USE_CRITICAL;
	else if (value->v > limit.warn)
		value->verdict = USE_WARN;
	row->score = fmax(row->score, score_of(value->v, limit));
}

static void judge_row(struct use_row *row, const struct use_limit *limits)
{
	row->verdict = USE_NO_DATA;
	row->score = 0;
	for (size_t i = 0; i < row->n_values; i++) {
		judge_value(&row->values[i], limits, row);
		row->verdict = MAX(row->verdict, row->values[i].verdict);
	}
}

static bool is_same_kind(const struct use_row *a, const struct use_row *b)
{
	return str_eq(a->resource, b->resource) && str_eq(a->scope, b->scope);
}

/* The first row of each kind that is shown. */
struct firsts {
	struct use_row *v[KINDS_MAX];
	size_t n;
};

static struct use_row *first_of(struct firsts *f, struct use_row *row)
{
	for (size_t i = 0; i < f->n; i++)
		if (is_same_kind(f->v[i], row))
			return f->v[i];
	if (f->n < KINDS_MAX)
		f->v[f->n++] = row;
	return row;
}

/* Of equals that are well the worst one stands for all; those that are not, or that nothing is
 * known of, stand for themselves. */
static void hide_equals(struct use_report *r)
{
	struct firsts firsts = {0};

	for (size_t i = 0; i < r->rows.n; i++) {
		struct use_row *row = &r->rows.v[i], *first;

		if (row->detail)
			continue;
		first = first_of(&firsts, row);
		if (first == row || row->verdict != USE_OK)
			continue;
		row->detail = true;
		first->hidden++;
	}
}

static int compare_rows(const void *a, const void *b, void *ctx)
{
	const struct use_row *x = a, *y = b;
	const struct use_report *r = ctx;
	bool x_host = r->has_target && str_eq(x->scope, "host");
	bool y_host = r->has_target && str_eq(y->scope, "host");
	int by_name;

	if (x->verdict != y->verdict)
		return x->verdict < y->verdict ? 1 : -1;
	if (x_host != y_host)
		return x_host ? 1 : -1;
	if (x->score != y->score)
		return x->score < y->score ? 1 : -1;
	by_name = strcmp(x->resource, y->resource);
	return by_name ? by_name : strcmp(x->device, y->device);
}

void use_report_sort(struct use_report *r)
{
	if (r->rows.n)
		qsort_r(r->rows.v, r->rows.n, sizeof(*r->rows.v), compare_rows, r);
}

static bool is_worse_than_whole(const struct use_report *r, const struct use_row *row)
{
	enum use_verdict whole = USE_OK;

	for (size_t j = 0; j < r->rows.n; j++)
		if (!r->rows.v[j].detail && is_same_kind(&r->rows.v[j], row))
			whole = MAX(whole, r->rows.v[j].verdict);
	return row->verdict > whole;
}

/* A device that a row of all devices speaks for is shown when it is worse than that. */
static void show_worse_details(struct use_report *r)
{
	for (size_t i = 0; i < r->rows.n; i++) {
		struct use_row *row = &r->rows.v[i];

		/* Marked first: those found must not count as the whole. */
		row->hidden =
			row->detail && row->verdict >= USE_WARN && is_worse_than_whole(r, row);
	}
	for (size_t i = 0; i < r->rows.n; i++) {
		struct use_row *row = &r->rows.v[i];

		row->detail &= !row->hidden;
		row->hidden = 0;
	}
}

void report_judge(struct use_report *r, const struct use_limit *limits)
{
	for (size_t i = 0; i < r->rows.n; i++)
		judge_row(&r->rows.v[i], limits);
	use_report_sort(r);
	show_worse_details(r);
	hide_equals(r);
}

void use_report_release(struct use_report *r)
{
	array_release(&r->rows);
	array_release(&r->notes);
	arena_release(&r->arena);
}
