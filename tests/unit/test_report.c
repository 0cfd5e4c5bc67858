/* SPDX-License-Identifier: BSD-2-Clause */
/* Groups, call trees and differences, from stacks whose sums can be done by hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <inspect/report.h>
#include <inspect/strbuf.h>
#include <inspect/symbolize.h>
#include <inspect/text_input.h>

static struct profile *profile_of(const char *text)
{
	struct symbolize_options o = {0};
	struct profile *p = NULL;

	assert_int_equal(profile_new(&p), 0);
	assert_int_equal(text_read(text, strlen(text), "test", p, NULL), 0);
	assert_int_equal(symbolize_profile(p, &o), 0);
	return p;
}

/* Stacks that begin in main reach an entry point: nothing is put before it. */
static const char stacks[] = "main;a;b 10\n"
			     "main;a;b;a 5\n" /* recursive */
			     "main;c 4\n"
			     "main 1\n";

static char *dump_report(const struct profile *p, unsigned keys)
{
	struct strbuf out = {0};
	struct report r;
	char *text = NULL;

	assert_int_equal(report_build(p, 0, keys, &r), 0);
	strbuf_printf(&out, "%llu/%llu\n", (unsigned long long)r.weight,
		      (unsigned long long)r.count);
	for (size_t i = 0; i < r.rows.n; i++) {
		const struct report_row *row = &r.rows.v[i];
		const struct profile_thread *t = &p->threads.v[row->thread];

		strbuf_printf(&out, "%llu %llu %llu %llu", (unsigned long long)row->self,
			      (unsigned long long)row->total, (unsigned long long)row->self_count,
			      (unsigned long long)row->total_count);
		if (keys & REPORT_COMM)
			strbuf_printf(&out, " %s", intern_str(&p->strings, t->comm));
		if (keys & REPORT_PID)
			strbuf_printf(&out, " %u", t->pid);
		if (keys & REPORT_TID)
			strbuf_printf(&out, " %u", t->tid);
		if (keys & REPORT_SYMBOL)
			strbuf_printf(&out, " %s", report_symbol_name(p, row->symbol));
		if (keys & REPORT_DSO)
			strbuf_printf(&out, " (%s)", report_symbol_module(p, row->symbol));
		strbuf_putc(&out, '\n');
	}
	report_release(&r);
	strbuf_take(&out, &text);
	return text;
}

static void assert_report(const struct profile *p, unsigned keys, const char *expected)
{
	char *text = dump_report(p, keys);

	assert_string_equal(text, expected);
	free(text);
}

static void test_self_and_total(void **state UNUSED)
{
	CLEANUP(profile_freep) struct profile *p = profile_of(stacks);

	assert_report(p, REPORT_SYMBOL | REPORT_DSO,
		      "20/20\n"
		      "10 15 10 15 b ()\n"
		      "5 15 5 15 a ()\n"
		      "4 4 4 4 c ()\n"
		      "1 20 1 20 main ()\n");
}

#define SAMPLE(comm, task, period, frames)                                                         \
	comm " " task " [000] 1.0: " period " cycles:\n" frames "\n"
#define FRAME(name, module) "\t 1 " name " (" module ")\n"

static const char script[] = SAMPLE("red", "1/1", "100", FRAME("f", "/x.so") FRAME("main", "/prog"))
	SAMPLE("red", "1/2", "200", FRAME("g", "/x.so") FRAME("main", "/prog"))
		SAMPLE("blue", "3/3", "400", FRAME("f", "/y.so") FRAME("main", "/prog"))
			SAMPLE("blue", "3/3", "50", "");

