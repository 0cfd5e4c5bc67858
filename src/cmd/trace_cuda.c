/* SPDX-License-Identifier: BSD-2-Clause */
/* --cuda: functions of CUDA's driver API, from call to return. */
#include "trace.h"

#include "print_result.h"
#include "target_text.h"

#include <inspect/clock.h>
#include <inspect/cuda_tracing.h>
#include <inspect/explain.h>

enum { COLUMNS = 18, ROWS_SHOWN = 25, HISTOGRAMS_SHOWN = 5, MISSING_SHOWN = 4, FAILING_SHOWN = 5 };

struct cuda_run {
	const struct trace_values *v;
	struct host host;
	struct target target;
	struct strbuf target_text;
	uint32_t by; /* enum cuda_by */
	note_list notes;
	struct cuda_tracing tracing;
};

static void cuda_run_release(struct cuda_run *run)
{
	cuda_tracing_release(&run->tracing);
	target_release(&run->target);
	strbuf_release(&run->target_text);
	note_list_release(&run->notes);
}

static int parse_by(const char *text, uint32_t *ret, struct diag *d)
{
	static const struct {
		const char *name;
		uint32_t by;
	} names[] = {{"call", 0},
		     {"thread", CUDA_BY_THREAD | CUDA_BY_COMM},
		     {"comm", CUDA_BY_COMM},
		     {"stream", CUDA_BY_STREAM}};

	*ret = 0;
	for (const char *at = text ? text : "call";; at++) {
		size_t n = strcspn(at, ","), i = 0;

		while (i < ARRAY_SIZE(names) &&
		       (strlen(names[i].name) != n || strncmp(names[i].name, at, n)))
			i++;
		if (i == ARRAY_SIZE(names))
			return diag_set(d, -EINVAL,
					"--by: '%.*s' is not one of call, thread, comm, stream",
					(int)n, at);
		*ret |= names[i].by;
		at += n;
		if (!*at)
			return 0;
	}
}

/* --- the table -------------------------------------------------------------------------------- */

/* With the calls that have not returned. */
static uint64_t total_ns(const struct cuda_count *row)
{
	return row->h.sum + row->open_ns + row->unreturned_ns;
}

static int by_total(const void *a, const void *b)
{
	const struct cuda_count *x = a, *y = b;

	return (total_ns(x) < total_ns(y)) - (total_ns(x) > total_ns(y));
}

static size_t make_columns(uint32_t by, struct column *columns)
{
	static const struct column metrics[] = {
		{"calls", "calls", CELL_COUNT, 0},
		{"errors", "errors", CELL_COUNT, 0},
		{"last_error", "", CELL_COUNT, COLUMN_DATA_ONLY},
		{"total_ns", "in call", CELL_NS, 0},
		{"p50_ns", "p50", CELL_NS, 0},
		{"p99_ns", "p99", CELL_NS, 0},
		{"p999_ns", "p99.9", CELL_NS, COLUMN_SPARE},
		{"max_ns", "max", CELL_NS, COLUMN_SPARE},
		{"in_flight", "now", CELL_COUNT, COLUMN_SPARE},
		{"oldest_ns", "since", CELL_NS, COLUMN_SPARE},
		{"unreturned", "", CELL_COUNT, COLUMN_DATA_ONLY},
		{"bytes", "bytes", CELL_BYTES, COLUMN_SPARE},
	};
	size_t n = 0;

	columns[n++] = (struct column){"call", "call", CELL_TEXT, COLUMN_CUT};
	columns[n++] = (struct column){"group", "group", CELL_TEXT, COLUMN_SPARE};
	if (by & CUDA_BY_THREAD)
		columns[n++] = (struct column){"tid", "tid", CELL_COUNT, 0};
	if (by & CUDA_BY_COMM)
		columns[n++] = (struct column){"comm", "comm", CELL_TEXT, 0};
	if (by & CUDA_BY_STREAM)
		columns[n++] = (struct column){"stream", "stream", CELL_TEXT, 0};
	memcpy(columns + n, metrics, sizeof(metrics));
	return n + ARRAY_SIZE(metrics);
}

