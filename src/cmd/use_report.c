/* SPDX-License-Identifier: BSD-2-Clause */
/* Rows of resources as a result: what a cell says, the header, sources. */
#include "use_cells.h"

#include <inspect/host.h>
#include <inspect/term.h>
#include <math.h>

enum {
	CELL_VALUES = 3, /* in one cell, at most */
	NAME_COLUMNS_MAX = 40,
	NAME_COLUMNS = 24,   /* of a resource, at least, before a cell has more than one value */
	BRIEF_COLUMNS = 100, /* below them sources have a table of their own */
	NARROW_COLUMNS = 60, /* below them a row has one value */
	UNTOLD_NAMED = 5,    /* rows that are named in one line */
};

static const char *const verdict_names[] = {[USE_NO_DATA] = "no data",
					    [USE_NOT_JUDGED] = "not judged",
					    [USE_OK] = "ok",
					    [USE_WARN] = "warn",
					    [USE_CRITICAL] = "critical"};

const char *use_verdict_name(enum use_verdict v)
{
	return verdict_names[v];
}

enum use_verdict use_worst(const struct use_report *r)
{
	enum use_verdict worst = USE_OK;

	for (size_t i = 0; i < r->rows.n; i++)
		worst = MAX(worst, r->rows.v[i].verdict);
	return worst;
}

const char *use_row_name(struct result *r, const struct use_row *row)
{
	return row->device[0] ? result_text(r, "%s %s", row->resource, row->device) : row->resource;
}

/* --- the tables ------------------------------------------------------------------------------- */

#define NEVER_DRAWN (COLUMN_TABLE_ONLY | COLUMN_DATA_ONLY)

static const struct column row_columns[] = {
	{"", "resource", CELL_TEXT, COLUMN_CUT | COLUMN_TABLE_ONLY},
	{"resource", "", CELL_TEXT, COLUMN_DATA_ONLY},
	{"device", "", CELL_TEXT, COLUMN_DATA_ONLY},
	{"scope", "", CELL_TEXT, COLUMN_DATA_ONLY},
	{"utilisation", "utilisation", CELL_TEXT, 0},
	{"saturation", "saturation", CELL_TEXT, 0},
	{"errors", "errors", CELL_TEXT, 0},
	{"", "", CELL_TEXT, NEVER_DRAWN},
	{"verdict", "verdict", CELL_TEXT, 0},
};

/* The same where there is room for one value. */
static const struct column narrow_row_columns[] = {
	{"", "resource", CELL_TEXT, COLUMN_CUT | COLUMN_TABLE_ONLY},
	{"resource", "", CELL_TEXT, COLUMN_DATA_ONLY},
	{"device", "", CELL_TEXT, COLUMN_DATA_ONLY},
	{"scope", "", CELL_TEXT, COLUMN_DATA_ONLY},
	{"utilisation", "", CELL_TEXT, COLUMN_DATA_ONLY},
	{"saturation", "", CELL_TEXT, COLUMN_DATA_ONLY},
	{"errors", "", CELL_TEXT, COLUMN_DATA_ONLY},
	{"", "is", CELL_TEXT, COLUMN_TABLE_ONLY},
	{"verdict", "verdict", CELL_TEXT, 0},
};
_Static_assert(ARRAY_SIZE(row_columns) == ARRAY_SIZE(narrow_row_columns), "of the same cells");

/* What one run has in common: for whom, what is asked for, how many values a cell has. */
struct page {
	const struct use_values *v;
	const struct use_subject *subject;
	unsigned most[USE_KINDS];
};

/* The target itself stands in the head. */
static const char *shown_name(struct result *r, const struct use_row *row, const struct page *p)
{
	bool own = p->subject->shown && str_eq(row->device, p->subject->shown);
	const char *name = own ? row->resource : use_row_name(r, row);

	return row->hidden && !p->v->all ? result_text(r, "%s +%u ok", name, row->hidden) : name;
}

