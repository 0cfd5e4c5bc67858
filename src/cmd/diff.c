/* SPDX-License-Identifier: BSD-2-Clause */
#include "input.h"
#include "output_file.h"
#include "print_result.h"

#include <inspect/capture.h>
#include <inspect/clock.h>
#include <inspect/command.h>
#include <inspect/options.h>
#include <inspect/report.h>

enum { ROWS_SHOWN = 40 };

struct diff_values {
	bool total, all;
	unsigned top;
	struct naming_options naming;
	struct common_options common;
};

#define OWN(field) offsetof(struct diff_values, field)

static const struct option own_options[] = {
	{.name = "total",
	 .type = OPTION_FLAG,
	 .offset = OWN(total),
	 .help = "compare functions with what they call (default: by themselves)"},
	{.name = "top",
	 .arg = "N",
	 .type = OPTION_UNSIGNED,
	 .offset = OWN(top),
	 .help = "the first N rows (default 40; --json and --csv: all)"},
	{.name = "all", .type = OPTION_FLAG, .offset = OWN(all), .help = "all rows"},
	{0},
};
static const struct option_group own_group = {"Table", own_options};

enum { BINDINGS = 4 };

static void bind(struct diff_values *v, struct option_binding *ret)
{
	ret[0] = (struct option_binding){&own_group, v};
	ret[1] = (struct option_binding){&naming_option_group, &v->naming};
	ret[2] = (struct option_binding){&common_option_group, &v->common};
	ret[3] = (struct option_binding){&reading_habit_group, NULL};
}

/* Both inputs while the result is filled. */
struct comparison {
	struct result *r;
	const struct diff_values *v;
	const char *paths[2];
	struct profile *profiles[2]; /* before, after */
	size_t significant;
};

static void comparison_release(struct comparison *c)
{
	profile_free(c->profiles[0]);
	profile_free(c->profiles[1]);
}

/* --- rows ------------------------------------------------------------------------------------- */

static const struct column diff_columns[] = {
	{"before_percent", "before", CELL_PERCENT, 0},
	{"after_percent", "after", CELL_PERCENT, 0},
	{"difference_points", "points", CELL_NUMBER, COLUMN_SIGNED},
	{"noise_points", "±noise", CELL_NUMBER, 0},
	{"", "", CELL_TEXT, COLUMN_TABLE_ONLY},
	{"module", "module", CELL_TEXT, 0},
	{"function", "function", CELL_TEXT, COLUMN_CUT},
	{"significant", "", CELL_BOOL, COLUMN_DATA_ONLY},
	{"state", "", CELL_TEXT, COLUMN_DATA_ONLY},
	{"before_samples", "", CELL_COUNT, COLUMN_DATA_ONLY},
	{"after_samples", "", CELL_COUNT, COLUMN_DATA_ONLY},
	{"event", "", CELL_TEXT, COLUMN_DATA_ONLY},
};

/* Unnamed code is compared by module: what is shown must not be the address of one of it. */
static const char *row_name(struct comparison *c, const struct diff_row *row)
{
	bool is_after = row->after_symbol != SYMBOL_NONE;
	uint32_t symbol = is_after ? row->after_symbol : row->before_symbol;
	const struct profile *p = c->profiles[is_after];
	const char *module = report_symbol_module(p, symbol);

	if (symbol == SYMBOL_NONE || !p->symbols.v[symbol].unknown)
		return report_symbol_name(p, symbol);
	if (!*module)
		return "[unknown]";
	return module[0] == '[' ? module : result_text(c->r, "[%s]", module);
}

static const char *row_module(struct comparison *c, const struct diff_row *row)
{
	const char *before = report_symbol_module(c->profiles[0], row->before_symbol);
	const char *after = report_symbol_module(c->profiles[1], row->after_symbol);

	if (row->after_symbol == SYMBOL_NONE)
		return before;
	if (row->before_symbol == SYMBOL_NONE || str_eq(before, after))
		return after;
	return result_text(c->r, "%s → %s", before, after);
}

