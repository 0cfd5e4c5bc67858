/* SPDX-License-Identifier: BSD-2-Clause */
/* Whom a next command is for, and who may run it. */
#include "../../src/cmd/use.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static bool nobody(pid_t pid UNUSED)
{
	return false;
}

static bool is_first(pid_t pid)
{
	return pid == 1;
}

static bool is_full(const char *cgroup)
{
	return !strstr(cgroup, "empty");
}

static const char *next_of(struct result *r, const struct use_row *row, const struct use_subject *s)
{
	return use_fill_next(r, &(const struct finding_rule){.next = "{target}"}, row, s);
}

/* Of a user who may look at process 1 alone. */
static void assert_rights(struct result *r, const char *next, const char *want)
{
	static const pid_t pids[] = {1};
	static const struct use_subject s = {.target = "-p 1",
					     .pids = pids,
					     .n_pids = 1,
					     .as_root = "sudo ",
					     .is_own = is_first};
	const struct use_row row = {.scope = "process",
				    .device = strstr(next, "{owner}") ? "a/7" : ""};

	assert_string_equal(use_fill_next(r, &(const struct finding_rule){.next = next}, &row, &s),
			    want);
}

/* A group is its folder, and one without a process is nobody; of several processes those that
 * live. */
static void test_who_is_left(void **state UNUSED)
{
	static const pid_t pids[] = {1, 2};
	const struct use_subject host = {.has_processes = is_full},
				 one_left = {.target = "-p 1,2",
					     .pids = pids,
					     .n_pids = 2,
					     .lives = is_first},
				 group = {.target = "--cgroup /a", .cgroup = "/a", .lives = nobody},
				 empty = {.target = "--cgroup /empty",
					  .cgroup = "/empty",
					  .has_processes = is_full};
	const struct use_row row = {.scope = "cgroup", .device = "/a", .path = "/v1/cpu/a b"},
			     gone = {.scope = "cgroup", .device = "/a", .path = "/v1/empty"},
			     disk = {.scope = "host", .device = "sda"};
	struct result r;

	result_init(&r, "");
	assert_string_equal(next_of(&r, &row, &host), "--cgroup '/v1/cpu/a b'");
	assert_string_equal(next_of(&r, &gone, &host), "-a");
	assert_string_equal(next_of(&r, &disk, &one_left), "-p 1");
	assert_string_equal(next_of(&r, &disk, &group), "--cgroup /a");
	assert_string_equal(next_of(&r, &disk, &empty), "-a");
	assert_rights(&r, "inspect offcpu {target}", "sudo inspect offcpu -p 1");
	assert_rights(&r, "inspect record -a", "sudo inspect record -a");
	assert_rights(&r, "inspect record {target}", "inspect record -p 1");
	assert_rights(&r, "inspect record {owner}", "sudo inspect record -p 7");
	assert_rights(&r, "ps", "ps");
	result_release(&r);
}

/* Of one row the value that is worse comes first. */
static void test_worse_value(void **state UNUSED)
{
	const struct use_subject host = {.cpus = 4};
	struct use_row row = {
		.resource = "file system",
		.device = "/x",
		.scope = "host",
		.n_values = 2,
		.verdict = USE_CRITICAL,
		.values = {{.metric = (unsigned)use_metric_find("filesystem_used_"
								"percent"),
			    .v = 88,
			    .verdict = USE_WARN},
			   {.metric = (unsigned)use_metric_find("inodes_used_percent"),
			    .v = 100,
			    .verdict = USE_CRITICAL}}};
	struct use_report report = {0};
	struct result r;
	findings f = {0};

	result_init(&r, "");
	assert_int_equal(array_push(&report.rows, row), 0);
	assert_int_equal(use_findings(&report, NULL, &host, &r, &f), 0);
	assert_int_equal(f.n, 2);
	assert_string_equal(f.v[0].rule->name, "inodes-used-up");
	assert_string_equal(f.v[1].rule->name, "disk-full");
	array_release(&f);
	use_report_release(&report);
	result_release(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_who_is_left),
		cmocka_unit_test(test_worse_value),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
