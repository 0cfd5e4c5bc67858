/* SPDX-License-Identifier: BSD-2-Clause */
/* Rows from the times of threads: the hottest one, a process's CPUs and delay, locks, and which
 * processes are near their limit of descriptors. */
#include "readings.h"

enum { FD_ROWS_MAX = 32 };

#define WORTH_A_NAME 0.005 /* seconds a second of waiting for a lock */

struct change {
	double run, delay; /* of wall time, 1: one CPU */
};

static struct change change_of(const struct interval *i, const struct task_times *now)
{
	const struct task_times *before = task_table_find(&i->tasks_before->table, now);
	uint64_t run = before ? before->run_ns : 0, delay = before ? before->delay_ns : 0;
	double wall_ns = i->tasks_seconds * 1e9;

	/* One that has begun since has all of it from this time; one that was merely not read
	 * before does not. */
	if (!before &&
	    (i->tasks_now->table.left_out || i->tasks_before->table.left_out ||
	     (i->tasks_now->table.targets_only && now->start < i->tasks_before->boot_ns)))
		return (struct change){0};
	return (struct change){
		.run = now->run_ns > run ? (double)(now->run_ns - run) / wall_ns : 0,
		.delay = now->delay_ns > delay ? (double)(now->delay_ns - delay) / wall_ns : 0,
	};
}

double task_delay(const struct interval *i, const struct task_times *now)
{
	return change_of(i, now).delay;
}

static bool is_target(const struct use_config *c, uint32_t pid)
{
	for (size_t i = 0; i < c->n_pids; i++)
		if ((uint32_t)c->pids[i] == pid)
			return true;
	return !has_target(c);
}

/* Without threads of other processes a process of several threads has only their sum. */
static bool is_one_thread(const struct interval *i, const struct task_times *t)
{
	CLEANUP(strbuf_release) struct strbuf text = {0};

	if (!i->tasks_now->table.leaders_only)
		return true;
	root_read(i->config->root, &text, 65536, "/proc/%u/status", t->pid);
	return text_field(strbuf_str(&text), "Threads") <= 1;
}

static const struct task_times *find_hottest(const struct interval *i, struct change *ret)
{
	const struct task_times *hottest = NULL;

	*ret = (struct change){-1, 0};
	for (size_t k = 0; k < i->tasks_now->table.tasks.n; k++) {
		const struct task_times *t = &i->tasks_now->table.tasks.v[k];
		struct change c = change_of(i, t);

		if (c.run <= ret->run || !is_target(i->config, t->pid))
			continue;
		hottest = t;
		*ret = c;
	}
	return hottest;
}

/* `quota`: the part of it that is not told. */
static const char *delay_source(const struct interval *i, double quota, struct use_report *r)
{
	const struct task_table *t = &i->tasks_now->table;
	const char *source = t->delay_source ? t->delay_source : t->source;

	return quota > 0 ? report_text(r, "%s, less what a cgroup's quota took: %.0f %%", source,
				       100 * quota)
			 : source;
}

/* The thread that waits most for a CPU: another one than the hottest. Of a target its processes
 * say it. */
static void run_queue_row(const struct interval *i, struct use_report *r)
{
	const struct task_times *worst = NULL;
	struct use_row *row;
	struct use_value *v;
	bool known = false;
	double most = 0, most_quota = 0;

	if (has_target(i->config))
		return;
	for (size_t k = 0; k < i->tasks_now->table.tasks.n; k++) {
		const struct task_times *t = &i->tasks_now->table.tasks.v[k];
		double delay = change_of(i, t).delay, quota = 0;

		known |= t->delay_ns != 0;
		if (delay > most)
			quota = quota_delay(i, t->tid, delay);
		if (delay - quota <= most)
			continue;
		most = delay - quota;
		most_quota = quota;
		worst = t;
	}
	if (!known) {
		row_lacks(r, row_add(r, "host", "run queue", ""), "thread_run_delay_percent",
			  "this kernel keeps no run delay (CONFIG_SCHED_INFO)");
		return;
	}
	row = row_add(r, "host", "run queue",
		      worst ? report_text(r, "%s/%u", worst->comm, worst->tid) : "");
	v = row_put(r, row, "thread_run_delay_percent", fmin(100 * most, 100));
	if (v)
		v->source = delay_source(i, most_quota, r);
}

