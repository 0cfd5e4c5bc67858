/* SPDX-License-Identifier: BSD-2-Clause */
#include "build_ids.h"
#include "compact.h"
#include "gpu_waits.h"
#include "sampling.h"
#include "signals.h"
#include "unwinding.h"

#include <inspect/capture.h>
#include <inspect/clock.h>
#include <inspect/procfs.h>
#include <inspect/saved_names.h>
#include <inspect/symbolize.h>
#include <inspect/version.h>
#include <poll.h>

/*
 * One measurement: prepare (child, sampler, file), start, take in what exists already
 * (synthesize), loop over the rings, stop, name, and write what no record says. Whatever fails
 * before the start leaves nothing: CMD never ran, and no file was made.
 */

enum { POLL_MS = 200, FDS_MAX = 4096 };

struct session {
	const struct recording_config *config;
	struct recording *recording;
	struct sampling sampling;
	struct perfdata_writer *writer;
	struct compact *compact; /* NULL: records reach the file as they are */
	struct pipeline *pipeline;
	struct build_ids *build_ids;
	bool unwinds; /* samples carry stack copies: the file gets the pipeline's chains */
	struct target_usage usage;
	size_t n_followed; /* of the waits' throttled processes */
	note_list notes;
	int signal_fd;
	uint64_t start_ns, wall_start_ns, own_start_ns;
	bool child_gone;
	struct diag *diag;
};

static void session_release(struct session *s)
{
	pipeline_free(s->pipeline);
	build_ids_free(s->build_ids);
	compact_free(s->compact);
	perfdata_writer_free(s->writer);
	sampling_release(&s->sampling);
	note_list_release(&s->notes);
	target_usage_release(&s->usage);
	signals_close(s->signal_fd);
}

static int write_record(void *ctx, const struct perf_event_header *record, size_t size_bytes UNUSED)
{
	struct session *s = ctx;

	if (s->compact)
		record = compact_record(s->compact, record);
	return s->writer ? perfdata_write(s->writer, record, record->size, s->diag) : 0;
}

static int emit(void *ctx, const struct perf_event_header *record, size_t size_bytes)
{
	struct session *s = ctx;
	int err;

	record = build_ids_stamp(s->build_ids, s->sampling.source->events, record, size_bytes);
	err = s->unwinds ? 0 : write_record(s, record, size_bytes);
	return err ? err : pipeline_record(s->pipeline, record, size_bytes, false);
}

static int end_round(struct session *s)
{
	int err = s->unwinds ? pipeline_round(s->pipeline) : 0;

	if (!err && s->writer)
		err = perfdata_round(s->writer, s->diag);
	return err || s->unwinds ? err : pipeline_round(s->pipeline);
}

static struct sampler_config sampler_config_of(const struct session *s)
{
	const struct recording_config *c = s->config;
	const struct target *t = c->target;
	const struct sampling_options *o = c->sampling;
	bool dwarf = o->call_graph == CALL_GRAPH_DWARF && !o->kernel_only;
	struct sampler_config config = {
		.command = c->command,
		.events = c->events,
		.freq_hz = c->freq_hz,
		.period = c->period,
		.freq_given = c->freq_given,
		.callchain = o->call_graph != CALL_GRAPH_NONE,
		.user_regs = dwarf ? unwind_perf_regs(unwinding_host_arch()) : 0,
		.stack_bytes = dwarf ? o->stack_bytes : 0,
		.user_only = o->user_only,
		.kernel_only = o->kernel_only,
		.max_stack = o->max_stack,
		.idle_cpus = o->idle_cpus,
		.ring_pages = o->mmap_pages,
		.pids = t->pids.v,
		.n_pids = t->pids.n,
		.tids = t->tids.v,
		.n_tids = t->tids.n,
		.cpus = t->cpus.v,
		.n_cpus = t->cpus.n,
		.all = t->all,
		.cgroup_fd = t->cgroup_fd,
		.child = t->cmd_times_only ? 0 : s->recording->child.pid,
		.child_command = t->argv ? t->argv[0] : NULL,
		.child_runs = c->delay_ns != 0,
	};

	return config;
}

