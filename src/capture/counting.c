/* SPDX-License-Identifier: BSD-2-Clause */
#include "left_out.h"
#include "output_pipe.h"
#include "signals.h"

#include <inspect/clock.h>
#include <inspect/procfs.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <time.h>

enum { PIDFDS_MAX = 256, TICK_MS_FIRST = 5, TICK_MS_MAX = 250 };

struct session {
	const struct counting_config *config;
	struct counting *result;
	struct output_pipe out, err;
	void (*old_sigpipe)(int);
	int pidfds[PIDFDS_MAX]; /* of a -p target */
	size_t n_pidfds;
	struct task_usage before;
	struct left_out left_out;
	double threads_max;
	double child_cpu_ns; /* used before its exec */
	int io_fd;           /* its bytes; -1 */
	uint64_t start_ns, next_interval_ns, next_tick_ns;
	uint64_t last_interval_ns; /* since the start */
	unsigned tick_ms, intervals;
	bool interval_ended; /* the callback or the number of intervals */
	bool target_ended;   /* before the counters were stopped: the last wall_ns is its end */
	note_list *notes;
	struct diag *d;
};

int counting_signals_open(void)
{
	return signals_open();
}

void counting_signals_close(int fd)
{
	signals_close(fd);
}

static bool measures_child(const struct session *s)
{
	return s->result->child.pid && !s->config->target->cmd_times_only;
}

/* --- what the kernel accounts ----------------------------------------------------------------- */

/* Of all processes or threads together; unknown as a whole when one has ended. */
static void sum_tasks(const struct target *t, struct task_usage *ret)
{
	struct task_usage sum = {0}, one;
	bool complete = t->pids.n || t->tids.n;

	for (size_t i = 0; i < t->pids.n && complete; i++) {
		complete = task_usage_process(t->pids.v[i], &one);
		if (complete)
			task_usage_add(&sum, &one);
	}
	for (size_t i = 0; i < t->tids.n && complete; i++) {
		complete = task_usage_thread(t->tids.v[i], &one);
		if (complete)
			task_usage_add(&sum, &one);
	}
	if (complete)
		*ret = sum;
	else
		task_usage_unknown(ret);
}

static void read_usage(const struct session *s, struct task_usage *ret)
{
	const struct target *t = s->config->target;

	if (t->all)
		task_usage_system(t->cpus.v, t->cpus.n, ret);
	else if (t->cgroup && t->cgroup_fd >= 0)
		task_usage_cgroup(t->cgroup, ret);
	else
		sum_tasks(t, ret);
}

/* What the child has used for itself before CMD begins: the fork and the wait. */
static void child_before_exec(struct session *s)
{
	pid_t pid = s->result->child.pid;
	struct timespec cpu;
	clockid_t clock;

	if (!task_usage_process(pid, &s->before))
		task_usage_unknown(&s->before);
	/* Pages of it are gone with the exec, and its bytes are none. */
	s->before.read_bytes = s->before.written_bytes = 0;
	s->before.disk_read_bytes = s->before.disk_written_bytes = 0;
	s->before.user_ns = s->before.sys_ns = 0;
	s->child_cpu_ns = 0;
	if (clock_getcpuclockid(pid, &clock) == 0 && clock_gettime(clock, &cpu) == 0)
		s->child_cpu_ns = (double)cpu.tv_sec * 1e9 + (double)cpu.tv_nsec;
}

static void usage_begin(struct session *s)
{
	if (measures_child(s) && !s->config->delay_ns)
		child_before_exec(s);
	else if (measures_child(s))
		task_usage_process(s->result->child.pid, &s->before);
	else
		read_usage(s, &s->before);
	left_out_begin(&s->left_out, s->config->target);
}

/* The fork runs in the kernel: its time is taken from there. */
static void take_child_cpu(struct session *s, struct task_usage *u)
{
	double from_sys = fmin(s->child_cpu_ns, u->sys_ns);

	u->sys_ns -= from_sys;
	u->user_ns = fmax(u->user_ns - (s->child_cpu_ns - from_sys), 0);
}

/* The kernel accounts tasks wherever they run: with -C only what is no sum is known. */
static void forget_other_cpus(const struct target *t, struct task_usage *u)
{
	double max_rss_bytes = u->max_rss_bytes, threads = u->threads;

	if (!t->cpus.n || t->all)
		return;
	task_usage_unknown(u);
	u->max_rss_bytes = max_rss_bytes;
	u->threads = threads;
}

