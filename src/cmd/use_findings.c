/* SPDX-License-Identifier: BSD-2-Clause */
/* The rules applied to a report: limits of this run, whom the next command is for, the order. */
#include "use.h"
#include "use_rules.h"

#include <inspect/shell_words.h>

enum { PIDS_NAMED = 16 }; /* in a command */

static size_t count_rules(void)
{
	return use_serving_rules.n + use_host_rules.n;
}

/* All of them, with limits in place of LIMIT, in the result's arena; NULL. */
static struct finding_rule *resolve_rules(const struct use_limit *limits, struct result *r)
{
	struct finding_rule *rules = arena_alloc(&r->arena, count_rules() * sizeof(*rules));

	if (!rules)
		return NULL;
	memcpy(rules, use_serving_rules.v, use_serving_rules.n * sizeof(*rules));
	memcpy(rules + use_serving_rules.n, use_host_rules.v, use_host_rules.n * sizeof(*rules));
	for (size_t i = 0; i < count_rules(); i++)
		for (size_t k = 0; k < FINDING_TESTS_MAX && rules[i].tests[k].value; k++) {
			struct finding_test *t = &rules[i].tests[k];

			if (isnan(t->limit))
				t->limit = use_limit_of(limits, use_metric_find(t->value)).warn;
		}
	return rules;
}

static double value_of(void *ctx, const char *name)
{
	const struct use_row *row = use_report_worst(ctx, name);

	return row ? use_row_value(row, name)->v : NAN;
}

/* --- who the next command is for -------------------------------------------------------------- */

static bool lives(const struct use_subject *s, pid_t pid)
{
	return !s->lives || s->lives(pid);
}

/* The number at the end of "comm/123", or in "comm/123 0xaddr", of who has not ended; 0: none. */
static pid_t id_in(const struct use_row *row, const struct use_subject *s)
{
	const char *slash = strrchr(row->device, '/');
	pid_t id = slash ? (pid_t)strtol(slash + 1, NULL, 10) : 0;

	return id > 0 && lives(s, id) ? id : 0;
}

static pid_t first_pid(const struct use_subject *s)
{
	for (size_t i = 0; i < s->n_pids; i++)
		if (lives(s, s->pids[i]))
			return s->pids[i];
	return 0;
}

static const char *quoted(struct result *r, const char *word)
{
	CLEANUP(strbuf_release) struct strbuf b = {0};

	shell_word_put(&b, word);
	r->failed |= b.failed;
	return result_text(r, "%s", strbuf_str(&b));
}

static bool has_processes(const struct use_subject *s, const char *cgroup)
{
	return !s->has_processes || s->has_processes(cgroup);
}

/* Those that have not ended; NULL: none, or too many to name. */
static const char *living(struct result *r, const struct use_subject *s)
{
	const char *line = "";
	size_t n = 0;

	for (size_t i = 0; i < s->n_pids && n <= PIDS_NAMED; i++)
		if (lives(s, s->pids[i]))
			line = result_text(r, "%s%s%d", line, n++ ? "," : "-p ", (int)s->pids[i]);
	return n && n <= PIDS_NAMED ? line : NULL;
}

static const char *own_target(struct result *r, const struct use_subject *s)
{
	bool all_live = true;

	if (!s->target)
		return NULL;
	if (s->cgroup)
		return has_processes(s, s->cgroup) ? s->target : NULL;
	for (size_t i = 0; i < s->n_pids && all_live; i++)
		all_live = lives(s, s->pids[i]);
	return all_live ? s->target : living(r, s);
}

/* The cgroup that a row is of; NULL: it is of none, of all, or of one that has no process. */
static const char *group_of(struct result *r, const struct use_row *row,
			    const struct use_subject *s)
{
	const char *group = row->path ? row->path : row->device;

	if (!str_eq(row->scope, "cgroup") || !group[0] || str_eq(group, "/") ||
	    !has_processes(s, group))
		return NULL;
	return result_text(r, "--cgroup %s", quoted(r, group));
}

