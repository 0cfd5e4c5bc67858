/* SPDX-License-Identifier: BSD-2-Clause */
/* --hist: how latencies or sizes are distributed, for each key. */
#include "trace.h"

#include <inspect/clock.h>
#include <inspect/term.h>

enum {
	BARS_MOST = 24,
	BAR_COLUMNS = 32,
	ROWS_SHOWN = 25,
	HISTOGRAMS_SHOWN = 5,
	COLUMNS_MAX = 24, /* those of all keys that go together, and the numbers */
	SUMMARY_COLUMNS = 7,
};

static const enum cell_type value_types[] = {
	[TRACE_OF_LATENCY] = CELL_NS,
	[TRACE_OF_BYTES] = CELL_BYTES,
	[TRACE_OF_VALUE] = CELL_COUNT,
};

static const char *value_text(const struct trace_view *view, uint64_t value, char *buf, size_t size)
{
	if (view->of == TRACE_OF_LATENCY)
		return duration_format(value, buf, size);
	if (view->of == TRACE_OF_BYTES)
		return bytes_format(value, buf, size);
	snprintf(buf, size, "%llu", (unsigned long long)value);
	return buf;
}

/* "read", "4711 · worker · 3 · /tmp/x" */
static const char *title_of(const struct trace_view *view, const struct syscall_row *row,
			    struct result *r)
{
	CLEANUP(strbuf_release) struct strbuf b = {0};
	struct column columns[COLUMNS_MAX];
	struct cell cells[COLUMNS_MAX];
	size_t n = trace_key_cells(view, row, r, cells);

	trace_key_columns(view, columns);
	for (size_t i = 0; i < n; i++) {
		if (columns[i].flags & COLUMN_DATA_ONLY)
			continue;
		if (b.n)
			strbuf_puts(&b, " · ");
		if (cells[i].type == CELL_COUNT)
			strbuf_printf(&b, "%llu", (unsigned long long)cells[i].u);
		else
			strbuf_puts(&b, cells[i].type == CELL_NULL ? "-" : cells[i].text);
	}
	return result_text(r, "%s", n || !view->title ? strbuf_str(&b) : view->title);
}

static const char *heading_of(const struct trace_view *view, const struct syscall_row *row,
			      struct result *r)
{
	char p50[32], p90[32], p99[32], max[32];

	return result_text(r, "%s: %llu values · p50 %s · p90 %s · p99 %s · max %s",
			   title_of(view, row, r), (unsigned long long)row->h.n,
			   value_text(view, histogram_percentile(&row->h, 50), p50, sizeof(p50)),
			   value_text(view, histogram_percentile(&row->h, 90), p90, sizeof(p90)),
			   value_text(view, histogram_percentile(&row->h, 99), p99, sizeof(p99)),
			   value_text(view, row->h.max, max, sizeof(max)));
}

/* --- one distribution ------------------------------------------------------------------------- */

/* Two and more empty bars in a row become one. How many are left. */
static size_t join_empty(struct histogram_bar *bars, size_t n)
{
	size_t kept = 0;

	for (size_t i = 0; i < n; i++) {
		if (kept && !bars[i].count && !bars[kept - 1].count)
			bars[kept - 1].high = bars[i].high;
		else
			bars[kept++] = bars[i];
	}
	return kept;
}

void trace_put_bars(struct result *r, const char *name, const char *heading,
		    const struct histogram *h, enum trace_of of)
{
#define BAR_COLUMNS_OF(from, below, type)                                                          \
	{                                                                                          \
		{"name", "", CELL_TEXT, COLUMN_DATA_ONLY}, {from, "from", type, 0},                \
			{below, "below", type, 0}, {"count", "count", CELL_COUNT, 0},              \
			{"percent", "share", CELL_PERCENT, 0},                                     \
			{"", "", CELL_TEXT, COLUMN_TABLE_ONLY},                                    \
	}
	static const struct column columns[][6] = {
		[TRACE_OF_LATENCY] = BAR_COLUMNS_OF("from_ns", "below_ns", CELL_NS),
		[TRACE_OF_BYTES] = BAR_COLUMNS_OF("from_bytes", "below_bytes", CELL_BYTES),
		[TRACE_OF_VALUE] = BAR_COLUMNS_OF("from", "below", CELL_COUNT),
	};
#undef BAR_COLUMNS_OF
	enum cell_type type = value_types[of];
	bool ascii = !term_is_utf8();
	struct histogram_bar bars[BARS_MOST];
	size_t n = join_empty(bars, histogram_bars(h, bars, BARS_MOST)), section;
	uint64_t most = 0;

	section = result_section(r, "histograms", heading, columns[of], ARRAY_SIZE(columns[0]));
	for (size_t i = 0; i < n; i++)
		most = MAX(most, bars[i].count);
	for (size_t i = 0; i < n; i++) {
		CLEANUP(strbuf_release) struct strbuf bar = {0};

		histogram_put_bar(&bar, bars[i].count, most, BAR_COLUMNS, ascii);
		result_row(r, section,
			   (const struct cell[]){
				   cell_text(r, name),
				   cell_u64(type, bars[i].low),
				   bars[i].high == UINT64_MAX ? cell_null(r, "no upper end")
							      : cell_u64(type, bars[i].high),
				   cell_u64(CELL_COUNT, bars[i].count),
				   cell_double(CELL_PERCENT,
					       100.0 * (double)bars[i].count / (double)h->n),
				   cell_text(r, strbuf_str(&bar)),
			   });
	}
}

