/* SPDX-License-Identifier: BSD-2-Clause */
/* -c: the table of calls, waits by design below it, errors by name, what stands out, losses. */
#include "trace.h"

#include <math.h>

enum {
	METRICS = 12,
	KEY_COLUMNS = 12, /* of all keys that go together */
	COLUMNS_MAX = METRICS + KEY_COLUMNS,
	ROWS_SHOWN = 25,
	ERRORS_SHOWN = 10,
};

/* --- the table -------------------------------------------------------------------------------- */

static size_t add_metric_columns(const struct trace_view *view, struct column *columns)
{
	unsigned wide = view->narrow ? COLUMN_DATA_ONLY : 0;
	bool of_bytes = view->v->hot_files || view->v->sort == TRACE_SORT_BYTES;
	const struct column metrics[METRICS] = {
		{"calls", "calls", CELL_COUNT, 0},
		{"errors", "errors", CELL_COUNT, 0},
		{"total_ns", "total", CELL_NS, 0},
		{"avg_ns", "avg", CELL_NS, wide},
		{"p50_ns", "p50", CELL_NS, 0},
		{"p99_ns", "p99", CELL_NS, of_bytes ? wide : 0},
		{"max_ns", "max", CELL_NS, 0},
		{"wall_percent", "wall", CELL_PERCENT, of_bytes ? wide : 0},
		{"in_flight", "now", CELL_COUNT, 0},
		{"oldest_ns", "since", CELL_NS, wide},
		{"bytes", "bytes", CELL_BYTES, of_bytes ? 0 : wide},
		{"waits_by_design", "", CELL_BOOL, COLUMN_DATA_ONLY},
	};

	memcpy(columns, metrics, sizeof(metrics));
	return METRICS;
}

static const struct column *make_columns(const struct trace_view *view, struct result *r,
					 size_t *ret_n)
{
	struct column *columns = arena_alloc(&r->arena, COLUMNS_MAX * sizeof(*columns));
	size_t n;

	if (!columns)
		return NULL;
	n = trace_key_columns(view, columns);
	*ret_n = n + add_metric_columns(view, columns + n);
	return columns;
}

static void add_row(const struct trace_view *view, const struct syscall_row *row, bool waits,
		    struct result *r, size_t section)
{
	struct cell cells[COLUMNS_MAX];
	size_t n = trace_key_cells(view, row, r, cells);
	const char *none = "no call has ended";

#define NS_OF_CALLS(v) (row->calls ? cell_u64(CELL_NS, (v)) : cell_null(r, none))
	const struct cell metrics[METRICS] = {
		cell_u64(CELL_COUNT, row->calls),
		cell_u64(CELL_COUNT, row->errors),
		cell_u64(CELL_NS, trace_row_wall_ns(row)),
		NS_OF_CALLS(row->total_ns / row->calls),
		NS_OF_CALLS(histogram_percentile(&row->h, 50)),
		NS_OF_CALLS(histogram_percentile(&row->h, 99)),
		NS_OF_CALLS(row->h.max),
		view->table->threads_ns
			? cell_double(CELL_PERCENT, 100.0 * (double)trace_row_wall_ns(row) /
							    (double)view->table->threads_ns)
			: cell_null(r, "no thread was watched"),
		cell_u64(CELL_COUNT, row->in_flight),
		row->in_flight ? cell_u64(CELL_NS, row->oldest_ns) : cell_null(r, ""),
		row->io_calls ? cell_u64(CELL_BYTES, row->bytes) : cell_null(r, ""),
		cell_bool(waits),
	};
#undef NS_OF_CALLS

	memcpy(cells + n, metrics, sizeof(metrics));
	result_row(r, section, cells);
}

/* One section: those that wait by design, or the others. */
static int add_section(const struct trace_view *view, const size_t *order, bool waits,
		       struct result *r)
{
	size_t n_columns = 0, n = 0, section;
	const struct column *columns = make_columns(view, r, &n_columns);

	if (!columns)
		return -ENOMEM;
	for (size_t i = 0; i < view->table->rows.n; i++)
		n += trace_row_waits(view, &view->table->rows.v[order[i]]) == waits;
	if (waits && !n)
		return 0;
	section = result_section(r, "rows", waits ? "waiting by design" : "", columns, n_columns);
	for (size_t i = 0; i < view->table->rows.n; i++) {
		const struct syscall_row *row = &view->table->rows.v[order[i]];

		if (trace_row_waits(view, row) == waits)
			add_row(view, row, waits, r, section);
	}
	if (r->failed)
		return -ENOMEM;
	r->sections.v[section].limit = view->v->top ? view->v->top : ROWS_SHOWN;
	r->sections.v[section].fits = !view->v->top;
	r->sections.v[section].more = "--all";
	return 0;
}

/* --- errors ----------------------------------------------------------------------------------- */

static int most_errors_first(const void *a, const void *b)
{
	const struct syscall_detail *x = *(const struct syscall_detail *const *)a;
	const struct syscall_detail *y = *(const struct syscall_detail *const *)b;

	if (x->v.count != y->v.count)
		return x->v.count < y->v.count ? 1 : -1;
	return memcmp(&x->key, &y->key, sizeof(x->key));
}

