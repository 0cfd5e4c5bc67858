/* SPDX-License-Identifier: BSD-2-Clause */
/* The gate: limits against a baseline, budgets against nothing, and the exit code of it all. */
#include "stat.h"

#include <inspect/command.h>
#include <math.h>

/* Facts that must be equal, each under the name that --accept-env knows. */
static const struct {
	const char *fact, *accepted_as, *what;
	bool known_late; /* only after a run */
} comparable[] = {
	{"machine", "machine", "another kind of machine", false},
	{"cpu", "cpu", "another CPU", false},
	{"cpus", "cpu", "another number of CPUs", false},
	{"kernel", "kernel", "another kernel", false},
	{"virtual_machine", "vm", "a virtual machine and none", false},
	{"levels", "events", "another event set", true},
	{"per", "events", "another divisor (--per)", false},
};

/* --- preparing -------------------------------------------------------------------------------- */

static int check_accepted(const char *list, struct diag *d)
{
	for (const char *at = list; at && *at;) {
		size_t n = strcspn(at, ",");
		bool known = n == 3 && strncmp(at, "all", n) == 0;

		for (size_t i = 0; i < ARRAY_SIZE(comparable); i++)
			known |= strlen(comparable[i].accepted_as) == n &&
				 strncmp(at, comparable[i].accepted_as, n) == 0;
		if (!known)
			return diag_set(d, -EINVAL,
					"--accept-env %s: not of cpu, kernel, machine, vm, events, "
					"all",
					list);
		at += n + (at[n] == ',');
	}
	return 0;
}

static bool is_accepted(const char *list, const char *name)
{
	for (const char *at = list; at && *at;) {
		size_t n = strcspn(at, ",");

		if ((strlen(name) == n && strncmp(at, name, n) == 0) ||
		    (n == 3 && strncmp(at, "all", n) == 0))
			return true;
		at += n + (at[n] == ',');
	}
	return false;
}

static int parse_all(struct stat_gate *g, const struct stat_values *v, struct diag *d)
{
	int err = check_accepted(v->accept_env, d);

	for (size_t i = 0; i < v->fail_on.n && !err; i++) {
		struct limit l;

		err = limit_parse(v->fail_on.v[i], &l, d);
		if (!err && array_push(&g->limits, l)) {
			limit_release(&l);
			err = diag_errno(d, -ENOMEM, "--fail-on");
		}
	}
	for (size_t i = 0; i < v->budgets.n && !err; i++) {
		struct budget b;

		err = budget_parse(v->budgets.v[i], &b, d);
		if (!err && array_push(&g->budgets, b)) {
			budget_release(&b);
			err = diag_errno(d, -ENOMEM, "--budget");
		}
	}
	return err;
}

/* Whatever a command that failed took is nothing to be compared with. */
static int refuse_failed(const struct saved_stat *base, struct diag *d)
{
	char why[64];

	saved_stat_failure(base, why, sizeof(why));
	diag_set(d, -EBADMSG, "%s: no baseline: %s there", base->path, why);
	diag_fix(d, "inspect stat -r 10 --save %s -- CMD      (a CMD that succeeds)", base->path);
	return -EBADMSG;
}

int stat_gate_prepare(struct stat_gate *g, const struct stat_values *v, int *exit_code,
		      struct diag *d)
{
	int err = parse_all(g, v, d);

	if (err || !v->baseline)
		return err;
	err = saved_stat_read(v->baseline, &g->base, d);
	g->has_base = !err;
	if (!err && g->base.exit_code)
		err = refuse_failed(&g->base, d);
	if (err && err != -ENOMEM)
		*exit_code = EXIT_NO_BASELINE;
	return err;
}

int stat_no_verdict(const struct saved_stat *now)
{
	char why[64];

	saved_stat_failure(now, why, sizeof(why));
	fprintf(stderr, "inspect stat: %s: no verdict\n", why);
	return EXIT_COMMAND_FAILED;
}

void stat_gate_release(struct stat_gate *g)
{
	for (size_t i = 0; i < g->limits.n; i++)
		limit_release(&g->limits.v[i]);
	array_release(&g->limits);
	for (size_t i = 0; i < g->budgets.n; i++)
		budget_release(&g->budgets.v[i]);
	array_release(&g->budgets);
	for (size_t i = 0; i < g->reasons.n; i++)
		free(g->reasons.v[i]);
	array_release(&g->reasons);
	array_release(&g->decisions);
	free(g->incompatible);
	if (g->has_base)
		saved_stat_release(&g->base);
}

