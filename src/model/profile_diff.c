/* SPDX-License-Identifier: BSD-2-Clause */
#include <inspect/report.h>
#include <math.h>

#define DIFF_KEYS (REPORT_DSO | REPORT_SYMBOL | REPORT_UNKNOWN_AS_DSO)

/* One of the two profiles, grouped. */
struct side {
	const struct profile *p;
	bool total;
	struct report report;
	struct hashmap map; /* name and module, or name → rows without a partner */
	uint32_t *partner;  /* by row: the other side's row, or SYMBOL_NONE */
};

static void side_release(struct side *s)
{
	report_release(&s->report);
	hashmap_release(&s->map);
	free(s->partner);
}

/* Stand-ins such as [libc.so.6+0x12] have no name that another build would have too. */
static const char *row_name(const struct side *s, uint32_t row)
{
	uint32_t symbol = s->report.rows.v[row].symbol;

	if (symbol != SYMBOL_NONE && s->p->symbols.v[symbol].unknown)
		return "";
	return report_symbol_name(s->p, symbol);
}

static const char *row_module(const struct side *s, uint32_t row)
{
	return report_symbol_module(s->p, s->report.rows.v[row].symbol);
}

/* With the module in the first round, without in the second. */
static uint64_t row_hash(const struct side *s, uint32_t row, bool by_module)
{
	const char *name = row_name(s, row), *module = by_module ? row_module(s, row) : "";

	return hash_bytes(name, strlen(name)) ^ hash_u64(hash_bytes(module, strlen(module)));
}

static int side_index(struct side *s, bool by_module)
{
	int err = 0;

	hashmap_release(&s->map);
	for (uint32_t i = 0; i < s->report.rows.n && !err; i++)
		if (s->partner[i] == SYMBOL_NONE)
			err = hashmap_insert(&s->map, row_hash(s, i, by_module), i);
	return err;
}

static int side_init(struct side *s, const struct diff_input *input, bool total)
{
	int err;

	s->p = input->profile;
	s->total = total;
	err = report_build(s->p, input->event, DIFF_KEYS, &s->report);
	if (err)
		return err;
	s->partner = malloc((s->report.rows.n + 1) * sizeof(*s->partner));
	if (!s->partner)
		return -ENOMEM;
	for (uint32_t i = 0; i < s->report.rows.n; i++)
		s->partner[i] = SYMBOL_NONE;
	return 0;
}

/* The row of `in` that is what `row` of `of` is. SYMBOL_NONE: there is none, or more than one. */
static uint32_t find_single(const struct side *in, const struct side *of, uint32_t row,
			    bool by_module)
{
	uint32_t at, i, found = SYMBOL_NONE;

	hashmap_each_candidate(&in->map, row_hash(of, row, by_module), at, i) {
		if (!str_eq(row_name(in, i), row_name(of, row)) ||
		    (by_module && !str_eq(row_module(in, i), row_module(of, row))))
			continue;
		if (found != SYMBOL_NONE)
			return SYMBOL_NONE;
		found = i;
	}
	return found;
}

static int match(struct side *before, struct side *after, bool by_module)
{
	int err = side_index(before, by_module);

	if (!err)
		err = side_index(after, by_module);
	if (err)
		return err;
	for (uint32_t i = 0; i < before->report.rows.n; i++) {
		uint32_t other;

		/* Unnamed code is only ever the same in the same module. */
		if (before->partner[i] != SYMBOL_NONE || (!by_module && !*row_name(before, i)))
			continue;
		other = find_single(after, before, i, by_module);
		if (other == SYMBOL_NONE || find_single(before, before, i, by_module) != i)
			continue;
		before->partner[i] = other;
		after->partner[other] = i;
	}
	return 0;
}

/* Share of the event, 0…1, and samples. */
static double row_share(const struct side *s, uint32_t row, uint64_t *ret_count)
{
	const struct report_row *r = &s->report.rows.v[row];

	*ret_count = s->total ? r->total_count : r->self_count;
	return s->report.weight ? (double)(s->total ? r->total : r->self) / (double)s->report.weight
				: 0;
}

/* Variance of a share after Agresti and Caffo: one hit and one miss more, so that 0 of n samples
 * are no certainty. */
static double variance(double share, uint64_t samples)
{
	double n = (double)samples + 2, p = (share * (double)samples + 1) / n;

	return p < 1 ? p * (1 - p) / n : 0;
}

static int add_row(struct profile_diff *d, const struct side *before, uint32_t b,
		   const struct side *after, uint32_t a)
{
	struct diff_row row = {.before_symbol = SYMBOL_NONE, .after_symbol = SYMBOL_NONE};
	double x = 0, y = 0;

	if (b != SYMBOL_NONE) {
		row.before_symbol = before->report.rows.v[b].symbol;
		x = row_share(before, b, &row.before_count);
	}
	if (a != SYMBOL_NONE) {
		row.after_symbol = after->report.rows.v[a].symbol;
		y = row_share(after, a, &row.after_count);
	}
	/* With shares of self most callers are 0 on both sides. */
	if (x <= 0 && y <= 0)
		return 0;
	row.before_percent = 100 * x;
	row.after_percent = 100 * y;
	row.difference = 100 * (y - x);
	row.noise =
		200 * sqrt(variance(x, before->report.count) + variance(y, after->report.count));
	row.significant = fabs(row.difference) > row.noise;
	return array_push(&d->rows, row);
}

struct diff_names {
	const struct profile *before, *after;
};

static const char *diff_name(const struct diff_row *r, const struct diff_names *n)
{
	return r->after_symbol != SYMBOL_NONE ? report_symbol_name(n->after, r->after_symbol)
					      : report_symbol_name(n->before, r->before_symbol);
}

static int by_difference(const void *a, const void *b, void *context)
{
	const struct diff_row *x = a, *y = b;
	/* What differs by rounding alone is in order of name. */
	long long dx = llround(fabs(x->difference) * 1e9), dy = llround(fabs(y->difference) * 1e9);

	if (dx != dy)
		return dx < dy ? 1 : -1;
	return strcmp(diff_name(x, context), diff_name(y, context));
}

int profile_diff(const struct diff_input *before, const struct diff_input *after, bool total,
		 struct profile_diff *ret)
{
	CLEANUP(side_release) struct side x = {0}, y = {0};
	CLEANUP(profile_diff_release) struct profile_diff d = {0};
	struct diff_names names = {before->profile, after->profile};
	int err = side_init(&x, before, total);

	if (!err)
		err = side_init(&y, after, total);
	if (!err)
		err = match(&x, &y, true);
	if (!err)
		err = match(&x, &y, false);
	for (uint32_t i = 0; i < x.report.rows.n && !err; i++)
		err = add_row(&d, &x, i, &y, x.partner[i]);
	for (uint32_t i = 0; i < y.report.rows.n && !err; i++)
		if (y.partner[i] == SYMBOL_NONE)
			err = add_row(&d, &x, SYMBOL_NONE, &y, i);
	if (err)
		return err;
	if (d.rows.n)
		qsort_r(d.rows.v, d.rows.n, sizeof(*d.rows.v), by_difference, &names);
	d.before_count = x.report.count;
	d.after_count = y.report.count;
	*ret = d;
	d = (struct profile_diff){0};
	return 0;
}

void profile_diff_release(struct profile_diff *d)
{
	array_release(&d->rows);
}
