/* SPDX-License-Identifier: BSD-2-Clause */
/* Words for a shell: what a shell makes of them is the oracle. */
#include "../../src/cmd/target_text.h"

#include <inspect/shell_words.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

static const struct {
	const char *word, *want;
} table[] = {
	{"ls", "ls"},
	{"./a/b-1.2_3", "./a/b-1.2_3"},
	{"--color=auto", "--color=auto"},
	{"", "''"},
	{"./a b", "'./a b'"},
	{"i=0; while [ $i -lt 9 ]", "'i=0; while [ $i -lt 9 ]'"},
	{"it's", "'it'\\''s'"},
	{"*", "'*'"},
	{"~", "'~'"},
	{"a\\b", "'a\\b'"},
	{"größe", "'größe'"},
	{"one\ntwo\t'\\\033", "$'one\\ntwo\\t\\'\\\\\\033'"},
};

static void test_words(void **state UNUSED)
{
	for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
		CLEANUP(strbuf_release) struct strbuf b = {0};

		shell_word_put(&b, table[i].word);
		assert_string_equal(strbuf_str(&b), table[i].want);
	}
}

static void test_a_shell_gets_them_back(void **state UNUSED)
{
	for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
		char got[64] = "";
		size_t n;
		FILE *out;

		/* popen's sh may be one without $'…'. */
		setenv("WORD", table[i].word, 1);
		setenv("QUOTED", table[i].want, 1);
		out = popen(
			"bash -c 'eval \"set -- $QUOTED\"; [ $# = 1 ] && [ \"$1\" = \"$WORD\" ] "
			"&& echo same'",
			"r");
		assert_non_null(out);
		n = fread(got, 1, sizeof(got) - 1, out);
		pclose(out);
		if (n != 5 || !str_eq(got, "same\n"))
			fail_msg("%s is not %s", table[i].want, table[i].word);
	}
}

static void test_target(void **state UNUSED)
{
	char *words[] = {"./a b", "-x"};
	const struct operands none = {0}, cmd = {.v = words, .n = 2};
	const struct target child = {0}, all = {.all = true}, load = {.cmd_times_only = true};
	const struct {
		struct target_options o;
		uint64_t duration_ns;
		const struct operands *operands;
		const struct target *target;
		const char *given, *end; /* what a proposed command has beside it */
	} rows[] = {
		{{0}, 0, &cmd, &child, "-- './a b' -x", ""},
		{{0}, 2500000000, &cmd, &child, "-d 2.5 -- './a b' -x", ""},
		{{.pids = "7,8", .children = true},
		 0,
		 &none,
		 &child,
		 "-p 7,8 --children",
		 " -d 10"},
		{{.pids = "7"}, 0, &cmd, &load, "-p 7", " -d 10"},
		{{.tids = "7"}, 1000000000, &none, &child, "-t 7 -d 1", ""},
		{{.cgroup = "/a b"}, 0, &none, &child, "--cgroup '/a b'", " -d 10"},
		{{.all = true}, 0, &none, &all, "-a", " -d 10"},
		{{.cpus = "0-1"}, 0, &none, &all, "-C 0-1", " -d 10"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		CLEANUP(strbuf_release) struct strbuf b = {0}, given = {0};

		target_text_given(&rows[i].o, rows[i].duration_ns, rows[i].operands, rows[i].target,
				  &given);
		assert_string_equal(strbuf_str(&given), rows[i].given);
		strbuf_puts(&given, rows[i].end);
		target_text_put(&rows[i].o, rows[i].duration_ns, rows[i].operands, rows[i].target,
				&b);
		assert_string_equal(strbuf_str(&b), strbuf_str(&given));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_words),
		cmocka_unit_test(test_a_shell_gets_them_back),
		cmocka_unit_test(test_target),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
