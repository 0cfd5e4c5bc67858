/* SPDX-License-Identifier: BSD-2-Clause */
#include <inspect/capture.h>
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

/* Where the controller of CPU time has the cgroup that pid is in: a directory; *ret_v2. */
static int cpu_group(pid_t pid, char *ret, size_t size, bool *ret_v2)
{
	CLEANUP(strbuf_release) struct strbuf text = {0};
	char path[64], group[3072];
	const char *line;

	snprintf(path, sizeof(path), "/proc/%d/cgroup", (int)pid);
	if (file_read(path, 1 << 20, &text))
		return -ENOENT;
	line = strstr(strbuf_str(&text), "0::");
	if (line && sscanf(line, "0::%3071[^\n]", group) == 1) {
		snprintf(ret, size, "/sys/fs/cgroup%s/cpu.max", group);
		*ret_v2 = access(ret, R_OK) == 0;
		snprintf(ret, size, "/sys/fs/cgroup%s", group);
		if (*ret_v2)
			return 0;
	}
	line = strstr(strbuf_str(&text), ":cpu:");
	if (!line)
		line = strstr(strbuf_str(&text), ":cpu,cpuacct:");
	if (!line || sscanf(strchr(line + 1, ':'), ":%3071[^\n]", group) != 1)
		return -ENOENT;
	*ret_v2 = false;
	snprintf(ret, size, "/sys/fs/cgroup/cpu%s", group);
	return 0;
}

/* cpu.max of v2, cpu.cfs_quota_us and _period_us of v1, of the cgroup that pid is in; a limit
 * further up is not seen. */
static double quota_of(pid_t pid)
{
	CLEANUP(strbuf_release) struct strbuf max = {0};
	char group[3200], path[3264];
	int64_t quota, period;
	long long q, p;
	bool v2;

	if (cpu_group(pid, group, sizeof(group), &v2))
		return -1;
	snprintf(path, sizeof(path), v2 ? "%s/cpu.max" : "%s/cpu.cfs_quota_us", group);
	if (v2) {
		if (!file_read(path, 4096, &max) &&
		    sscanf(strbuf_str(&max), "%lld %lld", &q, &p) == 2 && p > 0)
			return (double)q / (double)p;
		return -1;
	}
	if (file_read_i64(path, &quota) || quota <= 0)
		return -1;
	snprintf(path, sizeof(path), "%s/cpu.cfs_period_us", group);
	return !file_read_i64(path, &period) && period > 0 ? (double)quota / (double)period : -1;
}

static int64_t throttled_of(pid_t pid)
{
	CLEANUP(strbuf_release) struct strbuf text = {0};
	char group[3200], path[3264];
	const char *line;
	long long n;
	bool v2;

	if (cpu_group(pid, group, sizeof(group), &v2))
		return -1;
	snprintf(path, sizeof(path), "%s/cpu.stat", group);
	if (file_read(path, 1 << 16, &text))
		return -1;
	line = strstr(strbuf_str(&text), "nr_throttled ");
	return line && sscanf(line, "nr_throttled %lld", &n) == 1 ? n : -1;
}

void target_usage_begin(const struct target *t, struct target_usage *u)
{
	*u = (struct target_usage){.n_throttled = t->pids.n ? throttled_of(t->pids.v[0]) : -1};
	measure(t, u);
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
		ret->quota = quota_of(pid);
	/* A command may have gone into another group since. */
	if (!child->pid && pid && u->n_throttled >= 0) {
		int64_t n = throttled_of(pid);

		ret->n_throttled = n >= u->n_throttled ? n - u->n_throttled : -1;
	}
	ret->n_children = now.n_children;
	if (now.children_ns > u->children_ns)
		ret->children_cpus = (double)(now.children_ns - u->children_ns) / wall_ns;
}
