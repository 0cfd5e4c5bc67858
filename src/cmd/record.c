/* SPDX-License-Identifier: BSD-2-Clause */
#include "measure.h"
#include "offcpu_view.h"
#include "print_result.h"
#include "quality.h"
#include "quality_gate.h"

#include <inspect/clock.h>
#include <inspect/command.h>
#include <inspect/render.h>
#include <inspect/shell_words.h>
#include <inspect/term.h>

enum { BINDINGS_MAX = 16 };
enum { TIMER_QUICK_NS = 100 * 1000 }; /* one that may be late each time */

struct record_values {
	struct measure_options measure;
	struct common_options common;
	struct quality_gate gate;
	const char *output;
};

static const struct option own_options[] = {
	{.name = "output",
	 .letter = 'o',
	 .arg = "FILE",
	 .type = OPTION_STRING,
	 .offset = offsetof(struct record_values, output),
	 .help = "perf.data file to write (default inspect.data; - is stdout)"},
	{0},
};

static const struct option_group own_group = {"Output", own_options};

static size_t bind(struct record_values *v, struct option_binding *ret)
{
	size_t n = 0;

	ret[n++] = (struct option_binding){&target_option_group, &v->measure.target};
	ret[n++] = (struct option_binding){&sampling_option_group, &v->measure.sampling};
	ret[n++] = (struct option_binding){&duration_option_group, &v->measure.duration};
	ret[n++] = (struct option_binding){&own_group, v};
	ret[n++] = (struct option_binding){&naming_option_group, &v->measure.naming};
	ret[n++] = (struct option_binding){&quality_option_group, &v->gate};
	ret[n++] = (struct option_binding){&common_option_group, &v->common};
	ret[n++] = (struct option_binding){&measuring_habit_group, NULL};
	return n;
}

/* Other tools' records write pictures; this one writes what pictures are made of. */
static int check_output(const char *output, struct diag *d)
{
	static const char *const endings[] = {".svg", ".html", ".json", ".txt", ".folded"};

	for (size_t i = 0; i < ARRAY_SIZE(endings); i++) {
		if (!str_ends(output, endings[i]))
			continue;
		diag_set(d, -EINVAL,
			 "record writes a perf.data file, and '%s' is to be something "
			 "else",
			 output);
		if (i == 0) {
			diag_fix(d, "inspect flame -p PID -d 10 -o %s   (records and draws)",
				 output);
			diag_fix(d, "inspect record -p PID -d 10 && inspect flame -o %s", output);
		} else {
			diag_fix(d, "inspect record -p PID -d 10 && inspect report");
		}
		return -EINVAL;
	}
	return 0;
}

static const struct column thread_columns[] = {
	{"pid", "pid", CELL_COUNT, 0},
	{"tid", "tid", CELL_COUNT, 0},
	{"share_percent", "share", CELL_PERCENT, 0},
	{"cpu_percent", "of a CPU", CELL_PERCENT, 0},
	{"samples", "samples", CELL_COUNT, 0},
	{"comm", "thread", CELL_TEXT, COLUMN_CUT},
};

/* With --wall, where people get a table of how each thread's time went. */
static const struct column wall_thread_columns[] = {
	{"pid", "pid", CELL_COUNT, COLUMN_DATA_ONLY},
	{"tid", "tid", CELL_COUNT, COLUMN_DATA_ONLY},
	{"share_percent", "share", CELL_PERCENT, COLUMN_DATA_ONLY},
	{"cpu_percent", "of a CPU", CELL_PERCENT, COLUMN_DATA_ONLY},
	{"samples", "samples", CELL_COUNT, COLUMN_DATA_ONLY},
	{"comm", "thread", CELL_TEXT, COLUMN_DATA_ONLY},
};
_Static_assert(ARRAY_SIZE(wall_thread_columns) == ARRAY_SIZE(thread_columns), "the same");

enum { THREADS_SHOWN = 10 };

struct thread_share {
	uint32_t thread;
	uint64_t weight, count;
};

static int by_weight(const void *a, const void *b)
{
	const struct thread_share *x = a, *y = b;

	if (x->weight != y->weight)
		return x->weight < y->weight ? 1 : -1;
	return x->thread < y->thread ? -1 : x->thread > y->thread;
}

/* The first event's samples by thread, busiest first; malloc'ed. */
static struct thread_share *share_by_thread(const struct profile *p)
{
	struct thread_share *v = calloc(p->threads.n + 1, sizeof(*v));

	if (!v)
		return NULL;
	for (size_t i = 0; i < p->threads.n; i++)
		v[i].thread = (uint32_t)i;
	for (size_t i = 0; i < p->rows.n; i++) {
		const struct profile_row *row = &p->rows.v[i];

		if (row->event)
			continue;
		v[row->thread].weight += row->weight;
		v[row->thread].count += row->count;
	}
	qsort(v, p->threads.n, sizeof(*v), by_weight);
	return v;
}

