/* SPDX-License-Identifier: BSD-2-Clause */
#include "watch.h"

#include "signals.h"

#include <inspect/clock.h>
#include <poll.h>
#include <time.h>

/* CMD runs, nothing is taken yet. */
static void wait_delay(struct watch *w)
{
	struct pollfd fd = {.fd = w->signal_fd, .events = POLLIN};
	uint64_t ms = w->delay_ns / NSEC_PER_MSEC;

	if (ms && poll(&fd, 1, (int)MIN(ms, (uint64_t)INT32_MAX)) > 0)
		w->result->interrupted = true;
}

static int prepare(struct watch *w)
{
	struct child *child = &w->result->child;
	char **argv = w->target->argv;
	int err = 0;

	*w->result = (struct watched){.child = {.go_fd = -1, .error_fd = -1, .pidfd = -1}};
	w->signal_fd = signals_open();
	if (w->signal_fd < 0)
		return diag_errno(w->d, w->signal_fd, "cannot receive signals");
	if (argv)
		err = child_prepare(argv, w->stdout_taken, child, w->d);
	if (!err && child->pid && w->delay_ns)
		err = child_go(child, w->d);
	if (!err)
		wait_delay(w);
	return err;
}

bool watch_measures_child(const struct watch *w)
{
	return w->target->argv && !w->target->cmd_times_only;
}

struct probe_target watch_target(const struct watch *w)
{
	const struct target *t = w->target;
	bool has_child = watch_measures_child(w);

	return (struct probe_target){
		.pids = t->pids.v,
		.n_pids = t->pids.n,
		.tids = t->tids.v,
		.n_tids = t->tids.n,
		.all = t->all,
		.cgroup_fd = t->cgroup_fd,
		.child = has_child ? w->result->child.pid : 0,
		.child_runs = has_child && w->delay_ns,
		.command = has_child ? t->argv[0] : NULL,
	};
}

static int let_go(struct watch *w)
{
	struct child *child = &w->result->child;

	return child->pid && child->go_fd >= 0 ? child_go(child, w->d) : 0;
}

static bool is_over(struct watch *w, const struct watch_steps *steps, void *ctx)
{
	struct watched *r = w->result;

	if (r->interrupted || (r->child.pid && child_poll(&r->child)) || !steps->alive(ctx))
		return true;
	if (!w->duration_ns || clock_now_ns() - r->start_ns < w->duration_ns)
		return false;
	r->ended_by_duration = watch_measures_child(w);
	return true;
}

int watch_wait(struct watch *w, int fd, uint64_t until_ns)
{
	const struct watched *r = w->result;
	uint64_t now_ns = clock_now_ns();
	struct pollfd fds[] = {
		{.fd = w->signal_fd, .events = POLLIN},
		{.fd = r->child.pid ? r->child.pidfd : -1, .events = POLLIN},
		{.fd = fd, .events = POLLIN},
	};
	struct timespec wait = {0};

	until_ns = MIN(until_ns, now_ns + WATCH_TICK_NS);
	if (w->duration_ns)
		until_ns = MIN(until_ns, r->start_ns + w->duration_ns);
	if (until_ns > now_ns)
		wait.tv_nsec = (long)(until_ns - now_ns);
	if (ppoll(fds, ARRAY_SIZE(fds), &wait, NULL) < 0 && errno != EINTR)
		return diag_errno(w->d, -errno, "cannot wait for the end");
	w->result->interrupted |= fds[0].revents != 0;
	return 0;
}

static void end(struct watch *w, bool failed)
{
	struct child *child = &w->result->child;

	if (failed && child->go_fd >= 0)
		child_cancel(child);
	else if (failed || !w->target->cmd_times_only)
		child_end(child);
	signals_close(w->signal_fd);
}

static int measure(struct watch *w, const struct watch_steps *steps, void *ctx)
{
	int err, end_err;

	w->result->start_ns = clock_now_ns();
	err = steps->start(ctx);
	if (!err)
		err = let_go(w);
	while (!err && !is_over(w, steps, ctx))
		err = steps->turn(ctx);
	if (err && err != -ECANCELED)
		return err;
	end_err = steps->finish(ctx);
	return end_err ? end_err : err;
}

int watch_run(struct watch *w, const struct watch_steps *steps, void *ctx)
{
	int err = prepare(w);

	if (!err)
		err = steps->open(ctx);
	if (!err)
		err = measure(w, steps, ctx);
	if (steps->close)
		steps->close(ctx);
	end(w, err && err != -ECANCELED);
	return err;
}

void watched_exit_code(const struct watched *w, const struct target *t, int err, int *exit_code)
{
	if (err ? w->child.exec_failed
		: !w->ended_by_duration && !(t->cmd_times_only && w->interrupted))
		*exit_code = child_exit_code(&w->child);
}

void watched_release(struct watched *w)
{
	child_end(&w->child);
}