/* /proc has the switches of threads that are there: those of threads and children that have ended
 * are missing when the counter has clearly more. */
static void forget_partial_switches(const struct session *s, struct task_usage *u)
{
	enum { SLACK = 20 }; /* the two are not read at one moment */
	const struct counter_events *events = s->config->events;

	for (size_t i = 0; i < events->specs.n; i++) {
		const struct perf_event_attr *a = &events->specs.v[i].attr;
		struct count sum;
		double v;

		if (a->type != PERF_TYPE_SOFTWARE || a->config != PERF_COUNT_SW_CONTEXT_SWITCHES ||
		    counters_event(s->result->counters, i)->missing)
			continue;
		counters_total(s->result->counters, i, &sum);
		if (counters_value(s->result->counters, i, &sum, &v) &&
		    u->voluntary + u->involuntary < 0.95 * v - SLACK)
			u->voluntary = u->involuntary = u->run_delay_ns = NAN;
		return;
	}
}

/* Only of a child that was one thread all the time is the delay of its first the whole. */
static void forget_partial_delay(const struct session *s, struct task_usage *u)
{
	if (s->threads_max > 1)
		u->run_delay_ns = NAN;
}

/* What CMD used, or what others have since the start: of these it was read with the counters. */
static void usage_end(struct session *s)
{
	struct task_usage *u = &s->result->usage;

	if (measures_child(s) && s->result->child.reaped) {
		task_usage_rusage(&s->result->child.usage, u);
		task_usage_subtract(u, &s->before);
		take_child_cpu(s, u);
		forget_partial_delay(s, u);
	} else if (measures_child(s)) {
		if (!task_usage_process(s->result->child.pid, u))
			task_usage_unknown(u);
		task_usage_subtract(u, &s->before);
	} else {
		task_usage_subtract(u, &s->before);
		forget_partial_switches(s, u);
		s->result->left_out = s->left_out.pids.n;
		s->result->left_out_cpus =
			s->result->wall_ns
				? (double)left_out_cpu_ns(&s->left_out) / (double)s->result->wall_ns
				: 0;
	}
	forget_other_cpus(s->config->target, u);
	u->threads = isnan(u->threads) ? s->threads_max : fmax(u->threads, s->threads_max);
	if (!(u->threads > 0))
		u->threads = NAN;
}

/* Those of CMD and of all that it has started. */
static double threads_of_tree(pid_t root)
{
	struct pid_list pids = {0};
	struct proc_stat stat;
	double n = proc_stat_read(root, 0, &stat) == 0 ? stat.num_threads : 0;

	if (proc_descendants(root, &pids) == 0)
		for (size_t i = 0; i < pids.n; i++)
			if (proc_stat_read(pids.v[i], 0, &stat) == 0 && stat.state != 'Z')
				n += stat.num_threads;
	array_release(&pids);
	return n;
}

static void sample_threads(struct session *s)
{
	const struct target *t = s->config->target;
	struct proc_stat stat;
	double n = measures_child(s) ? threads_of_tree(s->result->child.pid) : 0;

	for (size_t i = 0; i < t->pids.n; i++)
		if (proc_stat_read(t->pids.v[i], 0, &stat) == 0)
			n += stat.num_threads;
	n += (double)t->tids.n + left_out_new_threads(&s->left_out, t);
	s->threads_max = fmax(s->threads_max, n);
}

/* --- preparing -------------------------------------------------------------------------------- */

static int prepare_child(struct session *s)
{
	const struct counting_config *c = s->config;
	int stdout_fd = c->stdout_taken ? STDERR_FILENO : -1;
	int err;

	if (!c->line)
		return child_prepare_to(c->target->argv, stdout_fd, -1, &s->result->child, s->d);
	s->old_sigpipe = signal(SIGPIPE, SIG_IGN);
	err = output_pipe_open(&s->out, c->stdout_taken ? STDERR_FILENO : STDOUT_FILENO, c->line,
			       c->ctx);
	if (!err)
		err = output_pipe_open(&s->err, STDERR_FILENO, c->line, c->ctx);
	if (err)
		return diag_errno(s->d, err, "cannot start '%s'", c->target->argv[0]);
	err = child_prepare_to(c->target->argv, s->out.write_fd, s->err.write_fd, &s->result->child,
			       s->d);
	closep(&s->out.write_fd);
	closep(&s->err.write_fd);
	s->out.write_fd = s->err.write_fd = -1;
	return err;
}