static int create_file(struct session *s)
{
	CLEANUP(event_table_release) struct event_table unwound = {0};
	CLEANUP(event_table_release) struct event_table compacted = {0};
	const struct event_table *events = s->sampling.source->events;
	int err = 0;

	if (s->unwinds) {
		err = unwinding_events(events, &unwound);
		events = &unwound;
	}
	/* Those of waits have times of their own for periods. */
	if (!err && events->events.n == 1 && !s->recording->waits) {
		err = compact_new(events, &compacted, &s->compact);
		events = &compacted;
	}
	if (err)
		return diag_errno(s->diag, err, "cannot start");
	return perfdata_create(s->config->output, events, &s->writer, &s->recording->moved_old,
			       s->diag);
}

static int prepare_unwinding(struct session *s)
{
	struct unwinding u = {
		.max_stack = s->config->sampling->max_stack,
		.leave_large = s->sampling.tables != NULL,
		.local_host = true,
		.no_cache = s->config->naming.no_cache,
		.output = write_record,
		.output_ctx = s,
	};

	s->unwinds = true;
	return pipeline_unwind(s->pipeline, &u);
}

static int open_waits(struct session *s, const struct sampler_config *config)
{
	const struct recording_config *c = s->config;

	s->recording->waits = calloc(1, sizeof(*s->recording->waits));
	if (!s->recording->waits)
		return diag_errno(s->diag, -ENOMEM, "cannot start");
	return sampling_waits(config, c->waits, c->naming.no_cache, c->host, &s->notes,
			      s->recording->waits, &s->sampling, s->diag);
}

static int prepare(struct session *s)
{
	const struct recording_config *c = s->config;
	struct sampler_config config;
	int err;

	for (size_t i = 0; i < c->notes->n; i++)
		if (note_add(&s->notes, "%s", c->notes->v[i]))
			return diag_errno(s->diag, -ENOMEM, "cannot start");
	s->signal_fd = signals_open();
	if (s->signal_fd < 0)
		return diag_errno(s->diag, s->signal_fd, "cannot receive signals");
	if (c->target->argv) {
		err = child_prepare(c->target->argv, c->stdout_taken, &s->recording->child,
				    s->diag);
		if (err)
			return err;
	}
	config = sampler_config_of(s);
	err = c->waits
		      ? open_waits(s, &config)
		      : sampling_new(&config, c->sampling->call_graph == CALL_GRAPH_AUTO,
				     c->naming.no_cache, c->host, &s->notes, &s->sampling, s->diag);
	if (err)
		return err;
	err = profile_new(&s->recording->profile);
	if (!err)
		err = build_ids_new(&s->build_ids);
	if (!err)
		err = pipeline_new(s->sampling.source->events, s->recording->profile, NULL, true,
				   &s->pipeline);
	if (!err)
		pipeline_build_ids(s->pipeline, s->build_ids);
	if (!err && c->waits)
		pipeline_sites(s->pipeline, waiting_found, s->recording->waits);
	if (!err && s->sampling.stack_copies)
		err = prepare_unwinding(s);
	if (err)
		return diag_errno(s->diag, err, "cannot start");
	return c->output ? create_file(s) : 0;
}

/* Waits the delay out with CMD already running; a signal ends the wait. */
static bool wait_delay(struct session *s)
{
	struct pollfd fd = {.fd = s->signal_fd, .events = POLLIN};
	uint64_t ms = s->config->delay_ns / NSEC_PER_MSEC;

	if (!ms || poll(&fd, 1, (int)MIN(ms, (uint64_t)INT32_MAX)) <= 0)
		return true;
	s->recording->interrupted = true;
	return false;
}

static void pid_list_release(struct pid_list *l)
{
	array_release(l);
}

/*
 * A child that was made after the events had been opened and before they were started has inherited
 * them, and no record told of it. Before the start and after it: it may end, or become another
 * program, at any moment.
 */
static int take_in_children(struct session *s)
{
	const struct target *t = s->config->target;
	const struct event_table *events = s->sampling.source->events;
	CLEANUP(pid_list_release) struct pid_list made = {0};
	int err = 0;

	for (size_t i = 0; i < t->pids.n && !err; i++) {
		err = proc_descendants(t->pids.v[i], &made);
		if (!err && made.n)
			err = synthesize_processes(made.v, made.n, events, emit, s);
	}
	return err;
}