static void add_row(struct result *r, size_t section, const struct use_row *row,
		    const struct page *p)
{
	const struct use_values *v = p->v;
	bool reasons = v->all || v->verbose || v->common.json || v->common.csv;
	const struct use_value *telling = use_telling_value(row);

	result_row(
		r, section,
		(const struct cell[]){
			cell_text(r, shown_name(r, row, p)),
			cell_text(r, row->resource),
			cell_text(r, row->device),
			cell_text(r, row->scope),
			use_kind_cell(r, row, USE_UTILISATION, p->most[USE_UTILISATION], reasons),
			use_kind_cell(r, row, USE_SATURATION, p->most[USE_SATURATION], reasons),
			use_kind_cell(r, row, USE_ERRORS, p->most[USE_ERRORS], reasons),
			cell_text(r, telling                       ? use_value_text(r, telling)
				     : row->verdict == USE_NO_DATA ? "-"
								   : "0"),
			cell_text(r, verdict_names[row->verdict]),
		});
}

static const char *source_of(struct result *r, const struct use_value *v)
{
	const char *source = v->source ? v->source : use_metrics[v->metric].source;

	return v->verdict == USE_NOT_JUDGED
		       ? result_text(r, "%s (not judged: %s)", source, v->not_judged)
		       : source;
}

static const struct column value_columns[] = {
	{"", "resource", CELL_TEXT, COLUMN_TABLE_ONLY},
	{"resource", "", CELL_TEXT, COLUMN_DATA_ONLY},
	{"device", "", CELL_TEXT, COLUMN_DATA_ONLY},
	{"metric", "value of", CELL_TEXT, 0},
	{"kind", "", CELL_TEXT, COLUMN_DATA_ONLY},
	{"value", "is", CELL_NUMBER, 0},
	{"warn", "warn", CELL_NUMBER, 0},
	{"critical", "critical", CELL_NUMBER, 0},
	{"verdict", "", CELL_TEXT, COLUMN_DATA_ONLY},
	{"source", "comes from", CELL_TEXT, COLUMN_CUT},
};

static bool is_listed(const struct use_row *row, const struct use_values *v)
{
	return v->common.json || v->common.csv || v->all ||
	       (!row->detail && row->verdict != USE_NO_DATA);
}

/* The same for narrow terminals, and where they come from in a table of its own. */
static const struct column narrow_value_columns[] = {
	{"", "resource", CELL_TEXT, COLUMN_CUT | COLUMN_TABLE_ONLY},
	{"resource", "", CELL_TEXT, COLUMN_DATA_ONLY},
	{"device", "", CELL_TEXT, COLUMN_DATA_ONLY},
	{"metric", "value of", CELL_TEXT, 0},
	{"kind", "", CELL_TEXT, COLUMN_DATA_ONLY},
	{"value", "is", CELL_NUMBER, 0},
	{"warn", "warn", CELL_NUMBER, 0},
	{"critical", "critical", CELL_NUMBER, 0},
	{"verdict", "", CELL_TEXT, COLUMN_DATA_ONLY},
	{"source", "", CELL_TEXT, COLUMN_DATA_ONLY},
};
_Static_assert(ARRAY_SIZE(value_columns) == ARRAY_SIZE(narrow_value_columns), "of the same cells");
static const struct column source_columns[] = {
	{"metric", "value of", CELL_TEXT, 0},
	{"source", "comes from", CELL_TEXT, COLUMN_CUT},
};

/* Each once. */
static void add_sources(struct result *r, const struct use_report *report,
			const struct use_values *v)
{
	size_t section =
		result_section(r, "sources", "", source_columns, ARRAY_SIZE(source_columns));
	uint64_t seen[4] = {0};

	for (size_t i = 0; i < report->rows.n; i++)
		for (size_t k = 0; k < report->rows.v[i].n_values; k++) {
			const struct use_value *value = &report->rows.v[i].values[k];
			uint64_t bit = 1ULL << value->metric % 64;

			if (!is_listed(&report->rows.v[i], v) || seen[value->metric / 64] & bit)
				continue;
			seen[value->metric / 64] |= bit;
			result_row(r, section,
				   (const struct cell[]){
					   cell_text(r, use_metrics[value->metric].key),
					   cell_text(r, source_of(r, value)),
				   });
		}
}

/* The limits as data: without a reason where there is none. */
static struct cell limit_cell(double v)
{
	return isnan(v) ? (struct cell){.type = CELL_NULL, .text = ""}
			: cell_double(CELL_NUMBER, v);
}