static int unknown_metric(const char *option, const char *text, const char *name,
			  const struct saved_stat *now, struct diag *d)
{
	CLEANUP(strbuf_release) struct strbuf names = {0};

	for (size_t i = 0; i < now->metrics.n; i++)
		strbuf_printf(&names, "%s%s", i ? " " : "", now->metrics.v[i].name);
	diag_set(d, -EINVAL, "%s '%s': there is no metric '%s'", option, text, name);
	diag_why(d, "the metrics are: %s", strbuf_str(&names));
	diag_fix(d, "-e EVENT or --metric NAME=REGEX adds one");
	return -EINVAL;
}

int stat_gate_check(const struct stat_gate *g, const struct saved_stat *now, struct diag *d)
{
	int err = 0;

	for (size_t i = 0; i < g->limits.n && !err; i++) {
		const struct limit *l = &g->limits.v[i];
		const struct saved_metric *m = saved_stat_find(now, l->metric);

		if (!m)
			err = unknown_metric("--fail-on", l->text, l->metric, now, d);
		else if (l->has_absolute)
			err = unit_check(l->text, l->unit, m->unit, d);
	}
	for (size_t i = 0; i < g->budgets.n && !err; i++) {
		const struct budget *b = &g->budgets.v[i];
		const struct saved_metric *m = saved_stat_find(now, b->metric);

		if (!m)
			err = unknown_metric("--budget", b->text, b->metric, now, d);
		else
			err = unit_check(b->text, b->unit, m->unit, d);
	}
	return err;
}

/* --- the outcome ------------------------------------------------------------------------------ */

/* The first fact that differs and is not accepted; malloc'ed. 0 or -ENOMEM. */
static int find_difference(const struct saved_stat *base, const struct saved_stat *now,
			   bool measured, const char *accepted, char **ret)
{
	for (size_t i = 0; i < ARRAY_SIZE(comparable); i++) {
		const char *before = saved_stat_fact(base, comparable[i].fact);
		const char *after = saved_stat_fact(now, comparable[i].fact);

		if (!measured && comparable[i].known_late)
			continue;
		if (str_eq(before, after) || is_accepted(accepted, comparable[i].accepted_as))
			continue;
		if (asprintf(ret, "%s: '%s' in the baseline, '%s' now (--accept-env %s)",
			     comparable[i].what, before, after, comparable[i].accepted_as) < 0)
			return -ENOMEM;
		return 0;
	}
	*ret = NULL;
	return 0;
}

int stat_gate_compatible(const struct stat_gate *g, const struct saved_stat *now,
			 const struct stat_values *v, struct diag *d)
{
	CLEANUP(freep) char *why = NULL;

	/* Budgets are judged all the same. */
	if (!g->has_base || g->budgets.n)
		return 0;
	if (find_difference(&g->base, now, false, v->accept_env, &why))
		return diag_errno(d, -ENOMEM, "--baseline");
	return why ? diag_set(d, -EBADMSG, "%s: no baseline for this machine: %s", g->base.path,
			      why)
		   : 0;
}

static struct series series_of(const struct saved_metric *m)
{
	return (struct series){m->runs.v, m->runs.n};
}

/* Why a limit cannot be decided, or NULL; malloc'ed. */
static int find_obstacle(const struct stat_gate *g, const char *metric,
			 const struct saved_stat *now, bool needs_base, char **ret)
{
	const struct saved_metric *after = saved_stat_find(now, metric);
	const struct saved_metric *before =
		needs_base && g->has_base ? saved_stat_find(&g->base, metric) : NULL;
	int n = 0;

	*ret = NULL;
	if (!after || !after->runs.n)
		n = asprintf(ret, "not counted now: %s",
			     after && after->reason ? after->reason : "");
	else if (needs_base && g->incompatible)
		n = asprintf(ret, "%s", g->incompatible);
	else if (needs_base && !before)
		n = asprintf(ret, "another event set: the baseline does not have it");
	else if (needs_base && !before->runs.n)
		n = asprintf(ret, "not counted in the baseline: %s",
			     before->reason ? before->reason : "");
	else if (needs_base && before->unit != after->unit)
		n = asprintf(ret, "measured in %s in the baseline, in %s now",
			     unit_name(before->unit), unit_name(after->unit));
	return n < 0 ? -ENOMEM : 0;
}

static int judge_one(struct stat_gate *g, size_t i, const struct saved_stat *now,
		     enum gate_mode mode)
{
	bool is_limit = i < g->limits.n;
	const struct limit *l = is_limit ? &g->limits.v[i] : NULL;
	const struct budget *b = is_limit ? NULL : &g->budgets.v[i - g->limits.n];
	const char *metric = is_limit ? l->metric : b->metric;
	struct gate_decision decision = {0};
	char *reason;
	int err = find_obstacle(g, metric, now, is_limit, &reason);

