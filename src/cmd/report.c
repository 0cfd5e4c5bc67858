/* SPDX-License-Identifier: BSD-2-Clause */
#include "input.h"
#include "output_file.h"
#include "print_result.h"
#include "quality.h"
#include "quality_gate.h"
#include "report_view.h"

#include <inspect/capture.h>
#include <inspect/clock.h>
#include <inspect/command.h>
#include <inspect/near_miss.h>
#include <inspect/options.h>

enum { ROWS_SHOWN = 40 };
#define MIN_PERCENT 0.5

struct time_range {
	uint64_t from_ns, to_ns;
};

struct report_values {
	struct sort_order sort;
	const char *callers, *callees;
	bool tree, all;
	unsigned top;
	double min_percent;
	const char *comm, *dso, *symbol;
	unsigned pid, tid;
	struct time_range time;
	struct input_options input;
	struct naming_options naming;
	struct common_options common;
	struct quality_gate gate;
};

/* "0" and nothing are times here, but no durations. */
static int parse_point(const char *s, size_t n, uint64_t empty, uint64_t *ret)
{
	char text[64];

	if (!n || n >= sizeof(text)) {
		*ret = empty;
		return n ? -EINVAL : 0;
	}
	memcpy(text, s, n);
	text[n] = '\0';
	if (strspn(text, "0.") == n) {
		*ret = 0;
		return 0;
	}
	return duration_parse(text, NSEC_PER_SEC, ret);
}

static int parse_time_range(void *value, const char *arg, struct diag *d)
{
	const char *comma = strchr(arg, ',');
	struct time_range range;

	if (!comma || parse_point(arg, (size_t)(comma - arg), 0, &range.from_ns) ||
	    parse_point(comma + 1, strlen(comma + 1), UINT64_MAX, &range.to_ns))
		return diag_set(d, -EINVAL, "not FROM,TO in seconds from the start, such as 2,5.5");
	if (range.from_ns >= range.to_ns)
		return diag_set(d, -EINVAL, "FROM is not before TO");
	*(struct time_range *)value = range;
	return 0;
}

#define OWN(field) offsetof(struct report_values, field)

static const struct option view_options[] = {
	{.name = "sort",
	 .letter = 's',
	 .arg = "KEY,…",
	 .type = OPTION_CUSTOM,
	 .offset = OWN(sort),
	 .help = "group by comm, pid, tid, dso, symbol, srcline (default: symbol,dso)",
	 .parse = sort_order_parse},
	{.name = "tree",
	 .type = OPTION_FLAG,
	 .offset = OWN(tree),
	 .help = "the merged call stacks as a tree, from main down"},
	{.name = "callers",
	 .arg = "FUNC",
	 .type = OPTION_STRING,
	 .offset = OWN(callers),
	 .help = "who calls FUNC (its name, or a part that only one name has)"},
	{.name = "callees",
	 .arg = "FUNC",
	 .type = OPTION_STRING,
	 .offset = OWN(callees),
	 .help = "what FUNC calls"},
	{.name = "min-percent",
	 .arg = "P",
	 .type = OPTION_PERCENT,
	 .offset = OWN(min_percent),
	 .help = "leave out branches of a tree below P percent (default 0.5)"},
	{.name = "top",
	 .arg = "N",
	 .type = OPTION_UNSIGNED,
	 .offset = OWN(top),
	 .help = "the first N rows (default 40; --json and --csv: all)"},
	{.name = "all", .type = OPTION_FLAG, .offset = OWN(all), .help = "all rows"},
	{.name = "percent-limit",
	 .type = OPTION_REJECTED,
	 .help = "--min-percent P (branches of a tree), or --top N (rows)"},
	{.name = "inverted",
	 .letter = 'G',
	 .type = OPTION_REJECTED,
	 .help = "--callers FUNC, or --tree"},
	/* With its value attached; drop_graph_option takes the other forms. */
	{.name = "call-graph", .letter = 'g', .arg = "MODE", .type = OPTION_IGNORED},
	{0},
};

static const struct option filter_options[] = {
	{.name = "comm",
	 .arg = "NAME",
	 .type = OPTION_STRING,
	 .offset = OWN(comm),
	 .help = "only threads of this name"},
	{.name = "pid",
	 .arg = "PID",
	 .type = OPTION_UNSIGNED,
	 .offset = OWN(pid),
	 .help = "only this process"},
	{.name = "tid",
	 .arg = "TID",
	 .type = OPTION_UNSIGNED,
	 .offset = OWN(tid),
	 .help = "only this thread"},
	{.name = "dso",
	 .arg = "MODULE",
	 .type = OPTION_STRING,
	 .offset = OWN(dso),
	 .help = "only samples that were taken in this program or library"},
	{.name = "symbol",
	 .arg = "FUNC",
	 .type = OPTION_STRING,
	 .offset = OWN(symbol),
	 .help = "only samples that were taken in this function"},
	{.name = "symbols",
	 .letter = 'S',
	 .arg = "FUNC",
	 .type = OPTION_STRING,
	 .offset = OWN(symbol)},
	{.name = "comms", .arg = "NAME", .type = OPTION_STRING, .offset = OWN(comm)},
	{.name = "dsos", .arg = "MODULE", .type = OPTION_STRING, .offset = OWN(dso)},
	{.name = "time",
	 .arg = "FROM,TO",
	 .type = OPTION_CUSTOM,
	 .offset = OWN(time),
	 .help = "only this part, in seconds from the first sample: 2,5.5 or 10,",
	 .parse = parse_time_range},
	{0},
};