static void add_value(struct result *r, size_t section, const struct use_row *row,
		      const struct use_value *v, const struct use_values *o)
{
	static const char *const kinds[] = {"utilisation", "saturation", "errors"};
	const struct use_metric *m = &use_metrics[v->metric];
	struct use_limit limit = use_limit_of(o->limits, v->metric);
	const char *reason = v->reason ? v->reason : "";

	result_row(r, section,
		   (const struct cell[]){
			   cell_text(r, use_row_name(r, row)),
			   cell_text(r, row->resource),
			   cell_text(r, row->device),
			   cell_text(r, m->key),
			   cell_text(r, kinds[m->kind]),
			   isnan(v->v) ? cell_null(r, reason) : cell_double(CELL_NUMBER, v->v),
			   limit_cell(limit.warn),
			   limit_cell(limit.critical),
			   cell_text(r, verdict_names[v->verdict]),
			   cell_text(r, source_of(r, v)),
		   });
}

static unsigned row_width(struct result *r, const struct use_report *report, const struct page *p)
{
	/* Of verdicts and what stands between the columns. */
	unsigned width = (unsigned)strlen("critical") + 4 * 2, name = NAME_COLUMNS;
	unsigned widest[USE_KINDS] = {(unsigned)strlen("utilisation"),
				      (unsigned)strlen("saturation"), (unsigned)strlen("errors")};

	for (size_t i = 0; i < report->rows.n; i++) {
		const struct use_row *row = &report->rows.v[i];

		if (!is_listed(row, p->v))
			continue;
		for (enum use_kind k = 0; k < USE_KINDS; k++)
			widest[k] = MAX(widest[k],
					term_columns(use_values_text(r, row, k, p->most[k])));
		/* Which one is not well must be readable. */
		if (row->verdict >= USE_WARN)
			name = MAX(name, term_columns(shown_name(r, row, p)));
	}
	width += MIN(name, NAME_COLUMNS_MAX);
	for (enum use_kind k = 0; k < USE_KINDS; k++)
		width += widest[k];
	return width;
}

/* As many values as the width has room for, of saturation first. */
static void choose_cells(struct result *r, const struct use_report *report, struct page *p,
			 unsigned width)
{
	static const enum use_kind order[] = {USE_SATURATION, USE_ERRORS, USE_UTILISATION};

	for (enum use_kind k = 0; k < USE_KINDS; k++)
		p->most[k] = width ? 1 : CELL_VALUES;
	for (unsigned n = 2; width && n <= CELL_VALUES; n++)
		for (size_t i = 0; i < ARRAY_SIZE(order); i++) {
			struct page more = *p;

			more.most[order[i]] = n;
			if (p->most[order[i]] == n - 1 && row_width(r, report, &more) <= width)
				*p = more;
		}
}

static void add_rows(struct result *r, const struct use_report *report, const struct page *p,
		     unsigned width)
{
	bool narrow = width && width < NARROW_COLUMNS;
	size_t section =
		result_section(r, "resources", "", narrow ? narrow_row_columns : row_columns,
			       ARRAY_SIZE(row_columns));

	for (size_t i = 0; i < report->rows.n; i++)
		if (is_listed(&report->rows.v[i], p->v))
			add_row(r, section, &report->rows.v[i], p);
	/* The verdict and the worst rows stand first: they must not scroll away. */
	if (!r->failed && !p->v->all) {
		r->sections.v[section].limit = SIZE_MAX;
		r->sections.v[section].fits = true;
		r->sections.v[section].more = "--all";
	}
}

static void add_values(struct result *r, const struct use_report *report,
		       const struct use_values *v, bool brief)
{
	size_t section =
		result_section(r, "values", "", brief ? narrow_value_columns : value_columns,
			       ARRAY_SIZE(value_columns));

	for (size_t i = 0; i < report->rows.n; i++)
		for (size_t k = 0; k < report->rows.v[i].n_values; k++)
			if (is_listed(&report->rows.v[i], v))
				add_value(r, section, &report->rows.v[i],
					  &report->rows.v[i].values[k], v);
	if (brief)
		add_sources(r, report, v);
}

/* --- the header ------------------------------------------------------------------------------- */