static int add_errors(const struct trace_view *view, struct result *r)
{
	static const struct column columns[] = {
		{"syscall", "syscall", CELL_TEXT, 0},
		{"errno", "errno", CELL_TEXT, 0},
		{"count", "count", CELL_COUNT, 0},
		{"percent", "of its calls", CELL_PERCENT, 0},
	};
	const struct syscall_table *t = view->table;
	CLEANUP(freep)
	const struct syscall_detail **errors = calloc(t->details.n + 1, sizeof(*errors));
	size_t n = 0, section;

	if (!errors)
		return -ENOMEM;
	for (size_t i = 0; i < t->details.n; i++)
		if (t->details.v[i].key.kind == SYSCALLS_ERROR)
			errors[n++] = &t->details.v[i];
	if (!n)
		return 0;
	qsort(errors, n, sizeof(*errors), most_errors_first);
	section = result_section(r, "errors", "errors", columns, ARRAY_SIZE(columns));
	for (size_t i = 0; i < n; i++) {
		const char *name = errno_name((int)errors[i]->key.value);
		uint64_t calls = 0;

		for (size_t k = 0; k < t->rows.n; k++)
			if (t->rows.v[k].key.code == errors[i]->key.id)
				calls = t->rows.v[k].calls;
		result_row(r, section,
			   (const struct cell[]){
				   cell_text(r, trace_call_name(r, errors[i]->key.id)),
				   cell_text(r, name ? name
						     : result_text(r, "errno %llu",
								   (unsigned long long)errors[i]
									   ->key.value)),
				   cell_u64(CELL_COUNT, errors[i]->v.count),
				   calls ? cell_double(CELL_PERCENT,
						       100.0 * (double)errors[i]->v.count /
							       (double)calls)
					 : cell_null(r, "its calls are in another row"),
			   });
	}
	if (r->failed)
		return -ENOMEM;
	r->sections.v[section].limit = ERRORS_SHOWN;
	r->sections.v[section].more = "--all";
	return 0;
}

/* --- facts ------------------------------------------------------------------------------------ */

static uint64_t all_calls(const struct syscall_table *t)
{
	uint64_t n = t->rest.calls;

	for (size_t i = 0; i < t->rows.n; i++)
		n += t->rows.v[i].calls;
	return n;
}

static uint64_t all_wall_ns(const struct trace_view *view, bool waits)
{
	uint64_t ns = waits ? 0 : view->table->rest.total_ns;

	for (size_t i = 0; i < view->table->rows.n; i++)
		if (trace_row_waits(view, &view->table->rows.v[i]) == waits)
			ns += trace_row_wall_ns(&view->table->rows.v[i]);
	return ns;
}

void trace_losses(const struct syscall_table *t, struct result *r)
{
	static const struct column columns[] = {
		{"exits_without_enter", "", CELL_COUNT, COLUMN_DATA_ONLY},
		{"enters_without_exit", "", CELL_COUNT, COLUMN_DATA_ONLY},
		{"calls_of_dropped_keys", "", CELL_COUNT, COLUMN_DATA_ONLY},
		{"details_dropped", "", CELL_COUNT, COLUMN_DATA_ONLY},
		{"file_names_dropped", "", CELL_COUNT, COLUMN_DATA_ONLY},
		{"threads_not_watched", "", CELL_COUNT, COLUMN_DATA_ONLY},
		{"missed_by_recursion", "", CELL_COUNT, COLUMN_DATA_ONLY},
		{"stacks_dropped", "", CELL_COUNT, COLUMN_DATA_ONLY},
	};
	const struct syscall_losses *l = &t->losses;
	const struct {
		const char *text;
		uint64_t n;
	} all[] = {
		{"exits without enter", l->exits_without_enter},
		{"enters without exit", l->enters_without_exit},
		{"calls of dropped keys (in the totals, without a row)", l->keys_dropped_calls},
		{"details dropped", l->details_dropped},
		{"file names dropped", l->file_names_dropped},
		{"threads not watched", l->threads_dropped},
		{"missed by recursion", l->missed_by_recursion},
		{"calls whose stack found no room", l->stacks_dropped},
	};
	struct cell cells[ARRAY_SIZE(columns)];
	CLEANUP(strbuf_release) struct strbuf b = {0};
	size_t section;

	for (size_t i = 0; i < ARRAY_SIZE(all); i++) {
		cells[i] = cell_u64(CELL_COUNT, all[i].n);
		if (all[i].n)
			strbuf_printf(&b, "%s%llu %s", b.n ? ", " : "",
				      (unsigned long long)all[i].n, all[i].text);
	}
	result_fact(r, "", "lost", cell_text(r, b.n ? strbuf_str(&b) : "0"));
	section = result_section(r, "losses", "", columns, ARRAY_SIZE(columns));
	result_row(r, section, cells);
	if (!r->failed)
		r->sections.v[section].is_object = true;
}