static double cpu_percent(const struct profile *p, double ran_ns)
{
	return p->duration_ns ? 100.0 * ran_ns / (double)p->duration_ns : 0;
}

/* The CPU time of what was sampled. A timer that is throttled or late leaves time without samples:
 * what the target used is known, and missing from all of its threads alike. */
static double ran_ns(const struct recording *rec, uint64_t weight, uint64_t total)
{
	const struct profile *p = rec->profile;
	double used_ns = rec->load.cpus * (double)p->duration_ns;

	if ((!p->losses.throttled && !p->losses.lost &&
	     total > p->losses.samples * TIMER_QUICK_NS) ||
	    strchr(p->events.v[0].name, ':') || used_ns <= (double)total || !total)
		return (double)weight;
	return used_ns * (double)weight / (double)total;
}

/* With --wall the weight is all of a thread's time: what it ran is known by its last name. */
static struct cell cpu_cell(struct result *r, const struct recording *rec,
			    const struct profile_thread *t, uint64_t weight, uint64_t total)
{
	const struct profile *p = rec->profile;
	const struct waits *w = rec->waits;

	if (!w)
		return p->events.n && p->events.v[0].is_time
			       ? cell_double(CELL_PERCENT,
					     cpu_percent(p, ran_ns(rec, weight, total)))
			       : cell_null(r, "the event does not measure time");
	for (size_t i = 0; i < w->threads.n; i++) {
		const struct offcpu_totals *totals = &w->threads.v[i].totals;

		if (totals->tid == t->tid && totals->pid == t->pid &&
		    str_eq(totals->comm, intern_str(&p->strings, t->comm)))
			return cell_double(CELL_PERCENT, cpu_percent(p, (double)totals->on_ns));
	}
	return cell_null(r, "the thread has another name since");
}

static void add_threads(struct result *r, const struct recording *rec, const struct thread_share *v,
			uint64_t total, const char *output)
{
	const struct profile *p = rec->profile;
	size_t section =
		result_section(r, "threads", "", rec->waits ? wall_thread_columns : thread_columns,
			       ARRAY_SIZE(thread_columns));

	for (size_t i = 0; i < p->threads.n && v[i].count; i++) {
		const struct profile_thread *t = &p->threads.v[v[i].thread];
		const struct cell cells[] = {
			cell_u64(CELL_COUNT, t->pid),
			cell_u64(CELL_COUNT, t->tid),
			cell_double(CELL_PERCENT,
				    total ? 100.0 * (double)v[i].weight / (double)total : 0),
			cpu_cell(r, rec, t, v[i].weight, total),
			cell_u64(CELL_COUNT, v[i].count),
			cell_text(r, intern_str(&p->strings, t->comm)),
		};

		result_row(r, section, cells);
	}
	if (!r->failed) {
		r->sections.v[section].limit = THREADS_SHOWN;
		r->sections.v[section].more =
			result_text(r, "inspect report --sort tid --all%s%s",
				    str_eq(output, "inspect.data") ? "" : " ",
				    str_eq(output, "inspect.data") ? "" : output);
	}
}

/* The thread that leads the table: by its share of a CPU where the event measures time. */
static void leading_thread(struct strbuf *b, const struct recording *rec,
			   const struct thread_share *v, uint64_t total)
{
	const struct profile *p = rec->profile;
	const char *comm = intern_str(&p->strings, p->threads.v[v[0].thread].comm);
	double share = 100.0 * (double)v[0].weight / (double)MAX(total, 1);

	if (p->events.v[0].is_time) {
		strbuf_puts(b, " · hottest thread ");
		share = cpu_percent(p, ran_ns(rec, v[0].weight, total));
	} else {
		strbuf_printf(b, " · most %s: ", p->events.v[0].name);
	}
	term_escape(b, comm, strlen(comm));
	strbuf_printf(b, " %.0f %%", share);
}

/* The first-screen line: what the target did, and what to run next. What is not known is left
 * out. */
static void first_line(struct strbuf *b, const struct recording *r, const struct thread_share *v,
		       uint64_t total)
{
	const struct profile *p = r->profile;
	const struct target_load *l = &r->load;
	double cpus = l->cpus;

	if (cpus < 0 && p->events.n && p->events.v[0].is_time && p->duration_ns)
		cpus = (double)total / (double)p->duration_ns;
	strbuf_puts(b, "target");
	if (cpus >= 0)
		strbuf_printf(b, " %.2f of %u CPUs", cpus, l->cpus_online);
	if (l->quota > 0)
		strbuf_printf(b, " (quota %.3g)", l->quota);
	if (p->threads.n && v[0].count)
		leading_thread(b, r, v, total);
	strbuf_printf(b, " · lost %llu", (unsigned long long)p->losses.lost);
}