/* Everything that exists when counting has begun: nothing falls between the two. */
static int take_in_existing(struct session *s)
{
	const struct recording_config *c = s->config;
	const struct target *t = c->target;
	const struct event_table *events = s->sampling.source->events;
	pid_t child = t->cmd_times_only ? 0 : s->recording->child.pid;
	int err = 0;

	if (t->all || t->cgroup_fd >= 0)
		err = synthesize_processes(NULL, 0, events, emit, s);
	if (!err)
		err = take_in_children(s);
	if (!err && t->pids.n)
		err = synthesize_processes(t->pids.v, t->pids.n, events, emit, s);
	if (!err && t->tids.n)
		err = synthesize_processes(t->tids.v, t->tids.n, events, emit, s);
	if (!err && child && c->delay_ns)
		err = synthesize_processes(&child, 1, events, emit, s);
	return err;
}

static bool target_has_ended(const struct session *s)
{
	const struct target *t = s->config->target;
	struct proc_stat stat;

	for (size_t i = 0; i < t->pids.n; i++)
		if (!proc_stat_read(t->pids.v[i], 0, &stat) && !strchr("ZX", stat.state))
			return false;
	return t->pids.n > 0;
}

static int start(struct session *s)
{
	struct child *child = &s->recording->child;
	bool delayed = s->config->delay_ns != 0, waited;
	int err = 0;

	s->own_start_ns = clock_own_cpu_ns();
	/* Before the start: reading its symbols takes a while, and they do not go away. */
	if (!s->config->sampling->user_only)
		err = synthesize_kernel(s->sampling.source->events, emit, s);
	if (!err && child->pid && delayed)
		err = child_go(child, s->diag);
	if (err)
		return err;
	waited = wait_delay(s);
	s->recording->ended_in_delay = delayed && target_has_ended(s);
	if (waited)
		err = take_in_children(s);
	target_usage_begin(s->config->target, child, &s->usage);
	s->start_ns = clock_now_ns();
	s->wall_start_ns = clock_realtime_ns();
	if (err || !waited)
		return err;
	err = s->sampling.source->ops->start(s->sampling.source, s->diag);
	if (!err)
		err = take_in_existing(s);
	if (!err && child->pid && !delayed)
		err = child_go(child, s->diag);
	return err;
}

/* Who is throttled may have come into another group since the start. */
static int follow_throttled(struct session *s)
{
	const struct waits *w = s->recording->waits;
	int err = 0;

	for (; w && s->n_followed < w->throttled.n && !err; s->n_followed++)
		err = target_usage_follow(&s->usage, (pid_t)w->throttled.v[s->n_followed]);
	return err;
}

static int read_rings(struct session *s, bool *ret_more)
{
	int more = s->sampling.source->ops->read(s->sampling.source, emit, s, s->diag);
	int err;

	if (more < 0)
		return more;
	*ret_more = more > 0;
	err = follow_throttled(s);
	return err ? diag_errno(s->diag, err, "finding cgroups") : end_round(s);
}

static int poll_timeout_ms(const struct session *s)
{
	uint64_t elapsed_ns = clock_now_ns() - s->start_ns;
	uint64_t left_ns;

	if (!s->config->duration_ns)
		return POLL_MS;
	left_ns = s->config->duration_ns > elapsed_ns ? s->config->duration_ns - elapsed_ns : 0;
	return (int)MIN(left_ns / NSEC_PER_MSEC + 1, (uint64_t)POLL_MS);
}

static bool is_over(struct session *s, bool more)
{
	struct child *child = &s->recording->child;

	if (child->pid && child_poll(child))
		s->child_gone = true;
	if (s->child_gone || (!more && (!child->pid || s->config->target->cmd_times_only)))
		return true;
	if (!s->config->duration_ns || clock_now_ns() - s->start_ns < s->config->duration_ns)
		return false;
	s->recording->ended_by_duration = child->pid && !s->config->target->cmd_times_only;
	return true;
}