void trace_put_latencies(struct result *r, const char *name, const struct histogram *h)
{
	char p50[32], p99[32], max[32];

	trace_put_bars(r, name,
		       result_text(r, "%s: %llu calls · p50 %s · p99 %s · max %s", name,
				   (unsigned long long)h->n,
				   duration_format(histogram_percentile(h, 50), p50, sizeof(p50)),
				   duration_format(histogram_percentile(h, 99), p99, sizeof(p99)),
				   duration_format(h->max, max, sizeof(max))),
		       h, TRACE_OF_LATENCY);
}

/* --- all keys --------------------------------------------------------------------------------- */

static const struct column *summary_columns(const struct trace_view *view, struct result *r,
					    size_t *ret_n)
{
#define VALUE_COLUMNS_OF(unit, type)                                                               \
	{                                                                                          \
		{"values", "values", CELL_COUNT, 0}, {"avg" unit, "avg", type, 0},                 \
			{"p50" unit, "p50", type, 0}, {"p90" unit, "p90", type, 0},                \
			{"p99" unit, "p99", type, 0}, {"max" unit, "max", type, 0},                \
			{"in_flight", "now", CELL_COUNT, 0},                                       \
	}
	static const struct column values[][SUMMARY_COLUMNS] = {
		[TRACE_OF_LATENCY] = VALUE_COLUMNS_OF("_ns", CELL_NS),
		[TRACE_OF_BYTES] = VALUE_COLUMNS_OF("_bytes", CELL_BYTES),
		[TRACE_OF_VALUE] = VALUE_COLUMNS_OF("", CELL_COUNT),
	};
#undef VALUE_COLUMNS_OF
	struct column *columns = arena_alloc(&r->arena, COLUMNS_MAX * sizeof(*columns));

	if (!columns)
		return NULL;
	*ret_n = trace_key_columns(view, columns);
	memcpy(columns + *ret_n, values[view->of], sizeof(values[0]));
	*ret_n += SUMMARY_COLUMNS;
	return columns;
}

static void add_summary_row(const struct trace_view *view, const struct syscall_row *row,
			    struct result *r, size_t section)
{
	struct cell cells[COLUMNS_MAX];
	size_t n = trace_key_cells(view, row, r, cells);
	enum cell_type type = value_types[view->of];

#define VALUE(v) (row->h.n ? cell_u64(type, (v)) : cell_null(r, "no call has ended"))
	cells[n++] = cell_u64(CELL_COUNT, row->h.n);
	cells[n++] = VALUE(histogram_mean(&row->h));
	cells[n++] = VALUE(histogram_percentile(&row->h, 50));
	cells[n++] = VALUE(histogram_percentile(&row->h, 90));
	cells[n++] = VALUE(histogram_percentile(&row->h, 99));
	cells[n++] = VALUE(row->h.max);
	cells[n++] = cell_u64(CELL_COUNT, row->in_flight);
#undef VALUE
	result_row(r, section, cells);
}

int trace_distributions(const struct trace_view *view, struct result *r)
{
	CLEANUP(freep) size_t *order = NULL;
	size_t n_columns = 0, section, shown = view->v->top ? view->v->top : HISTOGRAMS_SHOWN;
	const struct column *columns = summary_columns(view, r, &n_columns);
	int err = columns ? trace_sorted_rows(view->table, view->v->sort, &order) : -ENOMEM;

	if (err)
		return err;
	section = result_section(r, "rows", "", columns, n_columns);
	if (r->failed)
		return -ENOMEM;
	r->sections.v[section].limit = view->v->top ? view->v->top : ROWS_SHOWN;
	r->sections.v[section].fits = !view->v->top;
	r->sections.v[section].more = "--all";
	for (size_t i = 0; i < view->table->rows.n; i++) {
		const struct syscall_row *row = &view->table->rows.v[order[i]];

		if (row->h.n || row->in_flight)
			add_summary_row(view, row, r, section);
	}
	for (size_t i = 0; i < view->table->rows.n && (shown || view->v->all_rows); i++) {
		const struct syscall_row *row = &view->table->rows.v[order[i]];

		if (!row->h.n)
			continue;
		trace_put_bars(r, title_of(view, row, r), heading_of(view, row, r), &row->h,
			       view->of);
		shown -= shown != 0;
	}
	return r->failed ? -ENOMEM : 0;
}

int trace_hist(const struct trace_view *view, struct result *r)
{
	int err = trace_distributions(view, r);

	if (err)
		return err;
	trace_losses(view->table, r);
	return r->failed ? -ENOMEM : 0;
}
