/* SPDX-License-Identifier: BSD-2-Clause */
#include "gpu_choice.h"
#include "input.h"
#include "measure.h"
#include "output_file.h"
#include "quality_lines.h"

#include <inspect/command.h>
#include <inspect/render.h>
#include <inspect/term.h>

struct flame_values {
	struct measure_options measure;
	struct input_options input;
	struct common_options common;
	const char *output, *title, *event;
	bool folded, icicle, reverse;
	bool gpu;
	struct gpu_choice_options gpu_choice;
};

static void flame_values_release(struct flame_values *v)
{
	array_release(&v->gpu_choice.devices);
}

enum { BINDINGS_MAX = 16 };

#define OWN(field) offsetof(struct flame_values, field)

static const struct option own_options[] = {
	{.name = "output",
	 .letter = 'o',
	 .arg = "FILE",
	 .type = OPTION_STRING,
	 .offset = OWN(output),
	 .help = "write FILE instead of stdout (- is stdout)"},
	{.name = "title",
	 .arg = "TEXT",
	 .type = OPTION_STRING,
	 .offset = OWN(title),
	 .help = "heading of the picture"},
	{.name = "icicle",
	 .type = OPTION_FLAG,
	 .offset = OWN(icicle),
	 .help = "root at the top, growing downwards"},
	{.name = "reverse",
	 .type = OPTION_FLAG,
	 .offset = OWN(reverse),
	 .help = "merge stacks from the leaf: who calls what burns"},
	{.name = "folded",
	 .type = OPTION_FLAG,
	 .offset = OWN(folded),
	 .help = "write folded stacks (root;…;leaf N) instead of a picture"},
	{.name = "event",
	 .arg = "NAME",
	 .type = OPTION_STRING,
	 .offset = OWN(event),
	 .help = "which event of a file with several (default: the first)"},
	{0},
};

static const struct option_group own_group = {"Picture", own_options};

static const struct option gpu_options[] = {
	{.name = "gpu",
	 .type = OPTION_FLAG,
	 .offset = OWN(gpu),
	 .help = "time in calls of NVIDIA's driver, by the stack that made them"},
	{0},
};
static const struct option_group gpu_group = {"GPU drivers", gpu_options};

static size_t bind(struct flame_values *v, struct option_binding *ret)
{
	size_t n = 0;

	ret[n++] = (struct option_binding){&own_group, v};
	ret[n++] = (struct option_binding){&input_option_group, &v->input};
	ret[n++] = (struct option_binding){&target_option_group, &v->measure.target};
	ret[n++] = (struct option_binding){&sampling_option_group, &v->measure.sampling};
	ret[n++] = (struct option_binding){&gpu_group, v};
	ret[n++] = (struct option_binding){&gpu_choice_group, &v->gpu_choice};
	ret[n++] = (struct option_binding){&duration_option_group, &v->measure.duration};
	ret[n++] = (struct option_binding){&naming_option_group, &v->measure.naming};
	ret[n++] = (struct option_binding){&common_option_group, &v->common};
	ret[n++] = (struct option_binding){&measuring_habit_group, NULL};
	ret[n++] = (struct option_binding){&reading_habit_group, NULL};
	return n;
}

static bool is_live(const struct flame_values *v, const struct operands *o)
{
	const struct target_options *t = &v->measure.target;

	return t->pids || t->tids || t->all || t->cgroup || t->cpus || o->after_dashes == 0;
}

static const char *input_of(const struct flame_values *v, const struct operands *o)
{
	return v->input.file ? v->input.file : o->n ? o->v[0] : NULL;
}

static int load(const struct flame_values *v, const struct operands *o, struct profile **ret,
		struct diag *d)
{
	struct load_options lo = {.naming = v->measure.naming};

	const char *file = input_of(v, o);

	if (o->n > 1)
		return diag_set(d, -EINVAL, "one FILE at a time: '%s' is one too many", o->v[1]);
	if (!file)
		file = default_input("flame", v->common.quiet);
	if (output_file_check(v->output, &file, 1, d))
		return d->err;
	return profile_load(file, &lo, ret, d);
}

/* What --gpu measures with. */
struct gpu_parts {
	struct gpu_choice choice;
	struct gpu_calls_config calls;
	struct waits_config waits;
};