static void hottest_row(const struct interval *i, struct use_report *r)
{
	const char *scope = has_target(i->config) ? "process" : "host";
	struct change c;
	const struct task_times *t = find_hottest(i, &c);
	struct use_row *row;
	struct use_value *v;
	double quota;

	if (!t) {
		row = row_add(r, scope, "hottest thread", "");
		row_lacks(r, row, "thread_busy_percent",
			  i->config->cgroup && !i->config->n_pids
				  ? cgroup_absence(i->config)
				  : "no thread is readable for this user");
		return;
	}
	row = row_add(r, scope, "hottest thread", report_text(r, "%s/%u", t->comm, t->tid));
	if (!is_one_thread(i, t)) {
		row_lacks(r, row, "thread_busy_percent",
			  report_text(r,
				      "%s has several threads with %.0f %% of a core together: "
				      "-p %u tells them apart",
				      t->comm, 100 * c.run, t->pid));
		return;
	}
	v = row_put(r, row, "thread_busy_percent", fmin(100 * c.run, 100));
	if (v)
		v->source = i->tasks_now->table.source;
	if (!t->delay_ns)
		return;
	quota = quota_delay(i, t->tid, c.delay);
	v = row_put(r, row, "thread_run_delay_percent", fmin(100 * (c.delay - quota), 100));
	if (v) {
		v->not_judged = has_target(i->config)
					? "judged in the row of its process"
					: "judged in the row of the run queue, of who waits most";
		v->source = delay_source(i, quota, r);
	}
}

/* --- a process -------------------------------------------------------------------------------- */

/* What the process may use: CPUs it may run on, or the quota of its cgroup or one above it. */
static double cpus_allowed(const struct interval *i, pid_t pid)
{
	CLEANUP(strbuf_release) struct strbuf text = {0};
	double cpus = 0, all = (double)i->now->cpu.cpus.n;
	const char *list;

	root_read(i->config->root, &text, 65536, "/proc/%d/status", (int)pid);
	list = strstr(strbuf_str(&text), "Cpus_allowed_list:");
	list = list ? list + strlen("Cpus_allowed_list:") : "";
	while (*list == '\t' || *list == ',') {
		unsigned first, last;
		int n = 0;

		list++;
		if (sscanf(list, "%u%n-%u%n", &first, &n, &last, &n) < 2)
			last = first;
		if (!n || last < first)
			break;
		cpus += last - first + 1;
		list += n;
	}
	cpus = cpus > 0 && all > 0 ? fmin(cpus, all) : fmax(cpus, all);
	for (size_t k = 0; k < i->now->cgroup.v.n; k++)
		cpus = fmin(cpus, i->now->cgroup.v.v[k].quota_cpus);
	return cpus;
}

static void process_cpu_row(const struct interval *i, const struct process *p, struct use_report *r)
{
	struct use_row *row =
		row_add(r, "process", "process CPU", report_text(r, "%s/%d", p->comm, p->pid));
	double allowed = cpus_allowed(i, p->pid), run = 0, delay = 0, worst_quota = 0;
	struct use_value *v;
	bool known = false;

	for (size_t k = 0; k < i->tasks_now->table.tasks.n; k++) {
		const struct task_times *t = &i->tasks_now->table.tasks.v[k];
		struct change c;
		double quota = 0;

		if (t->pid != (uint32_t)p->pid)
			continue;
		known = true;
		c = change_of(i, t);
		run += c.run;
		if (c.delay > delay)
			quota = quota_delay(i, t->tid, c.delay);
		if (c.delay - quota > delay) {
			worst_quota = quota;
			delay = c.delay - quota;
		} else if (delay <= 0) {
			worst_quota = fmax(worst_quota, quota);
		}
	}
	if (!known) {
		row_lacks(r, row, "process_cpu_percent", "its threads are not readable");
		return;
	}
	v = row_put(r, row, "process_cpu_percent", percent_of(run, allowed));
	if (v)
		v->text = report_text(r, "%.2f of %.3g CPUs", run, allowed);
	v = row_put(r, row, "process_cpus", run);
	if (v)
		v->text = "";
	v = row_put(r, row, "process_run_delay_percent", fmin(100 * delay, 100));
	if (v)
		v->source = delay_source(i, worst_quota, r);
}

/* --- descriptors ------------------------------------------------------------------------------ */

/* The table is a power of two that holds the highest descriptor: whose table is far below the limit
 * has no need to be counted. Whom a descriptor was refused has a row in any case. */
