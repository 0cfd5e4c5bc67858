/* SPDX-License-Identifier: BSD-2-Clause */
/* What numbers mean: each rule speaks above its limit, and is silent below it and without data. */
#include "../../src/cmd/stat.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>
#include <inspect/command.h>

#define S 1e9

struct number {
	const char *metric;
	double v;
};

enum { NUMBERS_MAX = 8 };

/* One CPU for a second, all of it in its own code: nothing but `computing`. */
static const struct number quiet[] = {
	{"wall", S},          {"user", S},         {"sys", 0},
	{"task-clock", S},    {"cpus-used", 1},    {"threads", 1},
	{"page-faults", 100}, {"major-faults", 0}, {"voluntary-switches", 10},
	{"disk-read", 0},     {"disk-written", 0}, {"involuntary-switches", 1},
};

static void set(struct saved_stat *s, const char *metric, double v)
{
	struct saved_metric m = {.name = metric};

	for (size_t i = 0; i < s->metrics.n; i++)
		if (str_eq(s->metrics.v[i].name, metric)) {
			s->metrics.v[i].runs.v[0] = v;
			return;
		}
	assert_int_equal(array_push(&m.runs, v), 0);
	assert_int_equal(array_push(&s->metrics, m), 0);
}

/* The rules' names, in order. */
static void judge(const struct number *changed, size_t n, char *ret, size_t size)
{
	struct saved_stat s = {0};
	struct stat_numbers numbers = {&s};
	struct result r;
	findings f = {0};

	for (size_t i = 0; i < ARRAY_SIZE(quiet); i++)
		set(&s, quiet[i].metric, quiet[i].v);
	for (size_t i = 0; i < n && changed[i].metric; i++)
		set(&s, changed[i].metric, changed[i].v);
	result_init(&r, "x/1");
	assert_int_equal(findings_evaluate(stat_rules, n_stat_rules, stat_number, &numbers, "-p 7",
					   &r, &f),
			 0);
	*ret = '\0';
	for (size_t i = 0; i < f.n; i++) {
		size_t used = strlen(ret);

		snprintf(ret + used, size - used, "%s%s", i ? " " : "", f.v[i].rule->name);
		assert_null(strstr(f.v[i].next, "{target}"));
	}
	array_release(&f);
	result_release(&r);
	saved_stat_release(&s);
}

