/* SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "text_dump.h"

#define ROW "samples/samples  0/0 "

static void test_plain(void **state UNUSED)
{
	assert_reads("main;work;add 7\nmain;work 3\nmain;work;add 5\nidle 1",
		     ROW "main;work;add 12 12\n" ROW "main;work 3 3\n" ROW "idle 1 1\n");
}

static void test_names_with_blanks(void **state UNUSED)
{
	assert_reads("my thread;operator new (unsigned long);a  b\t4\n",
		     ROW "my thread;operator new (unsigned long);a  b 4 4\n");
	assert_reads("main;std::map<int, long>::at(int) const 2  \n",
		     ROW "main;std::map<int, long>::at(int) const 2 2\n");
	/* A number that is part of a word is no count. */
	assert_reads("main;f1.2 3\n", ROW "main;f1.2 3 3\n");
}

static void test_line_ends_and_marks(void **state UNUSED)
{
	assert_reads("a;b 1\r\n\r\nc 2\r\n", ROW "a;b 1 1\n" ROW "c 2 2\n");
	assert_reads("\xef\xbb\xbf"
		     "a;b 1\n",
		     ROW "a;b 1 1\n");
}

static void test_utf16(void **state UNUSED)
{
	/* "ä;𝄞 3\r\n" in both orders. */
	static const char little[] = "\xff\xfe\xe4\0;\0\x34\xd8\x1e\xdd \0"
				     "3\0\r\0\n";
	static const char big[] = "\xfe\xff\0\xe4\0;\xd8\x34\xdd\x1e\0 \0"
				  "3\0\r\0\n";
	static const char lone[] = "\xff\xfe\x34\xd8;\0a\0 \0"
				   "3";

	assert_reads_n(little, sizeof(little), ROW "\xc3\xa4;\xf0\x9d\x84\x9e 3 3\n");
	assert_reads_n(big, sizeof(big) - 1, ROW "\xc3\xa4;\xf0\x9d\x84\x9e 3 3\n");
	assert_reads_n(lone, sizeof(lone), ROW "\xef\xbf\xbd;a 3 3\n");
}

static void test_comments(void **state UNUSED)
{
	assert_reads("# made by x 5\n#\na 1\n   \n# a;b is a stack\n", ROW "a 1 1\n");
	/* A thread may be named so. */
	assert_reads("#1;main 5\n", ROW "#1;main 5 5\n");
}

static void test_kinds(void **state UNUSED)
{
	assert_reads("a;sys_read_[k];L1_[j];f_[i];w_[w];x_[z];[truncated];--;y 1\n",
		     ROW "a;sys_read_[kernel];L1_[jit];f_[inlined];w_[synthetic];x_[z];"
			 "[truncated]_[synthetic];--_[synthetic];y 1 1\n");
	assert_reads("_[k] 1\n", ROW "_[k] 1 1\n");
}

/* Shares stay exact, also where every count is below 1. */
static void test_fractions(void **state UNUSED)
{
	assert_reads("a 1.5\nb 2\nc 0.25\nd 3.00\n",
		     "samples/1/100  0/0 a 150 1\n"
		     "samples/1/100  0/0 b 200 1\n"
		     "samples/1/100  0/0 c 25 1\n"
		     "samples/1/100  0/0 d 300 1\n"
		     "note: counts have fractions: weights are in units of 1/100\n");
	assert_reads("a 1.00\nb 2.\n", ROW "a 1 1\n" ROW "b 2 2\n");
	assert_reads("a 0.12345678\n",
		     "samples/1/1000000  0/0 a 123456 1\n"
		     "note: counts have fractions: weights are in units of 1/1000000\n");
}

static void test_differential(void **state UNUSED)
{
	assert_reads("a;b 10 20\na;c 5 0\na;d 3\n",
		     ROW "a;b 20 20\n" ROW "a;d 3 3\n"
			 "note: two counts on a line (first: line 1): the second is used\n");
}

static void test_broken_lines(void **state UNUSED)
{
	assert_reads("a;b 1\nnonsense\na;b -3\n;;; 4\na;b 99999999999999999999999\na 1.2.3\n"
		     ";a;;b; 2\nc 1\nd 1\ne 1\n",
		     ROW "a;b 3 3\n" ROW "c 1 1\n" ROW "d 1 1\n" ROW
			 "e 1 1\nnote: 5 lines could not be read and were skipped: "
			 "line 2, 3, 4, …\n");
	assert_reads("a;b\nc 1\n", ROW "c 1 1\nnote: 1 line could not be read and was skipped: "
				       "line 1\n");
}

static void test_refused(void **state UNUSED)
{
	assert_refused("", 0, "in.txt is empty");
	assert_refused("\n\n# x\n", 6, "in.txt: no stack found");
	assert_refused("<html>\n", 7,
		       "in.txt: no stack found (line 1 is neither folded nor perf script)");
	assert_refused("a;b 0\n", 6, "in.txt: no stack found");
}