static void add_row(struct comparison *c, size_t section, const struct diff_row *row,
		    const char *event)
{
	bool is_new = row->before_percent <= 0, is_gone = row->after_percent <= 0;
	const char *state = is_new ? "new" : is_gone ? "gone" : "both";
	const char *mark = is_new || is_gone ? state : "";

	if (row->significant) {
		c->significant++;
		mark = *mark ? result_text(c->r, "* %s", mark) : "*";
	}
	result_row(c->r, section,
		   (const struct cell[]){
			   cell_double(CELL_PERCENT, row->before_percent),
			   cell_double(CELL_PERCENT, row->after_percent),
			   cell_double(CELL_NUMBER, row->difference),
			   cell_double(CELL_NUMBER, row->noise),
			   cell_borrowed(mark),
			   cell_borrowed(row_module(c, row)),
			   cell_borrowed(row_name(c, row)),
			   cell_bool(row->significant),
			   cell_borrowed(state),
			   cell_u64(CELL_COUNT, row->before_count),
			   cell_u64(CELL_COUNT, row->after_count),
			   cell_borrowed(event),
		   });
}

/* "495 samples, 4.95 s in 5.00 s" */
static const char *amount(struct comparison *c, size_t side, uint32_t event)
{
	const struct profile *p = c->profiles[side];
	const char *in = "";
	uint64_t weight, count;
	char duration[32];

	profile_totals(p, event, &weight, &count);
	if (p->duration_ns)
		in = result_text(c->r, " in %s",
				 duration_format(p->duration_ns, duration, sizeof(duration)));
	if (weight == count)
		return result_text(c->r, "%llu samples%s", (unsigned long long)count, in);
	return result_text(c->r, "%llu samples, %s%s", (unsigned long long)count,
			   weight_text(c->r, &p->events.v[event], weight), in);
}

static int add_section(struct comparison *c, uint32_t before_event, uint32_t after_event)
{
	CLEANUP(profile_diff_release) struct profile_diff diff = {0};
	const struct diff_input before = {c->profiles[0], before_event};
	const struct diff_input after = {c->profiles[1], after_event};
	const char *event = after.profile->events.v[after_event].name;
	bool is_data = c->v->common.json || c->v->common.csv;
	size_t section, rows, limit = c->v->all ? 0 : c->v->top ? c->v->top : ROWS_SHOWN;
	int err = profile_diff(&before, &after, c->v->total, &diff);

	if (err)
		return err;
	section = result_section(c->r, "functions",
				 result_text(c->r, "%s, %s: %s → %s", event,
					     c->v->total ? "with callees" : "self",
					     amount(c, 0, before_event), amount(c, 1, after_event)),
				 diff_columns, ARRAY_SIZE(diff_columns));
	/* A table says how many more there are. */
	rows = c->v->top && is_data ? MIN(diff.rows.n, limit) : diff.rows.n;
	for (size_t i = 0; i < rows; i++)
		add_row(c, section, &diff.rows.v[i], event);
	if (c->r->failed)
		return -ENOMEM;
	c->r->sections.v[section].limit = limit;
	c->r->sections.v[section].fits = !c->v->top;
	c->r->sections.v[section].more = "--all";
	return 0;
}

/* --- events ----------------------------------------------------------------------------------- */

static uint32_t find_event(const struct profile *p, const char *name)
{
	for (uint32_t i = 0; i < p->events.n; i++)
		if (str_eq(p->events.v[i].name, name))
			return i;
	return UINT32_MAX;
}

/* Events that only one file has cannot be compared. */
static size_t note_single_events(struct comparison *c, size_t side)
{
	const struct profile *p = c->profiles[side], *other = c->profiles[!side];
	size_t single = 0;

	for (size_t i = 0; i < p->events.n; i++) {
		if (find_event(other, p->events.v[i].name) != UINT32_MAX)
			continue;
		single++;
		result_note(c->r, "%s is only in %s", p->events.v[i].name, c->paths[side]);
	}
	return single;
}