static void gpu_parts_release(struct gpu_parts *g)
{
	gpu_choice_release(&g->choice);
}

/* Calls in place of samples. */
static int choose_gpu(const struct flame_values *v, struct gpu_parts *g, struct measure *m,
		      struct diag *d)
{
	int err = gpu_choose(&v->gpu_choice, "flame --gpu", &m->notes, &g->choice, d);

	g->calls = (struct gpu_calls_config){.devices = &g->choice.devices,
					     .version = &g->choice.version};
	g->waits = (struct waits_config){.gpu = &g->calls};
	m->config.waits = &g->waits;
	return err;
}

static int measure(const struct flame_values *v, const struct operands *o, int argc, char **argv,
		   struct profile **ret, int *exit_code, struct diag *d)
{
	CLEANUP(freep) char *line = command_line_of(argc, argv);
	CLEANUP(gpu_parts_release) struct gpu_parts gpu = {0};
	struct measure_options options = v->measure;
	struct recording r = {0};
	struct measure m;
	int err;

	if (v->gpu)
		options.sampling.events = "cpu-clock"; /* none is opened */
	err = measure_prepare(&m, "flame", &options, o, d);
	if (!err && v->gpu)
		err = choose_gpu(v, &gpu, &m, d);
	m.config.command_line = line;
	m.config.stdout_taken = output_is_stdout(v->output);
	m.config.show_progress = !v->common.quiet && isatty(STDERR_FILENO);
	if (!err)
		err = recording_run(&m.config, &r, d);
	measure_release(&m);
	if (err) {
		*exit_code = r.child.exec_failed ? child_exit_code(&r.child) : EXIT_OWN_FAILURE;
		return err;
	}
	*ret = TAKE_PTR(r.profile);
	*exit_code = recording_exit_code(&r, &m.target);
	recording_release(&r);
	return 0;
}

static int find_event(const struct profile *p, const char *name, int *ret, struct diag *d)
{
	*ret = -1;
	if (!name)
		return 0;
	for (size_t i = 0; i < p->events.n; i++) {
		if (str_eq(p->events.v[i].name, name)) {
			*ret = (int)i;
			return 0;
		}
	}
	diag_set(d, -ENOENT, "no event '%s' in this profile", name);
	for (size_t i = 0; i < p->events.n; i++)
		diag_fix(d, "--event %s", p->events.v[i].name);
	return -ENOENT;
}

/* The picture holds every event and switches between them; folded text has room for one. */
static void choose_folded_event(const struct flame_values *v, const struct profile *p, int *event)
{
	if (!v->folded || *event >= 0 || p->events.n < 2)
		return;
	*event = 0;
	if (!v->common.quiet)
		fprintf(stderr,
			"inspect flame: %s alone, of %zu events; --event NAME takes another\n",
			p->events.v[0].name, p->events.n);
}

static int draw(const struct flame_values *v, const struct profile *p, struct diag *d)
{
	struct flame_options fo = {.title = v->title || !v->gpu ? v->title
								: gpu_choice_title(&v->gpu_choice),
				   .icicle = v->icicle,
				   .reverse = v->reverse,
				   .event = -1};
	struct output_file f;
	int err = find_event(p, v->event, &fo.event, d);

	if (err)
		return err;
	choose_folded_event(v, p, &fo.event);
	err = output_file_open(&f, v->output ? v->output : "-", d);
	if (err)
		return err;
	err = v->folded ? folded_write(p, fo.event, f.out) : flame_svg(p, &fo, f.out);
	return output_file_close(&f, err, d);
}

/* What the picture lacks is in it, but often nobody looks there: it is said here too. */
static void say_result(const struct flame_values *v, const struct profile *p)
{
	if (v->common.quiet)
		return;
	quality_lines("flame", p, stderr);
	if (!p->losses.samples)
		return;
	if (!v->folded && !output_is_stdout(v->output))
		fprintf(stderr, "wrote %s: open it in a browser (click zooms, / searches)\n",
			v->output);
}

