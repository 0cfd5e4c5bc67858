/* SPDX-License-Identifier: BSD-2-Clause */
#include "signals.h"

#include <inspect/clock.h>
#include <inspect/tracing.h>
#include <poll.h>
#include <time.h>

/* Slots of the kernel's histograms have 32 bits: they are read before they can wrap. */
#define READ_NS_MAX (60 * NSEC_PER_SEC)
/* How soon the end of the target is seen. */
#define TICK_NS (50 * NSEC_PER_MSEC)
/* The first of the caller's ticks; each comes twice as late as the one before, up to the last. */
#define ASK_NS_FIRST (50 * NSEC_PER_MSEC)
#define ASK_NS_MAX NSEC_PER_SEC

struct trace_session {
	const struct tracing_config *config;
	struct tracing *result;
	struct syscall_table before; /* as last read */
	uint64_t start_ns, next_interval_ns, next_read_ns, next_ask_ns, ask_ns;
	unsigned intervals;
	int signal_fd;
	struct diag *d;
};

static bool measures_child(const struct trace_session *s)
{
	return s->config->target->argv && !s->config->target->cmd_times_only;
}

/* --- what counts ------------------------------------------------------------------------------ */

static struct probe_target target_of(const struct trace_session *s)
{
	const struct target *t = s->config->target;
	struct probe_target target = {
		.pids = t->pids.v,
		.n_pids = t->pids.n,
		.tids = t->tids.v,
		.n_tids = t->tids.n,
		.all = t->all,
		.cgroup_fd = t->cgroup_fd,
	};

	if (measures_child(s)) {
		target.child = s->result->child.pid;
		target.child_runs = s->config->delay_ns != 0;
	}
	return target;
}

static int open_source(struct trace_session *s, note_list *notes)
{
	const struct tracing_config *c = s->config;
	struct tracing *r = s->result;
	struct syscall_counts_config counts = {
		.target = target_of(s),
		.only = c->only,
		.by = c->by,
		.of_bytes = c->of_bytes,
		.details = c->details,
	};
	struct probe_counts_config probe;
	int err;

	if (c->probe) {
		probe = *c->probe;
		probe.target = counts.target;
		return probe_counts_new(&probe, c->host, &r->probes, s->d);
	}
	err = syscall_counts_new(&counts, c->host, notes, &r->counts, s->d);
	if (!err)
		r->attached = syscall_counts_attached(r->counts);
	return err;
}

static int start_source(struct tracing *r)
{
	return r->probes ? probe_counts_start(r->probes) : syscall_counts_start(r->counts);
}

static void stop_source(struct tracing *r)
{
	if (r->probes)
		probe_counts_stop(r->probes);
	else
		syscall_counts_stop(r->counts);
}

static bool source_alive(const struct tracing *r)
{
	return r->probes ? probe_counts_alive(r->probes) : syscall_counts_alive(r->counts);
}

static int read_source(struct tracing *r, struct syscall_table *ret)
{
	return r->probes ? probe_counts_read(r->probes, ret) : syscall_counts_read(r->counts, ret);
}

/* --- the session ------------------------------------------------------------------------------ */

static int prepare(struct trace_session *s, note_list *notes)
{
	const struct tracing_config *c = s->config;
	const struct target *t = c->target;
	struct child *child = &s->result->child;
	int err = t->argv ? child_prepare(t->argv, c->stdout_taken, child, s->d) : 0;

	if (!err && child->pid && c->delay_ns)
		err = child_go(child, s->d);
	if (err)
		return err;
	if (c->delay_ns) {
		struct pollfd fd = {.fd = s->signal_fd, .events = POLLIN};

		if (poll(&fd, 1, (int)MIN(c->delay_ns / NSEC_PER_MSEC, (uint64_t)INT32_MAX)) > 0)
			s->result->interrupted = true;
	}
	return open_source(s, notes);
}

static int start(struct trace_session *s)
{
	struct child *child = &s->result->child;
	int err = start_source(s->result);

	if (err)
		return diag_errno(s->d, err, "cannot start counting");
	s->start_ns = clock_now_ns();
	s->next_interval_ns = s->start_ns + s->config->interval_ns;
	s->next_read_ns = s->start_ns + READ_NS_MAX;
	s->ask_ns = ASK_NS_FIRST;
	s->next_ask_ns = s->start_ns + s->ask_ns;
	return child->pid && child->go_fd >= 0 ? child_go(child, s->d) : 0;
}

static int read_table(struct trace_session *s, struct syscall_table *ret)
{
	int err = read_source(s->result, ret);

	if (err)
		syscall_table_release(ret);
	return err ? diag_errno(s->d, err, "cannot read the counts") : 0;
}

static int end_interval(struct trace_session *s)
{
	struct syscall_table now = {0}, since = {0};
	int err = read_table(s, &now);

	if (err)
		return err;
	err = syscall_table_since(&now, &s->before, &since);
	if (!err)
		err = s->config->interval(s->config->ctx, s->result->counts, &since);
	syscall_table_release(&since);
	syscall_table_release(&s->before);
	s->before = now;
	s->intervals++;
	return err;
}

