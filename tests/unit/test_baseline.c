/* SPDX-License-Identifier: BSD-2-Clause */
#include "scratch.h"

#include <inspect/baseline.h>
#include <setjmp.h>

#include <cmocka.h>

static void put(const char *text)
{
	FILE *file = fopen("saved.json", "we");

	assert_non_null(file);
	fputs(text, file);
	assert_int_equal(fclose(file), 0);
}

#define HEAD "{\"schema\":\"inspect.stat/1\",\"command\":\"./x\","

static void test_read(void **state UNUSED)
{
	struct saved_stat s;
	const struct saved_metric *m;

	put(HEAD "\"environment_cpu\":\"A CPU\",\"environment_cpus\":16,\"environment_smt\":true,"
		 "\"environment_governor\":null,"
		 "\"metrics\":[{\"metric\":\"wall\",\"unit\":\"ns\",\"value\":11,\"side\":\"a\"},"
		 "{\"metric\":\"wall\",\"unit\":\"ns\",\"value\":99,\"side\":\"b\"},"
		 "{\"metric\":\"cycles\",\"unit\":\"count\",\"value\":null,"
		 "\"value_reason\":\"no counters\"},"
		 "{\"metric\":\"old\",\"unit\":\"count\",\"value\":5}],"
		 "\"runs\":[{\"side\":\"a\",\"judged\":true,\"wall_ns\":10},"
		 "{\"side\":\"a\",\"judged\":false,\"wall_ns\":1000},"
		 "{\"side\":\"b\",\"judged\":true,\"wall_ns\":2000},"
		 "{\"side\":\"a\",\"judged\":true,\"wall_ns\":12.5}],"
		 "\"findings\":[{\"rule\":\"waiting\"},{\"rule\":\"io\"}]}");
	assert_int_equal(saved_stat_read("saved.json", &s, NULL), 0);
	assert_string_equal(s.command, "./x");
	assert_string_equal(s.verdict, "waiting, io");
	assert_int_equal(s.metrics.n, 3);
	m = saved_stat_find(&s, "wall");
	assert_int_equal(m->unit, UNIT_NS);
	assert_int_equal(m->runs.n, 2);
	assert_true(m->runs.v[0] == 10 && m->runs.v[1] == 12.5);
	m = saved_stat_find(&s, "cycles");
	assert_int_equal(m->runs.n, 0);
	assert_string_equal(m->reason, "no counters");
	m = saved_stat_find(&s, "old");
	assert_true(m->runs.n == 1 && m->runs.v[0] == 5);
	assert_null(saved_stat_find(&s, "none"));
	assert_string_equal(saved_stat_fact(&s, "cpu"), "A CPU");
	assert_string_equal(saved_stat_fact(&s, "cpus"), "16");
	assert_string_equal(saved_stat_fact(&s, "smt"), "yes");
	assert_string_equal(saved_stat_fact(&s, "governor"), "");
	saved_stat_release(&s);
}

static void test_refused(void **state UNUSED)
{
	static const char *const texts[] = {
		"",
		"{}",
		"[]",
		"1",
		"{\"schema\":\"inspect.record/1\",\"metrics\":[]}",
		"{\"schema\":\"inspect.stat/1\"}",
		"{\"schema\":\"inspect.stat/1\",\"metrics\":{}}",
		HEAD "\"metrics\":[1]}",
		HEAD "\"metrics\":[{\"metric\":\"x\",\"value\":1}]}",
		HEAD "\"metrics\":[{\"metric\":\"x\",\"unit\":\"yards\",\"value\":1}]}",
		HEAD "\"metrics\":[{\"metric\":1,\"unit\":\"ns\",\"value\":1}]}",
	};

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		CLEANUP(diag_release) struct diag d = {0};
		struct saved_stat s;

		put(texts[i]);
		if (saved_stat_read("saved.json", &s, &d) != -EBADMSG)
			fail_msg("'%s' is taken", texts[i]);
		assert_non_null(strstr(d.what, "saved.json"));
	}
}

static void test_missing(void **state UNUSED)
{
	struct saved_stat s;

	assert_int_equal(saved_stat_read("nosuch.json", &s, NULL), -ENOENT);
	assert_int_equal(saved_stat_read("/", &s, NULL), -EISDIR);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_read),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_missing),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, scratch_setup, scratch_teardown);
}