static void add_row(const struct cuda_run *run, const struct cuda_count *row, struct result *r,
		    size_t section)
{
	const struct cuda_function *f = &cuda_functions[row->key.function];
	struct cell cells[COLUMNS + 1];
	const char *none = "no call has returned";
	size_t n = 0;

	cells[n++] = cell_text(r, f->name);
	cells[n++] = cell_text(r, f->group);
	if (run->by & CUDA_BY_THREAD)
		cells[n++] = cell_u64(CELL_COUNT, row->key.tid);
	if (run->by & CUDA_BY_COMM)
		cells[n++] = cell_text(r, result_text(r, "%.*s", CUDA_COMM, row->key.comm));
	if (run->by & CUDA_BY_STREAM)
		cells[n++] =
			f->arguments.stream
				? cell_text(r, result_text(r, "0x%llx",
							   (unsigned long long)row->key.stream))
				: cell_null(r, "the function has no stream");
	cells[n++] = cell_u64(CELL_COUNT, row->calls);
	cells[n++] = cell_u64(CELL_COUNT, row->errors);
	cells[n++] = row->errors ? cell_u64(CELL_COUNT, row->last_error) : cell_null(r, "");
#define NS_OF_CALLS(v) (row->calls ? cell_u64(CELL_NS, (v)) : cell_null(r, none))
	cells[n++] = cell_u64(CELL_NS, total_ns(row));
	cells[n++] = NS_OF_CALLS(histogram_percentile(&row->h, 50));
	cells[n++] = NS_OF_CALLS(histogram_percentile(&row->h, 99));
	cells[n++] = NS_OF_CALLS(histogram_percentile(&row->h, 99.9));
	cells[n++] = NS_OF_CALLS(row->h.max);
#undef NS_OF_CALLS
	cells[n++] = cell_u64(CELL_COUNT, row->in_flight);
	cells[n++] = row->in_flight ? cell_u64(CELL_NS, row->oldest_ns) : cell_null(r, "");
	cells[n++] = cell_u64(CELL_COUNT, row->unreturned);
	cells[n++] = f->arguments.bytes ? cell_u64(CELL_BYTES, row->bytes)
					: cell_null(r, "not an argument of it");
	result_row(r, section, cells);
}

static int add_rows(struct cuda_run *run, struct result *r)
{
	struct cuda_table *t = &run->tracing.table;
	struct column *columns = arena_alloc(&r->arena, (COLUMNS + 1) * sizeof(*columns));
	size_t section, n_failing = 0;

	if (!columns)
		return -ENOMEM;
	section = result_section(r, "rows", "", columns, make_columns(run->by, columns));
	if (t->rows.n)
		qsort(t->rows.v, t->rows.n, sizeof(*t->rows.v), by_total);
	for (size_t i = 0; i < t->rows.n; i++) {
		const struct cuda_count *row = &t->rows.v[i];

		if (row->key.function >= n_cuda_functions)
			continue;
		add_row(run, row, r, section);
		if (row->errors && n_failing++ < FAILING_SHOWN)
			result_note(r, "%s: the last of its errors is CUresult %u",
				    cuda_functions[row->key.function].name, row->last_error);
	}
	if (r->failed)
		return -ENOMEM;
	r->sections.v[section].limit = run->v->top ? run->v->top : ROWS_SHOWN;
	r->sections.v[section].more = "--all";
	return 0;
}

/* --- distributions ---------------------------------------------------------------------------- */

static const char *name_of(const struct cuda_run *run, const struct cuda_count *row,
			   struct result *r)
{
	CLEANUP(strbuf_release) struct strbuf b = {0};