static const struct {
	struct number changed[NUMBERS_MAX];
	const char *want;
} table[] = {
	{{{NULL, 0}}, "computing"},
	{{{"cycles", 3e9}, {"instructions", 2.9e9}}, "stalling computing"},
	{{{"cycles", 3e9}, {"instructions", 3e9}}, "computing"},
	{{{"cycles:u", 3e9}, {"instructions:u", 1e9}}, "stalling computing"},
	{{{"cache-references", 1e7}, {"cache-misses", 2.1e6}, {"instructions", 1e9}},
	 "memory-bound computing"},
	{{{"cache-references", 1e7}, {"cache-misses", 2e6}, {"instructions", 1e9}}, "computing"},
	/* Hardly any references: their rate says nothing. */
	{{{"cache-references", 1e5}, {"cache-misses", 9e4}, {"instructions", 1e9}}, "computing"},
	{{{"branches", 1e9}, {"branch-misses", 5.1e7}}, "branchy computing"},
	{{{"branches", 1e9}, {"branch-misses", 4.9e7}}, "computing"},
	{{{"dTLB-load-misses", 2.1e6}, {"instructions", 1e9}}, "tlb-bound computing"},
	{{{"dTLB-load-misses", 1.9e6}, {"instructions", 1e9}}, "computing"},
	{{{"cycles", 1e9}, {"stalled-cycles-frontend", 3.1e8}}, "frontend-stalls computing"},
	{{{"cycles", 1e9}, {"stalled-cycles-backend", 5.1e8}}, "backend-stalls computing"},
	{{{"cpu/topdown-retiring/", 40},
	  {"cpu/topdown-bad-spec/", 20},
	  {"cpu/topdown-fe-bound/", 16},
	  {"cpu/topdown-be-bound/", 24}},
	 "frontend-bound backend-bound computing"},
	{{{"cpu_core/topdown-retiring/", 40},
	  {"cpu_core/topdown-bad-spec/", 20},
	  {"cpu_core/topdown-fe-bound/", 16},
	  {"cpu_core/topdown-be-bound/", 24}},
	 "frontend-bound backend-bound computing"},
	{{{"cpu/topdown-retiring/", 80},
	  {"cpu/topdown-bad-spec/", 5},
	  {"cpu/topdown-fe-bound/", 5},
	  {"cpu/topdown-be-bound/", 10}},
	 "computing"},
	{{{"user", 0.69 * S}, {"sys", 0.31 * S}}, "kernel-heavy"},
	{{{"user", 0.71 * S}, {"sys", 0.29 * S}}, "computing"},
	{{{"cpus-used", 0.4}, {"threads", 1}}, "waiting"},
	{{{"cpus-used", 3.9}, {"threads", 8}}, "waiting"},
	{{{"cpus-used", 4.1}, {"threads", 8}}, ""},
	/* Off the CPU, but pushed: it does not wait, it competes. */
	{{{"cpus-used", 0.4}, {"involuntary-switches", 300}}, "oversubscribed"},
	/* Pushed a lot, but in hardly any time: what is not CPU time is sleep. */
	{{{"cpus-used", 0.07}, {"involuntary-switches", 300}}, "waiting oversubscribed"},
	{{{"cpus-used", 0.4}, {"involuntary-switches", 300}, {"run-delay", 0.2 * S}},
	 "waiting oversubscribed"},
	{{{"cpus-used", 0.4}, {"involuntary-switches", 300}, {"run-delay", 1.4 * S}},
	 "oversubscribed"},
	{{{"cpus-used", 0.4}, {"run-delay", 0.2 * S}}, "waiting"},
	{{{"cpus-used", 0.4}, {"run-delay", 0.3 * S}}, ""},
	/* Not known of threads that have ended: it waits all the same. */
	{{{"cpus-used", 0.4}, {"voluntary-switches", NAN}, {"involuntary-switches", NAN}},
	 "waiting"},
	{{{"cpus-used", 0.4}, {"voluntary-switches", NAN}, {"user", NAN}, {"sys", NAN}}, ""},
	{{{"involuntary-switches", 51}}, "oversubscribed computing"},
	{{{"page-faults", 20001}}, "faulting computing"},
	{{{"major-faults", 11}}, "paging computing"},
	{{{"disk-read", 11e6}, {"disk-written", 10e6}}, "io computing"},
	/* Over before anything can be said. */
	{{{"task-clock", 0.04 * S}, {"wall", 0.05 * S}, {"sys", S}, {"major-faults", 99}}, ""},
};

static void test_rules(void **state UNUSED)
{
	for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
		char got[256];

		judge(table[i].changed, NUMBERS_MAX, got, sizeof(got));
		if (!str_eq(got, table[i].want))
			fail_msg("row %zu: '%s', wanted '%s'", i, got, table[i].want);
	}
}

static bool has_command(const char *line)
{
	char name[32] = "";

	return sscanf(line, "inspect %31s", name) == 1 && command_find(name);
}

/* What is not counted decides nothing: the rules for counters are silent without them. */
static void test_every_rule_can_speak(void **state UNUSED)
{
	for (size_t i = 0; i < n_stat_rules; i++) {
		bool found = false;

		for (size_t k = 0; k < ARRAY_SIZE(table); k++)
			found |= strstr(table[k].want, stat_rules[i].name) != NULL;
		if (!found)
			fail_msg("no row for %s", stat_rules[i].name);
		assert_true(*stat_rules[i].source && *stat_rules[i].means);
		assert_true(has_command(stat_rules[i].next));
	}
}

static void test_derived(void **state UNUSED)
{
	struct saved_stat s = {0};
	struct stat_numbers n = {&s};

	assert_true(isnan(stat_number(&n, "ipc")));
	set(&s, "cycles", 0);
	set(&s, "instructions", 5);
	assert_true(isnan(stat_number(&n, "ipc")));
	set(&s, "cycles", 2);
	assert_true(stat_number(&n, "ipc") == 2.5);
	assert_true(stat_number(&n, "instructions") == 5);
	set(&s, "disk-read", 3e6);
	set(&s, "disk-written", 1e6);
	set(&s, "wall", 2 * S);
	assert_true(fabs(stat_number(&n, "disk-mb-per-second") - 2) < 1e-9);
	assert_true(stat_is_metric("cycles:uk", "cycles"));
	assert_true(stat_is_metric("cycles", "cycles"));
	assert_false(stat_is_metric("cycles:x", "cycles"));
	assert_false(stat_is_metric("cycles-too", "cycles"));
	saved_stat_release(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rules),
		cmocka_unit_test(test_every_rule_can_speak),
		cmocka_unit_test(test_derived),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
