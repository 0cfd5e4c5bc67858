/* SPDX-License-Identifier: BSD-2-Clause */
/* One result with every kind of cell and hostile names, in the four forms, byte for byte. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <inspect/render.h>

enum { N_COLUMNS = 6 };

static const struct column columns[N_COLUMNS] = {
	{"self_percent", "self", CELL_PERCENT, 0},
	{"samples", "samples", CELL_COUNT, 0},
	{"weight_ns", "weight", CELL_NS, COLUMN_DATA_ONLY},
	{"change_bytes", "change", CELL_COUNT, COLUMN_SIGNED},
	{"function", "function", CELL_TEXT, COLUMN_CUT},
	{"exact", "exact", CELL_BOOL, COLUMN_TABLE_ONLY},
};

static void add_row(struct result *r, size_t section, double percent, struct cell samples,
		    int64_t change, const char *name)
{
	struct cell cells[N_COLUMNS] = {
		cell_double(CELL_PERCENT, percent),
		samples,
		cell_u64(CELL_NS, 1500000000),
		cell_u64(CELL_COUNT, (uint64_t)change),
		cell_text(r, name),
		cell_bool(change > 0),
	};

	result_row(r, section, cells);
}

/* Two functions, one of them with a name that is markup, CSV and a terminal escape at once. */
static void fill(struct result *r)
{
	size_t s;

	result_init(r, "inspect.test/1");
	result_fact(r, "samples", "samples", cell_u64(CELL_COUNT, 1234567));
	result_fact(r, "duration_ns", "duration", cell_u64(CELL_NS, 5000000000));
	result_fact(r, "hidden", "", cell_bool(true));
	result_fact(r, "", "quality", cell_text(r, "good\nso far"));
	result_fact(r, "ipc", "IPC", cell_null(r, "no hardware counters"));
	result_note(r, "%d of %s", 1, "a\tb");
	s = result_section(r, "functions", "cpu-clock", columns, N_COLUMNS);
	add_row(r, s, 66.666666, cell_u64(CELL_COUNT, 200), 5, "main");
	add_row(r, s, 33.333333, cell_null(r, "not counted"), -7, "a|<b>,\"\x1b[31m\xff");
	add_row(r, s, 0, cell_null(r, "not counted"), 0, "std::vector<int>::push_back(int&&)");
}

static char *draw(int (*render)(const struct result *, FILE *), const struct result *r)
{
	char *text = NULL;
	size_t n = 0;
	FILE *out = open_memstream(&text, &n);

	assert_non_null(out);
	assert_int_equal(render(r, out), 0);
	fclose(out);
	return text;
}

static struct table_options table;

static int draw_table(const struct result *r, FILE *out)
{
	return result_table(r, &table, out);
}

static void assert_draws(int (*render)(const struct result *, FILE *), const struct result *r,
			 const char *expected)
{
	char *text = draw(render, r);

	assert_string_equal(text, expected);
	free(text);
}

static const char head[] = "# samples: 1234567\n"
			   "# duration: 5.00 s\n"
			   "# quality: good\\nso far\n"
			   "# IPC: - (no hardware counters)\n"
			   "# note: 1 of a\\tb\n"
			   "\n"
			   "# cpu-clock\n";

static void assert_draws_table(const struct result *r, const char *rows)
{
	char *expected = NULL;

	assert_true(asprintf(&expected, "%s%s", head, rows) > 0);
	assert_draws(draw_table, r, expected);
	free(expected);
}

static void test_table(void **state UNUSED)
{
	struct result r;

	fill(&r);
	table = (struct table_options){0};
	assert_draws_table(&r,
			   "  self  samples  change  function                            exact\n"
			   "66.67%      200      +5  main                                yes\n"
			   "33.33%        -      -7  a|<b>,\"\\x1b[31m\\xff                 no\n"
			   " 0.00%        -       0  std::vector<int>::push_back(int&&)  no\n"
			   "# note: \"-\" of a|<b>,\"\\x1b[31m\\xff, "
			   "std::vector<int>::push_back(int&&): not counted\n");
	result_release(&r);
}

static void test_table_width(void **state UNUSED)
{
	struct result r;
	char *text;

	fill(&r);
	table = (struct table_options){.width = 50};
	text = draw(draw_table, &r);
	assert_non_null(strstr(text, "  self  samples  change  function            exact\n"));
	assert_non_null(strstr(text, "66.67%      200      +5  main                yes\n"));
	assert_null(strstr(text, "push_back(int&&)  no"));
	assert_non_null(strstr(text, "(int&&)  no\n"));
	assert_non_null(strstr(text, "std::v"));
	free(text);

	/* A terminal that is too narrow keeps every column. */
	table.width = 3;
	text = draw(draw_table, &r);
	assert_non_null(strstr(text, "66.67%      200      +5  main          yes\n"));
	free(text);
	result_release(&r);
}

