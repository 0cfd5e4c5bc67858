/* SPDX-License-Identifier: BSD-2-Clause */
#include "stat.h"

#include <inspect/clock.h>
#include <inspect/command.h>
#include <inspect/term.h>

enum { REPEAT_VERSUS = 10 };

/* With a baseline as often as that was measured: fewer runs decide nothing. */
static unsigned repeats(const struct stat_values *v, const struct stat_gate *g)
{
	const struct saved_metric *wall = g->has_base ? saved_stat_find(&g->base, "wall") : NULL;

	if (v->repeat)
		return v->repeat;
	if (v->versus)
		return REPEAT_VERSUS;
	return wall && wall->runs.n > 1 && !v->interval_ns ? (unsigned)wall->runs.n : 1;
}

/*
 * What was a regression is measured again and judged by itself: whatever disturbed the first runs
 * may be over. What was inconclusive gets the new runs added to the old ones.
 */
static void forget_runs(struct stat_session *s, const struct stat_gate *g)
{
	if (g->exit_code != EXIT_REGRESSION)
		return;
	for (size_t i = 0; i < s->runs.n; i++)
		s->runs.v[i].judged = false;
}

static int measure_and_judge(struct stat_session *s, struct stat_gate *g, struct saved_stat *now,
			     int *exit_code, struct diag *d)
{
	const struct stat_values *v = s->v;

	for (unsigned tries = 0;; tries++) {
		int err = stat_session_measure(s, repeats(v, g), exit_code, d);

		if (err)
			return err;
		if (!s->runs.n)
			return diag_set(d, -EINTR, "interrupted before anything was measured");
		if (stat_session_saved(s, now))
			return diag_errno(d, -ENOMEM, "stat");
		if (!stat_is_gate(v))
			return 0;
		if (stat_gate_judge(g, now, v))
			return diag_errno(d, -ENOMEM, "stat");
		/* Neither time nor a second try mends a failing command or a missing baseline. */
		if (!g->exit_code || g->exit_code == EXIT_NO_BASELINE || tries >= v->retry ||
		    s->interrupted || now->exit_code)
			return 0;
		saved_stat_release(now);
		*now = (struct saved_stat){0};
		forget_runs(s, g);
	}
}

static int final_exit_code(const struct stat_session *s, const struct saved_stat *now,
			   const struct stat_gate *g)
{
	if (!stat_is_gate(s->v))
		return (int)now->exit_code;
	return now->exit_code ? stat_no_verdict(now) : g->exit_code;
}

/* What makes all runs worthless is found before the first. */
static int check_before_runs(const struct stat_session *s, const struct stat_gate *g,
			     int *exit_code, struct diag *d)
{
	CLEANUP(saved_stat_release) struct saved_stat now = {0};
	int err;

	if (!stat_is_gate(s->v))
		return 0;
	if (stat_session_saved(s, &now))
		return diag_errno(d, -ENOMEM, "stat");
	err = stat_gate_check(g, &now, d);
	if (err)
		return err;
	err = stat_gate_compatible(g, &now, s->v, d);
	if (err == -EBADMSG)
		*exit_code = EXIT_NO_BASELINE;
	return err;
}

static int measure(const struct stat_values *v, const struct operands *operands,
		   struct stat_gate *g, int *exit_code, struct diag *d)
{
	CLEANUP(result_release) struct result r;
	CLEANUP(stat_session_release) struct stat_session s;
	CLEANUP(saved_stat_release) struct saved_stat now = {0};
	bool text = !v->common.json && !v->common.csv && !v->output && !v->common.quiet;
	int err;