void trace_facts(const struct trace_view *view, const struct tracing *t, const char *target,
		 struct result *r)
{
	const struct syscall_table *table = view->table;
	uint64_t errors = table->rest.errors, calls = all_calls(table);

	for (size_t i = 0; i < table->rows.n; i++)
		errors += table->rows.v[i].errors;
	result_fact(r, "target", "target", cell_text(r, target));
	result_fact(r, "elapsed_ns", "measured", cell_u64(CELL_NS, table->elapsed_ns));
	result_fact(r, "threads", "",
		    cell_u64(CELL_COUNT, table->threads.n + table->ended_threads));
	result_fact(r, "threads_ended", "", cell_u64(CELL_COUNT, table->ended_threads));
	result_fact(r, "threads_ns", "", cell_u64(CELL_NS, table->threads_ns));
	result_fact(r, "calls", "", cell_u64(CELL_COUNT, calls));
	result_fact(r, "failed", "", cell_u64(CELL_COUNT, errors));
	result_fact(r, "calls_from_before", "", cell_u64(CELL_COUNT, table->from_before));
	result_fact(r, "attached", view->v->verbose ? "attached" : "",
		    cell_text(r, syscall_attach_text(t->attached)));
	if (t->watched.interrupted)
		result_note(r, "interrupted");
	if (t->watched.ended_by_duration)
		result_note(r, "the command was still running at the end of -d and was ended");
}

/* --- what it means ---------------------------------------------------------------------------- */

static const char *shape_text(const struct trace_numbers *numbers, size_t n_findings,
			      struct result *r)
{
	double usual = trace_number((void *)numbers, "usual-percent");

	if (n_findings)
		return result_text(r, "%zu thing%s out", n_findings,
				   n_findings == 1 ? " stands" : "s stand");
	if (isnan(usual))
		return "no call was made";
	if (usual >= 80)
		return result_text(r,
				   "that of a healthy server: %.0f %% of the calls are epoll, "
				   "read/write, futex and ioctl, and nothing stands out",
				   usual);
	return result_text(r,
			   "nothing stands out; %.0f %% of the calls are a server's usual ones "
			   "(epoll, read/write, futex, ioctl)",
			   usual);
}

static const char *first_line(const struct trace_view *view, const char *next, struct result *r)
{
	const struct syscall_table *t = view->table;
	double seconds = fmax((double)t->elapsed_ns / 1e9, 1e-9);
	double threads_ns = fmax((double)t->threads_ns, 1);
	size_t threads = t->threads.n + t->ended_threads;

	return result_text(r,
			   "%.0f a second by %zu thread%s · %.1f %% of their time in them, %.1f %% "
			   "waiting by design → next: %s",
			   (double)all_calls(t) / seconds, threads, threads == 1 ? "" : "s",
			   100 * (double)all_wall_ns(view, false) / threads_ns,
			   100 * (double)all_wall_ns(view, true) / threads_ns, next);
}

/* What a reader wants first is known last. */
static void to_front(struct result *r, size_t n)
{
	size_t before = r->facts.n - n;
	struct fact last[2 + FINDINGS_SHOWN];

	if (r->failed || n > ARRAY_SIZE(last))
		return;
	memcpy(last, r->facts.v + before, n * sizeof(*last));
	memmove(r->facts.v + n, r->facts.v, before * sizeof(*last));
	memcpy(r->facts.v, last, n * sizeof(*last));
}

/* Those of a table by call alone: other keys do not say which call it was. */
static int add_findings(const struct trace_view *view, const char *target, struct result *r)
{
	struct trace_numbers numbers;
	findings f = {0};
	const char *next;
	int err;

	trace_numbers_fill(view, r, &numbers);
	err = trace_findings(view->v, &numbers, target, r, &f);
	if (!err && !r->failed) {
		next = f.n ? f.v[0].next
			   : result_text(r, "inspect trace -c --by thread %s", target);
		result_fact(r, "summary", "calls", cell_text(r, first_line(view, next, r)));
		result_fact(r, "shape", "shape", cell_text(r, shape_text(&numbers, f.n, r)));
		findings_head(r, &f);
		to_front(r, 2 + MIN(f.n, FINDINGS_SHOWN));
	}
	array_release(&f);
	return err || r->failed ? -ENOMEM : 0;
}

int trace_summary(const struct trace_view *view, const char *target, struct result *r)
{
	CLEANUP(freep) size_t *order = NULL;
	int err = trace_sorted_rows(view->table, view->v->sort, &order);

	if (!err)
		err = add_section(view, order, false, r);
	if (!err)
		err = add_section(view, order, true, r);
	if (!err && view->by == SYSCALLS_BY_CALL && !view->is_interval)
		err = add_errors(view, r);
	if (!err && view->by == SYSCALLS_BY_CALL && !view->is_interval)
		err = add_findings(view, target, r);
	if (err)
		return err;
	trace_losses(view->table, r);
	return r->failed ? -ENOMEM : 0;
}