static const struct option_group view_group = {"Table", view_options};
static const struct option_group filter_group = {"Filters", filter_options};

enum { BINDINGS = 7 };

static void bind(struct report_values *v, struct option_binding *ret)
{
	ret[0] = (struct option_binding){&view_group, v};
	ret[1] = (struct option_binding){&filter_group, v};
	ret[2] = (struct option_binding){&input_option_group, &v->input};
	ret[3] = (struct option_binding){&naming_option_group, &v->naming};
	ret[4] = (struct option_binding){&common_option_group, &v->common};
	ret[5] = (struct option_binding){&quality_option_group, &v->gate};
	ret[6] = (struct option_binding){&reading_habit_group, NULL};
}

/*
 * perf's -g has an optional value, which no option here has: it is taken out. Call graphs are
 * --tree, --callers and --callees.
 */
static int drop_graph_option(int argc, char **argv)
{
	static const char *const modes[] = {"none",   "graph",  "flat",  "fractal",
					    "folded", "caller", "callee"};
	int n = 0;

	for (int i = 0; i < argc; i++) {
		const char *next = i + 1 < argc ? argv[i + 1] : "";

		if (!str_eq(argv[i], "-g") && !str_eq(argv[i], "--call-graph")) {
			argv[n++] = argv[i];
			continue;
		}
		for (size_t k = 0; k < ARRAY_SIZE(modes); k++)
			if (str_eq(next, modes[k]) ||
			    (str_starts(next, modes[k]) && next[strlen(modes[k])] == ',')) {
				i++;
				break;
			}
	}
	argv[n] = NULL;
	return n;
}

static int check_options(const struct report_values *v, const struct operands *operands,
			 struct diag *d)
{
	bool calls = v->callers || v->callees;
	int err = options_conflict("--callers", v->callers, "--callees", v->callees, d);

	if (!err)
		err = options_conflict("--tree", v->tree, v->callers ? "--callers" : "--callees",
				       calls, d);
	if (!err)
		err = options_conflict("--sort", v->sort.n,
				       v->tree ? "--tree" : "--callers/--callees", v->tree || calls,
				       d);
	if (!err)
		err = options_conflict("--json", v->common.json, "--csv", v->common.csv, d);
	if (!err)
		err = options_conflict("--top", v->top, "--all", v->all, d);
	if (!err && operands->n > !v->input.file)
		err = diag_set(d, -EINVAL, "one FILE at a time: '%s' is one too many",
			       operands->v[operands->n - 1]);
	return err;
}

/* Functions have the longest names: at the end of a row nothing has to stand behind them. */
static void function_last(struct sort_order *o)
{
	size_t n = 0;

	for (size_t i = 0; i < o->n; i++)
		if (o->keys[i] != REPORT_SYMBOL)
			o->keys[n++] = o->keys[i];
	if (n < o->n)
		o->keys[n] = REPORT_SYMBOL;
}

static void view_of(const struct report_values *v, struct report_view *ret)
{
	*ret = (struct report_view){
		.sort = v->sort,
		.direction = v->callers   ? CALLS_INTO
			     : v->callees ? CALLS_FROM
					  : CALLS_ALL,
		.function = v->callers ? v->callers : v->callees,
		.tree = v->tree || v->callers || v->callees,
		.min_percent = v->min_percent,
		.limit = v->all   ? 0
			 : v->top ? v->top
				  : ROWS_SHOWN,
		.top_given = v->top,
		.limit_data = v->top && (v->common.json || v->common.csv),
	};
	if (!ret->sort.n)
		ret->sort = (struct sort_order){.keys = {REPORT_DSO, REPORT_SYMBOL}, .n = 2};
	function_last(&ret->sort);
}

typedef const char *name_of(const struct profile *p, size_t i);

static const char *module_at(const struct profile *p, size_t i)
{
	return i < p->symbols.n ? intern_str(&p->strings, p->symbols.v[i].module) : NULL;
}

static const char *function_at(const struct profile *p, size_t i)
{
	return i < p->symbols.n ? intern_str(&p->strings, p->symbols.v[i].name) : NULL;
}

static const char *comm_at(const struct profile *p, size_t i)
{
	return i < p->threads.n ? intern_str(&p->strings, p->threads.v[i].comm) : NULL;
}

