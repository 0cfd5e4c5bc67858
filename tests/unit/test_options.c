/* SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <inspect/options.h>
#include <inspect/term.h>
#include <limits.h>

struct own_values {
	const char *output;
	uint64_t interval_ns, u64;
	double min_width;
	unsigned number;
	bool flag;
};

#define AT(field) offsetof(struct own_values, field)
static const struct option own_options[] = {
	{.name = "output",
	 .letter = 'o',
	 .arg = "FILE",
	 .type = OPTION_STRING,
	 .offset = AT(output),
	 .help = "where to"},
	{.name = "interval",
	 .letter = 'I',
	 .arg = "TIME",
	 .type = OPTION_INTERVAL,
	 .offset = AT(interval_ns),
	 .help = "how often"},
	{.name = "min-width",
	 .arg = "PERCENT",
	 .type = OPTION_PERCENT,
	 .offset = AT(min_width),
	 .help = "narrower ones are left out"},
	{.name = "number",
	 .arg = "N",
	 .type = OPTION_UNSIGNED,
	 .offset = AT(number),
	 .help = "some"},
	{.name = "u64", .arg = "N", .type = OPTION_U64, .offset = AT(u64), .help = "more"},
	{.name = "flag", .letter = 'x', .type = OPTION_FLAG, .offset = AT(flag), .help = "a flag"},
	{.name = "hidden", .type = OPTION_FLAG, .offset = AT(flag)},
	{0},
};
#undef AT
static const struct option_group own_group = {"Own", own_options};

struct values {
	struct own_values own;
	struct target_options target;
	struct sampling_options sampling;
	struct duration_options duration;
	struct input_options input;
	struct naming_options naming;
	struct common_options common;
};

#define WORDS_MAX 24

/* A parse of a command line, split at spaces. */
struct parsed {
	struct values v;
	struct operands operands;
	struct diag d;
	int rc;
	char text[512];
	char *argv[WORDS_MAX + 1];
	int argc;
};

static size_t bind(struct values *v, struct option_binding *ret)
{
	const struct option_binding bindings[] = {
		{&own_group, &v->own},
		{&target_option_group, &v->target},
		{&sampling_option_group, &v->sampling},
		{&duration_option_group, &v->duration},
		{&input_option_group, &v->input},
		{&naming_option_group, &v->naming},
		{&common_option_group, &v->common},
		{&measuring_habit_group, NULL},
		{&reading_habit_group, NULL},
	};

	memcpy(ret, bindings, sizeof(bindings));
	return ARRAY_SIZE(bindings);
}

static void parse(struct parsed *p, const char *line, bool stop_at_operand)
{
	struct option_binding bindings[9];
	char *save = NULL;

	*p = (struct parsed){0};
	snprintf(p->text, sizeof(p->text), "%s", line);
	for (char *word = strtok_r(p->text, " ", &save); word; word = strtok_r(NULL, " ", &save)) {
		assert_true(p->argc < WORDS_MAX);
		p->argv[p->argc++] = word;
	}
	p->rc = options_parse(bindings, bind(&p->v, bindings), p->argc, p->argv, stop_at_operand,
			      &p->operands, &p->d);
}

static void parsed_release(struct parsed *p)
{
	diag_release(&p->d);
}

static void test_spellings(void **state UNUSED)
{
	static const char *const lines[] = {
		"record -F 99 -p 1,2 -d 10 -ax",
		"record -F99 -p1,2 -d10s -xa",
		"record --freq=99 --pid=1,2 --duration=10000ms --all-cpus --flag",
		"record --freq 99 --pid 1,2 --duration 10 -xgaP",
		"record -F 1 -p 7 -d 5m -F 99 -d 10 -p 1,2 -a -a -x",
		"record --rate 99 --hidden -ap 1,2 -d 10",
	};

	for (size_t i = 0; i < ARRAY_SIZE(lines); i++) {
		CLEANUP(parsed_release) struct parsed p;

		parse(&p, lines[i], false);
		assert_int_equal(p.rc, 0);
		assert_int_equal(p.v.sampling.freq_hz, 99);
		assert_string_equal(p.v.target.pids, "1,2");
		assert_int_equal(p.v.duration.duration_ns, 10 * NSEC_PER_SEC);
		assert_true(p.v.target.all);
		assert_true(p.v.own.flag);
		assert_int_equal(p.operands.n, 0);
		assert_int_equal(p.operands.after_dashes, SIZE_MAX);
	}
}

