/* SPDX-License-Identifier: BSD-2-Clause */
#include <inspect/finding.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static const struct finding_rule rules[] = {
	{
		.name = "slow",
		.tests = {{"ipc", BELOW, 1, "IPC %.2f"}, {"seconds", ABOVE, 2, NULL}},
		.means = "it waits",
		.next = "inspect record {target} now",
		.source = "a book",
	},
	{
		.name = "wide",
		.tests = {{"share", ABOVE, 30, "%.0f %% of it"}, {"ipc", BELOW, 1, "IPC %.1f"}},
		.means = "it is wide",
		.next = "look",
		.source = "another",
	},
};

struct numbers {
	double ipc, seconds, share;
};

static double value(void *ctx, const char *name)
{
	const struct numbers *n = ctx;

	return str_eq(name, "ipc") ? n->ipc : str_eq(name, "seconds") ? n->seconds : n->share;
}

static size_t evaluate(struct numbers n, struct result *r, findings *f)
{
	assert_int_equal(findings_evaluate(rules, ARRAY_SIZE(rules), value, &n, "-p 7", r, f), 0);
	return f->n;
}

/* What happened is not rounded down to nothing. */
static void test_numbers(void **state UNUSED)
{
	static const struct {
		const char *format;
		double v;
		const char *text;
	} numbers[] = {
		{"%.0f %% lost", 0.2, "0.2 % lost"},      {"%.0f %% lost", 0, "0 % lost"},
		{"%.0f a second", 0.04, "0.04 a second"}, {"drops %.0f/s", 0.5, "drops 0.5/s"},
		{"drops %.0f/s", 3.4, "drops 3/s"},       {"p99 %.1f ms", 0.04, "p99 0.0 ms"},
		{"clocks lowered", 1, "clocks lowered"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(numbers); i++) {
		CLEANUP(strbuf_release) struct strbuf b = {0};

		finding_put_number(&b, numbers[i].format, numbers[i].v);
		assert_string_equal(strbuf_str(&b), numbers[i].text);
	}
}

static void test_evaluate(void **state UNUSED)
{
	struct result r;
	findings f = {0};

	result_init(&r, "x/1");
	assert_int_equal(evaluate((struct numbers){0.5, 3, 31}, &r, &f), 2);
	assert_string_equal(f.v[0].evidence, "IPC 0.50 (below 1)");
	assert_string_equal(f.v[0].next, "inspect record -p 7 now");
	assert_string_equal(f.v[1].evidence, "31 % of it (above 30), IPC 0.5 (below 1)");
	assert_string_equal(f.v[1].next, "look");
	f.n = 0;
	assert_int_equal(evaluate((struct numbers){0.5, 3, 10}, &r, &f), 1);
	assert_string_equal(f.v[0].next, "inspect record -p 7 now");
	findings_section(&r, "", &f);
	assert_string_equal(r.sections.v[0].cells.v[0].text,
			    "slow: IPC 0.50 (below 1): it waits → inspect record -p 7 now");
	array_release(&f);
	result_release(&r);
}

/* On the limit nothing is said, and neither of what was not measured. */
static void test_silence(void **state UNUSED)
{
	static const struct numbers table[] = {
		{1, 3, 30}, {0.5, 2, 0}, {NAN, 3, 99}, {0.5, NAN, NAN}, {NAN, NAN, NAN},
	};

	for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
		struct result r;
		findings f = {0};

		result_init(&r, "x/1");
		assert_int_equal(evaluate(table[i], &r, &f), 0);
		array_release(&f);
		result_release(&r);
	}
}

static void test_explain(void **state UNUSED)
{
	struct result r;

	result_init(&r, "x/1");
	findings_explain(rules, ARRAY_SIZE(rules), &r);
	assert_int_equal(r.sections.v[0].cells.n, 2 * r.sections.v[0].n_columns);
	assert_string_equal(r.sections.v[0].cells.v[1].text, "ipc < 1, seconds > 2");
	assert_string_equal(r.sections.v[0].cells.v[3].text, "inspect record {target} now");
	assert_string_equal(r.sections.v[0].cells.v[4].text, "a book");
	result_release(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_numbers),
		cmocka_unit_test(test_evaluate),
		cmocka_unit_test(test_silence),
		cmocka_unit_test(test_explain),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
