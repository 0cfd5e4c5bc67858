/* SPDX-License-Identifier: BSD-2-Clause */
#include <fcntl.h>
#include <inspect/term.h>
#include <locale.h>
#include <pty.h>
#include <sys/ioctl.h>
#include <wchar.h>

#include <setjmp.h>
#include <stdarg.h>
/* after the headers that it needs */
#include <cmocka.h>

static void check_escape(const char *s, size_t n, const char *wanted)
{
	CLEANUP(strbuf_release) struct strbuf out = {0};

	term_escape(&out, s, n);
	assert_string_equal(strbuf_str(&out), wanted);
}

#define CHECK(s, wanted) check_escape(s, sizeof(s) - 1, wanted)

static void test_escape(void **state UNUSED)
{
	CHECK("", "");
	CHECK("plain name(int, char*)", "plain name(int, char*)");
	CHECK("a;b\\c\"<&>", "a;b\\c\"<&>");
	CHECK("a\nb\tc", "a\\nb\\tc");
	CHECK("\x1b]0;title\x07", "\\x1b]0;title\\x07");
	CHECK("\0x\x7f\r", "\\x00x\\x7f\\x0d");
	CHECK("caf\xc3\xa9 \xf0\x9f\x94\xa5", "caf\xc3\xa9 \xf0\x9f\x94\xa5");
	CHECK("\xc2\x9b"
	      "31m",
	      "\\u{009b}31m"); /* CSI as one C1 character */
	CHECK("\x9b"
	      "31m",
	      "\\x9b"
	      "31m");
	CHECK("\xe2\x80\xae"
	      "cod.exe",
	      "\\u{202e}cod.exe");
	CHECK("\xe2\x81\xa6\xe2\x80\x8f", "\\u{2066}\\u{200f}");
	CHECK("\xe2\x80\xa8", "\\u{2028}");
	CHECK("\xff\xfe", "\\xff\\xfe");
	CHECK("a\xe2\x82", "a\\xe2\\x82");
	CHECK("\xc0\x9b", "\\xc0\\x9b");
	CHECK("\xed\xa0\x80", "\\xed\\xa0\\x80");
}

/* glibc's own table is the judge, on all characters that a name is likely to hold. */
static void test_columns(void **state UNUSED)
{
	static const char *const samples[] = {
		"",
		"main",
		"caf\xc3\xa9",
		"e\xcc\x81",                /* e + combining acute */
		"\xe6\x97\xa5\xe6\x9c\xac", /* CJK */
		"\xed\x95\x9c\xea\xb8\x80", /* Hangul */
		"\xef\xbc\xa1",             /* fullwidth A */
		"\xef\xbd\xb1",             /* halfwidth katakana */
		"\xf0\x9f\x94\xa5",         /* fire */
		"\xe2\x86\x92\xe2\x80\xa6\xc2\xb5",
		"\xd0\x9f\xd1\x80\xd0\xb8",
		"\xe0\xa4\xa8\xe0\xa5\x8d",
	};

	assert_non_null(setlocale(LC_CTYPE, "C.UTF-8"));
	for (size_t i = 0; i < ARRAY_SIZE(samples); i++) {
		wchar_t wide[32];
		size_t n = mbstowcs(wide, samples[i], ARRAY_SIZE(wide));

		assert_true(n < ARRAY_SIZE(wide));
		assert_int_equal(term_columns(samples[i]), wcswidth(wide, n));
	}
	setlocale(LC_CTYPE, "C");
	assert_int_equal(term_columns("a\xff\xfe"), 3);
}

static void check_cut(const char *s, unsigned width, const char *wanted)
{
	CLEANUP(strbuf_release) struct strbuf out = {0};

	term_cut_middle(&out, s, width, "…");
	assert_string_equal(strbuf_str(&out), wanted);
}

static void test_cut(void **state UNUSED)
{
	check_cut("abcdefghij", 0, "abcdefghij");
	check_cut("abcdefghij", 10, "abcdefghij");
	check_cut("abcdefghij", 9, "abcd…ghij");
	check_cut("abcdefghij", 8, "abc…ghij");
	check_cut("abcdefghij", 2, "…j");
	check_cut("abcdefghij", 1, "…");
	check_cut("", 5, "");
	/* A wide character is never cut in half; its column goes to the end instead. */
	check_cut("\xe6\x97\xa5\xe6\x9c\xac\xe8\xaa\x9e\xe5\xad\x97", 6,
		  "\xe6\x97\xa5…\xe5\xad\x97");
	/* The accent of a character that is cut away doesn't land on the dots. */
	check_cut("abcde\xcc\x81"
		  "fg",
		  5, "ab…fg");
}

/* Whatever the text, the result is at most `width` columns. */
static void test_cut_bound(void **state UNUSED)
{
	static const char *const parts[] = {"a", "\xcc\x81", "\xe6\x97\xa5", "\xff"};

	srand48(3);
	for (int round = 0; round < 2000; round++) {
		CLEANUP(strbuf_release) struct strbuf s = {0}, out = {0};
		unsigned width = 1 + (unsigned)(lrand48() % 20);

		for (long n = lrand48() % 30; n > 0; n--)
			strbuf_puts(&s, parts[lrand48() % 4]);
		term_cut_middle(&out, strbuf_str(&s), width, "…");
		assert_true(term_columns(strbuf_str(&out)) <= width);
	}
}