static const char *target_line(struct result *r, const struct use_report *report,
			       const struct use_subject *s)
{
	static const struct {
		const char *key, *shown;
	} parts[] = {{"process_cpu_percent", "%s"},
		     {"throttled_percent", "throttled %s"},
		     {"process_run_delay_percent", "%s"},
		     {"fds_percent", "fds %s"}};
	const struct use_row *hottest = use_report_worst(report, "thread_busy_percent");
	const char *line = s->shown;

	for (size_t i = 0; i < ARRAY_SIZE(parts); i++) {
		const struct use_row *row = use_report_worst(report, parts[i].key);
		const struct use_value *v = row ? use_row_value(row, parts[i].key) : NULL;
		const char *text = v ? use_value_text(r, v) : NULL;

		if (!v || (i && !use_is_shown(v, use_metrics[v->metric].kind)))
			continue;
		/* The word stands in the value's own format already, or before it. */
		if (str_eq(parts[i].key, "fds_percent"))
			text = result_text(r, "fds %s", text);
		line = result_text(r, "%s · %s", line, text);
	}
	if (hottest)
		line = result_text(r, "%s · hottest thread %s %.0f %%", line, hottest->device,
				   use_row_value(hottest, "thread_busy_percent")->v);
	return line;
}

static void add_head(struct result *r, const struct use_report *report, const struct use_subject *s)
{
	char name[65] = "";

	gethostname(name, sizeof(name) - 1);
	result_fact(r, "host", "", cell_text(r, name));
	result_fact(r, "cpus", "", cell_u64(CELL_COUNT, s->cpus));
	result_fact(r, "window_ns", "", cell_u64(CELL_NS, (uint64_t)(report->seconds * 1e9)));
	result_fact(r, "own_cpu_percent", "",
		    cell_double(CELL_PERCENT, 100 * report->own_cpu_s /
						      (report->seconds > 0 ? report->seconds : 1)));
	result_fact(r, "verdict", "", cell_text(r, verdict_names[use_worst(report)]));
	if (s->target) {
		result_fact(r, "target", "", cell_text(r, s->shown));
		result_fact(r, "", "target", cell_text(r, target_line(r, report, s)));
	} else {
		result_fact(r, "", "host",
			    cell_text(r, result_text(r, "%s · %u CPUs · %.1f s", name, s->cpus,
						     report->seconds)));
	}
}

static const char *row_line(struct result *r, const struct use_row *row)
{
	const struct use_value *v = use_telling_value(row);

	return result_text(r, "%s%s%s", use_row_name(r, row), v ? ": " : "",
			   v ? use_value_text(r, v) : "");
}

static bool is_told(const struct use_report *report, const struct use_row *row, const findings *f)
{
	for (size_t i = 0; i < f->n && i < FINDINGS_SHOWN; i++)
		if (use_finding_tells(report, &f->v[i], row))
			return true;
	return false;
}

/* What the findings that are shown say nothing of, of rows in their order, the worst first: by
 * name, those beyond UNTOLD_NAMED by number. NULL: nothing. */
static const char *untold_line(struct result *r, const struct use_report *report, const findings *f)
{
	size_t named = 0, more[] = {[USE_CRITICAL] = 0};
	enum use_verdict last = USE_NO_DATA;
	const char *line = "";

	for (size_t i = 0; i < report->rows.n; i++) {
		const struct use_row *row = &report->rows.v[i];
		const char *name = verdict_names[row->verdict];

		if (row->detail || row->verdict < USE_WARN || is_told(report, row, f))
			continue;
		if (named++ >= UNTOLD_NAMED) {
			more[row->verdict]++;
			continue;
		}
		if (row->verdict != last)
			line = result_text(r, "%s%s%s: ", line, *line ? "; " : "", name);
		line = result_text(r, "%s%s%s", line, row->verdict == last ? ", " : "",
				   row_line(r, row));
		last = row->verdict;
	}
	for (enum use_verdict v = USE_CRITICAL; v >= USE_WARN; v--)
		if (more[v])
			line = result_text(r, "%s; %zu more %s", line, more[v], verdict_names[v]);
	return *line ? line : NULL;
}

static void add_findings(struct result *r, const struct use_report *report,
			 const struct use_values *v, const struct use_subject *s)
{
	findings f = {0};
	const char *untold;

	r->failed |= use_findings(report, v->limits, s, r, &f) != 0;
	if (!f.n && use_worst(report) < USE_WARN)
		result_fact(r, "", "verdict", cell_text(r, "ok: no resource is saturated"));
	findings_head(r, &f);
	untold = untold_line(r, report, &f);
	if (untold)
		result_fact(r, "", f.n ? "also" : "verdict", cell_text(r, untold));
	array_release(&f);
}