static void test_table_limit(void **state UNUSED)
{
	struct result r;

	fill(&r);
	r.sections.v[0].limit = 1;
	r.sections.v[0].more = "--all";
	table = (struct table_options){0};
	assert_draws_table(&r, "  self  samples  change  function  exact\n"
			       "66.67%      200      +5  main      yes\n"
			       "… 2 more rows: --all\n");
	table.all = true;
	assert_draws_table(&r,
			   "  self  samples  change  function                            exact\n"
			   "66.67%      200      +5  main                                yes\n"
			   "33.33%        -      -7  a|<b>,\"\\x1b[31m\\xff                 no\n"
			   " 0.00%        -       0  std::vector<int>::push_back(int&&)  no\n"
			   "# note: \"-\" of a|<b>,\"\\x1b[31m\\xff, "
			   "std::vector<int>::push_back(int&&): not counted\n");
	result_release(&r);
}

static void test_table_color(void **state UNUSED)
{
	struct result r;

	fill(&r);
	r.sections.v[0].limit = 1;
	table = (struct table_options){.color = true};
	assert_draws_table(&r, "\033[1m  self  samples  change  function  exact\033[0m\n"
			       "66.67%      200      +5  main      yes\n"
			       "… 2 more rows\n");
	result_release(&r);
}

static void test_json(void **state UNUSED)
{
	struct result r;

	fill(&r);
	r.sections.v[0].cells.n = 2 * N_COLUMNS;
	r.sections.v[0].limit = 1; /* data is whole */
	assert_draws(result_json, &r,
		     "{\n"
		     "  \"schema\": \"inspect.test/1\",\n"
		     "  \"samples\": 1234567,\n"
		     "  \"duration_ns\": 5000000000,\n"
		     "  \"hidden\": true,\n"
		     "  \"ipc\": null,\n"
		     "  \"ipc_reason\": \"no hardware counters\",\n"
		     "  \"notes\": [\n"
		     "    \"1 of a\\tb\"\n"
		     "  ],\n"
		     "  \"functions\": [\n"
		     "    {\n"
		     "      \"self_percent\": 66.666666,\n"
		     "      \"samples\": 200,\n"
		     "      \"weight_ns\": 1500000000,\n"
		     "      \"change_bytes\": 5,\n"
		     "      \"function\": \"main\"\n"
		     "    },\n"
		     "    {\n"
		     "      \"self_percent\": 33.333333,\n"
		     "      \"samples\": null,\n"
		     "      \"samples_reason\": \"not counted\",\n"
		     "      \"weight_ns\": 1500000000,\n"
		     "      \"change_bytes\": -7,\n"
		     "      \"function\": \"a|<b>,\\\"\\u001b[31m\xef\xbf\xbd\"\n"
		     "    }\n"
		     "  ]\n"
		     "}\n");
	result_release(&r);
}

static void test_csv(void **state UNUSED)
{
	struct result r;

	fill(&r);
	assert_draws(result_csv, &r,
		     "self_percent,samples,weight_ns,change_bytes,function\n"
		     "66.666666,200,1500000000,5,main\n"
		     "33.333333,,1500000000,-7,\"a|<b>,\"\"\\x1b[31m\\xff\"\n"
		     "0,,1500000000,0,std::vector<int>::push_back(int&&)\n");
	result_release(&r);
}

static void test_markdown(void **state UNUSED)
{
	struct result r;

	fill(&r);
	r.sections.v[0].limit = 2;
	assert_draws(result_markdown, &r,
		     "- **samples:** 1234567\n"
		     "- **duration:** 5.00 s\n"
		     "- **quality:** good\\\\nso far\n"
		     "- **IPC:** - (no hardware counters)\n"
		     "- note: 1 of a\\\\tb\n"
		     "\n"
		     "### cpu-clock\n"
		     "\n"
		     "| self | samples | change | function | exact |\n"
		     "| ---: | ---: | ---: | --- | --- |\n"
		     "| 66.67% | 200 | +5 | main | yes |\n"
		     "| 33.33% | - | -7 | a\\|\\<b\\>,\"\\\\x1b\\[31m\\\\xff | no |\n"
		     "\n"
		     "… 1 more rows\n"
		     "\n"
		     "- \"-\": not counted\n");
	result_release(&r);
}

