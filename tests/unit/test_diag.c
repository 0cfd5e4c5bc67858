/* SPDX-License-Identifier: BSD-2-Clause */
#include <inspect/diag.h>

#include <setjmp.h>
#include <stdarg.h>
/* after the headers that it needs */
#include <cmocka.h>

static char *printed(const struct diag *d, const char *command, bool json)
{
	char *text = NULL;
	size_t n;
	FILE *file = open_memstream(&text, &n);

	assert_non_null(file);
	if (json)
		diag_print_json(d, command, file);
	else
		diag_print(d, command, file);
	fclose(file);
	return text;
}

static void check(const struct diag *d, const char *command, bool json, const char *wanted)
{
	char *text = printed(d, command, json);

	assert_string_equal(text, wanted);
	free(text);
}

static void test_text(void **state UNUSED)
{
	CLEANUP(diag_release) struct diag d = {0};

	check(&d, "record", false, "");
	assert_int_equal(diag_errno(&d, -EACCES, "cannot sample %d CPUs", 4), -EACCES);
	diag_why(&d, "-a needs %s", "more");
	diag_fix(&d, "sudo this");
	diag_fix(&d, "that");
	diag_fix(&d, "or %s", "those");
	assert_int_equal(d.err, -EACCES);
	check(&d, "record", false,
	      "inspect record: cannot sample 4 CPUs: Permission denied\n"
	      "  why: -a needs more\n"
	      "  fix: sudo this\n"
	      "   or: that\n"
	      "   or: or those\n");
	check(&d, "record", true,
	      "{\"schema\":\"inspect.error/1\",\"command\":\"record\","
	      "\"error\":\"cannot sample 4 CPUs: Permission denied\",\"why\":\"-a needs more\","
	      "\"fix\":[\"sudo this\",\"that\",\"or those\"],\"errno\":13}\n");
}

static void test_bare(void **state UNUSED)
{
	CLEANUP(diag_release) struct diag d = {0};

	assert_int_equal(diag_set(&d, -EINVAL, "no such option"), -EINVAL);
	check(&d, NULL, false, "inspect: no such option\n");
	check(&d, NULL, true,
	      "{\"schema\":\"inspect.error/1\",\"command\":null,\"error\":\"no such option\","
	      "\"why\":null,\"fix\":[],\"errno\":22}\n");
}

/* What is said about a failure that was ignored must not end up under the first one. */
static void test_first_wins(void **state UNUSED)
{
	CLEANUP(diag_release) struct diag d = {0};

	diag_set(&d, -ENOENT, "first");
	diag_why(&d, "its reason");
	diag_fix(&d, "its fix");
	assert_int_equal(diag_set(&d, -EIO, "second"), -EIO);
	diag_why(&d, "another reason");
	diag_fix(&d, "another fix");
	assert_int_equal(diag_errno(&d, -EIO, "third"), -EIO);
	assert_int_equal(d.err, -ENOENT);
	check(&d, "x", false, "inspect x: first\n  why: its reason\n  fix: its fix\n");
}

static void test_null(void **state UNUSED)
{
	assert_int_equal(diag_set(NULL, -EIO, "%d", 1), -EIO);
	assert_int_equal(diag_errno(NULL, -EIO, "%d", 1), -EIO);
	diag_why(NULL, "x");
	diag_fix(NULL, "x");
	diag_print(NULL, NULL, stderr);
}

/* A name can't begin a line of its own or move the cursor. */
static void test_hostile(void **state UNUSED)
{
	CLEANUP(diag_release) struct diag d = {0};

	diag_set(&d, -EINVAL, "bad file '%s'", "a\nb\x1b[2J");
	diag_why(&d, "'%s'", "\xff");
	diag_fix(&d, "rm '%s'", "x\n   or: rm -rf /");
	check(&d, "x", false,
	      "inspect x: bad file 'a\\nb\\x1b[2J'\n"
	      "  why: '\\xff'\n"
	      "  fix: rm 'x\\n   or: rm -rf /'\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_text),       cmocka_unit_test(test_bare),
		cmocka_unit_test(test_first_wins), cmocka_unit_test(test_null),
		cmocka_unit_test(test_hostile),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