static void show_progress(const struct session *s)
{
	const struct losses *l = &s->recording->profile->losses;
	double elapsed = (double)(clock_now_ns() - s->start_ns) / 1e9;
	char size[32];

	if (!s->config->show_progress || elapsed < 1)
		return;
	fprintf(stderr, "\r\033[K%.0f s · %llu samples · %llu lost", elapsed,
		(unsigned long long)l->samples, (unsigned long long)l->lost);
	if (s->writer)
		fprintf(stderr, " · %s",
			bytes_format(perfdata_bytes_written(s->writer), size, sizeof(size)));
	fprintf(stderr, " · ^C ends");
	fflush(stderr);
}

static int loop(struct session *s)
{
	struct pollfd fds[FDS_MAX];
	bool more = true;
	int err;

	for (;;) {
		size_t n = 0;

		fds[n++] = (struct pollfd){.fd = s->signal_fd, .events = POLLIN};
		if (s->recording->child.pidfd > 0 && !s->child_gone)
			fds[n++] =
				(struct pollfd){.fd = s->recording->child.pidfd, .events = POLLIN};
		n += s->sampling.source->ops->fds(s->sampling.source, fds + n, FDS_MAX - n);
		if (poll(fds, n, poll_timeout_ms(s)) < 0 && errno != EINTR)
			return diag_errno(s->diag, -errno, "cannot wait for samples");
		if (fds[0].revents)
			s->recording->interrupted = true;
		err = read_rings(s, &more);
		if (err)
			return err;
		show_progress(s);
		if (s->recording->interrupted || is_over(s, more))
			return 0;
	}
}

static int stop(struct session *s)
{
	bool more;
	int err = s->sampling.source->ops->stop(s->sampling.source);

	s->recording->profile->duration_ns = clock_now_ns() - s->start_ns;
	if (s->config->show_progress)
		fputs("\r\033[K", stderr);
	if (!err)
		err = read_rings(s, &more);
	if (!err)
		err = sampling_untold_losses(&s->sampling, emit, s);
	if (!err)
		err = sampling_final_notes(&s->sampling, &s->notes);
	if (!err)
		err = pipeline_finish(s->pipeline);
	return err;
}

static int name(struct session *s)
{
	struct profile *p = s->recording->profile;
	struct symbolize_options o = {.no_demangle = s->config->naming.no_demangle,
				      .no_inline = s->config->naming.no_inline,
				      .offline = s->config->naming.offline,
				      .local_host = true};
	int err = 0;

	p->wall_start_ns = s->wall_start_ns;
	p->hostname = strdup(s->config->host->hostname);
	p->os_release = strdup(s->config->host->kernel_release);
	p->arch = strdup(s->config->host->machine);
	p->command = s->config->command_line ? strdup(s->config->command_line) : NULL;
	for (size_t i = 0; i < s->notes.n && !err; i++)
		err = profile_note(p, "%s", s->notes.v[i]);
	if (!err)
		err = symbolize_profile(p, &o);
	if (!err)
		err = gpu_waits_mark(p, s->recording->waits);
	return err || !s->recording->waits ? err : waits_classify(s->recording->waits, p);
}

static char *file_notes(const struct session *s)
{
	const struct perf_event_attr *attr = &s->sampling.source->events->events.v[0].attr;
	const struct profile *p = s->recording->profile;
	struct strbuf b = {0};
	char *text;

	strbuf_printf(&b,
		      "duration_ns=%llu\nwall_start_ns=%llu\nown_cpu_ns=%llu\n"
		      "naming_cpu_ns=%llu\n",
		      (unsigned long long)p->duration_ns, (unsigned long long)p->wall_start_ns,
		      (unsigned long long)p->own_cpu_ns, (unsigned long long)p->naming_cpu_ns);
	/* The attr has the period that became of it. */
	if (s->compact && attr->freq)
		strbuf_printf(&b, "freq_hz=%llu\n", (unsigned long long)attr->sample_freq);
	/* Those of names too: they are stored as they were found. Paths may hold anything. */
	for (size_t i = 0; i < p->notes.n; i++)
		strbuf_printf(&b, "note=%.*s\n", (int)strcspn(p->notes.v[i], "\n"), p->notes.v[i]);
	if (strbuf_take(&b, &text))
		return NULL;
	return text;
}

