/* SPDX-License-Identifier: BSD-2-Clause */
/* --by stack: a row for each call (of the kernel, or of a GPU's driver), or hit of a probe, from
 * each stack: a recording whose weight is the time in them. */
#include "trace.h"

#include "measure.h"
#include "offcpu_view.h"
#include "output_file.h"
#include "print_result.h"
#include "quality.h"
#include "target_text.h"

#include <inspect/render.h>

enum {
	ROWS_SHOWN = 25,
	STACKS_SHOWN = 3,
	SORTS = 1 | 1 << TRACE_SORT_CALLS | 1 << TRACE_SORT_ERRORS | 1 << TRACE_SORT_P99 |
		1 << TRACE_SORT_MAX | 1 << TRACE_SORT_BYTES,
};

bool trace_is_by_stack(const struct trace_values *v)
{
	if (!v->by || v->probe)
		return v->by && str_eq(v->by, "stack");
	return str_eq(v->by, "stack") || str_eq(v->by, "syscall,stack") ||
	       str_eq(v->by, "stack,syscall") || str_eq(v->by, "call,stack") ||
	       str_eq(v->by, "stack,call");
}

/* --- the table -------------------------------------------------------------------------------- */

enum {
	OF_CALLS = TRACE_STACKS_CALLS,
	OF_TIMES = TRACE_STACKS_CALLS | TRACE_STACKS_GPU | TRACE_STACKS_PROBE,
	OF_OPEN = TRACE_STACKS_CALLS | TRACE_STACKS_GPU,
	OF_ALL = OF_TIMES | TRACE_STACKS_HITS,
};

static const struct {
	struct column column;
	unsigned of;
} row_columns[] = {
	{{"row", "#", CELL_COUNT, 0}, OF_ALL},
	{{"syscall", "syscall", CELL_TEXT, 0}, OF_CALLS},
	{{"call", "call", CELL_TEXT, COLUMN_CUT}, TRACE_STACKS_GPU},
	{{"calls", "calls", CELL_COUNT, 0}, OF_ALL},
	{{"errors", "errors", CELL_COUNT, COLUMN_SPARE}, OF_CALLS},
	{{"total_ns", "total", CELL_NS, 0}, OF_TIMES},
	{{"avg_ns", "avg", CELL_NS, COLUMN_DATA_ONLY}, OF_TIMES},
	{{"p50_ns", "p50", CELL_NS, COLUMN_DATA_ONLY}, OF_TIMES},
	{{"p99_ns", "p99", CELL_NS, 0}, OF_TIMES},
	{{"max_ns", "max", CELL_NS, 0}, OF_TIMES},
	{{"wall_percent", "wall", CELL_PERCENT, 0}, OF_TIMES},
	{{"bytes", "bytes", CELL_BYTES, COLUMN_SPARE}, OF_OPEN},
	{{"in_flight", "now", CELL_COUNT, 0}, OF_OPEN},
	{{"in_flight_ns", "", CELL_NS, COLUMN_DATA_ONLY}, OF_OPEN},
	{{"threads", "", CELL_COUNT, COLUMN_DATA_ONLY}, OF_ALL},
	{{"pid", "pid", CELL_COUNT, COLUMN_DATA_ONLY}, OF_ALL},
	{{"own_pid", "own_pid", CELL_COUNT, COLUMN_DATA_ONLY}, OF_ALL},
	{{"waits_by_design", "", CELL_BOOL, COLUMN_DATA_ONLY}, OF_OPEN},
	{{"caller", "called by", CELL_TEXT, COLUMN_CUT}, OF_ALL},
};

/* What a table is made of. */
struct stacks_view {
	struct offcpu_view offcpu;
	const struct probe_counts_config *probe; /* NULL: calls */
	unsigned of;
};

static const struct column *columns_of(const struct stacks_view *v, struct result *r, size_t *ret_n)
{
	struct column *columns = arena_alloc(&r->arena, sizeof(*columns) * ARRAY_SIZE(row_columns));

	*ret_n = 0;
	for (size_t i = 0; i < ARRAY_SIZE(row_columns) && columns; i++)
		if (row_columns[i].of & v->of)
			columns[(*ret_n)++] = row_columns[i].column;
	return columns;
}

/* Of calls that have ended: what is open at the end is in no count of calls. */
static uint64_t calls_of(const struct wait_site *s)
{
	return s->count - s->n_open;
}

static bool waits_by_design(const struct waits *w, const struct wait_site *s)
{
	return w->labels.v[s->label].idle;
}

static uint64_t sort_value(const struct wait_site *s, unsigned sort)
{
	switch (sort) {
	case TRACE_SORT_CALLS:
		return calls_of(s);
	case TRACE_SORT_ERRORS:
		return s->errors;
	case TRACE_SORT_P99:
		return wait_site_percentile(s, 99);
	case TRACE_SORT_MAX:
		return s->max_ns;
	case TRACE_SORT_BYTES:
		return s->bytes;
	default:
		return s->wait_ns;
	}
}