static int add_sections(struct comparison *c, struct diag *d)
{
	const struct profile *before = c->profiles[0], *after = c->profiles[1];
	size_t single = note_single_events(c, 0);
	int err = 0;

	note_single_events(c, 1);
	/* One event each: shares of time by cycles and by cpu-clock are alike enough to look at. */
	if (before->events.n == 1 && after->events.n == 1)
		err = add_section(c, 0, 0);
	else if (single == before->events.n)
		return diag_set(d, -ENOENT, "%s and %s have no event in common", c->paths[0],
				c->paths[1]);
	else
		for (uint32_t i = 0; i < before->events.n && !err; i++) {
			uint32_t other = find_event(after, before->events.v[i].name);

			if (other != UINT32_MAX)
				err = add_section(c, i, other);
		}
	return err ? diag_errno(d, err, "diff") : 0;
}

/* --- head ------------------------------------------------------------------------------------- */

/* What is seldom there. */
static const char *damage_text(struct result *r, const struct losses *l)
{
	const struct {
		const char *what;
		uint64_t n;
	} parts[] = {{"without a stack", l->without_stack},
		     {"throttled", l->throttled},
		     {"late records", l->late},
		     {"damaged records", l->damaged}};
	const char *text = "";

	for (size_t i = 0; i < ARRAY_SIZE(parts); i++)
		if (parts[i].n)
			text = result_text(r, "%s, %llu %s", text, (unsigned long long)parts[i].n,
					   parts[i].what);
	return text;
}

static void add_facts(struct comparison *c, size_t side)
{
	static const char *const prefixes[] = {"before_", "after_"};
	static const char *const labels[] = {"before", "after"};
	const struct profile *p = c->profiles[side];
	const struct losses *l = &p->losses;
	const char *path = str_eq(c->paths[side], "-") ? "stdin" : c->paths[side];
	const struct {
		const char *key;
		uint64_t n;
	} counts[] = {{"samples", l->samples}, {"lost", l->lost}, {"truncated", l->truncated}};

	result_fact(c->r, "", labels[side],
		    cell_borrowed(result_text(
			    c->r, "%s: %llu samples, %llu lost, %llu truncated stacks%s%s%s", path,
			    (unsigned long long)l->samples, (unsigned long long)l->lost,
			    (unsigned long long)l->truncated, damage_text(c->r, l),
			    p->command ? ", of " : "", p->command ? p->command : "")));
	input_facts(c->r, p, c->paths[side], prefixes[side]);
	for (size_t i = 0; i < ARRAY_SIZE(counts); i++)
		result_fact(c->r, result_text(c->r, "%s%s", prefixes[side], counts[i].key), "",
			    cell_u64(CELL_COUNT, counts[i].n));
	result_fact(c->r, result_text(c->r, "%sduration_ns", prefixes[side]), "",
		    p->duration_ns ? cell_u64(CELL_NS, p->duration_ns)
				   : cell_null(c->r, "the input does not say how long it took"));
	for (size_t i = 0; i < p->notes.n; i++)
		result_note(c->r, "%s%s%s", str_starts(p->notes.v[i], path) ? "" : path,
			    str_starts(p->notes.v[i], path) ? "" : ": ", p->notes.v[i]);
}

/* Shares of nothing are no shares: every function would be new, or gone. */
static int check_samples(const struct comparison *c, struct diag *d)
{
	for (size_t i = 0; i < 2; i++) {
		if (c->profiles[i]->losses.samples)
			continue;
		diag_set(d, -ENODATA, "%s has no samples: nothing to compare", c->paths[i]);
		diag_why(d, "what was recorded used no CPU meanwhile, or met none of the events");
		diag_fix(d, "inspect record -o %s …      (again, for longer or with more -F)",
			 c->paths[i]);
		return -ENODATA;
	}
	return 0;
}