static void test_values(void **state UNUSED)
{
	CLEANUP(parsed_release) struct parsed p, q;

	parse(&p,
	      "record -F max -c 1000 -e cycles,sched:sched_switch --call-graph fp -g "
	      "--max-stack 64 -m 128 --min-width 0.5% -I 500",
	      false);
	assert_int_equal(p.rc, 0);
	assert_true(p.v.sampling.freq_hz == FREQ_HZ_MAX);
	assert_int_equal(p.v.sampling.period, 1000);
	assert_string_equal(p.v.sampling.events, "cycles,sched:sched_switch");
	assert_int_equal(p.v.sampling.call_graph, CALL_GRAPH_FP);
	assert_true(p.v.sampling.g);
	assert_int_equal(p.v.sampling.max_stack, 64);
	assert_int_equal(p.v.sampling.mmap_pages, 128);
	assert_true(p.v.own.min_width == 0.5);
	assert_int_equal(p.v.own.interval_ns, 500 * NSEC_PER_MSEC);

	parse(&q,
	      "report --number 4294967295 --u64 18446744073709551614 --min-width 100 -I 10ms "
	      "--color never --no-demangle -i - --delay 1.5",
	      false);
	assert_int_equal(q.rc, 0);
	assert_int_equal(q.v.own.number, UINT_MAX);
	assert_true(q.v.own.u64 == UINT64_MAX - 1);
	assert_true(q.v.own.min_width == 100);
	assert_int_equal(q.v.own.interval_ns, 10 * NSEC_PER_MSEC);
	assert_int_equal(q.v.common.color, COLOR_NEVER);
	assert_true(q.v.naming.no_demangle);
	assert_string_equal(q.v.input.file, "-");
	assert_int_equal(q.v.duration.delay_ns, 1500 * NSEC_PER_MSEC);
}

static void test_operands(void **state UNUSED)
{
	CLEANUP(parsed_release) struct parsed mixed, dashes, stopped, perf, lone;

	/* in order, wherever they stand; a lone - is one */
	parse(&mixed, "diff a --flag - -F 99 b", false);
	assert_int_equal(mixed.rc, 0);
	assert_int_equal(mixed.operands.n, 3);
	assert_string_equal(mixed.operands.v[0], "a");
	assert_string_equal(mixed.operands.v[1], "-");
	assert_string_equal(mixed.operands.v[2], "b");
	assert_true(mixed.v.own.flag);
	assert_int_equal(mixed.v.sampling.freq_hz, 99);
	assert_string_equal(mixed.argv[0], "diff");
	assert_string_equal(mixed.argv[1], "--flag"); /* permuted, nothing lost */
	assert_string_equal(mixed.argv[3], "99");

	parse(&dashes, "flame a -x b -- c --flag --", false);
	assert_int_equal(dashes.rc, 0);
	assert_int_equal(dashes.operands.n, 5);
	assert_int_equal(dashes.operands.after_dashes, 2);
	assert_string_equal(dashes.operands.v[1], "b");
	assert_string_equal(dashes.operands.v[2], "c");
	assert_string_equal(dashes.operands.v[3], "--flag");
	assert_string_equal(dashes.operands.v[4], "--");
	assert_true(dashes.v.own.flag);

	/* CMD's own options stay his */
	parse(&stopped, "record -g ./slow -x -- --flag", true);
	assert_int_equal(stopped.rc, 0);
	assert_int_equal(stopped.operands.n, 4);
	assert_string_equal(stopped.operands.v[0], "./slow");
	assert_string_equal(stopped.operands.v[1], "-x");
	assert_string_equal(stopped.operands.v[2], "--");
	assert_int_equal(stopped.operands.after_dashes, SIZE_MAX);
	assert_false(stopped.v.own.flag);

	parse(&perf, "record -F 99 -g -p 12 -- sleep 30", true);
	assert_int_equal(perf.rc, 0);
	assert_int_equal(perf.operands.n, 2);
	assert_int_equal(perf.operands.after_dashes, 0);
	assert_string_equal(perf.operands.v[0], "sleep");
	assert_string_equal(perf.v.target.pids, "12");

	parse(&lone, "record --", true);
	assert_int_equal(lone.rc, 0);
	assert_int_equal(lone.operands.n, 0);
	assert_int_equal(lone.operands.after_dashes, 0);
}