struct ranked_site {
	const struct wait_site *site;
	uint64_t value;
	bool waits;
};

static int by_rank(const void *a, const void *b)
{
	const struct ranked_site *x = a, *y = b;

	if (x->waits != y->waits)
		return x->waits ? 1 : -1;
	if (x->value != y->value)
		return x->value < y->value ? 1 : -1;
	return (x->site > y->site) - (x->site < y->site);
}

bool trace_module_passes_on(const char *module)
{
	static const char *const prefixes[] = {"libc.", "libc-", "libcuda.so", "libcudart",
					       "libnvidia-"};

	for (size_t i = 0; i < ARRAY_SIZE(prefixes); i++)
		if (str_starts(module, prefixes[i]))
			return true;
	return false;
}

const char *trace_caller_of(const struct profile *p, const struct wait_site *s,
			    const struct probe_counts_config *probe, struct symbol_path *path)
{
	const struct profile_row row = {.stack = s->stack};
	const char *innermost = "[unknown]";
	bool found = false, own = probe && probe->begin->kind == PROBE_FUNCTION;

	if (s->stack == UINT32_MAX || profile_row_path(p, &row, path))
		return innermost;
	for (size_t i = path->at.n; i > 0; i--) {
		const struct symbol *symbol = &p->symbols.v[path->at.v[i - 1].symbol];

		if (symbol->kind == FRAME_KERNEL)
			continue;
		if (own) {
			own = false;
			continue;
		}
		if (!found)
			innermost = intern_str(&p->strings, symbol->name);
		found = true;
		if (!trace_module_passes_on(intern_str(&p->strings, symbol->module)))
			return intern_str(&p->strings, symbol->name);
	}
	return innermost;
}

static struct cell own_pid_of(const struct waits *w, uint32_t pid, struct result *r)
{
	for (size_t i = 0; i < w->threads.n; i++)
		if (w->threads.v[i].totals.pid == pid && w->threads.v[i].totals.own_pid)
			return cell_u64(CELL_COUNT, w->threads.v[i].totals.own_pid);
	return cell_null(r, "not known");
}

static void put_row(struct result *r, size_t section, const struct stacks_view *view,
		    const struct wait_site *s, size_t number, uint64_t threads_ns,
		    struct symbol_path *path)
{
	const struct waits *w = view->offcpu.waits;
	bool before = w->labels.v[s->label].from_before;
	const char *none = before ? "begun before the start" : "no call has ended";
	uint64_t calls = calls_of(s), ended_ns = s->wait_ns - s->open_ns;
	bool timed = calls && !before;
	const struct cell cells[] = {
		cell_u64(CELL_COUNT, number),
		cell_text(r, w->labels.v[s->label].text),
		cell_text(r, w->labels.v[s->label].text),
		cell_u64(CELL_COUNT, calls),
		cell_u64(CELL_COUNT, s->errors),
		cell_u64(CELL_NS, s->wait_ns),
		timed ? cell_u64(CELL_NS, ended_ns / calls) : cell_null(r, none),
		timed ? cell_u64(CELL_NS, wait_site_percentile(s, 50)) : cell_null(r, none),
		timed ? cell_u64(CELL_NS, wait_site_percentile(s, 99)) : cell_null(r, none),
		timed ? cell_u64(CELL_NS, s->max_ns) : cell_null(r, none),
		cell_double(CELL_PERCENT,
			    threads_ns ? 100.0 * (double)s->wait_ns / (double)threads_ns : 0),
		s->io ? cell_u64(CELL_BYTES, s->bytes) : cell_null(r, "its calls move no bytes"),
		cell_u64(CELL_COUNT, s->n_open),
		cell_u64(CELL_NS, s->open_ns),
		cell_u64(CELL_COUNT, s->n_threads),
		cell_u64(CELL_COUNT, s->pid),
		own_pid_of(w, s->pid, r),
		cell_bool(waits_by_design(w, s)),
		cell_text(r,
			  trace_caller_of(view->offcpu.recording->profile, s, view->probe, path)),
	};
	struct cell shown[ARRAY_SIZE(cells)];
	size_t n = 0;

	_Static_assert(ARRAY_SIZE(cells) == ARRAY_SIZE(row_columns), "a cell for each column");
	for (size_t i = 0; i < ARRAY_SIZE(cells); i++)
		if (row_columns[i].of & view->of)
			shown[n++] = cells[i];
	result_row(r, section, shown);
}

static uint64_t threads_ns_of(const struct waits *w)
{
	uint64_t ns = 0;

	for (size_t i = 0; i < w->threads.n; i++)
		ns += w->threads.v[i].totals.end_ns - w->threads.v[i].totals.start_ns;
	return ns;
}

