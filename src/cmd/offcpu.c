/* SPDX-License-Identifier: BSD-2-Clause */
#include "measure.h"
#include "offcpu_view.h"
#include "output_file.h"
#include "print_result.h"
#include "quality.h"
#include "quality_gate.h"

#include <inspect/clock.h>
#include <inspect/command.h>
#include <inspect/render.h>
#include <inspect/shell_words.h>
#include <inspect/term.h>

enum { BINDINGS_MAX = 16, STACKS_SHOWN = 3 };

/* Not said: all in data, some for people. */
#define STACKS_BY_OUTPUT UINT64_MAX

struct offcpu_values {
	struct measure_options measure;
	struct common_options common;
	struct quality_gate gate;
	struct waits_config waits;
	const char *output, *flame;
	uint64_t top_stacks;
	unsigned call_graph; /* auto, none */
	bool all;
};

#define OWN(field) offsetof(struct offcpu_values, field)

static const struct option own_options[] = {
	{.name = "min-wait",
	 .arg = "TIME",
	 .type = OPTION_DURATION,
	 .offset = OWN(waits.min_wait_ns),
	 .help = "leave shorter waits out (1ms); they are still in no other class"},
	{.name = "max-wait",
	 .arg = "TIME",
	 .type = OPTION_DURATION,
	 .offset = OWN(waits.max_wait_ns),
	 .help = "leave longer waits out"},
	{.name = "wakers",
	 .type = OPTION_FLAG,
	 .offset = OWN(waits.chains),
	 .help = "above each wait, in pictures and files: who woke whom, and where"},
	{.name = "loop",
	 .type = OPTION_FLAG,
	 .offset = OWN(waits.loops),
	 .help = "of event loops: how long from one wait for events until the next, and where"},
	{.name = "kthreads",
	 .type = OPTION_FLAG,
	 .offset = OWN(waits.kthreads),
	 .help = "with -a: the kernel's threads too"},
	{.name = "call-graph",
	 .arg = "auto|none",
	 .type = OPTION_CHOICE,
	 .offset = OWN(call_graph),
	 .choices = "auto|none",
	 .help = "none: reasons alone, at a third of the cost"},
	{.name = "user-only",
	 .type = OPTION_FLAG,
	 .offset = OWN(measure.sampling.user_only),
	 .help = "no kernel frames"},
	{.name = "kernel-only",
	 .type = OPTION_FLAG,
	 .offset = OWN(measure.sampling.kernel_only),
	 .help = "no user frames"},
	{.name = "max-stack",
	 .arg = "N",
	 .type = OPTION_CUSTOM,
	 .offset = OWN(measure.sampling.max_stack),
	 .help = "user frames of a stack, up to 1024 (default 127)",
	 .parse = options_max_stack},
	{.name = "mmap-pages",
	 .arg = "N",
	 .type = OPTION_CUSTOM,
	 .offset = OWN(measure.sampling.mmap_pages),
	 .help = "pages of each CPU's ring for stacks, a power of two",
	 .parse = options_mmap_pages},
	{.name = "output",
	 .letter = 'o',
	 .arg = "FILE",
	 .type = OPTION_STRING,
	 .offset = OWN(output),
	 .help = "write a perf.data file too: for report, flame, diff, perf"},
	{.name = "flame",
	 .arg = "FILE",
	 .type = OPTION_STRING,
	 .offset = OWN(flame),
	 .help = "write a flame graph (SVG) of the waits; - is stdout"},
	{.name = "stacks",
	 .arg = "N",
	 .type = OPTION_U64,
	 .offset = OWN(top_stacks),
	 .help = "of how many waits to show the stack (default 3; 0: none)"},
	{.name = "all", .type = OPTION_FLAG, .offset = OWN(all), .help = "every row"},
	{0},
};

static const struct option_group own_group = {"Waits", own_options};