static void test_width(void **state UNUSED)
{
	struct winsize size = {.ws_col = 93, .ws_row = 20};
	int master, slave, null = open("/dev/null", O_RDWR);

	assert_true(null >= 0);
	assert_int_equal(openpty(&master, &slave, NULL, NULL, &size), 0);
	setenv("COLUMNS", "70", 1);
	assert_int_equal(term_width(slave), 93);
	assert_int_equal(term_width(null), 70);
	setenv("COLUMNS", "70x", 1);
	assert_int_equal(term_width(null), 0);
	setenv("COLUMNS", "-5", 1);
	assert_int_equal(term_width(null), 0);
	unsetenv("COLUMNS");
	assert_int_equal(term_width(null), 0);
	close(null);
	close(master);
	close(slave);
}

static void test_color(void **state UNUSED)
{
	int master, tty, null = open("/dev/null", O_RDWR);

	assert_int_equal(openpty(&master, &tty, NULL, NULL, NULL), 0);
	unsetenv("NO_COLOR");
	unsetenv("CLICOLOR");
	unsetenv("CLICOLOR_FORCE");
	setenv("TERM", "xterm", 1);
	assert_true(term_use_color(COLOR_AUTO, tty));
	assert_false(term_use_color(COLOR_AUTO, null));
	assert_true(term_use_color(COLOR_ALWAYS, null));
	assert_false(term_use_color(COLOR_NEVER, tty));
	setenv("TERM", "dumb", 1);
	assert_false(term_use_color(COLOR_AUTO, tty));
	setenv("CLICOLOR_FORCE", "1", 1);
	assert_true(term_use_color(COLOR_AUTO, null));
	setenv("NO_COLOR", "", 1);
	assert_true(term_use_color(COLOR_AUTO, null));
	setenv("NO_COLOR", "1", 1);
	assert_false(term_use_color(COLOR_AUTO, tty));
	assert_true(term_use_color(COLOR_ALWAYS, tty));
	unsetenv("NO_COLOR");
	unsetenv("CLICOLOR_FORCE");
	setenv("TERM", "xterm", 1);
	setenv("CLICOLOR", "0", 1);
	assert_false(term_use_color(COLOR_AUTO, tty));
	close(null);
	close(master);
	close(tty);
}

static void test_ascii(void **state UNUSED)
{
	static const char *const cases[][2] = {
		{"│  ├─ a", "|  |- a"},
		{"└─ é…", "`- é..."},
		{"x → y ± 3 µs", "x -> y +/- 3 us"},
		{"plain", "plain"},
		{"", ""},
		{"\xe2\x94", "\xe2\x94"},
		{"\xc2", "\xc2"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		CLEANUP(strbuf_release) struct strbuf out = {0};

		term_ascii(&out, cases[i][0]);
		assert_string_equal(strbuf_str(&out), cases[i][1]);
	}
}

static void test_character_set(void **state UNUSED)
{
	static const struct {
		const char *all, *ctype, *lang;
		bool utf8;
	} cases[] = {
		{"", "", "", false},
		{"C", "", "en_US.UTF-8", false},
		{"", "", "en_US.UTF-8", true},
		{"", "de_DE.utf8", "C", true},
		{"POSIX", "C.UTF-8", "C.UTF-8", false},
		{"", "", "de_DE", false},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		setenv("LC_ALL", cases[i].all, 1);
		setenv("LC_CTYPE", cases[i].ctype, 1);
		setenv("LANG", cases[i].lang, 1);
		assert_int_equal(term_is_utf8(), cases[i].utf8);
	}
}

static void check_wrap(const char *s, unsigned width, unsigned used, const char *prefix,
		       const char *wanted, size_t lines)
{
	CLEANUP(strbuf_release) struct strbuf out = {0};

	assert_int_equal(term_wrap(&out, s, width, used, prefix), lines);
	assert_string_equal(strbuf_str(&out), wanted);
}

static void test_wrap(void **state UNUSED)
{
	check_wrap("", 10, 0, "", "", 1);
	check_wrap("one two three", 0, 0, "  ", "one two three", 1);
	check_wrap("one two three", 13, 0, "  ", "one two three", 1);
	check_wrap("one two three", 12, 0, "  ", "one two\n   three", 2);
	/* What is there already counts, and a wide word stays whole on a line of its own. */
	check_wrap("one two", 10, 6, "#", "one\n# two", 2);
	check_wrap("slow → a -p 1", 8, 0, "", "slow → a\n -p 1", 2);
	check_wrap("slow → a -p 1", 10, 0, "", "slow\n → a -p 1", 2);
	check_wrap("a incomprehensible b", 6, 0, "", "a\n incomprehensible\n b", 3);
	check_wrap("\xe6\x97\xa5\xe6\x9c\xac caf\xc3\xa9", 9, 0, "",
		   "\xe6\x97\xa5\xe6\x9c\xac caf\xc3\xa9", 1);
	check_wrap("\xe6\x97\xa5\xe6\x9c\xac caf\xc3\xa9", 8, 0, "",
		   "\xe6\x97\xa5\xe6\x9c\xac\n caf\xc3\xa9", 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_escape), cmocka_unit_test(test_columns),
		cmocka_unit_test(test_cut),    cmocka_unit_test(test_cut_bound),
		cmocka_unit_test(test_width),  cmocka_unit_test(test_color),
		cmocka_unit_test(test_ascii),  cmocka_unit_test(test_character_set),
		cmocka_unit_test(test_wrap),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
