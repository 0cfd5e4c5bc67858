/* SPDX-License-Identifier: BSD-2-Clause */
#include "output_file.h"
#include "stat.h"

static int add_text(void *value, const char *arg, struct diag *d)
{
	text_list *list = value;
	int err = array_push(list, arg);

	return err ? diag_errno(d, err, "no memory") : 0;
}

static int parse_count(void *value, const char *arg, struct diag *d)
{
	uint64_t v;

	if (options_number(arg, 1000000, &v) || !v)
		return diag_set(d, -EINVAL, "not a number from 1 to 1000000");
	*(unsigned *)value = (unsigned)v;
	return 0;
}

#define OWN(field) offsetof(struct stat_values, field)

static const struct option counting_options[] = {
	{.name = "event",
	 .letter = 'e',
	 .arg = "EVENT,…",
	 .type = OPTION_STRING,
	 .offset = OWN(events),
	 .help = "what to count, by perf's names or the CPU's own; {a,b} is a group"},
	{.name = "detail",
	 .type = OPTION_FLAG,
	 .offset = OWN(detail),
	 .help = "more hardware events: L1, LLC and TLB, stalled cycles"},
	{.name = "require",
	 .arg = "EVENT,…",
	 .type = OPTION_STRING,
	 .offset = OWN(require),
	 .help = "fail, before CMD runs, when one of these is not counted here"},
	{.name = "user-only",
	 .type = OPTION_FLAG,
	 .offset = OWN(user_only),
	 .help = "count user code only"},
	{.name = "all-user", .type = OPTION_FLAG, .offset = OWN(user_only)},
	{.name = "kernel-only",
	 .type = OPTION_FLAG,
	 .offset = OWN(kernel_only),
	 .help = "count the kernel only"},
	{.name = "all-kernel", .type = OPTION_FLAG, .offset = OWN(kernel_only)},
	{.name = "per-core",
	 .type = OPTION_FLAG,
	 .offset = OWN(per_core),
	 .help = "a row for each core"},
	{.name = "per-thread",
	 .type = OPTION_FLAG,
	 .offset = OWN(per_thread),
	 .help = "a row for each thread that there is (-p, -t)"},
	{.name = "per-cgroup",
	 .type = OPTION_FLAG,
	 .offset = OWN(per_cgroup),
	 .help = "a row for each group below --cgroup, or with -a below the root"},
	{.name = "interval",
	 .letter = 'I',
	 .arg = "TIME",
	 .type = OPTION_INTERVAL,
	 .offset = OWN(interval_ns),
	 .help = "counts of every 1s, 500ms, or 500 (milliseconds)"},
	{.name = "interval-print",
	 .arg = "TIME",
	 .type = OPTION_INTERVAL,
	 .offset = OWN(interval_ns)},
	{.name = "count",
	 .letter = 'n',
	 .arg = "N",
	 .type = OPTION_CUSTOM,
	 .offset = OWN(count),
	 .parse = parse_count,
	 .help = "with -I: so many intervals, then the end"},
	{.name = "interval-count",
	 .arg = "N",
	 .type = OPTION_CUSTOM,
	 .parse = parse_count,
	 .offset = OWN(count)},
	{.name = "timeout",
	 .arg = "TIME",
	 .type = OPTION_DURATION,
	 .offset = OWN(timeout_ns),
	 .help = "end CMD and what it started after this time; exit code 124"},
	{0},
};
static const struct option_group counting_group = {"Counting", counting_options};

static const struct option comparing_options[] = {
	{.name = "repeat",
	 .letter = 'r',
	 .arg = "N",
	 .type = OPTION_CUSTOM,
	 .offset = OWN(repeat),
	 .parse = parse_count,
	 .help = "measure N times (default 1; with --baseline as often as that, with --vs 10)"},
	{.name = "warmup",
	 .arg = "N",
	 .type = OPTION_CUSTOM,
	 .offset = OWN(warmup),
	 .parse = parse_count,
	 .help = "run CMD N times before, without measuring"},
	{.name = "vs",
	 .arg = "'CMD B'",
	 .type = OPTION_STRING,
	 .offset = OWN(versus),
	 .help = "compare CMD with B (by sh -c), run in turns"},
	{.name = "metric",
	 .arg = "NAME=REGEX",
	 .type = OPTION_CUSTOM,
	 .offset = OWN(metrics),
	 .parse = add_text,
	 .help = "a number from CMD's output: the first (…), or the whole match; last line wins"},
	{.name = "per",
	 .arg = "METRIC",
	 .type = OPTION_STRING,
	 .offset = OWN(per),
	 .help = "divide amounts by it (instructions per request)"},
	{0},
};
static const struct option_group comparing_group = {"Repeating and comparing", comparing_options};

