/* SPDX-License-Identifier: BSD-2-Clause */
/* The session: what is prepared once, and the runs. */
#include "stat.h"

#include "target_text.h"

#include <inspect/clock.h>
#include <inspect/command.h>
#include <math.h>

/* --- preparing -------------------------------------------------------------------------------- */

static int describe_target(struct stat_session *s)
{
	const struct stat_values *v = s->v;
	CLEANUP(strbuf_release) struct strbuf b = {0}, given = {0}, cmd = {0};
	const struct operands *o = &s->operands;

	for (size_t i = 0; i < o->n; i++)
		strbuf_printf(&cmd, "%s%s", i ? " " : "", o->v[i]);
	target_text_put(&v->target, v->duration.duration_ns, o, &s->target, &b);
	target_text_given(&v->target, v->duration.duration_ns, o, &s->target, &given);
	if ((o->n && strbuf_take(&cmd, &s->command)) || strbuf_take(&given, &s->target_given))
		return -ENOMEM;
	return strbuf_take(&b, &s->target_text);
}

/* 0, or why the event cannot be counted here, by the caller for user code. */
static int try_event(const struct perf_event_attr *spec)
{
	struct perf_event_attr attr = *spec;
	int err;

	attr.exclude_kernel = attr.exclude_hv = attr.type != PERF_TYPE_TRACEPOINT;
	attr.precise_ip = 0;
	err = perf_event_probe(&attr, 0, -1);
	if (err != -EINVAL && err != -EOPNOTSUPP)
		return err;
	attr.exclude_guest = 0;
	return perf_event_probe(&attr, 0, -1);
}

/* All that --require names must be countable, before CMD runs for nothing. */
static int check_required(struct stat_session *s, struct diag *d)
{
	struct counter_events required = {0};
	int err;

	if (!s->v->require)
		return 0;
	err = counter_events_parse(s->v->require, &s->host, &required, d);
	for (size_t i = 0; i < required.specs.n && !err; i++) {
		const struct event_spec *spec = &required.specs.v[i];
		bool hardware = spec->attr.type != PERF_TYPE_SOFTWARE && !spec->is_tracepoint;
		int why = try_event(&spec->attr);

		if (!why)
			continue;
		err = diag_set(d, -ENODEV, "'%s' is required, and cannot be counted", spec->name);
		diag_why(d, "%s", counter_reason(why, hardware, &s->host));
		diag_fix(d, "inspect doctor      (what works here)");
	}
	counter_events_release(&required);
	return err;
}

/*
 * Words as a shell makes them, so that B is started as A is. What only a shell can do goes to one,
 * and is measured with it.
 */
static int split_versus(struct stat_session *s, struct diag *d)
{
	int err = wordexp(s->v->versus, &s->versus_words, WRDE_NOCMD);

	s->versus_split = err == 0;
	if (err == WRDE_NOSPACE)
		return diag_errno(d, -ENOMEM, "--vs");
	if (!err && !s->versus_words.we_wordc)
		return diag_set(d, -EINVAL, "--vs: an empty command");
	s->versus_argv = s->versus_words.we_wordv;
	if (!err)
		return 0;
	s->versus_shell[0] = "sh";
	s->versus_shell[1] = "-c";
	s->versus_shell[2] = (char *)s->v->versus;
	s->versus_argv = s->versus_shell;
	if (note_add(&s->notes, "B needs a shell: sh -c is measured with it"))
		return diag_errno(d, -ENOMEM, "--vs");
	return 0;
}

int stat_session_prepare(struct stat_session *s, const struct stat_values *v,
			 const struct operands *operands, struct diag *d)
{
	int err;

	*s = (struct stat_session){.v = v, .target = {.cgroup_fd = -1}, .signal_fd = -1};
	s->operands = *operands;
	host_read(&s->host, "");
	host_open_tracefs(&s->host);
	environment_read(&s->start, "");
	err = target_resolve(&v->target, operands, &s->host, &s->notes, &s->target, d);
	if (!err)
		err = check_required(s, d);
	if (!err)
		err = stat_metrics_prepare(s, d);
	if (!err && v->per_cgroup)
		err = stat_cgroups_open(s, d);
	if (!err && describe_target(s))
		err = diag_errno(d, -ENOMEM, "stat");
	if (err)
		return err;
	if (v->versus)
		err = split_versus(s, d);
	if (err)
		return err;
	s->signal_fd = counting_signals_open();
	return s->signal_fd < 0 ? diag_errno(d, s->signal_fd, "cannot receive signals") : 0;
}