	if (!err && !reason) {
		struct series after = series_of(saved_stat_find(now, metric));

		err = is_limit ? limit_judge(l, series_of(saved_stat_find(&g->base, metric)), after,
					     mode, &decision)
			       : budget_judge(b, after, mode, &decision);
	}
	if (!err)
		err = array_push(&g->decisions, decision);
	if (!err)
		err = array_push(&g->reasons, reason);
	if (err)
		free(reason);
	return err;
}

static int exit_code_of(const struct stat_gate *g, enum inconclusive_is inconclusive)
{
	static const int codes[] = {
		[INCONCLUSIVE_OWN_CODE] = EXIT_INCONCLUSIVE,
		[INCONCLUSIVE_PASS] = 0,
		[INCONCLUSIVE_FAIL] = EXIT_REGRESSION,
	};
	bool regression = false, undecided = false, straddles = false;

	for (size_t i = 0; i < g->decisions.n; i++) {
		enum gate_verdict verdict = g->decisions.v[i].verdict;

		undecided |= g->reasons.v[i] != NULL;
		regression |= !g->reasons.v[i] && verdict == GATE_REGRESSION;
		straddles |= !g->reasons.v[i] && verdict == GATE_INCONCLUSIVE;
	}
	if (regression)
		return EXIT_REGRESSION;
	if (undecided)
		return EXIT_NO_BASELINE;
	return straddles ? codes[inconclusive] : 0;
}

int stat_gate_judge(struct stat_gate *g, const struct saved_stat *now, const struct stat_values *v)
{
	int err = 0;

	for (size_t i = 0; i < g->reasons.n; i++)
		free(g->reasons.v[i]);
	g->reasons.n = g->decisions.n = 0;
	free(g->incompatible);
	g->incompatible = NULL;
	if (g->has_base)
		err = find_difference(&g->base, now, true, v->accept_env, &g->incompatible);
	for (size_t i = 0; i < g->limits.n + g->budgets.n && !err; i++)
		err = judge_one(g, i, now, v->gate);
	if (!err)
		g->exit_code = exit_code_of(g, v->inconclusive);
	return err;
}

void stat_gate_put_reasons(const struct stat_gate *g, FILE *out)
{
	for (size_t i = 0; i < g->reasons.n; i++) {
		const char *text =
			i < g->limits.n ? g->limits.v[i].text : g->budgets.v[i - g->limits.n].text;

		if (g->reasons.v[i])
			fprintf(out, "inspect stat: %s is not decided: %s\n", text,
				g->reasons.v[i]);
	}
}

const char *stat_gate_verdict(const struct stat_gate *g)
{
	bool straddles = false;

	for (size_t i = 0; i < g->decisions.n; i++)
		straddles |= !g->reasons.v[i] && g->decisions.v[i].verdict == GATE_INCONCLUSIVE;
	switch (g->exit_code) {
	case 0:
		return straddles ? "inconclusive, which passes here" : "passed";
	case EXIT_REGRESSION:
		return "regression";
	case EXIT_INCONCLUSIVE:
		return "inconclusive";
	default:
		return "nothing to compare with";
	}
}

/* --- the section ------------------------------------------------------------------------------ */

static const struct column gate_columns[] = {
	{"limit", "limit", CELL_TEXT, 0},
	{"verdict", "verdict", CELL_TEXT, 0},
	{"baseline", "baseline", CELL_NUMBER, 0},
	{"now", "now", CELL_NUMBER, 0},
	{"change_percent", "change", CELL_PERCENT, COLUMN_SIGNED},
	{"low_percent", "from", CELL_PERCENT, COLUMN_SIGNED},
	{"high_percent", "to", CELL_PERCENT, COLUMN_SIGNED},
	{"outliers_baseline", "", CELL_COUNT, COLUMN_DATA_ONLY},
	{"outliers_now", "", CELL_COUNT, COLUMN_DATA_ONLY},
	{"why", "why", CELL_TEXT, 0},
	{"metric", "", CELL_TEXT, COLUMN_DATA_ONLY},
	{"unit", "", CELL_TEXT, COLUMN_DATA_ONLY},
};

static struct cell change_cell(struct result *r, bool known, double ratio, const char *reason)
{
	return known && isfinite(ratio) ? cell_double(CELL_PERCENT, 100 * (ratio - 1))
					: cell_null(r, reason);
}

/* What decided about a budget: the header speaks of limits, and with few runs there is less. */
static const char *budget_rule(struct result *r, const struct gate_decision *dec, size_t runs,
			       unsigned mode)
{
	const char *left_out = "";

	if (dec->outliers_now)
		left_out = result_text(r, ", %zu outliers left out", dec->outliers_now);
	runs -= MIN(runs, dec->outliers_now);
	if (runs == 1)
		return "by the one run alone: -r N for an interval";
	if (mode == GATE_MEDIAN)
		return result_text(r, "by the median of %zu runs%s", runs, left_out);
	return result_text(r, "by the 95 %% interval of the mean of %zu runs%s", runs, left_out);
}