static struct counters_config counters_config_of(const struct session *s)
{
	const struct counting_config *c = s->config;
	const struct target *t = c->target;
	bool own_cgroup = t->cgroup_fd >= 0 && !c->n_cgroups;

	return (struct counters_config){
		.events = c->events,
		.user_only = c->user_only,
		.kernel_only = c->kernel_only,
		.required = c->required,
		.pids = t->pids.v,
		.n_pids = t->pids.n,
		.tids = t->tids.v,
		.n_tids = t->tids.n,
		.child = measures_child(s) ? s->result->child.pid : 0,
		.child_runs = c->delay_ns != 0,
		.all = t->all,
		.cgroup_fds = own_cgroup ? &t->cgroup_fd : c->cgroup_fds,
		.n_cgroups = own_cgroup ? 1 : c->n_cgroups,
		.cpus = t->cpus.n ? t->cpus.v : NULL,
		.n_cpus = t->cpus.n,
		.per_cpu = c->per_cpu,
	};
}

static void open_pidfds(struct session *s)
{
	const struct target *t = s->config->target;

	for (size_t i = 0; i < t->pids.n && s->n_pidfds < PIDFDS_MAX; i++) {
		int fd = (int)syscall(SYS_pidfd_open, t->pids.v[i], 0);

		if (fd >= 0)
			s->pidfds[s->n_pidfds++] = fd;
	}
}

static int prepare(struct session *s)
{
	struct counters_config config;
	int err = 0;

	if (s->config->target->argv)
		err = prepare_child(s);
	if (err)
		return err;
	if (measures_child(s))
		s->io_fd = task_usage_io_open(s->result->child.pid);
	config = counters_config_of(s);
	err = counters_new(&config, &pmu_kernel_ops, NULL, s->config->host, s->notes,
			   &s->result->counters, s->d);
	if (!err)
		open_pidfds(s);
	return err;
}

static int start(struct session *s)
{
	struct child *child = &s->result->child;
	bool delayed = s->config->delay_ns != 0;
	struct pollfd fd = {.fd = s->config->signal_fd, .events = POLLIN};
	uint64_t ms = s->config->delay_ns / NSEC_PER_MSEC;
	int err = 0;

	if (child->pid && delayed)
		err = child_go(child, s->d);
	if (!err && ms && poll(&fd, 1, (int)MIN(ms, (uint64_t)INT32_MAX)) > 0)
		s->result->interrupted = true;
	if (err)
		return err;
	usage_begin(s);
	s->threads_max = measures_child(s);
	s->start_ns = clock_now_ns();
	err = counters_start(s->result->counters);
	if (err)
		return diag_errno(s->d, err, "cannot start the counters");
	if (child->pid && !delayed)
		err = child_go(child, s->d);
	s->tick_ms = TICK_MS_FIRST;
	s->next_tick_ns = s->start_ns + TICK_MS_FIRST * NSEC_PER_MSEC;
	s->next_interval_ns = s->start_ns + s->config->interval_ns;
	return err;
}

/* --- the loop --------------------------------------------------------------------------------- */

static uint64_t earliest(const struct session *s)
{
	const struct counting_config *c = s->config;
	uint64_t at = s->next_tick_ns;

	if (c->interval_ns)
		at = MIN(at, s->next_interval_ns);
	if (c->duration_ns)
		at = MIN(at, s->start_ns + c->duration_ns);
	if (c->timeout_ns)
		at = MIN(at, s->start_ns + c->timeout_ns);
	return at;
}

static bool is_gone(pid_t id, pid_t tid)
{
	struct proc_stat stat;

	return proc_stat_read(id, tid, &stat) || stat.state == 'Z' || stat.state == 'X';
}