/* Those that wait by design come last, as a section of their own. */
static int add_rows(struct result *r, const struct trace_values *v, const struct stacks_view *view)
{
	const struct waits *w = view->offcpu.waits;
	size_t n_columns;
	const struct column *columns = columns_of(view, r, &n_columns);
	CLEANUP(freep) struct ranked_site *order = calloc(w->sites.n + 1, sizeof(*order));
	struct symbol_path path = {0};
	uint64_t threads_ns = threads_ns_of(w);
	size_t section = 0;
	int err = order && columns ? 0 : -ENOMEM;

	for (size_t i = 0; i < w->sites.n && !err; i++) {
		const struct wait_site *site = &w->sites.v[i];
		bool by_latency = v->sort == TRACE_SORT_P99 || v->sort == TRACE_SORT_MAX;
		bool has_none = by_latency && w->labels.v[site->label].from_before;

		order[i] = (struct ranked_site){site, has_none ? 0 : sort_value(site, v->sort),
						waits_by_design(w, site)};
	}
	if (!err && w->sites.n)
		qsort(order, w->sites.n, sizeof(*order), by_rank);
	for (size_t i = 0; i < w->sites.n && !err && !r->failed; i++) {
		if (!i || order[i].waits != order[i - 1].waits) {
			section =
				result_section(r, "rows", order[i].waits ? "waiting by design" : "",
					       columns, n_columns);
			if (r->failed)
				break;
			r->sections.v[section].limit = v->top ? v->top : ROWS_SHOWN;
			r->sections.v[section].more = "--all";
		}
		put_row(r, section, view, order[i].site, i + 1, threads_ns, &path);
	}
	for (size_t i = 0; i < w->sites.n && i < view->offcpu.stacks && !err; i++)
		err = offcpu_put_stack(r, &view->offcpu, order[i].site->stack, i + 1,
				       w->labels.v[order[i].site->label].text, &path);
	array_release(&path.at);
	return r->failed ? -ENOMEM : err;
}

static bool wants_data(const struct trace_values *v)
{
	return v->common.json || v->common.csv || v->common.markdown;
}

struct offcpu_view trace_stacks_view(const struct trace_values *v, const struct recording *rec)
{
	bool all = wants_data(v) || v->all_rows;

	return (struct offcpu_view){.recording = rec,
				    .waits = rec->waits,
				    .stacks = all ? UINT64_MAX : STACKS_SHOWN,
				    .all = all};
}

int trace_stacks_table(const struct trace_values *v, const struct recording *rec,
		       enum trace_stacks_of of, const struct probe_counts_config *probe,
		       struct result *r)
{
	const struct stacks_view view = {
		.offcpu = trace_stacks_view(v, rec), .probe = probe, .of = of};

	return add_rows(r, v, &view);
}

/* --- the whole -------------------------------------------------------------------------------- */

static void put_facts(struct result *r, const struct recording *rec, const char *target)
{
	const struct waits *w = rec->waits;
	uint64_t calls = 0;

	for (size_t i = 0; i < w->sites.n; i++)
		calls += calls_of(&w->sites.v[i]);
	result_fact(r, "target", "target", cell_text(r, target));
	result_fact(r, "elapsed_ns", "measured", cell_u64(CELL_NS, w->end_ns - w->start_ns));
	result_fact(r, "threads", "", cell_u64(CELL_COUNT, w->threads.n));
	result_fact(r, "threads_ns", "", cell_u64(CELL_NS, threads_ns_of(w)));
	result_fact(r, "calls", "calls", cell_u64(CELL_COUNT, calls));
	quality_facts(r, rec->profile);
	for (size_t i = 0; i < rec->profile->notes.n; i++)
		result_note(r, "%s", rec->profile->notes.v[i]);
}

static int print(const struct trace_stacks_run *run, const struct recording *rec,
		 const char *target, const char *given, struct diag *d)
{
	const struct trace_values *v = run->v;
	CLEANUP(result_release) struct result r;
	int err;

	result_init(&r, run->schema);
	if (v->probe)
		result_fact(&r, "probe", "probe", cell_text(&r, v->probe));
	if (v->until)
		result_fact(&r, "until", "until", cell_text(&r, v->until));
	put_facts(&r, rec, given);
	err = run->fill(run->ctx, rec, target, &r);
	return err ? diag_errno(d, err, "trace") : print_result(&r, &v->common, v->all_rows, d);
}

static int draw(const struct trace_stacks_run *run, const struct profile *p, struct diag *d)
{
	struct flame_options fo = {.title = run->title, .event = -1};
	struct output_file f;
	int err = output_file_open(&f, run->v->flame, d);

	return err ? err : output_file_close(&f, flame_svg(p, &fo, f.out), d);
}