	strbuf_puts(&b, cuda_functions[row->key.function].name);
	if (run->by & CUDA_BY_THREAD)
		strbuf_printf(&b, " · %u", row->key.tid);
	if (run->by & CUDA_BY_COMM)
		strbuf_printf(&b, " · %.*s", CUDA_COMM, row->key.comm);
	if (run->by & CUDA_BY_STREAM)
		strbuf_printf(&b, " · stream 0x%llx", (unsigned long long)row->key.stream);
	return result_text(r, "%s", strbuf_str(&b));
}

static int add_histograms(struct cuda_run *run, struct result *r)
{
	const struct trace_values *v = run->v;
	size_t shown = v->all_rows ? SIZE_MAX : v->top ? v->top : HISTOGRAMS_SHOWN, n = 0;
	struct cuda_table *t = &run->tracing.table;

	if (t->rows.n)
		qsort(t->rows.v, t->rows.n, sizeof(*t->rows.v), by_total);
	for (size_t i = 0; i < t->rows.n; i++)
		if (t->rows.v[i].h.n && t->rows.v[i].key.function < n_cuda_functions && n++ < shown)
			trace_put_latencies(r, name_of(run, &t->rows.v[i], r), &t->rows.v[i].h);
	if (n > shown)
		result_note(r, "%zu more distributions: --all", n - shown);
	return r->failed ? -ENOMEM : 0;
}

/* --- what it stands on ------------------------------------------------------------------------ */

static void add_library(const struct cuda_run *run, const struct cuda_library *l, struct result *r)
{
	CLEANUP(strbuf_release) struct strbuf missing = {0};
	size_t n = 0;
	char took[32];

	result_fact(r, run->tracing.libraries.v == l ? "library" : "", "library",
		    cell_text(r, result_text(r, "%s: %zu functions, %zu probes, attached in %s",
					     l->path, l->n_functions, 2 * l->n_symbols,
					     duration_format(l->attach_ns, took, sizeof(took)))));
	if (l->unwatched_ns)
		result_note(r,
			    "%s of %d was mapped up to %s before it was watched: calls of that "
			    "time are missing",
			    l->path, l->pid, duration_format(l->unwatched_ns, took, sizeof(took)));
	for (size_t i = 0; i < n_cuda_functions; i++) {
		if (l->found[i] ||
		    (!run->v->cuda_launch && cuda_function_launches(&cuda_functions[i])))
			continue;
		if (run->v->common.json || n++ < MISSING_SHOWN)
			strbuf_printf(&missing, "%s%s", missing.n ? ", " : "",
				      cuda_functions[i].name);
	}
	if (n > MISSING_SHOWN)
		strbuf_printf(&missing, " and %zu more (--json names them)", n - MISSING_SHOWN);
	if (missing.n)
		result_note(r, "%s has no %s", l->path, strbuf_str(&missing));
}

/* A table of them for JSON; as text they are facts and notes. */
static void add_libraries(const struct cuda_run *run, struct result *r)
{
	static const struct column columns[] = {
		{"path", "", CELL_TEXT, COLUMN_DATA_ONLY},
		{"functions", "", CELL_COUNT, COLUMN_DATA_ONLY},
		{"probes", "", CELL_COUNT, COLUMN_DATA_ONLY},
		{"attach_ns", "", CELL_NS, COLUMN_DATA_ONLY},
		{"pid", "", CELL_COUNT, COLUMN_DATA_ONLY},
		{"unwatched_ns", "", CELL_NS, COLUMN_DATA_ONLY},
	};
	size_t section = result_section(r, "libraries", "", columns, ARRAY_SIZE(columns));

	for (size_t i = 0; i < run->tracing.libraries.n; i++) {
		const struct cuda_library *l = &run->tracing.libraries.v[i];
		const char *none = "it was watched before a process had mapped it";

		result_row(r, section,
			   (const struct cell[]){
				   cell_text(r, l->path),
				   cell_u64(CELL_COUNT, l->n_functions),
				   cell_u64(CELL_COUNT, 2 * l->n_symbols),
				   cell_u64(CELL_NS, l->attach_ns),
				   l->unwatched_ns ? cell_u64(CELL_COUNT, (uint64_t)l->pid)
						   : cell_null(r, none),
				   l->unwatched_ns ? cell_u64(CELL_NS, l->unwatched_ns)
						   : cell_null(r, none),
			   });
	}
}

