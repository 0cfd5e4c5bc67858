/* SPDX-License-Identifier: BSD-2-Clause */
#include <inspect/finding.h>
#include <math.h>

static size_t count_tests(const struct finding_rule *rule)
{
	size_t n = 0;

	while (n < FINDING_TESTS_MAX && rule->tests[n].value)
		n++;
	return n;
}

static bool test_holds(const struct finding_test *t, double v)
{
	if (isnan(v))
		return false;
	return t->compare == BELOW ? v < t->limit : v > t->limit;
}

/* Formats come from tables of this program alone. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
#pragma GCC diagnostic ignored "-Wformat-security"
void finding_put_number(struct strbuf *b, const char *format, double v)
{
	static const char whole[] = "%.0f";
	const char *at = strstr(format, whole);

	if (!at || v <= 0 || v > 0.5) {
		strbuf_printf(b, format, v);
		return;
	}
	strbuf_add(b, format, (size_t)(at - format));
	strbuf_printf(b, "%.1g", v);
	strbuf_printf(b, at + strlen(whole));
}
#pragma GCC diagnostic pop

/* That there is any says itself. */
static void put_limit(struct strbuf *b, const struct finding_test *t)
{
	if (t->compare == ABOVE && t->limit == 0)
		return;
	strbuf_printf(b, " (%s %g)", t->compare == BELOW ? "below" : "above", t->limit);
}

/* False when a test does not hold. */
static bool gather_evidence(const struct finding_rule *rule, finding_value_fn *value, void *ctx,
			    struct strbuf *ret)
{
	for (size_t i = 0; i < count_tests(rule); i++) {
		const struct finding_test *t = &rule->tests[i];
		double v = value(ctx, t->value);

		if (!test_holds(t, v))
			return false;
		if (!t->shown)
			continue;
		strbuf_puts(ret, ret->n ? ", " : "");
		finding_put_number(ret, t->shown, v);
		put_limit(ret, t);
	}
	return true;
}

static const char *fill_target(struct result *r, const char *line, const char *target)
{
	static const char mark[] = "{target}";
	const char *at = strstr(line, mark);

	if (!at)
		return line;
	return result_text(r, "%.*s%s%s", (int)(at - line), line, target, at + sizeof(mark) - 1);
}

int findings_evaluate(const struct finding_rule *rules, size_t n, finding_value_fn *value,
		      void *ctx, const char *target, struct result *r, findings *ret)
{
	for (size_t i = 0; i < n; i++) {
		CLEANUP(strbuf_release) struct strbuf evidence = {0};
		const struct finding_rule *rule = &rules[i];
		struct finding f = {.rule = rule, .means = rule->means};

		if (!gather_evidence(rule, value, ctx, &evidence))
			continue;
		f.evidence = result_text(r, "%s", strbuf_str(&evidence));
		f.next = fill_target(r, rule->next, target);
		if (evidence.failed || array_push(ret, f))
			return -ENOMEM;
	}
	return r->failed ? -ENOMEM : 0;
}

static const char *finding_line(struct result *r, const struct finding *f)
{
	return result_text(r, "%s: %s: %s → %s", f->rule->name, f->evidence, f->means, f->next);
}

/* Without any there is nothing to draw, but the JSON has its array. */
static void add_section(struct result *r, const char *title, bool lines, const findings *f)
{
	const struct column columns[] = {
		{"", "verdict", CELL_TEXT, COLUMN_TABLE_ONLY},
		{"rule", "", CELL_TEXT, COLUMN_DATA_ONLY},
		{"evidence", "", CELL_TEXT, COLUMN_DATA_ONLY},
		{"means", "", CELL_TEXT, COLUMN_DATA_ONLY},
		{"next", "", CELL_TEXT, COLUMN_DATA_ONLY},
	};
	size_t skip = lines && f->n ? 0 : 1;
	struct column *kept = arena_alloc(&r->arena, sizeof(columns));
	size_t section;

	if (!kept) {
		r->failed = true;
		return;
	}
	memcpy(kept, columns + skip, sizeof(columns) - skip * sizeof(*columns));
	section = result_section(r, "findings", title, kept, ARRAY_SIZE(columns) - skip);
	for (size_t i = 0; i < f->n; i++) {
		const struct finding *one = &f->v[i];
		const struct cell cells[] = {
			skip ? cell_text(r, "") : cell_text(r, finding_line(r, one)),
			cell_text(r, one->rule->name),
			cell_text(r, one->evidence),
			cell_text(r, one->means),
			cell_text(r, one->next),
		};

		result_row(r, section, cells + skip);
	}
}

void findings_section(struct result *r, const char *title, const findings *f)
{
	add_section(r, title, true, f);
}

void findings_head_below(struct result *r, const char *verdict, const findings *f)
{
	if (verdict)
		result_fact(r, "", "verdict", cell_text(r, verdict));
	for (size_t i = 0; i < f->n && i < FINDINGS_SHOWN; i++)
		result_fact(r, "", i || verdict ? "also" : "verdict",
			    cell_text(r, finding_line(r, &f->v[i])));
	add_section(r, "", false, f);
}

void findings_head(struct result *r, const findings *f)
{
	findings_head_below(r, NULL, f);
}

void findings_explain(const struct finding_rule *rules, size_t n, struct result *r)
{
	static const struct column columns[] = {
		{"rule", "verdict", CELL_TEXT, 0},  {"when", "when", CELL_TEXT, 0},
		{"means", "means", CELL_TEXT, 0},   {"next", "next", CELL_TEXT, 0},
		{"source", "source", CELL_TEXT, 0},
	};
	size_t section = result_section(r, "rules", "", columns, ARRAY_SIZE(columns));

	if (r->failed)
		return;
	r->sections.v[section].blocks = true;
	for (size_t i = 0; i < n; i++) {
		CLEANUP(strbuf_release) struct strbuf when = {0};

		for (size_t j = 0; j < count_tests(&rules[i]); j++) {
			const struct finding_test *t = &rules[i].tests[j];

			strbuf_printf(&when, "%s%s %s %g", j ? ", " : "", t->value,
				      t->compare == BELOW ? "<" : ">", t->limit);
		}
		r->failed |= when.failed;
		result_row(r, section,
			   (const struct cell[]){
				   cell_text(r, rules[i].name),
				   cell_text(r, strbuf_str(&when)),
				   cell_text(r, rules[i].means),
				   cell_text(r, rules[i].next),
				   cell_text(r, rules[i].source),
			   });
	}
}