static int check(const struct trace_values *v, struct diag *d)
{
	int err = options_conflict("--by stack", true, "--hist", v->hist, d);

	if (!err)
		err = options_conflict("--by stack", true, "-I", v->interval_ns != 0, d);
	if (!err && v->of && !str_eq(v->of, "latency"))
		err = diag_set(d, -EINVAL, "--by stack: --of latency alone");
	if (!err && !(1u << v->sort & SORTS))
		err = diag_set(d, -EINVAL,
			       "--by stack: --sort total, calls, errors, p99, max or bytes");
	if (!err && v->output && output_is_stdout(v->output))
		err = diag_set(d, -EINVAL, "-o writes a file beside the table: stdout is its");
	if (!err && v->flame && output_is_stdout(v->flame))
		err = diag_set(d, -EINVAL, "--flame writes a file beside the table: stdout is its");
	return !err && v->flame ? output_file_check(v->flame, NULL, 0, d) : err;
}

static int record(const struct trace_stacks_run *run, struct measure *m, const char *target,
		  const char *given, int *exit_code, struct diag *d)
{
	CLEANUP(recording_release) struct recording rec = {0};
	int err = recording_run(&m->config, &rec, d);

	if (err) {
		if (rec.child.exec_failed)
			*exit_code = child_exit_code(&rec.child);
		return err;
	}
	if (run->v->flame)
		err = draw(run, rec.profile, d);
	if (!err)
		err = print(run, &rec, target, given, d);
	if (!err)
		*exit_code = recording_exit_code(&rec, &m->target);
	return err;
}

int trace_stacks_record(const struct trace_stacks_run *run, const struct operands *operands,
			int argc, char **argv, int *exit_code, struct diag *d)
{
	CLEANUP(freep) char *line = command_line_of(argc, argv);
	CLEANUP(strbuf_release) struct strbuf target = {0}, given = {0};
	CLEANUP(measure_release) struct measure m = {.target = {.cgroup_fd = -1}};
	const struct trace_values *v = run->v;
	const struct measure_options options = {
		.target = v->target,
		.duration = v->duration,
		.sampling = {.events = "cpu-clock", .call_graph = CALL_GRAPH_AUTO},
	};
	int err = check(v, d);

	if (!err)
		err = measure_prepare(&m, "trace", &options, operands, d);
	if (!err)
		err = run->prepare(run->ctx, &m, d);
	if (err)
		return err;
	m.config.waits = &m.waits;
	m.config.output = v->output;
	m.config.command_line = line;
	m.config.stdout_taken = wants_data(v);
	target_text_put(&v->target, v->duration.duration_ns, operands, &m.target, &target);
	target_text_given(&v->target, v->duration.duration_ns, operands, &m.target, &given);
	return record(run, &m, strbuf_str(&target), strbuf_str(&given), exit_code, d);
}

/* --- calls of the kernel, and probes ---------------------------------------------------------- */

struct stacks {
	const struct trace_values *v;
	struct syscall_set only;
	struct trace_points points;
};

static void stacks_release(struct stacks *s)
{
	trace_points_release(&s->points);
}

static int prepare(void *ctx, struct measure *m, struct diag *d)
{
	struct stacks *s = ctx;

	m->waits = (struct waits_config){.calls = !s->v->probe,
					 .only = s->v->filter ? &s->only : NULL,
					 .probe = s->v->probe ? &s->points.config : NULL};
	return s->v->probe ? trace_points_parse(s->v, &m->target, &m->host, &s->points, d) : 0;
}

static int fill(void *ctx, const struct recording *rec, const char *target UNUSED, struct result *r)
{
	const struct stacks *s = ctx;
	const struct probe_counts_config *probe = s->v->probe ? &s->points.config : NULL;
	enum trace_stacks_of of = !probe                 ? TRACE_STACKS_CALLS
				  : probe_has_end(probe) ? TRACE_STACKS_PROBE
							 : TRACE_STACKS_HITS;

	return trace_stacks_table(s->v, rec, of, probe, r);
}

int trace_stacks(const struct trace_values *v, const struct operands *operands, int argc,
		 char **argv, int *exit_code, struct diag *d)
{
	CLEANUP(stacks_release) struct stacks s = {.v = v};
	const struct trace_stacks_run run = {
		.v = v,
		.schema = v->probe ? "inspect.trace-probe-stacks/1" : "inspect.trace-stacks/1",
		.title = v->probe ? v->probe : "Time in system calls",
		.prepare = prepare,
		.fill = fill,
		.ctx = &s,
	};
	int err = v->filter ? trace_parse_filter(v->filter, &s.only, d) : 0;

	return err ? err : trace_stacks_record(&run, operands, argc, argv, exit_code, d);
}
