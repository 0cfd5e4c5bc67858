/* SPDX-License-Identifier: BSD-2-Clause */
#include "report_view.h"

#include "input.h"

static const struct {
	const char *name;
	enum report_key key;
	struct column column;
} sort_keys[] = {
	{"comm", REPORT_COMM, {"comm", "command", CELL_TEXT, 0}},
	{"pid", REPORT_PID, {"pid", "pid", CELL_COUNT, 0}},
	{"tid", REPORT_TID, {"tid", "tid", CELL_COUNT, 0}},
	{"symbol", REPORT_SYMBOL, {"function", "function", CELL_TEXT, COLUMN_CUT}},
	{"sym", REPORT_SYMBOL, {"function", "function", CELL_TEXT, COLUMN_CUT}},
	{"dso", REPORT_DSO, {"module", "module", CELL_TEXT, 0}},
	{"srcline", REPORT_SRCLINE, {"", "source line", CELL_TEXT, COLUMN_TABLE_ONLY}},
};

static int sort_order_add(struct sort_order *o, const char *name, size_t n)
{
	for (size_t i = 0; i < ARRAY_SIZE(sort_keys); i++) {
		if (strlen(sort_keys[i].name) != n || memcmp(sort_keys[i].name, name, n))
			continue;
		for (size_t k = 0; k < o->n; k++)
			if (o->keys[k] == sort_keys[i].key)
				return 0;
		o->keys[o->n++] = sort_keys[i].key;
		return 0;
	}
	return -EINVAL;
}

int sort_order_parse(void *value, const char *arg, struct diag *d)
{
	struct sort_order order = {0};

	for (const char *s = arg;; s++) {
		size_t n = strcspn(s, ",");

		/* perf lists its percentage as a key; here it is always shown. */
		if (!(n == 8 && memcmp(s, "overhead", n) == 0) && sort_order_add(&order, s, n))
			return diag_set(d, -EINVAL,
					"'%.*s' is none of comm, pid, tid, dso, symbol, "
					"srcline",
					(int)MIN(n, (size_t)100), s);
		s += n;
		if (!*s)
			break;
	}
	if (!order.n)
		return diag_set(d, -EINVAL, "names no key");
	*(struct sort_order *)value = order;
	return 0;
}

/* --- groups ----------------------------------------------------------------------------------- */

static const struct column number_columns[] = {
	{"self_percent", "self", CELL_PERCENT, 0},
	{"total_percent", "total", CELL_PERCENT, 0},
	{"self_samples", "samples", CELL_COUNT, 0},
	{"total_samples", "", CELL_COUNT, COLUMN_DATA_ONLY},
	{"self_weight", "", CELL_COUNT, COLUMN_DATA_ONLY},
	{"total_weight", "", CELL_COUNT, COLUMN_DATA_ONLY},
	{"event", "", CELL_TEXT, COLUMN_DATA_ONLY},
};
static const struct column kind_column = {"kind", "", CELL_TEXT, COLUMN_DATA_ONLY};
/* Of the group with srcline, else where most of the function's samples were taken. */
static const struct column place_columns[] = {
	{"file", "", CELL_TEXT, COLUMN_DATA_ONLY},
	{"line", "", CELL_COUNT, COLUMN_DATA_ONLY},
};

enum {
	NUMBER_COLUMNS = ARRAY_SIZE(number_columns),
	COLUMN_TOTAL = 1,
	COLUMNS_MAX = NUMBER_COLUMNS + SORT_KEYS + 1 + ARRAY_SIZE(place_columns),
};

static unsigned key_mask(const struct sort_order *o)
{
	unsigned mask = 0;

	for (size_t i = 0; i < o->n; i++)
		mask |= o->keys[i];
	return mask;
}

static const struct column *key_column(enum report_key key)
{
	size_t i = 0;

	while (sort_keys[i].key != key)
		i++;
	return &sort_keys[i].column;
}