/* Texts that are too long for columns: a line each, within the width, or 100. */
static void test_blocks(void **state UNUSED)
{
	static const struct column of_rules[] = {
		{"rule", "rule", CELL_TEXT, 0},
		{"warn", "warn", CELL_NUMBER, 0},
		{"means", "means", CELL_TEXT, 0},
		{"source", "source", CELL_TEXT, 0},
	};
	static const char *const drawn[] = {
		[0] = "hot  warn 90.00\n"
		      "    means: one two three four five six seven eight nine ten eleven twelve "
		      "thirteen fourteen fifteen\n"
		      "      sixteen\n"
		      "cold\n"
		      "    means: short\n"
		      "    source: a\\tbook\n",
		[30] = "hot  warn 90.00\n"
		       "    means: one two three four\n"
		       "      five six seven eight\n"
		       "      nine ten eleven twelve\n"
		       "      thirteen fourteen\n"
		       "      fifteen sixteen\n"
		       "cold\n"
		       "    means: short\n"
		       "    source: a\\tbook\n",
	};

	for (unsigned width = 0; width <= 30; width += 30) {
		struct result r;
		size_t s;

		result_init(&r, "inspect.test/1");
		s = result_section(&r, "rules", "", of_rules, ARRAY_SIZE(of_rules));
		r.sections.v[s].blocks = true;
		result_row(&r, s,
			   (const struct cell[]){
				   cell_text(&r, "hot"), cell_double(CELL_NUMBER, 90),
				   cell_text(&r, "one two three four five six seven eight nine ten "
						 "eleven twelve thirteen fourteen fifteen sixteen"),
				   cell_text(&r, "")});
		result_row(&r, s,
			   (const struct cell[]){cell_text(&r, "cold"), cell_null(&r, "none"),
						 cell_text(&r, "short"), cell_text(&r, "a\tbook")});
		table = (struct table_options){.width = width};
		assert_draws(draw_table, &r, drawn[width]);
		result_release(&r);
	}
}

/* A column without a title has those of the next one; rows of one name are one paragraph. */
static void test_blocks_with_titles(void **state UNUSED)
{
	static const struct column of_advice[] = {{"what", "what", CELL_TEXT, 0},
						  {"kind", "", CELL_TEXT, 0},
						  {"text", "text", CELL_TEXT, 0}};
	static const char *const rows[][3] = {{"all CPUs", "why", "no right"},
					      {"all CPUs", "fix", "sudo"},
					      {"cgroups", "why", "none"}};
	struct result r;
	size_t s;

	result_init(&r, "inspect.test/1");
	s = result_section(&r, "advice", "", of_advice, ARRAY_SIZE(of_advice));
	r.sections.v[s].blocks = true;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		result_row(&r, s,
			   (const struct cell[]){cell_text(&r, rows[i][0]),
						 cell_text(&r, rows[i][1]),
						 cell_text(&r, rows[i][2])});
	table = (struct table_options){0};
	assert_draws(draw_table, &r,
		     "all CPUs\n    why: no right\n    fix: sudo\ncgroups\n    why: none\n");
	result_release(&r);
}