/* Who has ended cannot be looked at: then everybody is. */
static const char *target_of(struct result *r, const struct use_row *row,
			     const struct use_subject *s)
{
	const char *own = own_target(r, s), *group = own ? NULL : group_of(r, row, s);

	return own ? own : group ? group : "-a";
}

struct mark {
	const char *name, *value;
};

/* In one pass: what a name that is put in looks like has no meaning. */
static const char *fill_marks(struct result *r, const char *line, const struct mark *marks,
			      size_t n)
{
	CLEANUP(strbuf_release) struct strbuf b = {0};

	while (*line) {
		size_t i = 0;

		while (i < n && !str_starts(line, marks[i].name))
			i++;
		if (i == n) {
			strbuf_putc(&b, *line++);
			continue;
		}
		strbuf_puts(&b, marks[i].value);
		line += strlen(marks[i].name);
	}
	r->failed |= b.failed;
	return result_text(r, "%s", strbuf_str(&b));
}

/* What looks at others than the user's own processes, or needs BPF. */
static bool needs_root(const struct use_subject *s, const char *line, pid_t pid)
{
	static const char *const always[] = {"inspect offcpu ",
					     "inspect trace ",
					     "inspect record -a",
					     "inspect record -C",
					     "inspect record -e page-faults -c 1 -a",
					     "inspect record -e major-faults -c 1 -a",
					     "inspect stat -a",
					     "dmesg ",
					     "nsenter "};
	static const char *const of_process[] = {"inspect record ", "inspect stack ",
						 "inspect stat ", "ls -l /proc/"};
	bool foreign = strstr(line, " --cgroup ") || (pid && !s->is_own(pid));

	for (size_t i = 0; i < ARRAY_SIZE(always); i++)
		if (str_starts(line, always[i]))
			return true;
	for (size_t i = 0; i < ARRAY_SIZE(of_process); i++)
		if (foreign && str_starts(line, of_process[i]))
			return true;
	return false;
}

const char *use_fill_next(struct result *r, const struct finding_rule *rule,
			  const struct use_row *row, const struct use_subject *s)
{
	const char *target = target_of(r, row, s), *own = own_target(r, s);
	const char *group = group_of(r, row, s);
	pid_t id = id_in(row, s), pid = id ? id : first_pid(s);
	const struct mark marks[] = {
		{"{target}", target},
		{"{group}", group ? group : target},
		{"{owner}", id ? result_text(r, "-p %d", (int)id) : target},
		{"{thread}", id ? result_text(r, "-t %d", (int)id) : target},
		{"{pid}", result_text(r, "%d", (int)pid)},
		{"{self}",
		 result_text(r, "%s%s%s%s", own ? " " : "", own ? own : "",
			     s->engine ? " --engine " : "", s->engine ? quoted(r, s->engine) : "")},
		{"{gpu}", s->device ? result_text(r, " --device %s", quoted(r, s->device)) : ""},
		{"{nsenter}", s->net_pid && lives(s, s->net_pid)
				      ? result_text(r, "nsenter -t %d -n ", (int)s->net_pid)
				      : ""},
		{"{root}", s->root_pid && lives(s, s->root_pid)
				   ? result_text(r, "/proc/%d/root", (int)s->root_pid)
				   : ""},
		{"{device}", quoted(r, row->device)},
	};
	bool lacks_pid = !pid && strstr(rule->next, "{pid}");
	const char *line =
		fill_marks(r, lacks_pid ? rule->next_else : rule->next, marks, ARRAY_SIZE(marks));

	return s->as_root && needs_root(s, line, pid) ? result_text(r, "%s%s", s->as_root, line)
						      : line;
}

/* --- the order -------------------------------------------------------------------------------- */

static bool is_error(const struct finding *f)
{
	return use_metrics[use_metric_find(f->rule->tests[0].value)].kind == USE_ERRORS;
}

/* Of what it speaks of: another value of the row may be worse. */
static enum use_verdict verdict_of(const struct use_row *row, const struct finding *f)
{
	return use_row_value(row, f->rule->tests[0].value)->verdict;
}