static void test_keys(void **state UNUSED)
{
	CLEANUP(profile_freep) struct profile *p = profile_of(script);

	assert_report(p, REPORT_COMM, "750/4\n450 450 2 2 blue\n300 300 2 2 red\n");
	assert_report(p, REPORT_PID, "750/4\n450 450 2 2 3\n300 300 2 2 1\n");
	assert_report(p, REPORT_TID, "750/4\n450 450 2 2 3\n200 200 1 1 2\n100 100 1 1 1\n");
	assert_report(p, REPORT_DSO,
		      "750/4\n400 400 1 1 (y.so)\n300 300 2 2 (x.so)\n50 50 1 1 ()\n"
		      "0 700 0 3 (prog)\n");
	assert_report(p, REPORT_SYMBOL,
		      "750/4\n500 500 2 2 f\n200 200 1 1 g\n50 50 1 1 [no stack]\n"
		      "0 700 0 3 main\n");
	assert_report(p, REPORT_COMM | REPORT_SYMBOL | REPORT_DSO,
		      "750/4\n400 400 1 1 blue f (y.so)\n200 200 1 1 red g (x.so)\n"
		      "100 100 1 1 red f (x.so)\n50 50 1 1 blue [no stack] ()\n"
		      "0 400 0 1 blue main (prog)\n0 300 0 2 red main (prog)\n");
}

static void dump_node(struct strbuf *out, const struct profile *p, const struct call_tree *t,
		      uint32_t node, int depth)
{
	for (uint32_t i = t->nodes.v[node].first_child; i; i = t->nodes.v[i].next_sibling) {
		const struct call_node *n = &t->nodes.v[i];

		strbuf_printf(out, "%*s%s %llu %llu %llu\n", depth, "",
			      report_symbol_name(p, n->symbol), (unsigned long long)n->total,
			      (unsigned long long)n->self, (unsigned long long)n->count);
		dump_node(out, p, t, i, depth + 1);
	}
}

static void assert_tree(const struct profile *p, enum call_direction direction,
			const char *function, uint64_t min_weight, size_t hidden,
			const char *expected)
{
	bool *selected = calloc(p->symbols.n, sizeof(*selected));
	struct strbuf out = {0};
	struct call_tree t;

	for (uint32_t i = 0; function && i < p->symbols.n; i++)
		selected[i] = str_eq(report_symbol_name(p, i), function);
	assert_int_equal(call_tree_build(p, 0, direction, selected, min_weight, &t), 0);
	dump_node(&out, p, &t, 0, 0);
	assert_string_equal(strbuf_str(&out), expected);
	assert_int_equal(t.hidden, hidden);
	call_tree_release(&t);
	strbuf_release(&out);
	free(selected);
}

static void test_trees(void **state UNUSED)
{
	CLEANUP(profile_freep) struct profile *p = profile_of(stacks);

	assert_tree(p, CALLS_ALL, NULL, 0, 0,
		    "main 20 1 20\n a 15 0 15\n  b 15 10 15\n   a 5 5 5\n c 4 4 4\n");
	assert_tree(p, CALLS_ALL, NULL, 5, 1,
		    "main 20 1 20\n a 15 0 15\n  b 15 10 15\n   a 5 5 5\n");
	assert_tree(p, CALLS_ALL, NULL, 6, 2, "main 20 1 20\n a 15 0 15\n  b 15 10 15\n");
	/* From the outermost of a recursive function: each sample once. */
	assert_tree(p, CALLS_FROM, "a", 0, 0, "a 15 0 15\n b 15 10 15\n  a 5 5 5\n");
	assert_tree(p, CALLS_INTO, "a", 0, 0, "a 15 0 15\n main 15 15 15\n");
	assert_tree(p, CALLS_INTO, "b", 0, 0, "b 15 0 15\n a 15 0 15\n  main 15 15 15\n");
	assert_tree(p, CALLS_INTO, "nothing", 0, 0, "");
}

static void test_tree_order(void **state UNUSED)
{
	CLEANUP(profile_freep)
	struct profile *p = profile_of("main;z 1\nmain;b 2\nmain;y 1\nmain;a 2\nmain;m 9\n");

	assert_tree(p, CALLS_ALL, NULL, 0, 0,
		    "main 15 0 15\n m 9 9 9\n a 2 2 2\n b 2 2 2\n y 1 1 1\n z 1 1 1\n");
}