/* Not into a pipe, nor thrown away. */
static bool is_kept(const char *output)
{
	return !str_eq(output, "-") && !str_eq(output, "/dev/null");
}

static void next_command(struct strbuf *b, const struct profile *p, const char *output)
{
	CLEANUP(strbuf_release) struct strbuf word = {0};

	if (!is_kept(output) || !p->losses.samples)
		return;
	strbuf_puts(b, " → next: inspect report");
	if (!str_eq(output, "inspect.data")) {
		strbuf_putc(b, ' ');
		shell_word_put(&word, output);
		term_escape(b, strbuf_str(&word), word.n);
	}
	if (p->events.n && p->events.v[0].is_tracepoint)
		strbuf_puts(b, "   (counts, not time)");
}

/* Why there is nothing, as far as it is known. */
static void note_no_samples(struct result *r, const struct recording *rec, double used_ns)
{
	const struct profile_event *e = &rec->profile->events.v[0];
	double period_ns = e->freq_hz ? 1e9 / (double)e->freq_hz : (double)e->period;

	if (rec->ended_in_delay)
		result_note(r, "no samples: the target ended before measuring began");
	else if (!e->is_time || strchr(e->name, ':') || rec->profile->events.n > 1)
		result_note(r, "no samples: no %s in the target meanwhile", e->name);
	else if (used_ns > period_ns)
		result_note(r,
			    "no samples, though the target used %.0f ms of CPU: its threads or "
			    "processes ended before their first sample, after %.0f ms of CPU "
			    "each; -F 999, or -a as root, sees more",
			    used_ns / 1e6, period_ns / 1e6);
	else if (used_ns > 0)
		result_note(r,
			    "no samples: the target used %.0f ms of CPU, and a sample comes after "
			    "%.0f ms; -F 999 takes more",
			    used_ns / 1e6, period_ns / 1e6);
	else
		result_note(r, "no samples: the target used no CPU meanwhile; what it waits for is "
			       "shown by inspect offcpu, and by inspect stack");
}

/* A timer for each thread misses threads that end before it fires: said where it shows. */
static void note_unsampled(struct result *r, const struct recording *rec)
{
	enum { FEW = 20 }; /* samples that chance alone may account for */
	const struct profile *p = rec->profile;
	double used_ns = MAX(rec->load.cpus, 0) * (double)p->duration_ns;
	uint64_t sampled_ns, count;

	if (!p->events.n)
		return;
	if (!p->losses.samples && !p->losses.lost) {
		note_no_samples(r, rec, used_ns);
		return;
	}
	profile_totals(p, 0, &sampled_ns, &count);
	if (!p->events.v[0].is_time || strchr(p->events.v[0].name, ':') || p->losses.lost ||
	    !p->events.v[0].freq_hz || p->events.n > 1 || (double)sampled_ns > 0.75 * used_ns ||
	    used_ns * (double)p->events.v[0].freq_hz / 1e9 < FEW)
		return;
	result_note(r,
		    "only %.0f %% of the CPU time used was sampled: threads or processes that end "
		    "within %.0f ms of CPU are hardly seen; -F 999, or -a as root, sees more",
		    100 * (double)sampled_ns / used_ns, 1e3 / (double)p->events.v[0].freq_hz);
}

static void add_notes(struct result *r, const struct recording *rec, const char *output)
{
	const struct profile *p = rec->profile;
	char size[32];

	quality_facts(r, p);
	if (is_kept(output)) {
		result_fact(r, "file", "", cell_text(r, output));
		result_fact(r, "file_bytes", "", cell_u64(CELL_BYTES, rec->file_bytes));
		result_fact(r, "", "file",
			    cell_text(r,
				      result_text(r, "%s (%s)%s", output,
						  bytes_format(rec->file_bytes, size, sizeof(size)),
						  rec->moved_old ? ", the older one is now .old"
								 : "")));
	}
	for (size_t i = 0; i < p->notes.n; i++)
		result_note(r, "%s", p->notes.v[i]);
	if (rec->load.n_children && rec->load.children_cpus >= 0.005)
		result_note(
			r, "%zu child process%s used %.1f CPUs and %s not included; add --children",
			rec->load.n_children, rec->load.n_children == 1 ? "" : "es",
			rec->load.children_cpus, rec->load.n_children == 1 ? "is" : "are");
	if (rec->ended_by_duration)
		result_note(r, "the command was still running at the end of -d and was ended");
	note_unsampled(r, rec);
}

static bool wants_data(const struct record_values *v)
{
	return v->common.json || v->common.csv || v->common.markdown;
}