static const char *why_text(struct result *r, const struct gate_decision *dec, const char *reason)
{
	if (reason)
		return reason;
	if (dec->runs_needed)
		return result_text(r,
				   "too few runs for a 95 %% interval: -r %zu or more on both "
				   "sides, or --gate median",
				   dec->runs_needed);
	if (dec->outliers_base || dec->outliers_now)
		return result_text(r, "outliers left out: %zu of the baseline, %zu of now",
				   dec->outliers_base, dec->outliers_now);
	return "";
}

static void add_row(const struct stat_gate *g, size_t i, const struct saved_metric *m,
		    unsigned mode, struct result *r, size_t section)
{
	enum unit unit = m ? m->unit : UNIT_NUMBER;
	bool is_limit = i < g->limits.n;
	const struct gate_decision *dec = &g->decisions.v[i];
	const char *reason = g->reasons.v[i];
	const char *none = reason ? reason : is_limit ? "the baseline is 0" : "a budget has none";
	bool ratio = !reason && is_limit && dec->has_ratio;
	bool interval = ratio && dec->ratio.has_interval;
	const char *no_interval = ratio ? "too few runs for a 95 % interval" : none;
	const char *text = is_limit ? g->limits.v[i].text : g->budgets.v[i - g->limits.n].text;
	const char *metric =
		is_limit ? g->limits.v[i].metric : g->budgets.v[i - g->limits.n].metric;
	const char *why = is_limit || reason || !m ? why_text(r, dec, reason)
						   : budget_rule(r, dec, m->runs.n, mode);

	result_row(r, section,
		   (const struct cell[]){
			   cell_text(r, text),
			   cell_text(r, reason ? "not decided" : gate_verdict_name(dec->verdict)),
			   reason ? cell_null(r, reason) : stat_cell(dec->base, unit, false),
			   reason ? cell_null(r, reason) : stat_cell(dec->now, unit, false),
			   change_cell(r, ratio, dec->ratio.estimate, none),
			   change_cell(r, interval, dec->ratio.low, no_interval),
			   change_cell(r, interval, dec->ratio.high, no_interval),
			   cell_u64(CELL_COUNT, dec->outliers_base),
			   cell_u64(CELL_COUNT, dec->outliers_now),
			   cell_text(r, why),
			   cell_text(r, metric),
			   cell_text(r, unit_name(unit)),
		   });
}

/* "-p", "--cgroup", …; "--": CMD itself. */
static const char *target_kind(const char *target)
{
	static const char *const kinds[] = {"-p ", "-t ", "-a", "-C ", "--cgroup "};

	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
		if (str_starts(target, kinds[i]))
			return kinds[i];
	return "-- ";
}

/* Allowed, since a change may be just that; but it is said. */
static void note_another(const struct saved_stat *base, const struct saved_stat *now,
			 struct result *r)
{
	if (!str_eq(target_kind(base->target), target_kind(now->target)))
		result_note(r, "the baseline is of another target: '%s' there, '%s' now",
			    base->target, now->target);
	else if (!str_eq(base->command, now->command))
		result_note(r, "the baseline is of another command: '%s' there, '%s' now",
			    *base->command ? base->command : "none",
			    *now->command ? now->command : "none");
}

void stat_gate_section(const struct stat_gate *g, const struct saved_stat *now,
		       const struct stat_values *v, struct result *r)
{
	size_t section;
	const char *how = v->gate == GATE_MEDIAN ? ", by the medians"
						 : ", by the 95 % interval (Mann-Whitney ranks)";

	if (g->has_base)
		note_another(&g->base, now, r);
	result_fact(r, "gate_verdict", "", cell_text(r, stat_gate_verdict(g)));
	result_fact(r, "gate_exit_code", "", cell_u64(CELL_COUNT, (uint64_t)g->exit_code));
	result_fact(
		r, "", "gate",
		cell_text(r, result_text(r, "%s%s", stat_gate_verdict(g), g->limits.n ? how : "")));
	section = result_section(r, "gate", "gate", gate_columns, ARRAY_SIZE(gate_columns));
	for (size_t i = 0; i < g->decisions.n; i++) {
		const char *metric = i < g->limits.n ? g->limits.v[i].metric
						     : g->budgets.v[i - g->limits.n].metric;

		add_row(g, i, saved_stat_find(now, metric), v->gate, r, section);
	}
}