static int compare_findings(const struct use_report *report, const struct finding *a,
			    const struct finding *b)
{
	const struct use_row *x = use_report_worst(report, a->rule->tests[0].value);
	const struct use_row *y = use_report_worst(report, b->rule->tests[0].value);

	if (!x || !y)
		return 0;
	/* What a target itself has is the first answer to a question about it. */
	if (report->has_target && str_eq(x->scope, "host") != str_eq(y->scope, "host"))
		return str_eq(x->scope, "host") ? 1 : -1;
	if (verdict_of(x, a) != verdict_of(y, b))
		return (int)verdict_of(y, b) - (int)verdict_of(x, a);
	/* What failed says more than what is full. */
	return (int)is_error(b) - (int)is_error(a);
}

/* Stable: of equals the order is the table's. */
static void sort_findings(const struct use_report *report, findings *f)
{
	for (size_t i = 1; i < f->n; i++)
		for (size_t k = i; k && compare_findings(report, &f->v[k - 1], &f->v[k]) > 0; k--) {
			struct finding swap = f->v[k];

			f->v[k] = f->v[k - 1];
			f->v[k - 1] = swap;
		}
}

/* --- all of it -------------------------------------------------------------------------------- */

static bool speaks_of(const struct finding *f, const char *value)
{
	for (size_t k = 0; k < FINDING_TESTS_MAX && f->rule->tests[k].value; k++)
		if (f->rule->tests[k].compare == ABOVE && str_eq(f->rule->tests[k].value, value))
			return true;
	return false;
}

/* Of rules of one name, and of those that begin with one value, the first that holds speaks. */
static bool is_told(const findings *f, const struct finding_rule *rule)
{
	for (size_t i = 0; i < f->n; i++)
		if (str_eq(f->v[i].rule->name, rule->name) ||
		    speaks_of(&f->v[i], rule->tests[0].value))
			return true;
	return false;
}

bool use_finding_tells(const struct use_report *report, const struct finding *f,
		       const struct use_row *row)
{
	for (size_t k = 0; k < FINDING_TESTS_MAX && f->rule->tests[k].value; k++) {
		const char *key = f->rule->tests[k].value;

		if (use_report_worst(report, key) == row &&
		    use_row_value(row, key)->verdict == row->verdict)
			return true;
	}
	return false;
}

int use_findings_explain(const struct use_limit *limits, struct result *r)
{
	static const struct mark marks[] = {
		{"{target}", "-p PID"}, {"{group}", "--cgroup PATH"},
		{"{owner}", "-p PID"},  {"{thread}", "-t TID"},
		{"{pid}", "PID"},       {"{device}", "DEVICE"},
		{"{self}", ""},         {"{gpu}", ""},
		{"{nsenter}", ""},      {"{root}", ""},
	};
	struct finding_rule *rules = resolve_rules(limits, r);

	for (size_t i = 0; rules && i < count_rules(); i++)
		rules[i].next = fill_marks(r, rules[i].next, marks, ARRAY_SIZE(marks));
	if (rules)
		findings_explain(rules, count_rules(), r);
	return rules ? 0 : -ENOMEM;
}

int use_findings(const struct use_report *report, const struct use_limit *limits,
		 const struct use_subject *subject, struct result *r, findings *ret)
{
	struct finding_rule *rules = resolve_rules(limits, r);
	int err = rules ? 0 : -ENOMEM;

	for (size_t i = 0; !err && i < count_rules(); i++) {
		const struct finding_rule *rule = &rules[i];
		const struct use_row *row = use_report_worst(report, rule->tests[0].value);
		size_t n = ret->n;

		/* That all CPUs are full is said of them together. */
		if (!row || (row->detail && row->verdict >= USE_WARN) || is_told(ret, rule))
			continue;
		err = findings_evaluate(rule, 1, value_of, (void *)report, "", r, ret);
		if (err || ret->n == n)
			continue;
		ret->v[n].evidence =
			result_text(r, "%s: %s", use_row_name(r, row), ret->v[n].evidence);
		ret->v[n].next = use_fill_next(r, rule, row, subject);
	}
	if (!err)
		sort_findings(report, ret);
	return err;
}