static void test_usage_errors(void **state UNUSED)
{
	static const struct {
		const char *line, *what, *fix; /* fix: the first line, NULL none */
	} cases[] = {
		{"record -F 12x", "-F 12x: not a whole number", "-F 99, or -F max"},
		{"record -F -5", "-F -5: not a whole number", "-F 99, or -F max"},
		{"record -F 0", "-F 0: must be at least 1", "-F 99, or -F max"},
		{"record -F=99", "-F =99: not a whole number", "-F 99, or -F max"},
		{"record --freq=", "--freq : not a whole number", "-F 99, or -F max"},
		{"record --freq 99999999999999999999",
		 "--freq 99999999999999999999: more than 9223372036854775807", "-F 99, or -F max"},
		{"record -c 1e6", "-c 1e6: not a whole number", NULL},
		{"record -m 100", "-m 100: not a power of two", "-m 64, or -m 128"},
		{"record -m 2097152", "-m 2097152: more than 1048576", NULL},
		{"record --max-stack 65536", "--max-stack 65536: more than 65535", NULL},
		{"record --max-stack 0", "--max-stack 0: must be at least 1", NULL},
		{"record -F", "-F needs a value: -F HZ", NULL},
		{"record -xp", "-p needs a value: -p PID,…", NULL},
		{"record --json=yes", "--json takes no value, but has 'yes'", NULL},
		{"record --call-graph dwarf,8190",
		 "--call-graph dwarf,8190: a stack copy of '8190' bytes: a multiple of 8 up to "
		 "65528 is possible",
		 NULL},
		{"record --call-graph dwarf,65536",
		 "--call-graph dwarf,65536: a stack copy of '65536' bytes: a multiple of 8 up to "
		 "65528 is possible",
		 NULL},
		{"record --call-graph dwarfs",
		 "--call-graph dwarfs: not one of auto|fp|dwarf[,bytes]|none", NULL},
		{"record --call-graph caller",
		 "--call-graph caller: not one of auto|fp|dwarf[,bytes]|none", NULL},
		{"record --color red", "--color red: not one of auto|always|never", NULL},
		{"record --color alw", "--color alw: not one of auto|always|never", NULL},
		{"record -d 0", "-d 0: not a time such as 10 (seconds), 500ms, .5s or 1m30s", NULL},
		{"record -d 10x", "-d 10x: not a time such as 10 (seconds), 500ms, .5s or 1m30s",
		 NULL},
		{"record -I 9", "-I 9: below 10 ms (a bare number is milliseconds)", NULL},
		{"record --min-width 101", "--min-width 101: not a percentage from 0 to 100", NULL},
		{"record --min-width nan", "--min-width nan: not a percentage such as 0.5", NULL},
		{"record --number 4294967296", "--number 4294967296: more than 4294967295", NULL},
		{"record --number +1", "--number +1: not a whole number", NULL},
		/* abbreviations are refused with the whole name */
		{"record --dur 10", "unknown option --dur", "--duration"},
		{"record --frq=99", "unknown option --frq", "--freq"},
		{"record --durtaion 3", "unknown option --durtaion", "--duration"},
		{"record --zzzzzz", "unknown option --zzzzzz",
		 "inspect record --help      (all options)"},
		{"record -Q", "unknown option -Q", "inspect record --help      (all options)"},
		{"record -x?", "unknown option -?", "inspect record --help      (all options)"},
		{"record -\xc3\xa4", "unknown option -\xc3\xa4",
		 "inspect record --help      (all options)"},
		{"record --=3", "unknown option --", "inspect record --help      (all options)"},
		/* other tools' spellings */
		{"record -D 500 ls", "inspect record has no -D",
		 "--delay TIME      (500ms; a bare number is seconds)"},
		{"record -f speedscope -o x", "inspect record has no -f",
		 "inspect flame > out.svg, or inspect flame --folded > out.folded"},
		{"record --uid root", "inspect record has no --uid", "-p $(pgrep -d, -u USER)"},
		{"flame --inverted x", "inspect flame has no --inverted", "--icicle"},
		{"report --percent-limit=1", "inspect report has no --percent-limit",
		 "inspect report --min-percent P, or --top N"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		CLEANUP(parsed_release) struct parsed p;
		size_t n;

		parse(&p, cases[i].line, true);
		assert_int_equal(p.rc, -EINVAL);
		assert_int_equal(p.d.err, -EINVAL);
		assert_string_equal(p.d.what, cases[i].what);
		if (!cases[i].fix) {
			assert_null(p.d.fix);
			continue;
		}
		assert_non_null(p.d.fix);
		n = strcspn(p.d.fix, "\n");
		assert_int_equal(n, strlen(cases[i].fix));
		assert_memory_equal(p.d.fix, cases[i].fix, n);
	}
}

static void test_failure_leaves_operands(void **state UNUSED)
{
	struct option_binding bindings[9];
	struct values v = {0};
	struct operands operands = {.n = 77};
	char *argv[] = {"record", "a", "--zzzzzz", NULL};

	assert_int_equal(options_parse(bindings, bind(&v, bindings), 3, argv, false, &operands,
				       NULL),
			 -EINVAL);
	assert_int_equal(operands.n, 77);
}

static void test_habits(void **state UNUSED)
{
	static const char *const lines[] = {
		"report --stdio -f -n --no-children --header",
		"record -f -B -N -T -R -P --sample-cpu --native --nonblocking",
		"flame --hash --colors hot --width=1200 --fontsize 12",
	};

	for (size_t i = 0; i < ARRAY_SIZE(lines); i++) {
		CLEANUP(parsed_release) struct parsed p;
		struct values untouched = {0};

		parse(&p, lines[i], false);
		assert_int_equal(p.rc, 0);
		assert_int_equal(p.operands.n, 0);
		assert_memory_equal(&p.v, &untouched, sizeof(untouched));
	}
}

static void test_help_is_asked(void **state UNUSED)
{
	static const char *const lines[] = {"record --help", "record -ah -p 1",
					    "record -d 3 --help=x"};
	CLEANUP(parsed_release) struct parsed his, last;

	for (size_t i = 0; i < ARRAY_SIZE(lines); i++) {
		CLEANUP(parsed_release) struct parsed p;

		parse(&p, lines[i], true);
		assert_int_equal(p.rc, -ECANCELED);
		assert_int_equal(p.d.err, -ECANCELED);
	}
	/* neither CMD's own, nor after a mistake, nor as a value */
	parse(&his, "record ls --help", true);
	assert_int_equal(his.rc, 0);
	parse(&last, "record -o --help -F x", true);
	assert_int_equal(last.rc, -EINVAL);
	assert_string_equal(last.v.own.output, "--help");
}

static void test_conflict(void **state UNUSED)
{
	CLEANUP(diag_release) struct diag d = {0};

	assert_int_equal(options_conflict("-p", true, "-a", false, &d), 0);
	assert_int_equal(options_conflict("-p", false, "-a", true, &d), 0);
	assert_int_equal(d.err, 0);
	assert_int_equal(options_conflict("-p", true, "-a", true, &d), -EINVAL);
	assert_string_equal(d.what, "-p and -a exclude each other");
}

/* The table of the design: a letter and its name, and nothing twice. */
static void test_one_option_table(void **state UNUSED)
{
	static const struct {
		const struct option_group *group;
		const char *letters;
	} groups[] = {
		{&target_option_group, "ptaC"}, {&sampling_option_group, "eFcgm"},
		{&duration_option_group, "d"},  {&input_option_group, "i"},
		{&naming_option_group, ""},     {&common_option_group, "qvh"},
	};
	bool letters[256] = {false};

	for (size_t i = 0; i < ARRAY_SIZE(groups); i++) {
		char found[32] = "";
		size_t n = 0;

		for (const struct option *o = groups[i].group->options; o->name; o++) {
			unsigned char letter = (unsigned char)o->letter;

			if (!letter)
				continue;
			assert_false(letters[letter]);
			letters[letter] = true;
			found[n++] = o->letter;
		}
		assert_string_equal(found, groups[i].letters);
	}
}

static void test_help_text(void **state UNUSED)
{
	struct option_binding bindings[9];
	struct values v;
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	assert_non_null(out);
	options_help(bindings, bind(&v, bindings), out);
	fclose(out);
	assert_non_null(strstr(text, "\nOwn:\n  -o, --output FILE       where to\n"));
	assert_non_null(strstr(text, "\n  -g                      stacks"));
	assert_non_null(strstr(text, "\n      --cgroup PATH       a cgroup"));
	/* a wide spelling has its text below */
	assert_non_null(
		strstr(text, "\n      --min-width PERCENT\n                          narrower"));
	assert_null(strstr(text, "hidden"));
	assert_null(strstr(text, "subprocesses"));
	assert_null(strstr(text, "stdio"));
	assert_null(strstr(text, "uid"));
	for (char *line = text, *end; *line; line = end + 1) {
		end = strchr(line, '\n');
		*end = '\0';
		assert_in_range(term_columns(line), 0, 100);
	}
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_spellings),
		cmocka_unit_test(test_values),
		cmocka_unit_test(test_operands),
		cmocka_unit_test(test_usage_errors),
		cmocka_unit_test(test_failure_leaves_operands),
		cmocka_unit_test(test_habits),
		cmocka_unit_test(test_help_is_asked),
		cmocka_unit_test(test_conflict),
		cmocka_unit_test(test_one_option_table),
		cmocka_unit_test(test_help_text),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