/* The columns of these keys, in the result's arena; NULL without memory. */
static const struct column *make_columns(struct result *r, const struct sort_order *o,
					 size_t *ret_n)
{
	struct column *columns = arena_alloc(&r->arena, COLUMNS_MAX * sizeof(*columns));
	unsigned mask = key_mask(o);
	size_t n = NUMBER_COLUMNS;

	if (!columns)
		return NULL;
	memcpy(columns, number_columns, sizeof(number_columns));
	/* Of threads there is no total beside the self. */
	if (!(mask & (REPORT_DSO | REPORT_SYMBOL | REPORT_SRCLINE)))
		columns[COLUMN_TOTAL].flags |= COLUMN_DATA_ONLY;
	for (size_t i = 0; i < o->n; i++)
		columns[n++] = *key_column(o->keys[i]);
	if (mask & REPORT_SYMBOL)
		columns[n++] = kind_column;
	if (mask & (REPORT_SYMBOL | REPORT_SRCLINE)) {
		memcpy(columns + n, place_columns, sizeof(place_columns));
		n += ARRAY_SIZE(place_columns);
	}
	*ret_n = n;
	return columns;
}

static double percent(uint64_t part, uint64_t whole)
{
	return whole ? 100.0 * (double)part / (double)whole : 0;
}

/* "main.c:12"; the whole path is in the data. */
static struct cell line_cell(struct result *r, const struct profile *p,
			     const struct report_row *row)
{
	const char *file = intern_str(&p->strings, row->file), *slash = strrchr(file, '/');

	if (!row->file || !row->line)
		return cell_borrowed("[no line]");
	return cell_borrowed(result_text(r, "%s:%u", slash ? slash + 1 : file, row->line));
}

static struct cell key_cell(struct result *r, const struct profile *p, const struct report_row *row,
			    enum report_key key)
{
	const struct profile_thread *t = &p->threads.v[row->thread];

	switch (key) {
	case REPORT_COMM:
		return cell_borrowed(intern_str(&p->strings, t->comm));
	case REPORT_PID:
		return cell_u64(CELL_COUNT, t->pid);
	case REPORT_TID:
		return cell_u64(CELL_COUNT, t->tid);
	case REPORT_DSO:
		return cell_borrowed(report_symbol_module(p, row->symbol));
	case REPORT_SRCLINE:
		return line_cell(r, p, row);
	default:
		return cell_borrowed(report_symbol_name(p, row->symbol));
	}
}

/* The sections of one event, while they are made. */
struct groups {
	struct result *r;
	size_t section;
	const struct profile *p;
	uint32_t event;
	const struct report *report;
	const struct sort_order *sort;
	const struct symbol_place *places; /* by symbol */
};

static size_t add_place(const struct groups *g, const struct report_row *row, struct cell *cells)
{
	struct symbol_place place = {row->file, row->line};

	if (!(key_mask(g->sort) & REPORT_SRCLINE) && row->symbol != SYMBOL_NONE)
		place = g->places[row->symbol];
	if (place.file && place.line) {
		cells[0] = cell_borrowed(intern_str(&g->p->strings, place.file));
		cells[1] = cell_u64(CELL_COUNT, place.line);
	} else {
		cells[0] = cells[1] = cell_null(g->r, "no debug information at hand");
	}
	return ARRAY_SIZE(place_columns);
}

static void add_group(const struct groups *g, const struct report_row *row)
{
	const struct report *report = g->report;
	unsigned mask = key_mask(g->sort);
	struct cell cells[COLUMNS_MAX] = {
		cell_double(CELL_PERCENT, percent(row->self, report->weight)),
		cell_double(CELL_PERCENT, percent(row->total, report->weight)),
		cell_u64(CELL_COUNT, row->self_count),
		cell_u64(CELL_COUNT, row->total_count),
		cell_u64(CELL_COUNT, row->self),
		cell_u64(CELL_COUNT, row->total),
		cell_borrowed(g->p->events.v[g->event].name),
	};
	size_t n = NUMBER_COLUMNS;

	for (size_t i = 0; i < g->sort->n; i++)
		cells[n++] = key_cell(g->r, g->p, row, g->sort->keys[i]);
	if (mask & REPORT_SYMBOL)
		cells[n++] = cell_borrowed(frame_kind_name(
			row->symbol == SYMBOL_NONE
				? FRAME_SYNTHETIC
				: (enum frame_kind)g->p->symbols.v[row->symbol].kind));
	if (mask & (REPORT_SYMBOL | REPORT_SRCLINE))
		n += add_place(g, row, cells + n);
	result_row(g->r, g->section, cells);
}

