/* SPDX-License-Identifier: BSD-2-Clause */
/* --probe: how often and how long, from one point in code to another. */
#include "trace.h"

#include "print_result.h"
#include "target_text.h"

#include <inspect/explain.h>
#include <inspect/term.h>

struct probe_run {
	const struct trace_values *v;
	struct host host;
	struct target target;
	struct strbuf target_text;
	note_list notes;
	struct trace_points points;
	struct tracing tracing;
};

static void probe_run_release(struct probe_run *run)
{
	tracing_release(&run->tracing);
	target_release(&run->target);
	strbuf_release(&run->target_text);
	note_list_release(&run->notes);
	trace_points_release(&run->points);
}

/* --- options ---------------------------------------------------------------------------------- */

static int no_value(const char *option, const char *name, size_t n, struct diag *d)
{
	diag_set(d, -EINVAL, "%s: '%.*s' is no value of this probe", option, (int)n, name);
	diag_fix(d, "arg1 to arg6, retval; of a tracepoint the fields of its format");
	return -EINVAL;
}

static int parse_by(struct trace_points *p, const char *text, const struct host *h, struct diag *d)
{
	struct probes_setup *setup = &p->config.setup;

	for (const char *at = text;; at++) {
		size_t n = strcspn(at, ",");
		uint32_t value;

		if ((n == 6 && !strncmp(at, "thread", n)) || (n == 3 && !strncmp(at, "tid", n))) {
			setup->by |= SYSCALLS_BY_THREAD;
		} else if (n == 4 && !strncmp(at, "comm", n)) {
			setup->by |= SYSCALLS_BY_COMM;
		} else if (n == 5 && !strncmp(at, "stack", n)) {
			return diag_set(d, -EINVAL, "--by: stack goes with no other key");
		} else {
			value = probe_value_number(&p->begin, at, n, h);
			if (!value)
				return no_value("--by", at, n, d);
			if (setup->by_value)
				return diag_set(d, -EINVAL, "--by: only one value");
			setup->by |= SYSCALLS_BY_VALUE;
			setup->by_value = (uint8_t)value;
			p->value_name = strndup(at, n);
			if (!p->value_name)
				return diag_errno(d, -ENOMEM, "--by");
		}
		at += n;
		if (!*at)
			return 0;
	}
}

static bool uses_result(const struct probes_setup *setup)
{
	for (size_t i = 0; i < setup->n_conditions; i++)
		if (setup->conditions[i].what == PROBES_RESULT)
			return true;
	return setup->by_value == PROBES_RESULT || setup->measured == PROBES_RESULT;
}

static int parse_values(const struct trace_values *v, const struct host *h, struct trace_points *p,
			struct diag *d)
{
	struct probes_setup *setup = &p->config.setup;
	int err = v->by && !trace_is_by_stack(v) ? parse_by(p, v->by, h, d) : 0;

	if (!err && v->condition)
		err = probe_conditions_parse(v->condition, &p->begin, h, setup, d);
	if (!err && v->of && !str_eq(v->of, "latency")) {
		p->of = TRACE_OF_VALUE;
		setup->measured = (uint8_t)probe_value_number(&p->begin, v->of, strlen(v->of), h);
		if (!setup->measured)
			err = no_value("--of", v->of, strlen(v->of), d);
	}
	if (!err && uses_result(setup) && !probe_has_end(&p->config))
		err = diag_set(d, -EINVAL, "retval: %s has no end; --until POINT gives it one",
			       v->probe);
	return err;
}

int trace_points_parse(const struct trace_values *v, const struct target *t, const struct host *h,
		       struct trace_points *ret, struct diag *d)
{
	const struct probe_where where = {
		.pid = t->pids.n   ? t->pids.v[0]
		       : t->tids.n ? t->tids.v[0]
				   : 0,
		.host = h,
	};
	int err = probe_point_parse(v->probe, &where, &ret->begin, d);

	if (!err && v->until)
		err = probe_point_parse(v->until, &where, &ret->end, d);
	if (err)
		return err;
	ret->config.begin = &ret->begin.point;
	ret->config.end = v->until ? &ret->end.point : NULL;
	return parse_values(v, h, ret, d);
}

void trace_points_release(struct trace_points *p)
{
	probe_text_release(&p->begin);
	probe_text_release(&p->end);
	free(p->value_name);
}

/* --- the result ------------------------------------------------------------------------------- */

