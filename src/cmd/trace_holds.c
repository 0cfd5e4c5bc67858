/* SPDX-License-Identifier: BSD-2-Clause */
/* --locks --hold: how long each mutex is held, once it is had. */
#include "trace.h"

#include "print_result.h"
#include "target_text.h"

#include <inspect/explain.h>
#include <inspect/hold_tracing.h>

enum { LOCKS_SHOWN = 15 };

struct hold_run {
	const struct trace_values *v;
	struct host host;
	struct target target;
	struct strbuf target_text;
	note_list notes;
	struct trace_locks *locks;
	struct hold_tracing tracing;
};

static void hold_run_release(struct hold_run *run)
{
	hold_tracing_release(&run->tracing);
	trace_locks_free(run->locks);
	target_release(&run->target);
	strbuf_release(&run->target_text);
	note_list_release(&run->notes);
}

static int learn(void *ctx, const struct syscall_table *t)
{
	const struct hold_run *run = ctx;

	return trace_locks_learn_rows(run->locks, t);
}

/* --- the table -------------------------------------------------------------------------------- */

static const struct column columns[] = {
	{"lock", "lock", CELL_TEXT, COLUMN_CUT},
	{"pid", "pid", CELL_COUNT, 0},
	{"address", "", CELL_TEXT, COLUMN_DATA_ONLY},
	{"holds", "holds", CELL_COUNT, 0},
	{"total_ns", "held", CELL_NS, 0},
	{"held_percent", "of time", CELL_PERCENT, 0},
	{"avg_ns", "avg", CELL_NS, COLUMN_DATA_ONLY},
	{"p50_ns", "p50", CELL_NS, 0},
	{"p99_ns", "p99", CELL_NS, 0},
	{"max_ns", "max", CELL_NS, 0},
	{"held_now", "now", CELL_COUNT, 0},
	{"oldest_ns", "since", CELL_NS, COLUMN_DATA_ONLY},
};

static bool is_wanted(const struct hold_run *run, const struct syscall_row *row, const char *name)
{
	const char *wanted = run->v->lock;

	if (wanted && str_starts(wanted, "0x"))
		return strtoull(wanted, NULL, 16) == row->key.inode;
	return !wanted || strstr(name, wanted);
}

static void put_row(const struct hold_run *run, const struct syscall_row *row, size_t section,
		    struct result *r)
{
	const char *name = trace_lock_name(run->locks, r, row->key.pid, row->key.inode, 0);
	const char *none = "none has ended";
	double elapsed_ns = (double)run->tracing.table.elapsed_ns;

#define NS_OF_HOLDS(v) (row->calls ? cell_u64(CELL_NS, (v)) : cell_null(r, none))
	const struct cell cells[] = {
		cell_text(r, name),
		cell_u64(CELL_COUNT, row->key.pid),
		cell_text(r, result_text(r, "0x%llx", (unsigned long long)row->key.inode)),
		cell_u64(CELL_COUNT, row->calls),
		cell_u64(CELL_NS, trace_row_wall_ns(row)),
		cell_double(CELL_PERCENT,
			    elapsed_ns > 0 ? 100 * (double)trace_row_wall_ns(row) / elapsed_ns : 0),
		NS_OF_HOLDS(row->total_ns / row->calls),
		NS_OF_HOLDS(histogram_percentile(&row->h, 50)),
		NS_OF_HOLDS(histogram_percentile(&row->h, 99)),
		NS_OF_HOLDS(row->h.max),
		cell_u64(CELL_COUNT, row->in_flight),
		row->in_flight ? cell_u64(CELL_NS, row->oldest_ns) : cell_null(r, "not held"),
	};
#undef NS_OF_HOLDS

	_Static_assert(ARRAY_SIZE(cells) == ARRAY_SIZE(columns), "a cell for each column");
	if (is_wanted(run, row, name))
		result_row(r, section, cells);
}

static void put_losses(const struct hold_run *run, struct result *r)
{
	const struct holds_shared *l = &run->tracing.losses;

	result_fact(r, "lost", "lost", cell_u64(CELL_COUNT, l->holds_full + l->rows_full));
	result_fact(r, "held_from_before", l->held_from_before ? "held since before the start" : "",
		    cell_u64(CELL_COUNT, l->held_from_before));
}

static int fill(const struct hold_run *run, struct result *r)
{
	const struct syscall_table *t = &run->tracing.table;
	CLEANUP(freep) size_t *order = NULL;
	int err = trace_sorted_rows(t, run->v->sort, &order);
	size_t section;

	if (err)
		return err;
	result_fact(r, "target", "target", cell_text(r, strbuf_str(&run->target_text)));
	result_fact(r, "elapsed_ns", "measured", cell_u64(CELL_NS, t->elapsed_ns));
	put_losses(run, r);
	for (size_t i = 0; i < run->notes.n; i++)
		result_note(r, "%s", run->notes.v[i]);
	if (run->tracing.watched.interrupted)
		result_note(r, "interrupted");
	if (!run->target.pids.n && !run->target.tids.n)
		result_note(r, "of programs that use this host's C library");
	section = result_section(r, "locks", "", columns, ARRAY_SIZE(columns));
	for (size_t i = 0; i < t->rows.n; i++)
		put_row(run, &t->rows.v[order[i]], section, r);
	if (r->failed)
		return -ENOMEM;
	r->sections.v[section].limit = run->v->top ? run->v->top : LOCKS_SHOWN;
	r->sections.v[section].more = "--all";
	return 0;
}

static int prepare(struct hold_run *run, const struct operands *operands, struct diag *d)
{
	const struct trace_values *v = run->v;
	int err = options_conflict("--hold", true, "-I", v->interval_ns != 0, d);

	host_read(&run->host, "");
	if (!err)
		err = explain_bpf_tracing(&run->host, TRACING_SINCE_5_15, "time functions",
					  "perf probe -x PATH FUNC", d);
	if (!err)
		err = target_resolve(&v->target, operands, &run->host, &run->notes, &run->target,
				     d);
	if (!err)
		err = diag_errno(d, trace_locks_new(&run->locks), "trace");
	if (!err)
		target_text_given(&v->target, v->duration.duration_ns, operands, &run->target,
				  &run->target_text);
	return err;
}

int trace_holds(const struct trace_values *v, const struct operands *operands, int *exit_code,
		struct diag *d)
{
	CLEANUP(hold_run_release) struct hold_run run = {.v = v, .target = {.cgroup_fd = -1}};
	CLEANUP(result_release) struct result r;
	const struct hold_tracing_config config = {
		.target = &run.target,
		.host = &run.host,
		.duration_ns = v->duration.duration_ns,
		.delay_ns = v->duration.delay_ns,
		.stdout_taken = v->common.json || v->common.csv,
		.tick = learn,
		.ctx = &run,
	};
	int err = prepare(&run, operands, d);

	result_init(&r, "inspect.trace-holds/1");
	if (err)
		return err;
	err = hold_tracing_run(&config, &run.tracing, d);
	if (!err) {
		err = fill(&run, &r);
		err = err ? diag_errno(d, err, "trace")
			  : print_result(&r, &v->common, v->all_rows, d);
	}
	watched_exit_code(&run.tracing.watched, &run.target, err, exit_code);
	return err;
}