/* Driver calls are all seen, with the user's stacks. */
static int check_gpu(const struct flame_values *v, const struct operands *o, struct diag *d)
{
	const struct sampling_options *s = &v->measure.sampling;
	const struct {
		const char *name;
		bool given;
	} others[] = {
		{"-e", s->events != NULL},
		{"-F", s->freq_hz != 0},
		{"-c", s->period != 0},
		{"--wall", s->wall},
		{"--kernel-only", s->kernel_only},
		{"--call-graph", s->call_graph != CALL_GRAPH_AUTO},
	};
	int err = 0;

	if (!v->gpu && gpu_choice_given(&v->gpu_choice))
		return diag_set(d, -EINVAL, "%s needs --gpu", gpu_choice_given(&v->gpu_choice));
	for (size_t i = 0; i < ARRAY_SIZE(others) && v->gpu && !err; i++)
		err = options_conflict("--gpu", true, others[i].name, others[i].given, d);
	if (!err && v->gpu && !is_live(v, o)) {
		err = diag_set(d, -EINVAL,
			       "--gpu measures: it needs -p, -t, -a, --cgroup or -- CMD");
		diag_fix(d, "inspect flame FILE      (of trace --gpu -c --by stack -o FILE)");
	}
	return err;
}

static int check_options(const struct flame_values *v, const struct operands *o, struct diag *d)
{
	int err = check_gpu(v, o, d);

	if (err)
		return err;
	if (v->common.csv || v->common.json || v->common.markdown) {
		diag_set(d, -EINVAL, "flame writes a picture or folded stacks, not tables");
		diag_fix(d, "inspect report %s",
			 v->common.csv    ? "--csv"
			 : v->common.json ? "--json"
					  : "--markdown FILE");
		return -EINVAL;
	}
	if (is_live(v, o) && o->n && o->after_dashes != 0 && output_is_recording(o->v[0])) {
		diag_set(d, -EINVAL,
			 "%s is a recording, and -p, -t, -a, -C and --cgroup measure anew: one or "
			 "the other",
			 o->v[0]);
		diag_fix(d, "inspect flame %s", o->v[0]);
		diag_fix(d, "inspect report --pid PID %s      (one process of it)", o->v[0]);
		return -EINVAL;
	}
	if (v->folded || !output_is_stdout(v->output) || !isatty(STDOUT_FILENO))
		return output_file_check(v->output, NULL, 0, d);
	diag_set(d, -EINVAL, "stdout is a terminal, and the picture is an SVG file");
	diag_fix(d, "inspect flame … > flame.svg");
	diag_fix(d, "inspect flame -o flame.svg …");
	diag_fix(d, "inspect report --tree   (the same as text)");
	return -EINVAL;
}

static int run(int argc, char **argv, struct diag *d, bool *json)
{
	CLEANUP(profile_freep) struct profile *p = NULL;
	CLEANUP(flame_values_release) struct flame_values v = {0};
	struct option_binding bindings[BINDINGS_MAX];
	struct operands operands;
	int exit_code = 0;
	int err = options_parse(bindings, bind(&v, bindings), argc, argv, false, &operands, d);

	*json = v.common.json;
	if (!err)
		err = check_options(&v, &operands, d);
	if (!err)
		err = is_live(&v, &operands) ? measure(&v, &operands, argc, argv, &p, &exit_code, d)
					     : load(&v, &operands, &p, d);
	if (!err)
		err = draw(&v, p, d);
	if (!err)
		say_result(&v, p);
	return err && !exit_code ? EXIT_OWN_FAILURE : exit_code;
}

static void help(FILE *out)
{
	struct flame_values v = {0};
	struct option_binding bindings[BINDINGS_MAX];

	options_help(bindings, bind(&v, bindings), out);
}

const struct command command_flame = {
	.name = "flame",
	.summary = "draw a flame graph (SVG) from a recording, from text, or live",
	.question = "Where does the time go, as a picture?",
	.usage = "flame [OPTIONS] [FILE]\n"
		 "flame [OPTIONS] -p PID,… | -t TID,… | -a | --cgroup PATH [-d TIME] > out.svg\n"
		 "flame [OPTIONS] -- CMD… > out.svg\n"
		 "flame --gpu [--device PATH] -p PID,… | -a | -- CMD… > out.svg\n"
		 "perf script | inspect flame [OPTIONS] > out.svg",
	.help = help,
	.run = run,
};