static bool is_missing(const struct use_row *row)
{
	return row->verdict == USE_NO_DATA && !row->detail;
}

/* Each resource once; where others of its devices have data the first that has none, and how many
 * more. NULL: it has been named. */
static const char *missing_name(struct result *r, const struct use_report *report, size_t first)
{
	const struct use_row *row = &report->rows.v[first];
	size_t more = 0;
	bool others = false;

	for (size_t i = 0; i < report->rows.n; i++) {
		if (!str_eq(report->rows.v[i].resource, row->resource))
			continue;
		others |= report->rows.v[i].verdict != USE_NO_DATA;
		if (!is_missing(&report->rows.v[i]))
			continue;
		if (i < first)
			return NULL;
		more += i > first;
	}
	if (!others)
		return row->resource;
	return more ? result_text(r, "%s and %zu more", use_row_name(r, row), more)
		    : use_row_name(r, row);
}

static void add_missing(struct result *r, const struct use_report *report,
			const struct use_values *v)
{
	const char *names = "";

	for (size_t i = 0; i < report->rows.n && !v->all; i++) {
		const char *name =
			is_missing(&report->rows.v[i]) ? missing_name(r, report, i) : NULL;

		if (name)
			names = result_text(r, "%s%s%s", names, *names ? ", " : "", name);
	}
	if (*names)
		result_fact(r, "", "no data",
			    cell_text(r, result_text(r, "%s (--all says why)", names)));
}

static int compare_utilisation(const void *a, const void *b)
{
	const struct use_row *rows[] = {a, b};
	double most[2] = {-1, -1};

	for (size_t k = 0; k < 2; k++)
		for (size_t i = 0; i < rows[k]->n_values; i++)
			if (use_metrics[rows[k]->values[i].metric].kind == USE_UTILISATION &&
			    str_ends(use_metrics[rows[k]->values[i].metric].key, "_percent"))
				most[k] = fmax(most[k], rows[k]->values[i].v);
	return (most[0] < most[1]) - (most[0] > most[1]);
}

static int compare_names(const void *a, const void *b)
{
	const struct use_row *x = a, *y = b;
	int by_resource = strcmp(x->resource, y->resource);

	return by_resource ? by_resource : strcmp(x->device, y->device);
}

static void sort_rows(struct use_report *report, enum use_sort sort)
{
	static int (*const orders[])(const void *, const void *) = {
		[USE_SORT_UTILISATION] = compare_utilisation, [USE_SORT_NAME] = compare_names};

	if (sort == USE_SORT_WORST)
		use_report_sort(report);
	else if (report->rows.n)
		qsort(report->rows.v, report->rows.n, sizeof(*report->rows.v), orders[sort]);
}

/* A process that has called execve since has the name of its rows. */
static const char *current_name(const struct use_report *report, const struct use_subject *s)
{
	for (size_t i = 0; s->n_pids == 1 && i < report->rows.n; i++)
		if (str_eq(report->rows.v[i].resource, "process CPU"))
			return report->rows.v[i].device;
	return s->shown;
}

void use_fill_result(struct use_report *report, const struct use_values *v,
		     const struct use_subject *asked, unsigned width, enum use_sort sort,
		     struct result *r)
{
	struct use_subject named = *asked, *subject = &named;
	struct page page = {.v = v, .subject = subject};

	use_report_sort(report);
	named.shown = current_name(report, asked);
	add_head(r, report, subject);
	add_findings(r, report, v, subject);
	add_missing(r, report, v);
	for (size_t i = 0; subject->notes && i < subject->notes->n; i++)
		result_note(r, "%s", subject->notes->v[i]);
	if (subject->n_left_out)
		result_note(r, "%zu child processes are not included; add --children",
			    subject->n_left_out);
	for (size_t i = 0; i < report->notes.n; i++)
		result_note(r, "%s", report->notes.v[i]);
	sort_rows(report, sort);
	choose_cells(r, report, &page, width);
	add_rows(r, report, &page, width);
	if (v->verbose || v->common.json)
		add_values(r, report, v, width && width < BRIEF_COLUMNS);
}
