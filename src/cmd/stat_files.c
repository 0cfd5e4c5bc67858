/* SPDX-License-Identifier: BSD-2-Clause */
/* Saved results: judged (--check) or side by side (--table), without running anything. */
#include "stat.h"

#include <inspect/command.h>
#include <math.h>

static void saved_facts(const struct saved_stat *s, struct result *r)
{
	result_fact(r, "file", "file", cell_text(r, s->path));
	result_fact(r, "command", "command",
		    *s->command ? cell_text(r, s->command) : cell_null(r, "no command was run"));
	result_fact(r, "exit_code", "", cell_u64(CELL_COUNT, s->exit_code));
	result_fact(r, "timed_out", "", cell_bool(s->timed_out));
	result_fact(r, "environment_cpu", "", cell_text(r, saved_stat_fact(s, "cpu")));
	result_fact(r, "environment_kernel", "", cell_text(r, saved_stat_fact(s, "kernel")));
}

int stat_check_file(const struct stat_values *v, struct stat_gate *g, int *exit_code,
		    struct diag *d)
{
	CLEANUP(result_release) struct result r;
	struct saved_stat now;
	int err = saved_stat_read(v->check, &now, d);

	result_init(&r, "inspect.stat-check/1");
	if (err)
		return err;
	err = stat_gate_check(g, &now, d);
	if (!err && stat_gate_judge(g, &now, v))
		err = diag_errno(d, -ENOMEM, "--check");
	if (!err) {
		saved_facts(&now, &r);
		result_fact(&r, "baseline", v->baseline ? "baseline" : "",
			    v->baseline ? cell_text(&r, v->baseline)
					: cell_null(&r, "only budgets are judged"));
		*exit_code = now.exit_code ? stat_no_verdict(&now) : g->exit_code;
		if (!now.exit_code)
			stat_gate_section(g, &now, v, &r);
		err = stat_print(&r, v, false, d);
		if (*exit_code == EXIT_NO_BASELINE &&
		    (v->common.json || v->common.csv || v->output || v->common.markdown))
			stat_gate_put_reasons(g, stderr);
	}
	saved_stat_release(&now);
	return err;
}

/* --- --table ---------------------------------------------------------------------------------- */

static const struct column columns[] = {
	{"file", "file", CELL_TEXT, 0},
	{"wall_ns", "wall", CELL_NS, 0},
	{"cpus_used", "CPUs", CELL_NUMBER, 0},
	{"ipc", "IPC", CELL_NUMBER, 0},
	{"cache_miss_percent", "cache misses", CELL_PERCENT, 0},
	{"branch_miss_percent", "branch misses", CELL_PERCENT, 0},
	{"verdict", "verdict", CELL_TEXT, 0},
	{"command", "command", CELL_TEXT, COLUMN_CUT},
};

static struct cell number_cell(struct result *r, const struct saved_stat *s, const char *name,
			       enum unit unit, const char *metric)
{
	struct stat_numbers numbers = {s};
	const struct saved_metric *m = saved_stat_find(s, metric);
	double v = stat_number(&numbers, name);

	if (!isnan(v))
		return stat_cell(v, unit, false);
	return cell_null(r, m && m->reason ? m->reason : "not measured");
}

/* The numbers of a command that failed say nothing about it. */
static const char *verdict_of(struct result *r, const struct saved_stat *s)
{
	char why[64];

	if (!s->exit_code)
		return *s->verdict ? s->verdict : "nothing stands out";
	saved_stat_failure(s, why, sizeof(why));
	return result_text(r, "failed: %s", why);
}

static void add_file(struct result *r, size_t section, const struct saved_stat *s)
{
	result_row(r, section,
		   (const struct cell[]){
			   cell_text(r, s->path),
			   number_cell(r, s, "wall", UNIT_NS, "wall"),
			   number_cell(r, s, "cpus-used", UNIT_NUMBER, "cpus-used"),
			   number_cell(r, s, "ipc", UNIT_NUMBER, "cycles"),
			   number_cell(r, s, "cache-miss-percent", UNIT_PERCENT, "cache-misses"),
			   number_cell(r, s, "branch-miss-percent", UNIT_PERCENT, "branch-misses"),
			   cell_text(r, verdict_of(r, s)),
			   cell_text(r, s->command),
		   });
}

int stat_table_files(const struct stat_values *v, const struct operands *files, struct diag *d)
{
	CLEANUP(result_release) struct result r;
	size_t section;
	int err = 0;

	result_init(&r, "inspect.stat-table/1");
	section = result_section(&r, "files", "", columns, ARRAY_SIZE(columns));
	for (size_t i = 0; i < files->n && !err; i++) {
		struct saved_stat s;

		err = saved_stat_read(files->v[i], &s, d);
		if (err)
			break;
		add_file(&r, section, &s);
		saved_stat_release(&s);
	}
	return err ? err : stat_print(&r, v, false, d);
}
