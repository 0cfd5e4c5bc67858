/* SPDX-License-Identifier: BSD-2-Clause */
/* The JSON of inspect stat, read again. */
#include <inspect/baseline.h>
#include <inspect/json_in.h>
#include <inspect/strbuf.h>

#define SCHEMA "inspect.stat/1"
#define FACT_PREFIX "environment_"
#define METRICS_MAX 4096
#define EXIT_CODE_MAX 255

static int bad_file(struct saved_stat *s, const char *what, struct diag *d)
{
	diag_set(d, -EBADMSG, "%s: %s", s->path, what);
	diag_fix(d, "inspect stat --save %s -- CMD", s->path);
	return -EBADMSG;
}

static int no_memory(struct saved_stat *s, struct diag *d)
{
	return diag_errno(d, -ENOMEM, "%s", s->path);
}

static int add_fact(struct saved_stat *s, const struct json *member)
{
	struct saved_fact fact = {.name = member->key + strlen(FACT_PREFIX)};
	CLEANUP(strbuf_release) struct strbuf text = {0};

	switch (member->type) {
	case JSON_STRING:
		fact.value = member->string;
		return array_push(&s->facts, fact);
	case JSON_BOOL:
		fact.value = member->b ? "yes" : "no";
		return array_push(&s->facts, fact);
	case JSON_NUMBER:
		strbuf_printf(&text, "%.15g", member->number);
		fact.value = arena_strndup(&s->arena, strbuf_str(&text), text.n);
		return fact.value ? array_push(&s->facts, fact) : -ENOMEM;
	default:
		return 0;
	}
}

/* "wall" in ns is "wall_ns" among the members of a run. */
static const char *run_key(const struct saved_metric *m, struct strbuf *b)
{
	static const char *const suffixes[] = {[UNIT_NS] = "_ns",
					       [UNIT_BYTES] = "_bytes",
					       [UNIT_PERCENT] = "_percent",
					       [UNIT_NUMBER] = ""};

	strbuf_clear(b);
	strbuf_printf(b, "%s%s", m->name, suffixes[m->unit] ? suffixes[m->unit] : "");
	return strbuf_str(b);
}

static bool is_true(const struct json *v)
{
	return v && v->type == JSON_BOOL && v->b;
}

/* The CMD that was compared with another by --vs is not what is saved. */
static bool is_first_side(const struct json *row)
{
	const char *side = json_find_string(row, "side");

	return !side || str_eq(side, "a");
}

static int add_runs(struct saved_metric *m, const struct json *runs)
{
	CLEANUP(strbuf_release) struct strbuf b = {0};
	const char *key = run_key(m, &b);
	int err = b.failed ? -ENOMEM : 0;

	for (const struct json *run = runs ? runs->first : NULL; run && !err; run = run->next) {
		const struct json *v = json_find(run, key);

		if (v && v->type == JSON_NUMBER && is_first_side(run) &&
		    is_true(json_find(run, "judged")))
			err = array_push(&m->runs, v->number);
	}
	return err;
}

static int add_metric(struct saved_stat *s, const struct json *row, const struct json *runs,
		      struct diag *d)
{
	const char *unit = json_find_string(row, "unit");
	const struct json *value = json_find(row, "value");
	const struct json *running = json_find(row, "running_percent");
	struct saved_metric m = {
		.name = json_find_string(row, "metric"),
		.reason = json_find_string(row, "value_reason"),
		.running_percent = running && running->type == JSON_NUMBER ? running->number : 100,
	};
	int err;

	if (!m.name || !unit || unit_find(unit, &m.unit) || !value)
		return bad_file(s, "a metric without name, unit or value", d);
	if (s->metrics.n == METRICS_MAX)
		return bad_file(s, "too many metrics", d);
	err = value->type == JSON_NUMBER ? add_runs(&m, runs) : 0;
	if (!err && value->type == JSON_NUMBER && !m.runs.n)
		err = array_push(&m.runs, value->number);
	if (!err && !m.runs.n && !m.reason)
		m.reason = "not measured";
	if (!err)
		err = array_push(&s->metrics, m);
	if (!err)
		return 0;
	array_release(&m.runs);
	return no_memory(s, d);
}