static bool target_is_gone(const struct session *s)
{
	const struct target *t = s->config->target;

	if (t->all || t->cgroup_fd >= 0 || (!t->pids.n && !t->tids.n))
		return false;
	for (size_t i = 0; i < t->pids.n; i++)
		if (!is_gone(t->pids.v[i], 0))
			return false;
	for (size_t i = 0; i < t->tids.n; i++)
		if (!is_gone(t->tids.v[i], t->tids.v[i]))
			return false;
	return true;
}

static int end_interval(struct session *s, uint64_t now_ns)
{
	const struct counting_config *c = s->config;
	int err = counters_read(s->result->counters);

	if (err)
		return diag_errno(s->d, err, "cannot read the counters");
	s->last_interval_ns = now_ns - s->start_ns;
	err = c->interval(c->ctx, now_ns - s->start_ns, s->result->counters);
	s->intervals++;
	s->interval_ended = err || (c->intervals_max && s->intervals >= c->intervals_max);
	/* A late one does not make the next ones late. */
	while (s->next_interval_ns <= now_ns)
		s->next_interval_ns += c->interval_ns;
	return 0;
}

static int do_timers(struct session *s)
{
	const struct counting_config *c = s->config;
	uint64_t now_ns = clock_now_ns();

	if (now_ns >= s->next_tick_ns) {
		sample_threads(s);
		s->next_tick_ns = now_ns + s->tick_ms * NSEC_PER_MSEC;
		s->tick_ms = MIN(s->tick_ms * 2, (unsigned)TICK_MS_MAX);
	}
	if (c->interval_ns && now_ns >= s->next_interval_ns)
		return end_interval(s, now_ns);
	return 0;
}

/* Whether the measurement is over. */
static bool is_over(struct session *s, bool child_ended, bool target_ended)
{
	const struct counting_config *c = s->config;
	struct counting *r = s->result;
	uint64_t elapsed_ns = clock_now_ns() - s->start_ns;
	bool runs = r->child.pid && !child_ended;

	s->target_ended = (child_ended && measures_child(s)) || (target_ended && target_is_gone(s));
	if (child_ended || r->interrupted || s->interval_ended || s->target_ended)
		return true;
	if (c->timeout_ns && runs && elapsed_ns >= c->timeout_ns) {
		r->timed_out = true;
		return true;
	}
	if (!c->duration_ns || elapsed_ns < c->duration_ns)
		return false;
	r->ended_by_duration = runs && !c->target->cmd_times_only;
	return true;
}

static void pass_output(struct output_pipe *p, const struct pollfd *fd)
{
	if (fd->fd >= 0 && fd->revents && !output_pipe_pass(p))
		output_pipe_close(p);
}

static int loop(struct session *s)
{
	enum { SIGNAL, CHILD, OUT, ERR, FIXED };
	struct pollfd fds[FIXED + PIDFDS_MAX];
	struct child *child = &s->result->child;

	for (;;) {
		uint64_t now_ns = clock_now_ns(), until_ns = earliest(s);
		uint64_t left_ns = until_ns > now_ns ? until_ns - now_ns : 0;
		struct timespec wait = {(time_t)(left_ns / NSEC_PER_SEC),
					(long)(left_ns % NSEC_PER_SEC)};
		bool child_ended, target_ended = !s->n_pidfds;
		int err;

		fds[SIGNAL] = (struct pollfd){.fd = s->config->signal_fd, .events = POLLIN};
		fds[CHILD] =
			(struct pollfd){.fd = child->pid ? child->pidfd : -1, .events = POLLIN};
		fds[OUT] = (struct pollfd){.fd = s->out.read_fd, .events = POLLIN};
		fds[ERR] = (struct pollfd){.fd = s->err.read_fd, .events = POLLIN};
		for (size_t i = 0; i < s->n_pidfds; i++)
			fds[FIXED + i] = (struct pollfd){.fd = s->pidfds[i], .events = POLLIN};
		if (ppoll(fds, FIXED + s->n_pidfds, &wait, NULL) < 0 && errno != EINTR)
			return diag_errno(s->d, -errno, "cannot wait for the end");
		s->result->wall_ns = clock_now_ns() - s->start_ns;
		s->result->interrupted |= fds[SIGNAL].revents != 0;
		pass_output(&s->out, &fds[OUT]);
		pass_output(&s->err, &fds[ERR]);
		/* A child that has ended is left unreaped until its bytes are read. */
		child_ended = fds[CHILD].revents != 0 ||
			      (child->pid && child->pidfd < 0 && is_gone(child->pid, 0));
		for (size_t i = 0; i < s->n_pidfds; i++)
			if (fds[FIXED + i].revents) {
				target_ended = true;
				closep(&s->pidfds[i]);
				s->pidfds[i] = -1;
			}
		err = do_timers(s);
		if (err)
			return err;
		if (is_over(s, child_ended, target_ended))
			return 0;
	}
}