static void add_facts(const struct cuda_run *run, struct result *r)
{
	const struct cuda_tracing *t = &run->tracing;
	uint64_t in_flight = 0, unreturned = 0;

	result_fact(r, "target", "target", cell_text(r, strbuf_str(&run->target_text)));
	result_fact(r, "elapsed_ns", "measured", cell_u64(CELL_NS, t->table.elapsed_ns));
	for (size_t i = 0; i < t->libraries.n; i++)
		add_library(run, &t->libraries.v[i], r);
	add_libraries(run, r);
	result_fact(r, "lost", "lost", cell_u64(CELL_COUNT, t->table.lost));
	result_fact(r, "times", "times",
		    cell_text(r, "of the call: an asynchronous copy or a launch is only enqueued"));
	result_fact(r, "probe_pair_ns", "cost of a call's two probes",
		    t->pair_ns ? cell_u64(CELL_NS, t->pair_ns) : cell_null(r, "not measured"));
	for (size_t i = 0; i < t->table.rows.n; i++) {
		in_flight += t->table.rows.v[i].in_flight;
		unreturned += t->table.rows.v[i].unreturned;
	}
	result_fact(r, "in_flight", "not returned yet", cell_u64(CELL_COUNT, in_flight));
	if (unreturned)
		result_note(r, "%llu calls never returned: their threads ended in them",
			    (unsigned long long)unreturned);
	if (!run->v->cuda_launch)
		result_note(r, "launches are not timed: --cuda-launch does");
	if (t->libraries.n && (!run->target.argv || run->target.cmd_times_only))
		result_note(r, "calls that began before the start are not seen, nor their ends");
	if (!t->libraries.n)
		result_note(r, "nothing of the target has loaded libcuda.so.1");
	if (t->watched.interrupted)
		result_note(r, "interrupted");
}

int trace_cuda(const struct trace_values *v, const struct operands *operands, int *exit_code,
	       struct diag *d)
{
	CLEANUP(cuda_run_release) struct cuda_run run = {.v = v, .target = {.cgroup_fd = -1}};
	CLEANUP(result_release) struct result r;
	struct cuda_tracing_config config = {
		.target = &run.target,
		.host = &run.host,
		.launches = v->cuda_launch,
		.duration_ns = v->duration.duration_ns,
		.delay_ns = v->duration.delay_ns,
		.stdout_taken = v->common.json || v->common.csv,
	};
	int err = parse_by(v->by, &run.by, d);

	result_init(&r, v->hist ? "inspect.trace-cuda-hist/1" : "inspect.trace-cuda/1");
	host_read(&run.host, "");
	config.by = run.by;
	if (!err)
		err = explain_bpf_tracing(&run.host, TRACING_SINCE_5_15, "time functions",
					  "perf probe -x PATH FUNC", d);
	if (!err)
		err = target_resolve(&v->target, operands, &run.host, &run.notes, &run.target, d);
	if (err)
		return err;
	target_text_given(&v->target, v->duration.duration_ns, operands, &run.target,
			  &run.target_text);
	err = cuda_tracing_run(&config, &run.notes, &run.tracing, d);
	if (!err) {
		add_facts(&run, &r);
		for (size_t i = 0; i < run.notes.n; i++)
			result_note(&r, "%s", run.notes.v[i]);
		err = v->hist ? add_histograms(&run, &r) : add_rows(&run, &r);
		err = err ? diag_errno(d, err, "trace")
			  : print_result(&r, &v->common, v->all_rows, d);
	}
	watched_exit_code(&run.tracing.watched, &run.target, err, exit_code);
	return err;
}