static int add_groups(struct result *r, const struct profile *p, uint32_t event, const char *title,
		      const struct report_view *v, const struct symbol_place *places)
{
	CLEANUP(report_release) struct report report = {0};
	struct groups g = {.r = r,
			   .p = p,
			   .event = event,
			   .report = &report,
			   .sort = &v->sort,
			   .places = places};
	const struct column *columns;
	size_t n_columns, rows;
	int err = report_build(p, event, key_mask(&v->sort), &report);

	if (err)
		return err;
	columns = make_columns(r, &v->sort, &n_columns);
	if (!columns)
		return -ENOMEM;
	g.section = result_section(r, "functions", title, columns, n_columns);
	rows = v->limit_data && v->limit ? MIN(report.rows.n, v->limit) : report.rows.n;
	for (size_t i = 0; i < rows; i++)
		add_group(&g, &report.rows.v[i]);
	if (r->failed)
		return -ENOMEM;
	r->sections.v[g.section].limit = v->limit;
	r->sections.v[g.section].fits = !v->top_given;
	r->sections.v[g.section].more = "--all";
	return 0;
}

/* --- events ----------------------------------------------------------------------------------- */

static const struct column event_columns[] = {
	{"event", "", CELL_TEXT, COLUMN_DATA_ONLY},    {"unit", "", CELL_TEXT, COLUMN_DATA_ONLY},
	{"samples", "", CELL_COUNT, COLUMN_DATA_ONLY}, {"weight", "", CELL_COUNT, COLUMN_DATA_ONLY},
	{"freq_hz", "", CELL_COUNT, COLUMN_DATA_ONLY}, {"period", "", CELL_COUNT, COLUMN_DATA_ONLY},
};

static void add_event_data(struct result *r, const struct profile *p, size_t section,
			   uint32_t event)
{
	const struct profile_event *e = &p->events.v[event];
	uint64_t weight, count;

	profile_totals(p, event, &weight, &count);
	result_row(r, section,
		   (const struct cell[]){
			   cell_borrowed(e->name),
			   cell_borrowed(e->unit),
			   cell_u64(CELL_COUNT, count),
			   cell_u64(CELL_COUNT, weight),
			   e->freq_hz ? cell_u64(CELL_COUNT, e->freq_hz)
				      : cell_null(r, "not sampled by a frequency, or not known"),
			   e->period ? cell_u64(CELL_COUNT, e->period)
				     : cell_null(r, "not sampled by a period, or not known"),
		   });
}

static const char *event_title(struct result *r, const struct profile *p, uint32_t event)
{
	const struct profile_event *e = &p->events.v[event];
	uint64_t weight, count;

	profile_totals(p, event, &weight, &count);
	return result_text(r, "%s: %llu samples%s%s%s", e->name, (unsigned long long)count,
			   weight == count ? "" : ", ",
			   weight == count ? "" : weight_text(r, e, weight),
			   !e->is_tracepoint ? ""
			   : str_starts(e->name, "sched:")
				   ? " (counts, not time; time off CPU: inspect offcpu)"
				   : " (counts, not time)");
}

int report_view_add(struct result *r, const struct profile *p, const struct report_view *v,
		    struct diag *d)
{
	CLEANUP(freep) struct symbol_place *places = NULL;
	size_t data = result_section(r, "events", "", event_columns, ARRAY_SIZE(event_columns));
	int err = v->tree ? 0 : profile_places(p, &places);

	if (err)
		return diag_errno(d, err, "report");
	for (uint32_t event = 0; event < p->events.n; event++) {
		const char *title = event_title(r, p, event);

		err = v->tree ? report_tree_add(r, p, event, title, v, d)
			      : add_groups(r, p, event, title, v, places);
		if (err)
			return diag_errno(d, err, "report");
		add_event_data(r, p, data, event);
	}
	return 0;
}