/* Names that hold the word, or are spelt nearly so; "" when none is. */
static const char *near_names(struct result *r, const struct profile *p, name_of *name,
			      const char *word)
{
	struct near_misses near = {.word = word};
	const char *text = "", *last = "", *s;
	size_t n = 0;

	for (size_t i = 0; (s = name(p, i)); i++) {
		if (str_eq(s, word))
			return ""; /* the other filters leave nothing of it */
		near_misses_add(&near, s);
		if (n >= NEAR_MISS_BEST || !strcasestr(s, word) || str_eq(s, last) ||
		    strstr(text, result_text(r, "%s,", s)))
			continue;
		text = result_text(r, "%s%s,", text, s);
		last = s;
		n++;
	}
	for (size_t i = 0; i < near.n && !n; i++)
		text = result_text(r, "%s%s,", text, near.best[i].name);
	return *text ? result_text(r, "%.*s", (int)strlen(text) - 1, text) : "";
}

static void note_filters(struct result *r, const struct report_values *v, const struct profile *p)
{
	const struct {
		const char *option, *word;
		name_of *name;
	} filters[] = {{"--dso", v->dso, module_at},
		       {"--symbol", v->symbol, function_at},
		       {"--comm", v->comm, comm_at}};

	result_note(r, "no sample passes the filters");
	for (size_t i = 0; i < ARRAY_SIZE(filters); i++) {
		const char *names =
			filters[i].word ? near_names(r, p, filters[i].name, filters[i].word) : "";

		if (*names)
			result_note(r, "%s %s: there is no such name, but %s", filters[i].option,
				    filters[i].word, names);
	}
}

static int fill(struct result *r, const struct report_values *v, const struct profile *p,
		const char *path, struct diag *d)
{
	struct report_view view;
	int err;

	view_of(v, &view);
	input_facts(r, p, path, "");
	quality_facts(r, p);
	for (size_t i = 0; i < p->notes.n; i++)
		result_note(r, "%s", p->notes.v[i]);
	if (!p->rows.n && p->losses.filtered)
		note_filters(r, v, p);
	err = report_view_add(r, p, &view, d);
	return err ? err : r->failed ? diag_errno(d, -ENOMEM, "report") : 0;
}

static int report(const struct report_values *v, const struct operands *operands, int *exit_code,
		  struct diag *d)
{
	CLEANUP(profile_freep) struct profile *p = NULL;
	CLEANUP(result_release) struct result r;
	struct load_options lo = {
		.filter = {.comm = v->comm,
			   .dso = v->dso,
			   .symbol = v->symbol,
			   .pid = v->pid,
			   .tid = v->tid,
			   .time_from_ns = v->time.from_ns,
			   .time_to_ns = v->time.to_ns},
		.naming = v->naming,
	};
	const char *path = v->input.file ? v->input.file : operands->n ? operands->v[0] : NULL;
	bool is_default = !path;
	int err;

	result_init(&r, "inspect.report/1");
	if (is_default)
		path = default_input("report", v->common.quiet);
	err = output_file_check(v->common.markdown, &path, 1, d);
	if (!err)
		err = profile_load(path, &lo, &p, d);
	if (err)
		return err;
	if (is_default && str_eq(path, "perf.data"))
		result_note(&r, "there is no inspect.data here: perf.data was read");
	err = fill(&r, v, p, path, d);
	if (!err)
		err = print_result(&r, &v->common, v->all, d);
	if (!err)
		*exit_code = quality_gate_check(&v->gate, p, d);
	return err;
}

static int run(int argc, char **argv, struct diag *d, bool *json)
{
	struct report_values v = {.min_percent = MIN_PERCENT};
	struct option_binding bindings[BINDINGS];
	CLEANUP(freep) char **words = calloc((size_t)argc + 1, sizeof(*words));
	struct operands operands;
	int exit_code = 0;
	int err;

	if (!words) {
		diag_errno(d, -ENOMEM, "report");
		return EXIT_OWN_FAILURE;
	}
	memcpy(words, argv, (size_t)argc * sizeof(*words));
	bind(&v, bindings);
	err = options_parse(bindings, BINDINGS, drop_graph_option(argc, words), words, false,
			    &operands, d);
	*json = v.common.json;
	if (!err)
		err = check_options(&v, &operands, d);
	if (err)
		return EXIT_USAGE;
	return report(&v, &operands, &exit_code, d) ? EXIT_OWN_FAILURE : exit_code;
}

static void help(FILE *out)
{
	struct report_values v = {0};
	struct option_binding bindings[BINDINGS];

	bind(&v, bindings);
	options_help(bindings, BINDINGS, out);
}

const struct command command_report = {
	.name = "report",
	.summary = "table of the functions that a recording found busy",
	.question = "Which functions take the CPU time?",
	.usage = "report [OPTIONS] [FILE]\n"
		 "report --callers FUNC | --callees FUNC | --tree [OPTIONS] [FILE]\n"
		 "perf script | inspect report [OPTIONS] -",
	.help = help,
	.run = run,
};