/* A command behind an arrow stays in one line where that has room for it. */
static void test_arrow(void **state UNUSED)
{
	static const struct {
		unsigned width;
		const char *drawn;
	} drawn[] = {
		{60, "# verdict: it waits, and waits → inspect offcpu -a -d 10\n"},
		{40, "# verdict: it waits, and waits\n#   → inspect offcpu -a -d 10\n"},
		{20, "# verdict: it waits,\n#   and waits →\n#   inspect offcpu\n#   -a -d 10\n"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(drawn); i++) {
		struct result r;

		result_init(&r, "inspect.test/1");
		result_fact(&r, "", "verdict",
			    cell_text(&r, "it waits, and waits → inspect offcpu -a -d 10"));
		table = (struct table_options){.width = drawn[i].width};
		assert_draws(draw_table, &r, drawn[i].drawn);
		result_release(&r);
	}
}

static const struct column detail[] = {{"module", "", CELL_TEXT, COLUMN_DATA_ONLY}};
static const struct column plain[] = {{"name", "name", CELL_TEXT, 0}};

/* Sections of one key are one array, details are for JSON alone, other tables are told apart. */
static void test_sections(void **state UNUSED)
{
	struct cell cell;
	struct result r;

	result_init(&r, "inspect.test/1");
	cell = cell_text(&r, "one");
	result_row(&r, result_section(&r, "names", "first", plain, 1), &cell);
	cell = cell_text(&r, "libc");
	result_row(&r, result_section(&r, "unknown", "", detail, 1), &cell);
	cell = cell_text(&r, "two");
	result_row(&r, result_section(&r, "names", "second", plain, 1), &cell);
	table = (struct table_options){0};
	assert_draws(draw_table, &r, "# first\nname\none\n\n# second\nname\ntwo\n");
	assert_draws(result_csv, &r, "name\none\ntwo\n");
	assert_draws(result_json, &r,
		     "{\n"
		     "  \"schema\": \"inspect.test/1\",\n"
		     "  \"notes\": [],\n"
		     "  \"names\": [\n"
		     "    {\n      \"name\": \"one\"\n    },\n"
		     "    {\n      \"name\": \"two\"\n    }\n"
		     "  ],\n"
		     "  \"unknown\": [\n    {\n      \"module\": \"libc\"\n    }\n  ]\n"
		     "}\n");

	result_section(&r, "others", "", plain, 1);
	assert_draws(result_csv, &r, "section,name\nnames,one\nnames,two\n\nsection,name\n");
	assert_draws(draw_table, &r,
		     "# first\nname\none\n\n# second\nname\ntwo\n\n# (nothing to show)\n");
	result_release(&r);
}

/* Spare columns go from the last on, only in the table, and it says so. */
static void test_spare_columns(void **state UNUSED)
{
	static const struct column spare[] = {
		{"metric", "metric", CELL_TEXT, 0},
		{"mean", "mean", CELL_COUNT, 0},
		{"min", "smallest", CELL_COUNT, COLUMN_SPARE},
		{"max", "largest", CELL_COUNT, COLUMN_SPARE},
		{"note", "", CELL_TEXT, COLUMN_CUT},
	};
	struct result r;
	const struct cell *cells;

	result_init(&r, "inspect.test/1");
	cells = (const struct cell[]){cell_text(&r, "wall"), cell_u64(CELL_COUNT, 5),
				      cell_u64(CELL_COUNT, 1), cell_null(&r, "why"),
				      cell_text(&r, "a note of thirty-six columns, no more")};
	result_row(&r, result_section(&r, "metrics", "", spare, ARRAY_SIZE(spare)), cells);
	table = (struct table_options){.width = 64};
	assert_draws(draw_table, &r,
		     "metric  mean  smallest  largest  \n"
		     "wall       5         1        -  a note of thirt…olumns, no more\n"
		     "# note: \"-\" of wall: why\n");
	table.width = 48;
	assert_draws(draw_table, &r,
		     "metric  mean  smallest  \n"
		     "wall       5         1  a note of t…mns, no more\n"
		     "# note: columns left out for the width: largest\n"
		     "#   (--json has all)\n");
	table.width = 38;
	assert_draws(draw_table, &r,
		     "metric  mean  \n"
		     "wall       5  a note of t…mns, no more\n"
		     "# note: columns left out for the\n"
		     "#   width: smallest, largest (--json\n"
		     "#   has all)\n");
	assert_draws(result_csv, &r,
		     "metric,mean,min,max,note\n"
		     "wall,5,1,,\"a note of thirty-six columns, no more\"\n");
	result_release(&r);
}

/* A result that could not be filled is refused by all. */
static void test_failed(void **state UNUSED)
{
	struct result r;

	fill(&r);
	r.failed = true;
	table = (struct table_options){0};
	assert_int_equal(result_table(&r, &table, stdout), -ENOMEM);
	assert_int_equal(result_json(&r, stdout), -ENOMEM);
	assert_int_equal(result_csv(&r, stdout), -ENOMEM);
	assert_int_equal(result_markdown(&r, stdout), -ENOMEM);
	result_release(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_table),
		cmocka_unit_test(test_table_width),
		cmocka_unit_test(test_table_limit),
		cmocka_unit_test(test_blocks),
		cmocka_unit_test(test_blocks_with_titles),
		cmocka_unit_test(test_arrow),
		cmocka_unit_test(test_table_color),
		cmocka_unit_test(test_json),
		cmocka_unit_test(test_csv),
		cmocka_unit_test(test_markdown),
		cmocka_unit_test(test_sections),
		cmocka_unit_test(test_spare_columns),
		cmocka_unit_test(test_failed),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