static void fd_rows(const struct interval *i, struct use_report *r)
{
	uint64_t shown = 0, all;
	size_t rows = 0;

	for (size_t k = 0; k < i->tasks_now->table.tasks.n && rows < FD_ROWS_MAX; k++) {
		const struct task_times *t = &i->tasks_now->table.tasks.v[k];
		uint64_t refused = 0;
		struct use_row *row;
		struct use_value *v;
		double fds;

		if (t->pid != t->tid || !t->fd_limit)
			continue;
		if (i->tasks_now->table.refusals.n)
			refused = refusals_of(i, (pid_t)t->pid).emfile;
		if (t->fd_table < t->fd_limit / 2 && !refused)
			continue;
		fds = process_fds(i->config->root, (pid_t)t->pid);
		if ((isnan(fds) || fds < t->fd_limit * 0.5) && !refused)
			continue;
		row = row_add(r, "process", "fds", report_text(r, "%s/%u", t->comm, t->pid));
		v = row_put(r, row, "fds_percent", percent_of(fds, t->fd_limit));
		if (v && !isnan(fds))
			v->text = report_text(r, "%.0f of %u", fds, t->fd_limit);
		put_refusals(i, r, row, "fds_refused", refused);
		shown += refused;
		rows++;
	}
	all = refusals_of(i, 0).emfile;
	if (all > shown)
		put_refusals(i, r,
			     row_add(r, "process", "fds",
				     rows < FD_ROWS_MAX ? "of ended processes" : "of others"),
			     "fds_refused", all - shown);
}

/* --- locks ------------------------------------------------------------------------------------ */

static double lock_change(const struct interval *i, const struct lock_wait *now)
{
	uint64_t begin = 0;

	for (size_t k = 0; k < i->tasks_before->table.locks.n; k++) {
		const struct lock_wait *l = &i->tasks_before->table.locks.v[k];

		if (l->pid == now->pid && l->user_va == now->user_va)
			begin = l->wait_ns;
	}
	return now->wait_ns > begin ? (double)(now->wait_ns - begin) / (i->tasks_seconds * 1e9) : 0;
}

static const char *comm_in(const struct task_table *t, uint32_t pid)
{
	const struct task_times *found = task_table_at(t, t->tasks.n, pid);

	return found ? found->comm : NULL;
}

/* It may have ended since, or have lived within the window alone. */
static const char *comm_of(const struct interval *i, uint32_t pid)
{
	const char *now = comm_in(&i->tasks_now->table, pid);
	const char *before = now ? NULL : comm_in(&i->tasks_before->table, pid);

	return now ? now : before ? before : "ended";
}

static void lock_rows(const struct interval *i, struct use_report *r)
{
	const char *scope = has_target(i->config) ? "process" : "host";
	const struct lock_wait *worst = NULL;
	double most = 0;
	struct use_row *row;

	if (!i->tasks_now->table.has_locks) {
		row = row_add(r, scope, "locks", "");
		row_lacks(r, row, "lock_wait",
			  i->tasks_now->table.no_locks ? i->tasks_now->table.no_locks
						       : "needs BPF");
		return;
	}
	for (size_t k = 0; k < i->tasks_now->table.locks.n; k++) {
		const struct lock_wait *l = &i->tasks_now->table.locks.v[k];
		double wait;

		/* Most have not waited that long in all. */
		if ((double)l->wait_ns <= most * i->tasks_seconds * 1e9 ||
		    !is_target(i->config, l->pid))
			continue;
		wait = lock_change(i, l);
		if (wait <= most)
			continue;
		most = wait;
		worst = l;
	}
	if (i->tasks_now->table.locks_dropped > i->tasks_before->table.locks_dropped)
		report_note(r, "%llu waits for locks were not counted: too many at a time",
			    (unsigned long long)(i->tasks_now->table.locks_dropped -
						 i->tasks_before->table.locks_dropped));
	row = row_add(r, scope, "locks",
		      most >= WORTH_A_NAME
			      ? report_text(r, "%s/%u %#llx", comm_of(i, worst->pid), worst->pid,
					    (unsigned long long)worst->user_va)
			      : "");
	row_put(r, row, "lock_wait", most);
}

void task_rows(const struct interval *i, struct use_report *r)
{
	struct use_row *row;

	if (i->tasks_now->err || i->tasks_before->err) {
		row = row_add(r, "host", "hottest thread", "");
		row_lacks(r, row, "thread_busy_percent", "/proc is not readable");
		return;
	}
	if (i->tasks_now->table.left_out)
		report_note(r,
			    "%zu of %zu processes were not read for want of time: the hottest "
			    "thread may be among them",
			    i->tasks_now->table.left_out,
			    i->tasks_now->table.left_out + i->tasks_now->table.tasks.n);
	hottest_row(i, r);
	run_queue_row(i, r);
	lock_rows(i, r);
	for (size_t k = 0; k < i->now->process.v.n; k++)
		process_cpu_row(i, &i->now->process.v.v[k], r);
	if (has_target(i->config))
		return;
	fd_rows(i, r);
	user_threads_rows(i, r);
}