static size_t bind(struct offcpu_values *v, struct option_binding *ret)
{
	size_t n = 0;

	ret[n++] = (struct option_binding){&own_group, v};
	ret[n++] = (struct option_binding){&target_option_group, &v->measure.target};
	ret[n++] = (struct option_binding){&duration_option_group, &v->measure.duration};
	ret[n++] = (struct option_binding){&naming_option_group, &v->measure.naming};
	ret[n++] = (struct option_binding){&quality_option_group, &v->gate};
	ret[n++] = (struct option_binding){&common_option_group, &v->common};
	ret[n++] = (struct option_binding){&wait_habit_group, NULL};
	ret[n++] = (struct option_binding){&measuring_habit_group, NULL};
	return n;
}

static bool wants_data(const struct offcpu_values *v)
{
	return v->common.json || v->common.csv || v->common.markdown;
}

static int check_options(struct offcpu_values *v, struct diag *d)
{
	bool flame_to_stdout = v->flame && output_is_stdout(v->flame);
	int err = options_conflict("--flame -", flame_to_stdout, "--json, --csv or --markdown",
				   wants_data(v), d);

	if (!err && v->waits.max_wait_ns && v->waits.max_wait_ns < v->waits.min_wait_ns)
		err = diag_set(d, -EINVAL, "--max-wait is below --min-wait: no wait is left");
	if (!err && v->output && str_eq(v->output, "-"))
		err = diag_set(d, -EINVAL, "-o writes a file beside the tables: stdout is theirs");
	if (!err && v->flame && v->call_graph)
		err = options_conflict("--flame", true, "--call-graph none", true, d);
	if (!err && v->flame)
		err = output_file_check(v->flame, NULL, 0, d);
	return err;
}

static int draw(const struct offcpu_values *v, const struct profile *p, struct diag *d)
{
	struct flame_options fo = {.title = "Off-CPU time", .event = -1};
	struct output_file f;
	int err = output_file_open(&f, v->flame, d);

	return err ? err : output_file_close(&f, flame_svg(p, &fo, f.out), d);
}

/* Who waits for a lock all through may be in a deadlock: who holds it is asked of the process,
 * while that is there. */
static void put_next(struct strbuf *line, const struct offcpu_values *v, const struct waits *w)
{
	CLEANUP(strbuf_release) struct strbuf word = {0};
	uint32_t stuck = waits_stuck(w);
	char path[32];

	snprintf(path, sizeof(path), "/proc/%u", stuck);
	if (stuck && access(path, F_OK) == 0) {
		strbuf_printf(line, " → inspect stack -p %u", stuck);
		return;
	}
	strbuf_puts(line, v->output ? " → inspect flame " : " → --flame FILE");
	if (v->output) {
		shell_word_put(&word, v->output);
		term_escape(line, strbuf_str(&word), word.n);
	}
}

static void put_headline(struct result *r, const struct offcpu_values *v,
			 const struct offcpu_view *view, FILE *out)
{
	CLEANUP(strbuf_release) struct strbuf line = {0}, ascii = {0};

	offcpu_headline(&line, view);
	result_fact(r, "summary", "", cell_text(r, strbuf_str(&line)));
	if (view->recording->load.n_throttled >= 0)
		result_fact(r, "nr_throttled", "",
			    cell_u64(CELL_COUNT, (uint64_t)view->recording->load.n_throttled));
	if (wants_data(v) || !out)
		return;
	put_next(&line, v, view->waits);
	if (!term_is_utf8())
		term_ascii(&ascii, strbuf_str(&line));
	fprintf(out, "%s\n", strbuf_str(term_is_utf8() ? &line : &ascii));
}