static int add_verdict(struct saved_stat *s, const struct json *found)
{
	CLEANUP(strbuf_release) struct strbuf b = {0};

	for (const struct json *row = found ? found->first : NULL; row; row = row->next) {
		const char *rule = json_find_string(row, "rule");

		if (rule)
			strbuf_printf(&b, "%s%s", b.n ? ", " : "", rule);
	}
	s->verdict = arena_strndup(&s->arena, strbuf_str(&b), b.n);
	return s->verdict && !b.failed ? 0 : -ENOMEM;
}

/* Whatever is no status of a process is a failure too. */
static unsigned exit_code_in(const struct json *root)
{
	const struct json *v = json_find(root, "exit_code");

	if (!v || v->type != JSON_NUMBER)
		return 0;
	return v->number >= 0 && v->number <= EXIT_CODE_MAX ? (unsigned)v->number : EXIT_CODE_MAX;
}

static int fill(struct saved_stat *s, const struct json *root, struct diag *d)
{
	const char *schema = json_find_string(root, "schema");
	const struct json *metrics = json_find(root, "metrics");
	int err = 0;

	if (!schema || !str_eq(schema, SCHEMA) || !metrics || metrics->type != JSON_ARRAY)
		return bad_file(s, "not a result of inspect stat (" SCHEMA ")", d);
	s->command = json_find_string(root, "command");
	s->command = s->command ? s->command : "";
	s->target = json_find_string(root, "target");
	s->target = s->target ? s->target : "";
	s->timed_out = is_true(json_find(root, "timed_out"));
	s->exit_code = exit_code_in(root);
	for (const struct json *member = root->first; member && !err; member = member->next)
		if (str_starts(member->key, FACT_PREFIX))
			err = add_fact(s, member);
	if (!err)
		err = add_verdict(s, json_find(root, "findings"));
	if (err)
		return no_memory(s, d);
	for (const struct json *row = metrics->first; row && !err; row = row->next)
		if (is_first_side(row))
			err = add_metric(s, row, json_find(root, "runs"), d);
	return err;
}

int saved_stat_read(const char *path, struct saved_stat *ret, struct diag *d)
{
	struct saved_stat s = {.path = path};
	const struct json *root;
	int err = json_read(path, &s.arena, &root, d);

	if (!err)
		err = fill(&s, root, d);
	if (err) {
		saved_stat_release(&s);
		return err;
	}
	*ret = s;
	return 0;
}

void saved_stat_release(struct saved_stat *s)
{
	for (size_t i = 0; i < s->metrics.n; i++)
		array_release(&s->metrics.v[i].runs);
	array_release(&s->metrics);
	array_release(&s->facts);
	arena_release(&s->arena);
}

const struct saved_metric *saved_stat_find(const struct saved_stat *s, const char *name)
{
	for (size_t i = 0; i < s->metrics.n; i++)
		if (str_eq(s->metrics.v[i].name, name))
			return &s->metrics.v[i];
	return NULL;
}

const char *saved_stat_fact(const struct saved_stat *s, const char *name)
{
	for (size_t i = 0; i < s->facts.n; i++)
		if (str_eq(s->facts.v[i].name, name))
			return s->facts.v[i].value;
	return "";
}

void saved_stat_failure(const struct saved_stat *s, char *buf, size_t size)
{
	if (s->timed_out)
		snprintf(buf, size, "the command was ended by --timeout");
	else if (s->exit_code > 128)
		snprintf(buf, size, "the command was killed by signal %u", s->exit_code - 128);
	else
		snprintf(buf, size, "the command ended with exit code %u", s->exit_code);
}