void stat_session_release(struct stat_session *s)
{
	for (size_t i = 0; i < s->runs.n; i++)
		free(s->runs.v[i].values);
	array_release(&s->runs);
	for (size_t i = 0; i < s->intervals.n; i++)
		free(s->intervals.v[i].values);
	array_release(&s->intervals);
	for (size_t i = 0; i < s->places.n; i++)
		free(s->places.v[i].values);
	array_release(&s->places);
	for (size_t i = 0; i < s->event_names.n; i++)
		free(s->event_names.v[i]);
	array_release(&s->event_names);
	for (size_t i = 0; i < s->n_cgroups; i++) {
		closep(&s->cgroup_fds[i]);
		free(s->cgroup_names[i]);
	}
	free(s->cgroup_fds);
	free(s->cgroup_names);
	free(s->interval_before);
	free(s->line_values);
	free(s->command);
	free(s->target_text);
	free(s->target_given);
	stat_metrics_release(&s->metrics);
	counter_events_release(&s->events);
	note_list_release(&s->notes);
	target_release(&s->target);
	arena_release(&s->arena);
	if (s->versus_split)
		wordfree(&s->versus_words);
	counting_signals_close(s->signal_fd);
}

/* --- runs ------------------------------------------------------------------------------------- */

static struct counting_config config_of(struct stat_session *s)
{
	const struct stat_values *v = s->v;

	return (struct counting_config){
		.target = &s->target,
		.host = &s->host,
		.events = &s->events,
		.user_only = v->user_only,
		.kernel_only = v->kernel_only,
		/* A set of our own choice may be counted in part; what was asked for may not. */
		.required = v->events || s->target.all || s->target.cgroup_fd >= 0,
		.per_cpu = v->per_core,
		.cgroup_fds = s->cgroup_fds,
		.n_cgroups = s->n_cgroups,
		.duration_ns = v->duration.duration_ns,
		.delay_ns = v->duration.delay_ns,
		.timeout_ns = v->timeout_ns,
		.interval_ns = v->interval_ns,
		.intervals_max = v->count,
		.signal_fd = s->signal_fd,
		.stdout_taken = stat_takes_stdout(v),
		.line = v->metrics.n ? stat_metrics_line : NULL,
		.interval = stat_interval_add,
		.ctx = s,
	};
}

static int exit_code_of(const struct counting *r)
{
	/* A load generator's failure makes the numbers of the server worthless too. */
	if (!r->child.pid || r->ended_by_duration || !r->child.reaped)
		return 0;
	return r->timed_out ? EXIT_TIMED_OUT : child_exit_code(&r->child);
}

/* Notes of one run are those of all: each once. */
static int keep_notes(struct stat_session *s, note_list *fresh)
{
	int err = 0;

	for (size_t i = 0; i < fresh->n && !err; i++) {
		bool known = false;

		for (size_t k = 0; k < s->notes.n; k++)
			known |= str_eq(s->notes.v[k], fresh->v[i]);
		if (!known)
			err = note_add(&s->notes, "%s", fresh->v[i]);
	}
	return err;
}

static int add_run(struct stat_session *s, unsigned side, const struct counting *r)
{
	struct stat_run run = {
		.side = side,
		.attempt = s->attempt,
		.exit_code = exit_code_of(r),
		.timed_out = r->timed_out,
		.judged = true,
	};
	int err = stat_metrics_take(s, r, &run);

	if (!err && (s->v->per_core || s->v->per_thread || s->v->per_cgroup))
		err = stat_places_take(s, r->counters);
	if (!err)
		err = array_push(&s->runs, run);
	if (err)
		free(run.values);
	return err;
}

/* One measurement of a side; a warm-up leaves nothing. */
static int run_once(struct stat_session *s, unsigned side, bool warmup, int *exit_code,
		    struct diag *d)
{
	CLEANUP(note_list_release) note_list notes = {0};
	CLEANUP(counting_release) struct counting r = {0};
	struct counting_config config = config_of(s);
	struct target target = s->target;
	int err;

	if (side) {
		target.argv = s->versus_argv;
		config.target = &target;
	}
	for (size_t i = 0; i < s->metrics.n; i++)
		s->line_values[i] = NAN;
	err = counting_run(&config, &notes, &r, d);
	if (err) {
		if (r.child.exec_failed)
			*exit_code = child_exit_code(&r.child);
		return err;
	}
	s->interrupted |= r.interrupted;
	if (r.left_out && r.left_out_cpus >= s->left_out_cpus) {
		s->left_out = r.left_out;
		s->left_out_cpus = r.left_out_cpus;
	}
	if (warmup)
		return 0;
	err = add_run(s, side, &r);
	if (!err)
		err = keep_notes(s, &notes);
	if (!err && r.ended_by_duration)
		err = note_add(&s->notes, "the command was still running at the end of -d and was "
					  "ended");
	return err ? diag_errno(d, err, "stat") : 0;
}