static int print(const struct offcpu_values *v, const struct recording *rec, struct diag *d)
{
	CLEANUP(result_release) struct result r;
	CLEANUP(wait_groups_release) struct wait_groups groups;
	bool to_stderr = v->flame && output_is_stdout(v->flame), as_text = !wants_data(v);
	struct offcpu_view view = {.recording = rec,
				   .waits = rec->waits,
				   .groups = &groups,
				   .stacks = v->top_stacks,
				   .all = v->all,
				   .with_loops = v->waits.loops,
				   .as_text = as_text};
	int fd = to_stderr ? STDERR_FILENO : STDOUT_FILENO;
	struct table_options o = {.width = term_width(fd),
				  .color = term_use_color(v->common.color, fd),
				  .ascii = !term_is_utf8()};
	FILE *out = to_stderr ? stderr : stdout;
	int err;

	if (v->top_stacks == STACKS_BY_OUTPUT && as_text)
		view.stacks = STACKS_SHOWN;
	result_init(&r, "inspect.offcpu/1");
	put_headline(&r, v, &view, out);
	quality_facts(&r, rec->profile);
	for (size_t i = 0; i < rec->profile->notes.n; i++)
		result_note(&r, "%s", rec->profile->notes.v[i]);
	err = wait_groups_make(rec->waits, rec->profile, as_text && !v->all, &groups);
	if (!err && as_text)
		wait_groups_add_queues(&groups, rec->waits);
	if (!err && groups.n)
		result_note(&r, "a wait ends with its wake-up; from then on a thread is runnable, "
				"until it runs; p50 and p99 are up to 11 %% off");
	if (!err)
		err = offcpu_tables(&r, &view);
	if (err)
		return diag_errno(d, err, "cannot print");
	if (to_stderr)
		err = diag_errno(d, result_table(&r, &o, out), "cannot print");
	else
		err = print_result(&r, &v->common, v->all, d);
	if (!err && as_text)
		err = diag_errno(d, offcpu_print_stacks(&r, &view, &o, out), "cannot print");
	return err;
}

static int watch(struct offcpu_values *v, const struct operands *operands, int argc, char **argv,
		 struct diag *d, int *exit_code)
{
	CLEANUP(freep) char *line = command_line_of(argc, argv);
	struct recording r = {0};
	struct measure m = {.target = {.cgroup_fd = -1}};
	int err = check_options(v, d);

	if (err)
		return err;
	v->measure.sampling.events = "cpu-clock"; /* nothing is sampled */
	v->measure.sampling.call_graph = v->call_graph ? CALL_GRAPH_NONE : CALL_GRAPH_AUTO;
	err = measure_prepare(&m, "offcpu", &v->measure, operands, d);
	m.config.waits = &v->waits;
	m.config.output = v->output;
	m.config.command_line = line;
	m.config.stdout_taken = wants_data(v) || (v->flame && output_is_stdout(v->flame));
	if (!err)
		err = recording_run(&m.config, &r, d);
	if (err) {
		*exit_code = r.child.exec_failed ? child_exit_code(&r.child) : EXIT_OWN_FAILURE;
		measure_release(&m);
		return err;
	}
	if (v->flame)
		err = draw(v, r.profile, d);
	if (!err && (!v->common.quiet || wants_data(v) || (!v->output && !v->flame)))
		err = print(v, &r, d);
	*exit_code = recording_exit_code(&r, &m.target);
	if (!err && !*exit_code)
		*exit_code = quality_gate_check(&v->gate, r.profile, d);
	measure_release(&m);
	recording_release(&r);
	return err;
}

static int run(int argc, char **argv, struct diag *d, bool *json)
{
	struct offcpu_values v = {.top_stacks = STACKS_BY_OUTPUT};
	struct option_binding bindings[BINDINGS_MAX];
	struct operands operands;
	int exit_code = 0;
	int err = options_parse(bindings, bind(&v, bindings), argc, argv, true, &operands, d);

	*json = v.common.json;
	if (!err)
		err = watch(&v, &operands, argc, argv, d, &exit_code);
	return err && !exit_code ? EXIT_OWN_FAILURE : exit_code;
}

static void help(FILE *out)
{
	struct offcpu_values v = {0};
	struct option_binding bindings[BINDINGS_MAX];

	options_help(bindings, bind(&v, bindings), out);
}

const struct command command_offcpu = {
	.name = "offcpu",
	.summary = "where threads wait, for what, and who wakes them",
	.question = "What do threads wait for?",
	.usage = "offcpu [OPTIONS] -p PID,… | -t TID,… | -a | --cgroup PATH [-d TIME]\n"
		 "offcpu [OPTIONS] [--] CMD…",
	.help = help,
	.run = run,
};