static int add_build_ids(const struct profile *p, struct perfdata_info *info)
{
	const struct dso_table *t = &p->processes.dsos;
	int err = 0;

	for (size_t i = 0; i < t->dsos.n && !err; i++) {
		const struct dso *d = t->dsos.v[i];
		struct perfdata_build_id b = {.size = d->build_id_size};

		if (d->kind != DSO_ELF || !d->build_id_size)
			continue;
		memcpy(b.id, d->build_id, d->build_id_size);
		b.path = strdup(d->path);
		err = b.path ? array_push(&info->build_ids, b) : -ENOMEM;
		if (err)
			free(b.path);
	}
	return err;
}

static int add_tracing_data(const struct session *s, struct perfdata_info *info)
{
	struct strbuf b = {0};
	int err = tracing_data_read(s->sampling.source->events, s->config->host, &b);

	if (err) {
		strbuf_release(&b);
		return err;
	}
	info->tracing = (uint8_t *)b.v;
	info->tracing_bytes = b.n;
	return 0;
}

static char *copy(const char *s)
{
	return s ? strdup(s) : NULL;
}

static int finish_file(struct session *s)
{
	struct profile *p = s->recording->profile;
	CLEANUP(perfdata_info_release)
	struct perfdata_info info = {
		.hostname = copy(p->hostname),
		.os_release = copy(p->os_release),
		.arch = copy(p->arch),
		.version = copy("inspect " INSPECT_VERSION),
		.command = copy(p->command),
		.cpus_online = s->config->host->cpus_online,
		.first_sample_ns = p->start_ns,
		.last_sample_ns = p->end_ns,
		.notes = file_notes(s),
	};
	int err = saved_names_encode(p, &info.names, &info.names_bytes);

	if (!err)
		err = add_build_ids(p, &info);
	if (!err)
		err = add_tracing_data(s, &info);
	if (err)
		return diag_errno(s->diag, err, "cannot store names");
	return perfdata_finish(s->writer, &info, s->diag);
}

static int run(struct session *s)
{
	struct recording *r = s->recording;
	int err = prepare(s);

	if (!err)
		err = start(s);
	if (err) {
		if (r->child.reaped || s->config->delay_ns)
			child_end(&r->child);
		perfdata_discard(TAKE_PTR(s->writer));
		return err;
	}
	if (!r->interrupted)
		err = loop(s);
	if (!err)
		err = stop(s);
	if (r->child.pid && !s->child_gone && !s->config->target->cmd_times_only)
		child_end(&r->child);
	target_usage_end(s->config->target, &r->child, &s->usage, s->config->host, &r->load);
	if (err)
		return err;
	r->profile->own_cpu_ns = clock_own_cpu_ns() - s->own_start_ns;
	err = name(s);
	r->profile->naming_cpu_ns = clock_own_cpu_ns() - s->own_start_ns - r->profile->own_cpu_ns;
	if (!err && s->writer) {
		err = finish_file(s);
		r->file_bytes = perfdata_bytes_written(s->writer);
	}
	for (size_t i = 0; i < s->config->target->hints.n && !err; i++)
		err = profile_note(r->profile, "%s", s->config->target->hints.v[i]);
	return err;
}

int recording_run(const struct recording_config *c, struct recording *ret, struct diag *d)
{
	CLEANUP(session_release)
	struct session s = {.config = c, .recording = ret, .signal_fd = -1, .diag = d};
	int err;

	*ret = (struct recording){.child = {.go_fd = -1, .error_fd = -1, .pidfd = -1}};
	err = run(&s);
	if (!err)
		return 0;
	child_cancel(&ret->child);
	recording_release(ret);
	return diag_errno(d, err, "recording failed");
}

int recording_exit_code(const struct recording *r, const struct target *t)
{
	if (r->ended_by_duration || (t->cmd_times_only && r->interrupted))
		return 0;
	return child_exit_code(&r->child);
}

void recording_release(struct recording *r)
{
	if (r->child.pid && !r->child.reaped)
		child_end(&r->child);
	profile_free(r->profile);
	r->profile = NULL;
	if (r->waits)
		waits_release(r->waits);
	free(r->waits);
	r->waits = NULL;
}
