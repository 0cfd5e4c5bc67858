/* SPDX-License-Identifier: BSD-2-Clause */
#include "sampling.h"
#include "signals.h"

#include <inspect/clock.h>
#include <inspect/streaming.h>
#include <inspect/unwind.h>
#include <poll.h>
#include <time.h>

/* How soon the end of the target is seen. */
#define TICK_NS (50 * NSEC_PER_MSEC)

struct stream_session {
	struct unwind_tables *tables; /* NULL: no stacks */
	const struct streaming_config *config;
	struct streaming *result;
	struct syscall_stream *stream;
	int signal_fd;
	struct diag *d;
};

static bool measures_child(const struct stream_session *s)
{
	return s->config->target->argv && !s->config->target->cmd_times_only;
}

/* --delay: CMD runs, nothing is taken yet. */
static void wait_first(struct stream_session *s)
{
	struct pollfd fd = {.fd = s->signal_fd, .events = POLLIN};
	uint64_t ms = s->config->delay_ns / NSEC_PER_MSEC;

	if (ms && poll(&fd, 1, (int)MIN(ms, (uint64_t)INT32_MAX)) > 0)
		s->result->interrupted = true;
}

static int prepare(struct stream_session *s)
{
	const struct streaming_config *c = s->config;
	const struct target *t = c->target;
	struct child *child = &s->result->child;
	struct syscall_stream_config stream = {
		.target = {.pids = t->pids.v,
			   .n_pids = t->pids.n,
			   .tids = t->tids.v,
			   .n_tids = t->tids.n,
			   .all = t->all,
			   .cgroup_fd = t->cgroup_fd},
		.only = c->only,
		.min_latency_ns = c->min_latency_ns,
		.failed_only = c->failed_only,
		.string_bytes = c->string_bytes,
	};
	int err = c->with_stack ? unwind_tables_new(true, &s->tables) : 0;

	if (err)
		return diag_errno(s->d, err, "preparing to unwind");
	if (c->with_stack) {
		stream.target.rows = unwind_rows_of_tables;
		stream.target.rows_ctx = s->tables;
		stream.with_stack = true;
	}
	err = t->argv ? child_prepare(t->argv, c->stdout_taken, child, s->d) : 0;

	if (!err && child->pid && c->delay_ns)
		err = child_go(child, s->d);
	if (err)
		return err;
	if (measures_child(s)) {
		stream.target.child = child->pid;
		stream.target.child_runs = c->delay_ns != 0;
	}
	wait_first(s);
	err = syscall_stream_new(&stream, c->host, &s->stream, s->d);
	if (!err)
		s->result->attached = syscall_stream_attached(s->stream);
	return err;
}

static int start(struct stream_session *s)
{
	struct child *child = &s->result->child;
	int err;

	s->result->start_ns = clock_now_ns();
	err = syscall_stream_start(s->stream);
	if (err)
		return diag_errno(s->d, err, "cannot start the stream");
	return child->pid && child->go_fd >= 0 ? child_go(child, s->d) : 0;
}

/* Until the ring is empty, or `most` rounds. More than 0: there may be more. */
static int drain(struct stream_session *s, unsigned most)
{
	int n = 1;

	for (unsigned i = 0; n > 0 && i < most; i++)
		n = syscall_stream_read(s->stream, s->config->event, s->config->ctx);
	if (!n)
		n = s->config->idle(s->config->ctx);
	return n;
}

static bool is_over(struct stream_session *s, uint64_t now_ns)
{
	const struct streaming_config *c = s->config;
	struct streaming *r = s->result;

	if (r->interrupted || (r->child.pid && child_poll(&r->child)) ||
	    !syscall_stream_alive(s->stream))
		return true;
	if (!c->duration_ns || now_ns - r->start_ns < c->duration_ns)
		return false;
	r->ended_by_duration = measures_child(s);
	return true;
}

static int loop(struct stream_session *s)
{
	const struct streaming_config *c = s->config;
	int more = 0;

	for (;;) {
		uint64_t now_ns = clock_now_ns(), until_ns = now_ns + TICK_NS;
		struct pollfd fds[] = {
			{.fd = s->signal_fd, .events = POLLIN},
			{.fd = syscall_stream_fd(s->stream), .events = POLLIN},
			{.fd = s->result->child.pid ? s->result->child.pidfd : -1,
			 .events = POLLIN},
		};
		struct timespec wait = {0};

		if (c->duration_ns)
			until_ns = MIN(until_ns, s->result->start_ns + c->duration_ns);
		if (!more && until_ns > now_ns)
			wait.tv_nsec = (long)(until_ns - now_ns);
		if (ppoll(fds, ARRAY_SIZE(fds), &wait, NULL) < 0 && errno != EINTR)
			return diag_errno(s->d, -errno, "cannot wait for calls");
		s->result->interrupted |= fds[0].revents != 0;
		more = drain(s, 1);
		if (more < 0)
			return more;
		if (is_over(s, clock_now_ns()))
			return 0;
	}
}

static int finish(struct stream_session *s)
{
	struct streaming *r = s->result;
	int err = syscall_stream_stop(s->stream);

	r->end_ns = clock_now_ns();
	while (!err) {
		int n = syscall_stream_read(s->stream, s->config->event, s->config->ctx);

		if (n <= 0) {
			err = n;
			break;
		}
	}
	if (!err)
		err = s->config->idle(s->config->ctx);
	if (!err)
		err = syscall_stream_counts(s->stream, &r->counts);
	if (r->child.pid && !child_poll(&r->child) && !s->config->target->cmd_times_only)
		child_end(&r->child);
	return err;
}

int streaming_run(const struct streaming_config *c, note_list *notes, struct streaming *ret,
		  struct diag *d)
{
	struct stream_session s = {.config = c, .result = ret, .d = d};
	int err;

	*ret = (struct streaming){.child = {.go_fd = -1, .error_fd = -1, .pidfd = -1}};
	s.signal_fd = signals_open();
	if (s.signal_fd < 0)
		return diag_errno(d, s.signal_fd, "cannot receive signals");
	err = prepare(&s);
	if (!err)
		err = start(&s);
	if (!err && !ret->interrupted)
		err = loop(&s);
	if (!err)
		err = finish(&s);
	if (!err)
		err = syscall_stream_notes(s.stream, notes);
	syscall_stream_free(s.stream);
	unwind_tables_free(s.tables);
	signals_close(s.signal_fd);
	if (!err)
		return 0;
	if (ret->child.go_fd >= 0)
		child_cancel(&ret->child);
	else
		child_end(&ret->child);
	ret->canceled = err == -ECANCELED;
	return ret->canceled ? 0 : diag_errno(d, err, "the stream ended");
}

void streaming_release(struct streaming *s)
{
	if (s->child.pid && !s->child.reaped)
		child_end(&s->child);
}
