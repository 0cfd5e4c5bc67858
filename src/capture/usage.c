/* SPDX-License-Identifier: BSD-2-Clause */
#include "cpu_groups.h"

#include <inspect/clock.h>
#include <inspect/procfs.h>

static uint64_t cpu_ns_of(pid_t pid, pid_t tid)
{
	struct proc_stat s;

	return proc_stat_read(pid, tid, &s) ? 0 : s.utime_ns + s.stime_ns;
}

/* Busy time in a line of /proc/stat after its name: all columns but idle and iowait (guest time is
 * part of user time). */
static uint64_t busy_ns(const char *columns)
{
	unsigned long long v[8] = {0};

	if (sscanf(columns, "%llu %llu %llu %llu %llu %llu %llu %llu", &v[0], &v[1], &v[2], &v[3],
		   &v[4], &v[5], &v[6], &v[7]) < 4)
		return 0;
	return (v[0] + v[1] + v[2] + v[5] + v[6] + v[7]) *
	       (NSEC_PER_SEC / (uint64_t)sysconf(_SC_CLK_TCK));
}

/* Busy time since boot of the CPUs given, or of all. */
static uint64_t host_busy_ns(const int *cpus, size_t n_cpus)
{
	CLEANUP(strbuf_release) struct strbuf text = {0};
	uint64_t sum = 0;

	if (file_read("/proc/stat", 8 << 20, &text))
		return 0;
	if (!n_cpus)
		return str_starts(strbuf_str(&text), "cpu ") ? busy_ns(text.v + 4) : 0;
	for (size_t i = 0; i < n_cpus; i++) {
		char name[32];
		int n = snprintf(name, sizeof(name), "\ncpu%d ", cpus[i]);
		const char *line = strstr(strbuf_str(&text), name);

		if (line)
			sum += busy_ns(line + n);
	}
	return sum;
}

static bool is_target(const struct target *t, pid_t pid)
{
	for (size_t i = 0; i < t->pids.n; i++)
		if (t->pids.v[i] == pid)
			return true;
	return false;
}

/* CPU time so far of the target, and of children it has now that are no part of it. */
static void measure(const struct target *t, struct target_usage *u)
{
	struct pid_list children = {0};

	u->start_ns = clock_now_ns();
	if (t->all)
		u->cpu_ns = host_busy_ns(t->cpus.v, t->cpus.n);
	for (size_t i = 0; i < t->tids.n; i++)
		u->cpu_ns += cpu_ns_of(t->tids.v[i], t->tids.v[i]);
	for (size_t i = 0; i < t->pids.n; i++) {
		u->cpu_ns += cpu_ns_of(t->pids.v[i], 0);
		children.n = 0;
		if (proc_descendants(t->pids.v[i], &children))
			continue;
		for (size_t j = 0; j < children.n; j++) {
			if (is_target(t, children.v[j]))
				continue;
			u->children_ns += cpu_ns_of(children.v[j], 0);
			u->n_children++;
		}
	}
	array_release(&children);
}

/* Of the processes that are in the target's cgroup now. */
static void add_members(const struct target *t, cpu_group_list *groups)
{
	CLEANUP(strbuf_release) struct strbuf text = {0};
	char path[4200];
	long pid;

	snprintf(path, sizeof(path), "%s/cgroup.procs", t->cgroup);
	if (file_read(path, 1 << 20, &text))
		return;
	for (char *at = text.v, *end; at && (pid = strtol(at, &end, 10)) > 0 && end != at; at = end)
		if (cpu_groups_add(groups, (pid_t)pid))
			return;
}

void target_usage_begin(const struct target *t, const struct child *child, struct target_usage *u)
{
	*u = (struct target_usage){0};
	for (size_t i = 0; i < t->pids.n; i++)
		if (cpu_groups_add(&u->groups, t->pids.v[i]))
			break; /* those that there are */
	for (size_t i = 0; i < t->tids.n; i++)
		if (cpu_groups_add(&u->groups, t->tids.v[i]))
			break;
	if (child->pid && !t->cmd_times_only)
		cpu_groups_add(&u->groups, child->pid);
	if (t->cgroup)
		add_members(t, &u->groups);
	u->n_at_start = u->groups.n;
	measure(t, u);
}

int target_usage_follow(struct target_usage *u, pid_t pid)
{
	return cpu_groups_add(&u->groups, pid);
}

void target_usage_release(struct target_usage *u)
{
	cpu_groups_release(&u->groups);
}

static uint64_t rusage_ns(const struct rusage *r)
{
	return (uint64_t)(r->ru_utime.tv_sec + r->ru_stime.tv_sec) * NSEC_PER_SEC +
	       (uint64_t)(r->ru_utime.tv_usec + r->ru_stime.tv_usec) * NSEC_PER_USEC;
}

void target_usage_end(const struct target *t, const struct child *child,
		      const struct target_usage *u, const struct host *host,
		      struct target_load *ret)
{
	struct target_usage now = {0};
	pid_t pid = t->pids.n ? t->pids.v[0] : 0;
	double wall_ns;

	measure(t, &now);
	wall_ns = (double)(now.start_ns - u->start_ns);
	*ret = (struct target_load){
		.cpus = -1, .quota = -1, .n_throttled = -1, .cpus_online = host->cpus_online};
	if (t->all && t->cpus.n)
		ret->cpus_online = (uint32_t)t->cpus.n;
	if (wall_ns <= 0)
		return;
	if (child->pid && !t->cmd_times_only) {
		if (child->reaped)
			ret->cpus = (double)rusage_ns(&child->usage) / wall_ns;
		pid = child->reaped ? getpid() : child->pid;
	} else if (now.cpu_ns > u->cpu_ns) {
		ret->cpus = (double)(now.cpu_ns - u->cpu_ns) / wall_ns;
	}
	if (pid)
		ret->quota = cpu_groups_quota(pid);
	ret->n_throttled = cpu_groups_throttled(&u->groups);
	ret->at_least = u->groups.n > u->n_at_start;
	ret->n_children = now.n_children;
	if (now.children_ns > u->children_ns)
		ret->children_cpus = (double)(now.children_ns - u->children_ns) / wall_ns;
}