	result_init(&r, "inspect.stat/1");
	err = stat_session_prepare(&s, v, operands, d);
	if (err)
		return err;
	err = check_before_runs(&s, g, exit_code, d);
	if (err)
		return err;
	s.live = text ? s.target.argv ? stderr : stdout : NULL;
	s.live_csv = stat_streams_csv(v) ? stdout : NULL;
	err = measure_and_judge(&s, g, &now, exit_code, d);
	if (!err)
		err = stat_report(&s, &now, &r, d);
	if (err)
		return err;
	/* What could not be written afterwards hides neither a verdict nor CMD's own status. */
	*exit_code = final_exit_code(&s, &now, g);
	if (stat_is_gate(v) && *exit_code != EXIT_COMMAND_FAILED)
		stat_gate_section(g, &now, v, &r);
	/* No table says it then, and a code alone does not say which. */
	if (!text && *exit_code == EXIT_NO_BASELINE)
		stat_gate_put_reasons(g, stderr);
	return stat_print(&r, v, s.target.argv != NULL, d);
}

static int explain(const struct stat_values *v, struct diag *d)
{
	CLEANUP(result_release) struct result r;

	result_init(&r, "inspect.stat-rules/1");
	findings_explain(stat_rules, n_stat_rules, &r);
	return stat_print(&r, v, false, d);
}

static int stat_main(const struct stat_values *v, const struct operands *operands, int *exit_code,
		     struct diag *d)
{
	struct stat_gate g = {0};
	int err = stat_check_options(v, operands, d);

	if (!err)
		err = stat_outputs_check(v, operands, d);
	if (!err && v->explain)
		return explain(v, d);
	if (!err && v->table)
		return stat_table_files(v, operands, d);
	if (!err)
		err = stat_gate_prepare(&g, v, exit_code, d);
	if (!err && v->check)
		err = stat_check_file(v, &g, exit_code, d);
	else if (!err)
		err = measure(v, operands, &g, exit_code, d);
	if (err && stat_is_gate(v) &&
	    (*exit_code == EXIT_NOT_FOUND || *exit_code == EXIT_CANNOT_EXECUTE))
		*exit_code = EXIT_COMMAND_FAILED;
	stat_gate_release(&g);
	return err;
}

/* To whoever gives perf stat's -d, -dd or -ddd, which are no times. */
static void answer_detail(int argc, char **argv, struct diag *d)
{
	uint64_t ns;

	for (int i = 1; i < argc && !str_eq(argv[i], "--"); i++) {
		bool no_time = str_eq(argv[i], "-d") && i + 1 < argc &&
			       duration_parse(argv[i + 1], NSEC_PER_SEC, &ns);

		if (no_time || str_eq(argv[i], "-dd") || str_eq(argv[i], "-ddd")) {
			diag_fix(d, "inspect stat --detail …      (perf's -d)");
			return;
		}
	}
}

static int run(int argc, char **argv, struct diag *d, bool *json)
{
	CLEANUP(stat_values_release) struct stat_values v = {0};
	struct option_binding bindings[STAT_BINDINGS_MAX];
	struct operands operands;
	int exit_code = 0;
	int err = options_parse(bindings, stat_bind(&v, bindings), argc, argv, true, &operands, d);

	/* Files have no options of their own: ours may stand behind them. */
	if (!err && v.table && operands.n) {
		operands.v[-1] = argv[0];
		err = options_parse(bindings, stat_bind(&v, bindings), (int)operands.n + 1,
				    operands.v - 1, false, &operands, d);
	}
	*json = v.common.json;
	if (err) {
		answer_detail(argc, argv, d);
		return EXIT_USAGE;
	}
	err = stat_main(&v, &operands, &exit_code, d);
	return err && !exit_code ? EXIT_OWN_FAILURE : exit_code;
}

static void help(FILE *out)
{
	struct stat_values v = {0};
	struct option_binding bindings[STAT_BINDINGS_MAX];

	options_help(bindings, stat_bind(&v, bindings), out);
}

const struct command command_stat = {
	.name = "stat",
	.summary = "count: what kind of slow it is, run after run; a gate for a CI",
	.question = "What kind of slow is it? Did it get slower?",
	.usage = "stat [OPTIONS] [--] CMD…\n"
		 "stat [OPTIONS] -p PID,… | -t TID,… | -a | -C CPUS | --cgroup PATH [-d TIME] "
		 "[[--] CMD…]\n"
		 "stat --check FILE --baseline FILE --fail-on LIMIT\n"
		 "stat --table FILE…\n"
		 "stat --explain",
	.help = help,
	.run = run,
};