static const struct option gate_options[] = {
	{.name = "save",
	 .arg = "FILE",
	 .type = OPTION_STRING,
	 .offset = OWN(save),
	 .help = "also write the JSON to FILE, to be a baseline"},
	{.name = "baseline",
	 .arg = "FILE",
	 .type = OPTION_STRING,
	 .offset = OWN(baseline),
	 .help = "what --fail-on compares with"},
	{.name = "fail-on",
	 .arg = "LIMIT",
	 .type = OPTION_CUSTOM,
	 .offset = OWN(fail_on),
	 .parse = add_text,
	 .help = "METRIC:+2%, wall:+5%&+2ms (both); may be given several times"},
	{.name = "budget",
	 .arg = "LIMIT",
	 .type = OPTION_CUSTOM,
	 .offset = OWN(budgets),
	 .parse = add_text,
	 .help = "an absolute limit: 'max-rss<=200MB'"},
	{.name = "gate",
	 .arg = "HOW",
	 .type = OPTION_CHOICE,
	 .offset = OWN(gate),
	 .choices = "ci-lower|median",
	 .help = "ci-lower: when the whole 95 % interval is beyond the limit (default); median"},
	{.name = "retry",
	 .arg = "N",
	 .type = OPTION_UNSIGNED,
	 .offset = OWN(retry),
	 .help = "measure again, up to N times, before saying that it did not pass"},
	{.name = "inconclusive",
	 .arg = "HOW",
	 .type = OPTION_CHOICE,
	 .offset = OWN(inconclusive),
	 .choices = "exit-4|pass|fail",
	 .help = "what an interval that straddles the limit counts as"},
	{.name = "accept-env",
	 .arg = "NAME,…",
	 .type = OPTION_STRING,
	 .offset = OWN(accept_env),
	 .help = "compare though cpu, kernel, machine, vm or events differ"},
	{.name = "check",
	 .arg = "FILE",
	 .type = OPTION_STRING,
	 .offset = OWN(check),
	 .help = "judge a saved result; nothing is run"},
	{.name = "table",
	 .type = OPTION_FLAG,
	 .offset = OWN(table),
	 .help = "a row for each saved FILE; nothing is run"},
	{.name = "explain",
	 .type = OPTION_FLAG,
	 .offset = OWN(explain),
	 .help = "the rules behind the verdicts, with their sources"},
	{.name = "output",
	 .letter = 'o',
	 .arg = "FILE",
	 .type = OPTION_STRING,
	 .offset = OWN(output),
	 .help = "write the report to FILE; CMD keeps stdout and stderr for itself"},
	{0},
};
static const struct option_group gate_group = {"Gate and output", gate_options};

#define IGNORED(long_name, short_letter)                                                           \
	{                                                                                          \
		.name = (long_name), .letter = (short_letter), .type = OPTION_IGNORED              \
	}
#define INSTEAD(long_name, short_letter, spelling)                                                 \
	{                                                                                          \
		.name = (long_name), .letter = (short_letter), .type = OPTION_REJECTED,            \
		.help = (spelling)                                                                 \
	}
static const struct option perf_stat_habits[] = {
	IGNORED("big-num", 'B'),
	IGNORED("no-big-num", 0),
	IGNORED("scale", 'c'),
	IGNORED("topdown", 0),
	IGNORED("summary", 0),
	INSTEAD("json-output", 'j', "--json"),
	INSTEAD("field-separator", 'x', "--csv"),
	INSTEAD("no-aggr", 'A', "--per-core"),
	INSTEAD("per-socket", 0, "--per-core"),
	INSTEAD("per-die", 0, "--per-core"),
	INSTEAD("per-node", 0, "--per-core"),
	INSTEAD("for-each-cgroup", 0, "--cgroup PATH --per-cgroup"),
	INSTEAD("detailed", 0, "--detail"),
	INSTEAD("metrics", 'M', "leave it out: what follows from the counts is shown with them"),
	INSTEAD("no-inherit", 'i', "-t TID,…      (threads alone)"),
	INSTEAD("null", 0, "-e task-clock"),
	INSTEAD("append", 0, "-o FILE, once for each file"),
	INSTEAD("pre", 0, "a script that does it before CMD"),
	INSTEAD("post", 0, "a script that does it after CMD"),
	{0},
};
static const struct option_group perf_stat_habit_group = {"", perf_stat_habits};

size_t stat_bind(struct stat_values *v, struct option_binding *ret)
{
	size_t n = 0;

	ret[n++] = (struct option_binding){&target_option_group, &v->target};
	ret[n++] = (struct option_binding){&counting_group, v};
	ret[n++] = (struct option_binding){&duration_option_group, &v->duration};
	ret[n++] = (struct option_binding){&comparing_group, v};
	ret[n++] = (struct option_binding){&gate_group, v};
	ret[n++] = (struct option_binding){&common_option_group, &v->common};
	ret[n++] = (struct option_binding){&perf_stat_habit_group, NULL};
	ret[n++] = (struct option_binding){&measuring_habit_group, NULL};
	return n;
}

void stat_values_release(struct stat_values *v)
{
	array_release(&v->fail_on);
	array_release(&v->budgets);
	array_release(&v->metrics);
}