/* What is no text, and text that only has some lines which look like stacks. */
static void test_junk(void **state UNUSED)
{
	static const char nul[] = "a\0b;c 2\nd 1", elf[] = "\177ELF\0\0\0 1\na;b 3\n";
	static const char prose[] = "It took 12\nminutes\nto write.\n";

	assert_refused(
		nul, sizeof(nul) - 1,
		"in.txt is binary data, and neither a recording (perf.data) nor stacks as text");
	assert_refused(elf, sizeof(elf) - 1,
		       "in.txt is a program or library, and neither a recording (perf.data) nor "
		       "stacks as text");
	assert_refused(prose, sizeof(prose) - 1,
		       "in.txt is no text of stacks: 2 of its lines are neither folded nor perf "
		       "script (the first: line 2)");
}

static void test_sums_do_not_overflow(void **state UNUSED)
{
	struct strbuf text = {0};

	/* 2^62 / 10^6 is the largest count; a million of them and more do not wrap. */
	for (int i = 0; i < 1000010; i++)
		strbuf_puts(&text, "a 4611686018427\n");
	CLEANUP(profile_freep) struct profile *p = NULL;
	assert_int_equal(profile_new(&p), 0);
	assert_int_equal(text_read(text.v, text.n, "test", p, NULL), 0);
	assert_true(p->rows.v[0].weight == 4611686018427ULL * 1000000);
	assert_string_equal(p->notes.v[0], "10 lines could not be read and were skipped: "
					   "line 1000001, 1000002, 1000003, …");
	strbuf_release(&text);
}

static void fill(struct strbuf *text, const char *s, size_t times)
{
	for (size_t i = 0; i < times; i++)
		strbuf_puts(text, s);
}

/* One line of 10 MB: as a name, and as frames. */
static void test_huge_lines(void **state UNUSED)
{
	CLEANUP(profile_freep) struct profile *p = NULL;
	struct strbuf text = {0};
	uint32_t depth = 0;

	fill(&text, "0123456789", 1000000);
	strbuf_puts(&text, ";x 1\n");
	fill(&text, "ab;", 3000000);
	strbuf_puts(&text, "leaf 2");
	assert_int_equal(profile_new(&p), 0);
	assert_int_equal(text_read(text.v, text.n, "test", p, NULL), 0);
	assert_int_equal(p->rows.n, 2);
	assert_int_equal(p->strings.strings.v[(uint32_t)p->frames.v[0].loc].n, 10000000);
	for (uint32_t s = p->rows.v[1].stack; s != STACK_ROOT; s = p->stacks.v[s].parent)
		depth++;
	assert_int_equal(depth, 16384);
	assert_int_equal(p->notes.n, 1);
	assert_string_equal(p->notes.v[0], "1 stacks of more than 16384 frames were cut");
	strbuf_release(&text);
}

static void test_guess(void **state UNUSED)
{
	static const struct {
		const char *text;
		enum text_format format;
	} cases[] = {
		{"a;b 1\n", TEXT_FOLDED},
		{"a 1", TEXT_FOLDED},
		{"\n# x\nnonsense\nmain;f 2\n", TEXT_FOLDED},
		{"\xef\xbb\xbf"
		 "main;f 2\n",
		 TEXT_FOLDED},
		{"", TEXT_UNKNOWN},
		{"nonsense\n<html>\n", TEXT_UNKNOWN},
		{"slow 12 [001] 5.25:     1 cycles:u: \n\t ab f (m)\n", TEXT_PERF_SCRIPT},
		{"# captured on: today\n#\na b 1/2 5.25: cycles:\n", TEXT_PERF_SCRIPT},
		{"   slow  12 5.25:     1 cycles: ab f (m)\n", TEXT_PERF_SCRIPT},
		{"java 123\n\tab f (m)\n", TEXT_PERF_SCRIPT},
		{"java 123\njava;f 5\n", TEXT_FOLDED},
	};
	struct strbuf text = {0};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		assert_int_equal(text_format_guess(cases[i].text, strlen(cases[i].text)),
				 cases[i].format);
	assert_int_equal(text_format_guess("\xff\xfe"
					   "a\0;\0b\0 \0"
					   "1",
					   12),
			 TEXT_FOLDED);
	/* A stack that does not end in what was looked at. */
	fill(&text, "frame;", 700);
	assert_int_equal(text_format_guess(text.v, text.n), TEXT_FOLDED);
	strbuf_release(&text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_plain),
		cmocka_unit_test(test_names_with_blanks),
		cmocka_unit_test(test_line_ends_and_marks),
		cmocka_unit_test(test_utf16),
		cmocka_unit_test(test_comments),
		cmocka_unit_test(test_kinds),
		cmocka_unit_test(test_fractions),
		cmocka_unit_test(test_differential),
		cmocka_unit_test(test_broken_lines),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_junk),
		cmocka_unit_test(test_sums_do_not_overflow),
		cmocka_unit_test(test_huge_lines),
		cmocka_unit_test(test_guess),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