static void assert_diff(const char *before, const char *after, bool total, const char *expected)
{
	CLEANUP(profile_freep) struct profile *a = profile_of(before);
	CLEANUP(profile_freep) struct profile *b = profile_of(after);
	const struct diff_input x = {a, 0}, y = {b, 0};
	struct strbuf out = {0};
	struct profile_diff d;

	assert_int_equal(profile_diff(&x, &y, total, &d), 0);
	for (size_t i = 0; i < d.rows.n; i++) {
		const struct diff_row *r = &d.rows.v[i];

		strbuf_printf(&out, "%s %s %.2f %.2f %+.2f%s %llu %llu\n",
			      report_symbol_name(a, r->before_symbol),
			      report_symbol_name(b, r->after_symbol), r->before_percent,
			      r->after_percent, r->difference, r->significant ? " *" : "",
			      (unsigned long long)r->before_count,
			      (unsigned long long)r->after_count);
	}
	assert_string_equal(strbuf_str(&out), expected);
	profile_diff_release(&d);
	strbuf_release(&out);
}

static void test_diff(void **state UNUSED)
{
	assert_diff("main;a 500\nmain;b 300\nmain;c 190\nmain;e 10\n",
		    "main;a 150\nmain;b 210\nmain;d 135\nmain;e 5\n", false,
		    "[no stack] d 0.00 27.00 +27.00 * 0 135\n"
		    "a a 50.00 30.00 -20.00 * 500 150\n"
		    "c [no stack] 19.00 0.00 -19.00 * 190 0\n"
		    "b b 30.00 42.00 +12.00 * 300 210\n"
		    "e e 1.00 1.00 +0.00 10 5\n");
	/* Ten samples say little. */
	assert_diff("main;a 5\nmain;b 5\n", "main;a 6\nmain;b 4\n", false,
		    "a a 50.00 60.00 +10.00 5 6\nb b 50.00 40.00 -10.00 5 4\n");
	assert_diff("main;a 5\nmain;b 5\n", "main;a 6\nmain;b 4\n", true,
		    "a a 50.00 60.00 +10.00 5 6\nb b 50.00 40.00 -10.00 5 4\n"
		    "main main 100.00 100.00 +0.00 10 10\n");
}

/* A function is itself in a renamed program, but not in one of two. */
static void test_diff_modules(void **state UNUSED)
{
	assert_diff(SAMPLE("x", "1", "40", FRAME("f", "/app-1"))
			    SAMPLE("x", "1", "60", FRAME("g", "/a.so")),
		    SAMPLE("x", "1", "50", FRAME("f", "/app-2"))
			    SAMPLE("x", "1", "20", FRAME("g", "/b.so"))
				    SAMPLE("x", "1", "30", FRAME("g", "/c.so")),
		    false,
		    "g [no stack] 60.00 0.00 -60.00 1 0\n"
		    "[no stack] g 0.00 30.00 +30.00 0 1\n"
		    "[no stack] g 0.00 20.00 +20.00 0 1\n"
		    "f f 40.00 50.00 +10.00 1 1\n");
}

/* The same numbers from the formula, done elsewhere (Agresti and Caffo, two standard errors). */
static void test_diff_noise(void **state UNUSED)
{
	CLEANUP(profile_freep) struct profile *a = profile_of("a 500\nb 500\n");
	CLEANUP(profile_freep) struct profile *b = profile_of("a 150\nb 350\n");
	const struct diff_input x = {a, 0}, y = {b, 0};
	struct profile_diff d;

	assert_int_equal(profile_diff(&x, &y, false, &d), 0);
	assert_int_equal(d.rows.n, 2);
	assert_float_equal(d.rows.v[0].noise, 5.170923851792804, 1e-9);
	assert_int_equal(d.before_count, 1000);
	assert_int_equal(d.after_count, 500);
	profile_diff_release(&d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_self_and_total), cmocka_unit_test(test_keys),
		cmocka_unit_test(test_trees),          cmocka_unit_test(test_tree_order),
		cmocka_unit_test(test_diff),           cmocka_unit_test(test_diff_modules),
		cmocka_unit_test(test_diff_noise),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