bool stat_is_gate(const struct stat_values *v)
{
	return v->fail_on.n || v->budgets.n || v->baseline || v->check;
}

/* --- what does not go together ---------------------------------------------------------------- */

static int check_conflicts(const struct stat_values *v, struct diag *d)
{
	bool per = v->per_core || v->per_thread || v->per_cgroup;
	bool markdown_alone = v->common.markdown && output_is_stdout(v->common.markdown);
	const struct {
		const char *a, *b;
		bool a_given, b_given;
	} pairs[] = {
		{"--json", "--csv", v->common.json, v->common.csv},
		{"--markdown -", "--json", markdown_alone, v->common.json && !v->output},
		{"--markdown -", "--csv", markdown_alone, v->common.csv && !v->output},
		{"--user-only", "--kernel-only", v->user_only, v->kernel_only},
		{"--per-core", "--per-thread", v->per_core, v->per_thread},
		{"--per-core", "--per-cgroup", v->per_core, v->per_cgroup},
		{"--per-thread", "--per-cgroup", v->per_thread, v->per_cgroup},
		{"-r", "--per-core, --per-thread, --per-cgroup", v->repeat > 1, per},
		{"-r", "-I", v->repeat > 1, v->interval_ns != 0},
		{"--vs", "-I", v->versus != NULL, v->interval_ns != 0},
		{"--vs", "--per-core, --per-thread, --per-cgroup", v->versus != NULL, per},
		{"--vs", "--baseline", v->versus != NULL, v->baseline != NULL},
		{"--vs", "--budget", v->versus != NULL, v->budgets.n != 0},
		{"-e", "--detail", v->events != NULL, v->detail},
		{"--check", "--table", v->check != NULL, v->table},
		{"--check", "--save", v->check != NULL, v->save != NULL},
	};
	int err = 0;

	for (size_t i = 0; i < ARRAY_SIZE(pairs) && !err; i++)
		err = options_conflict(pairs[i].a, pairs[i].a_given, pairs[i].b, pairs[i].b_given,
				       d);
	return err;
}

/* An option that says nothing without another one. */
static int check_needs(const struct stat_values *v, const struct operands *operands, struct diag *d)
{
	bool has_tasks = v->target.pids || v->target.tids;
	const struct {
		const char *option, *needs;
		bool given, there;
	} pairs[] = {
		{"--fail-on", "--baseline FILE", v->fail_on.n != 0, v->baseline != NULL},
		{"--retry", "--fail-on LIMIT or --budget LIMIT", v->retry != 0,
		 v->fail_on.n || v->budgets.n},
		{"-n", "-I TIME", v->count != 0, v->interval_ns != 0},
		{"--per-thread", "-p PID or -t TID", v->per_thread, has_tasks},
		{"--per-cgroup", "--cgroup PATH or -a", v->per_cgroup,
		 v->target.cgroup || v->target.all},
		{"--timeout", "a command", v->timeout_ns != 0, operands->n != 0},
		{"--warmup", "a command", v->warmup != 0, operands->n != 0},
		{"--metric", "a command", v->metrics.n != 0, operands->n != 0},
		{"--vs", "a command to compare with", v->versus != NULL, operands->n != 0},
		{"--per", "-e EVENT or --metric NAME=REGEX, or one of the metrics", v->per != NULL,
		 true},
		{"-r", "a command, or -d TIME", v->repeat > 1,
		 operands->n || v->duration.duration_ns},
		{"--check", "--fail-on LIMIT or --budget LIMIT", v->check != NULL,
		 v->fail_on.n || v->budgets.n},
		{"--baseline", "--fail-on LIMIT", v->baseline != NULL, v->fail_on.n != 0},
	};

	for (size_t i = 0; i < ARRAY_SIZE(pairs); i++)
		if (pairs[i].given && !pairs[i].there)
			return diag_set(d, -EINVAL, "%s needs %s", pairs[i].option, pairs[i].needs);
	return 0;
}

static int check_operands(const struct stat_values *v, const struct operands *operands,
			  struct diag *d)
{
	if (v->check && operands->n)
		return diag_set(d, -EINVAL, "--check runs nothing, but '%s' is given",
				operands->v[0]);
	if (v->table && !operands->n) {
		diag_set(d, -EINVAL, "--table needs saved files");
		diag_fix(d, "inspect stat --table a.json b.json");
		return -EINVAL;
	}
	return 0;
}

int stat_check_options(const struct stat_values *v, const struct operands *operands, struct diag *d)
{
	int err = check_conflicts(v, d);

	if (!err)
		err = check_operands(v, operands, d);
	if (err || v->check || v->table)
		return err ? err
		       : v->check && !v->fail_on.n && !v->budgets.n
			       ? diag_set(d, -EINVAL,
					  "--check needs --fail-on LIMIT or --budget LIMIT")
		       : v->fail_on.n && !v->baseline
			       ? diag_set(d, -EINVAL, "--fail-on needs --baseline FILE")
			       : 0;
	return check_needs(v, operands, d);
}