static int compare(struct comparison *c, struct diag *d)
{
	int err = check_samples(c, d);

	if (err)
		return err;
	add_facts(c, 0);
	add_facts(c, 1);
	err = add_sections(c, d);
	if (err)
		return err;
	result_note(c->r, "%s",
		    c->significant ? "* larger than the noise (two standard errors of sampling); "
				     "the others may be chance"
				   : "no difference is larger than the noise of sampling");
	return c->r->failed ? diag_errno(d, -ENOMEM, "diff") : 0;
}

/* AFTER may be piped in: `inspect record -o - … | inspect diff BEFORE`. */
static void choose_inputs(const struct diff_values *v, const struct operands *operands,
			  const char *ret_paths[2])
{
	const char *piped = operands->n == 1 ? default_input("diff", v->common.quiet) : "";

	ret_paths[0] = operands->n ? operands->v[0] : NULL;
	ret_paths[1] = operands->n > 1 ? operands->v[1] : str_eq(piped, "-") ? piped : NULL;
}

static int check_options(const struct diff_values *v, const struct operands *operands,
			 const char *const paths[2], struct diag *d)
{
	int err = options_conflict("--json", v->common.json, "--csv", v->common.csv, d);

	if (!err)
		err = options_conflict("--top", v->top, "--all", v->all, d);
	if (!err && operands->n <= 2 && paths[1] && str_eq(paths[0], "-") && str_eq(paths[1], "-"))
		err = diag_set(d, -EINVAL, "stdin cannot be both BEFORE and AFTER");
	if (!err)
		err = output_file_check(v->common.markdown, paths, 2, d);
	if (err || (operands->n <= 2 && paths[1]))
		return err;
	diag_set(d, -EINVAL, "two recordings are compared, not %zu", operands->n);
	diag_fix(d, "inspect diff BEFORE AFTER   (such as inspect.data.old inspect.data)");
	return -EINVAL;
}

static int diff(const struct diff_values *v, const char *const paths[2], struct diag *d)
{
	CLEANUP(result_release) struct result r;
	CLEANUP(comparison_release) struct comparison c = {.r = &r, .v = v};
	struct load_options lo = {.naming = v->naming};
	int err = 0;

	result_init(&r, "inspect.diff/1");
	for (size_t i = 0; i < 2 && !err; i++) {
		c.paths[i] = paths[i];
		err = profile_load(c.paths[i], &lo, &c.profiles[i], d);
	}
	if (!err)
		err = compare(&c, d);
	return err ? err : print_result(&r, &v->common, v->all, d);
}

static int run(int argc, char **argv, struct diag *d, bool *json)
{
	struct diff_values v = {0};
	struct option_binding bindings[BINDINGS];
	const char *paths[2] = {NULL};
	struct operands operands;
	int err;

	bind(&v, bindings);
	err = options_parse(bindings, BINDINGS, argc, argv, false, &operands, d);
	*json = v.common.json;
	if (!err)
		choose_inputs(&v, &operands, paths);
	if (!err)
		err = check_options(&v, &operands, paths, d);
	if (err)
		return err == -EINVAL || err == -ECANCELED ? EXIT_USAGE : EXIT_OWN_FAILURE;
	return diff(&v, paths, d) ? EXIT_OWN_FAILURE : 0;
}

static void help(FILE *out)
{
	struct diff_values v = {0};
	struct option_binding bindings[BINDINGS];

	bind(&v, bindings);
	options_help(bindings, BINDINGS, out);
}

const struct command command_diff = {
	.name = "diff",
	.summary = "what changed between two recordings, function by function",
	.question = "Did my change help?",
	.usage = "diff [OPTIONS] BEFORE AFTER",
	.help = help,
	.run = run,
};