int stat_session_measure(struct stat_session *s, unsigned repeat, int *exit_code, struct diag *d)
{
	unsigned sides = s->v->versus ? 2 : 1;
	int err = 0;

	for (unsigned i = 0; i < s->v->warmup && !s->attempt && !err && !s->interrupted; i++)
		for (unsigned side = 0; side < sides && !err; side++)
			err = run_once(s, side, true, exit_code, d);
	/* In turns, each pair the other way round: what the machine does meanwhile hits both. */
	for (unsigned i = 0; i < repeat && !err && !s->interrupted; i++)
		for (unsigned k = 0; k < sides && !err && !s->interrupted; k++)
			err = run_once(s, (i + k) % sides, false, exit_code, d);
	environment_read(&s->end, "");
	s->attempt++;
	if (!err && s->interrupted && s->runs.n > 1 && repeat > 1)
		err = note_add(&s->notes, "interrupted: the last run is not a whole one");
	return err ? diag_errno(d, err, "stat") : 0;
}

int stat_session_exit_code(const struct stat_session *s, bool *ret_timed_out)
{
	for (size_t i = 0; i < s->runs.n; i++) {
		if (!s->runs.v[i].exit_code)
			continue;
		*ret_timed_out = s->runs.v[i].timed_out;
		return s->runs.v[i].exit_code;
	}
	*ret_timed_out = false;
	return 0;
}

/* --- as if saved ------------------------------------------------------------------------------ */

static int add_saved_metric(const struct stat_session *s, size_t metric, struct saved_stat *ret)
{
	const struct stat_metric *m = &s->metrics.v[metric];
	struct saved_metric saved = {
		.name = m->name, .unit = m->unit, .running_percent = m->running_percent};
	struct series series;
	int err = stat_metric_series(s, metric, 0, &series);

	if (err)
		return err;
	saved.runs.v = (double *)series.v;
	saved.runs.n = series.n;
	saved.runs.cap = series.n + 1;
	if (!series.n)
		saved.reason = m->reason ? m->reason : "not measured";
	err = array_push(&ret->metrics, saved);
	if (err)
		array_release(&saved.runs);
	return err;
}

static int add_saved_fact(struct saved_stat *ret, const char *name, const char *value)
{
	return array_push(&ret->facts, (struct saved_fact){name, value});
}

/* Whether the counters saw the kernel too: else two files are not about the same. */
const char *stat_levels(const struct stat_session *s)
{
	if (s->v->kernel_only)
		return "kernel";
	if (s->v->user_only)
		return "user";
	for (size_t i = 0; i < s->metrics.n; i++) {
		const struct stat_metric *m = &s->metrics.v[i];

		if (m->event_name && !str_eq(m->event_name, m->name))
			return "user";
	}
	return "user and kernel";
}

static const char *number_text(struct arena *a, uint64_t v)
{
	char buf[32];
	int n = snprintf(buf, sizeof(buf), "%llu", (unsigned long long)v);
	const char *text = arena_strndup(a, buf, (size_t)n);

	return text ? text : "";
}

int stat_session_saved(const struct stat_session *s, struct saved_stat *ret)
{
	int err = 0;

	*ret = (struct saved_stat){.path = "",
				   .command = s->command ? s->command : "",
				   .verdict = "",
				   .target = s->target_text};
	ret->exit_code = (unsigned)stat_session_exit_code(s, &ret->timed_out);
	for (size_t i = 0; i < s->metrics.n && !err; i++)
		err = add_saved_metric(s, i, ret);
	if (!err)
		err = add_saved_fact(ret, "cpu", s->start.cpu);
	if (!err)
		err = add_saved_fact(ret, "cpus", number_text(&ret->arena, s->host.cpus_online));
	if (!err)
		err = add_saved_fact(ret, "kernel", s->host.kernel_release);
	if (!err)
		err = add_saved_fact(ret, "machine", s->host.machine);
	if (!err)
		err = add_saved_fact(ret, "virtual_machine",
				     s->host.virtual_machine ? "yes" : "no");
	if (!err)
		err = add_saved_fact(ret, "levels", stat_levels(s));
	if (!err)
		err = add_saved_fact(ret, "per", s->v->per ? s->v->per : "run");
	if (err)
		saved_stat_release(ret);
	return err;
}