/* --- the end ---------------------------------------------------------------------------------- */

/* CMD with all that it has started. Descriptors, not numbers: those may be another's by then. */
static void end_tree(struct child *child)
{
	struct pid_list pids = {0};
	int fds[PIDFDS_MAX];
	size_t n = 0;

	if (proc_descendants(child->pid, &pids) == 0)
		for (size_t i = 0; i < pids.n && n < PIDFDS_MAX; i++) {
			fds[n] = (int)syscall(SYS_pidfd_open, pids.v[i], 0);
			n += fds[n] >= 0;
		}
	array_release(&pids);
	for (size_t i = 0; i < n; i++)
		syscall(SYS_pidfd_send_signal, fds[i], SIGTERM, NULL, 0);
	child_end(child);
	for (size_t i = 0; i < n; i++) {
		syscall(SYS_pidfd_send_signal, fds[i], SIGKILL, NULL, 0);
		close(fds[i]);
	}
}

/* What is left behind the last whole interval, so that all of them add up to the total. */
static void last_interval(struct session *s)
{
	const struct counting_config *c = s->config;

	if (c->interval_ns && !s->interval_ended &&
	    s->result->wall_ns > s->last_interval_ns + NSEC_PER_MSEC)
		c->interval(c->ctx, s->result->wall_ns, s->result->counters);
}

static int finish(struct session *s)
{
	struct counting *r = s->result;
	int err = counters_stop(r->counters);

	if (!s->target_ended)
		r->wall_ns = clock_now_ns() - s->start_ns;
	task_usage_unknown(&r->usage);
	if (!measures_child(s))
		read_usage(s, &r->usage);
	if (!err)
		err = counters_read(r->counters);
	if (!err)
		last_interval(s);
	if (s->io_fd >= 0)
		task_usage_io_read(s->io_fd, &r->usage);
	if (measures_child(s))
		task_usage_delay_read(r->child.pid, &r->usage);
	if (r->timed_out || r->ended_by_duration)
		end_tree(&r->child);
	else if (r->child.pid && !child_poll(&r->child) && !s->config->target->cmd_times_only)
		child_end(&r->child);
	usage_end(s);
	output_pipe_finish(&s->out);
	output_pipe_finish(&s->err);
	return err ? diag_errno(s->d, err, "cannot read the counters") : 0;
}

static void session_release(struct session *s)
{
	output_pipe_close(&s->out);
	output_pipe_close(&s->err);
	closep(&s->io_fd);
	left_out_release(&s->left_out);
	if (s->config->line)
		signal(SIGPIPE, s->old_sigpipe);
	for (size_t i = 0; i < s->n_pidfds; i++)
		closep(&s->pidfds[i]);
}

int counting_run(const struct counting_config *c, note_list *notes, struct counting *ret,
		 struct diag *d)
{
	CLEANUP(session_release)
	struct session s = {
		.config = c,
		.result = ret,
		.out = {.read_fd = -1, .write_fd = -1},
		.err = {.read_fd = -1, .write_fd = -1},
		.io_fd = -1,
		.old_sigpipe = SIG_DFL,
		.notes = notes,
		.d = d,
	};
	int err;

	*ret = (struct counting){.child = {.go_fd = -1, .error_fd = -1, .pidfd = -1}};
	task_usage_unknown(&ret->usage);
	err = prepare(&s);
	if (!err)
		err = start(&s);
	if (!err && !ret->interrupted)
		err = loop(&s);
	if (!err)
		return finish(&s);
	if (ret->child.go_fd >= 0)
		child_cancel(&ret->child);
	else
		child_end(&ret->child);
	return diag_errno(d, err, "counting failed");
}

void counting_release(struct counting *r)
{
	counters_free(r->counters);
	r->counters = NULL;
	if (r->child.pid && !r->child.reaped)
		child_end(&r->child);
}