static int do_timers(struct trace_session *s, uint64_t now_ns)
{
	const struct tracing_config *c = s->config;
	struct syscall_table unused = {0};
	int err = 0;

	if (c->interval_ns && now_ns >= s->next_interval_ns) {
		err = end_interval(s);
		/* A late one does not make the next ones late. */
		while (s->next_interval_ns <= now_ns)
			s->next_interval_ns += c->interval_ns;
	}
	if (!err && c->tick && s->result->counts && now_ns >= s->next_ask_ns) {
		err = c->tick(c->ctx, s->result->counts);
		s->ask_ns = MIN(s->ask_ns * 2, ASK_NS_MAX);
		s->next_ask_ns = now_ns + s->ask_ns;
	}
	if (!err && now_ns >= s->next_read_ns) {
		err = read_table(s, &unused);
		if (!err)
			syscall_table_release(&unused);
		s->next_read_ns = now_ns + READ_NS_MAX;
	}
	return err;
}

static bool is_over(struct trace_session *s, uint64_t now_ns)
{
	const struct tracing_config *c = s->config;
	struct tracing *r = s->result;

	if (r->interrupted || (c->intervals_max && s->intervals >= c->intervals_max))
		return true;
	if (r->child.pid && child_poll(&r->child))
		return true;
	if (!source_alive(r))
		return true;
	if (!c->duration_ns || now_ns - s->start_ns < c->duration_ns)
		return false;
	r->ended_by_duration = measures_child(s);
	return true;
}

static int loop(struct trace_session *s)
{
	const struct tracing_config *c = s->config;

	for (;;) {
		uint64_t now_ns = clock_now_ns(), until_ns = now_ns + TICK_NS, left_ns;
		struct pollfd fds[] = {
			{.fd = s->signal_fd, .events = POLLIN},
			{.fd = s->result->child.pid ? s->result->child.pidfd : -1,
			 .events = POLLIN},
		};
		struct timespec wait;
		int err;

		if (c->interval_ns)
			until_ns = MIN(until_ns, s->next_interval_ns);
		if (c->duration_ns)
			until_ns = MIN(until_ns, s->start_ns + c->duration_ns);
		left_ns = until_ns > now_ns ? until_ns - now_ns : 0;
		wait = (struct timespec){.tv_nsec = (long)left_ns};
		if (ppoll(fds, ARRAY_SIZE(fds), &wait, NULL) < 0 && errno != EINTR)
			return diag_errno(s->d, -errno, "cannot wait for the end");
		s->result->interrupted |= fds[0].revents != 0;
		now_ns = clock_now_ns();
		err = do_timers(s, now_ns);
		if (err)
			return err;
		if (is_over(s, now_ns))
			return 0;
	}
}

/* What is left behind the last whole interval, so that all of them add up to the total. */
static int last_interval(struct trace_session *s)
{
	const struct tracing_config *c = s->config;
	struct syscall_table since = {0};
	int err;

	if (!c->interval_ns || (c->intervals_max && s->intervals >= c->intervals_max) ||
	    s->result->table.elapsed_ns < s->before.elapsed_ns + NSEC_PER_MSEC)
		return 0;
	err = syscall_table_since(&s->result->table, &s->before, &since);
	if (!err)
		err = c->interval(c->ctx, s->result->counts, &since);
	syscall_table_release(&since);
	return err;
}

static int finish(struct trace_session *s)
{
	struct tracing *r = s->result;
	int err;

	if (s->config->tick && r->counts && s->config->tick(s->config->ctx, r->counts))
		return -ENOMEM;
	stop_source(r);
	err = read_table(s, &r->table);
	if (!err)
		err = last_interval(s);
	if (r->child.pid && !child_poll(&r->child) && !s->config->target->cmd_times_only)
		child_end(&r->child);
	return err;
}

int tracing_run(const struct tracing_config *c, note_list *notes, struct tracing *ret,
		struct diag *d)
{
	struct trace_session s = {.config = c, .result = ret, .d = d};
	int err;

	*ret = (struct tracing){.child = {.go_fd = -1, .error_fd = -1, .pidfd = -1}};
	s.signal_fd = signals_open();
	if (s.signal_fd < 0)
		return diag_errno(d, s.signal_fd, "cannot receive signals");
	err = prepare(&s, notes);
	if (!err)
		err = start(&s);
	if (!err && !ret->interrupted)
		err = loop(&s);
	if (!err || err == -ECANCELED)
		err = finish(&s);
	syscall_table_release(&s.before);
	signals_close(s.signal_fd);
	if (!err || err == -ECANCELED)
		return 0;
	if (ret->child.go_fd >= 0)
		child_cancel(&ret->child);
	else
		child_end(&ret->child);
	return diag_errno(d, err, "tracing failed");
}

void tracing_release(struct tracing *t)
{
	syscall_table_release(&t->table);
	syscall_counts_free(t->counts);
	probe_counts_free(t->probes);
	t->probes = NULL;
	t->counts = NULL;
	if (t->child.pid && !t->child.reaped)
		child_end(&t->child);
}