static int print_summary(const struct record_values *v, const struct recording *rec,
			 const char *output, struct diag *d)
{
	CLEANUP(result_release) struct result r;
	CLEANUP(strbuf_release) struct strbuf line = {0}, ascii = {0};
	CLEANUP(freep) struct thread_share *threads = share_by_thread(rec->profile);
	const struct offcpu_view view = {.recording = rec, .waits = rec->waits};
	uint64_t total, count;
	int err;

	result_init(&r, "inspect.record/1");
	if (!threads)
		return diag_errno(d, -ENOMEM, "summary");
	profile_totals(rec->profile, 0, &total, &count);
	if (rec->waits)
		offcpu_headline(&line, &view);
	else
		first_line(&line, rec, threads, total);
	result_fact(&r, "summary", "", cell_text(&r, strbuf_str(&line)));
	result_fact(&r, "target_cpus", "",
		    rec->load.cpus >= 0 ? cell_double(CELL_NUMBER, rec->load.cpus)
					: cell_null(&r, "not known for this kind of target"));
	add_notes(&r, rec, output);
	add_threads(&r, rec, threads, total, output);
	err = rec->waits ? offcpu_add_threads(&r, &view, "wall") : 0;
	if (err)
		return diag_errno(d, err, "summary");
	if (wants_data(v)) {
		err = print_result(&r, &v->common, true, d);
	} else {
		struct table_options o = {.width = term_width(STDERR_FILENO),
					  .color = term_use_color(v->common.color, STDERR_FILENO),
					  .ascii = !term_is_utf8()};

		next_command(&line, rec->profile, output);
		if (o.ascii)
			term_ascii(&ascii, strbuf_str(&line));
		fprintf(stderr, "%s\n", strbuf_str(o.ascii ? &ascii : &line));
		err = result_table(&r, &o, stderr);
		/* Nobody reads it: the recording is there all the same. */
		if (err == -EIO)
			err = 0;
	}
	return diag_errno(d, err, "cannot print the summary");
}

static int record(const struct record_values *v, const struct operands *operands, int argc,
		  char **argv, struct diag *d, int *exit_code)
{
	CLEANUP(freep) char *line = command_line_of(argc, argv);
	const char *output = v->output ? v->output : "inspect.data";
	struct recording r = {0};
	struct measure m;
	int err = check_output(output, d);

	if (!err && str_eq(output, "-") && isatty(STDOUT_FILENO)) {
		err = diag_set(d, -EINVAL, "stdout is a terminal, and the recording is binary");
		diag_fix(d, "inspect record -o - … | inspect report -");
	}
	if (!err && str_eq(output, "-") && wants_data(v))
		err = diag_set(d, -EINVAL,
			       "-o - and --json, --csv or --markdown exclude each other: "
			       "stdout is the recording's");
	if (err)
		return err;
	err = measure_prepare(&m, "record", &v->measure, operands, d);
	m.config.output = output;
	m.config.command_line = line;
	m.config.stdout_taken = wants_data(v) || str_eq(output, "-");
	m.config.show_progress = !v->common.quiet && isatty(STDERR_FILENO);
	if (!err)
		err = recording_run(&m.config, &r, d);
	if (err) {
		*exit_code = r.child.exec_failed ? child_exit_code(&r.child) : EXIT_OWN_FAILURE;
		measure_release(&m);
		return err;
	}
	if (!v->common.quiet || wants_data(v))
		err = print_summary(v, &r, output, d);
	*exit_code = recording_exit_code(&r, &m.target);
	if (!err && !*exit_code)
		*exit_code = quality_gate_check(&v->gate, r.profile, d);
	measure_release(&m);
	recording_release(&r);
	return err;
}

static int run(int argc, char **argv, struct diag *d, bool *json)
{
	struct record_values v = {0};
	struct option_binding bindings[BINDINGS_MAX];
	struct operands operands;
	int exit_code = 0;
	int err = options_parse(bindings, bind(&v, bindings), argc, argv, true, &operands, d);

	*json = v.common.json;
	if (!err)
		err = record(&v, &operands, argc, argv, d, &exit_code);
	return err && !exit_code ? EXIT_OWN_FAILURE : exit_code;
}

static void help(FILE *out)
{
	struct record_values v = {0};
	struct option_binding bindings[BINDINGS_MAX];

	options_help(bindings, bind(&v, bindings), out);
}

const struct command command_record = {
	.name = "record",
	.summary = "sample the stacks of processes into a perf.data file",
	.question = "What burns the CPU?",
	.usage = "record [OPTIONS] -p PID,… | -t TID,… | -a | -C CPUS | --cgroup PATH [-d TIME]\n"
		 "record [OPTIONS] [--] CMD…",
	.help = help,
	.run = run,
};