static void add_losses(struct probe_run *run, struct result *r)
{
	static const struct column columns[] = {
		{"ends_without_begin", "", CELL_COUNT, COLUMN_DATA_ONLY},
		{"too_deep", "", CELL_COUNT, COLUMN_DATA_ONLY},
		{"keys_dropped", "", CELL_COUNT, COLUMN_DATA_ONLY},
		{"threads_dropped", "", CELL_COUNT, COLUMN_DATA_ONLY},
	};
	struct probe_losses l = {0};
	CLEANUP(strbuf_release) struct strbuf b = {0};
	const struct {
		const char *text;
		const uint64_t *n;
	} all[] = {
		{"ends without a beginning (begun before the start, mostly)",
		 &l.ends_without_begin},
		{"recursive calls beyond 16 levels", &l.too_deep},
		{"events of dropped keys", &l.keys_dropped},
		{"events of threads without room", &l.threads_dropped},
	};
	struct cell cells[ARRAY_SIZE(columns)];
	size_t section;

	if (probe_counts_losses(run->tracing.probes, &l))
		r->failed = true;
	for (size_t i = 0; i < ARRAY_SIZE(all); i++) {
		cells[i] = cell_u64(CELL_COUNT, *all[i].n);
		if (*all[i].n)
			strbuf_printf(&b, "%s%llu %s", b.n ? ", " : "",
				      (unsigned long long)*all[i].n, all[i].text);
	}
	result_fact(r, "", "lost", cell_text(r, b.n ? strbuf_str(&b) : "0"));
	section = result_section(r, "losses", "", columns, ARRAY_SIZE(columns));
	result_row(r, section, cells);
	if (!r->failed)
		r->sections.v[section].is_object = true;
}

/* Events without a length: how often alone. */
static int add_counts(const struct trace_view *view, struct result *r)
{
	enum { COLUMNS = 12 };
	CLEANUP(freep) size_t *order = NULL;
	struct column *columns = arena_alloc(&r->arena, COLUMNS * sizeof(*columns));
	size_t n_columns, section;
	int err = columns ? trace_sorted_rows(view->table, 1, &order) : -ENOMEM;

	if (err)
		return err;
	n_columns = trace_key_columns(view, columns);
	columns[n_columns++] = (struct column){"calls", "events", CELL_COUNT, 0};
	section = result_section(r, "rows", "", columns, n_columns);
	for (size_t i = 0; i < view->table->rows.n; i++) {
		const struct syscall_row *row = &view->table->rows.v[order[i]];
		struct cell cells[COLUMNS];
		size_t n = trace_key_cells(view, row, r, cells);

		cells[n] = cell_u64(CELL_COUNT, row->calls);
		result_row(r, section, cells);
	}
	if (r->failed)
		return -ENOMEM;
	r->sections.v[section].limit = view->v->top ? view->v->top : 25;
	r->sections.v[section].more = "--all";
	return 0;
}

static int print_probe(struct probe_run *run, struct diag *d)
{
	CLEANUP(result_release) struct result r;
	struct trace_view view = {
		.v = run->v,
		.table = &run->tracing.table,
		.by = run->points.config.setup.by,
		.of = run->points.of,
		.value_name = run->points.value_name,
		.title = run->v->of ? run->v->of : run->v->probe,
	};
	uint64_t events = 0;
	bool measures =
		run->points.of == TRACE_OF_VALUE || probe_counts_has_end(run->tracing.probes);
	int err;

	for (size_t i = 0; i < view.table->rows.n; i++)
		events += view.table->rows.v[i].calls;
	result_init(&r, "inspect.trace-probe/1");
	result_fact(&r, "probe", "probe", cell_text(&r, run->v->probe));
	if (run->v->until)
		result_fact(&r, "until", "until", cell_text(&r, run->v->until));
	result_fact(&r, "target", "target", cell_text(&r, strbuf_str(&run->target_text)));
	result_fact(&r, "elapsed_ns", "measured", cell_u64(CELL_NS, view.table->elapsed_ns));
	result_fact(&r, "events", "events", cell_u64(CELL_COUNT, events));
	if (run->points.begin.point.kind == PROBE_KERNEL)
		result_fact(&r, "attached", run->v->verbose ? "attached" : "",
			    cell_text(&r, probe_counts_by_trampoline(run->tracing.probes)
						  ? "fentry and fexit"
						  : "kprobe and kretprobe"));
	for (size_t i = 0; i < run->notes.n; i++)
		result_note(&r, "%s", run->notes.v[i]);
	if (run->tracing.watched.interrupted)
		result_note(&r, "interrupted");
	add_losses(run, &r);
	err = measures ? trace_distributions(&view, &r) : add_counts(&view, &r);
	return err ? diag_errno(d, err, "trace")
		   : print_result(&r, &run->v->common, run->v->all_rows, d);
}

int trace_probe(const struct trace_values *v, const struct operands *operands, int *exit_code,
		struct diag *d)
{
	CLEANUP(probe_run_release)
	struct probe_run run = {.v = v, .target = {.cgroup_fd = -1}};
	struct tracing_config config = {
		.target = &run.target,
		.host = &run.host,
		.probe = &run.points.config,
		.duration_ns = v->duration.duration_ns,
		.delay_ns = v->duration.delay_ns,
		.stdout_taken = v->common.json || v->common.csv,
	};
	int err;

	host_read(&run.host, "");
	err = explain_bpf_tracing(&run.host, TRACING_SINCE_5_10, "time functions",
				  "perf probe -x PATH FUNC", d);
	if (!err)
		err = target_resolve(&v->target, operands, &run.host, &run.notes, &run.target, d);
	if (!err)
		err = trace_points_parse(v, &run.target, &run.host, &run.points, d);
	if (err)
		return err;
	target_text_given(&v->target, v->duration.duration_ns, operands, &run.target,
			  &run.target_text);
	err = tracing_run(&config, &run.notes, &run.tracing, d);
	if (!err)
		err = print_probe(&run, d);
	watched_exit_code(&run.tracing.watched, &run.target, err, exit_code);
	return err;
}
