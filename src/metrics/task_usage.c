/* SPDX-License-Identifier: BSD-2-Clause */
/* Sources: proc(5), getrusage(2), Documentation/admin-guide/cgroup-v2.rst. */
#include <fcntl.h>
#include <inspect/procfs.h>
#include <inspect/task_usage.h>
#include <math.h>

#define TEXT_BYTES_MAX 65536
#define SECTORS 512.0 /* ru_inblock counts these */

/* The sums, in the order of struct task_usage. */
static const size_t sums[] = {
	offsetof(struct task_usage, user_ns),
	offsetof(struct task_usage, sys_ns),
	offsetof(struct task_usage, voluntary),
	offsetof(struct task_usage, involuntary),
	offsetof(struct task_usage, run_delay_ns),
	offsetof(struct task_usage, minor_faults),
	offsetof(struct task_usage, major_faults),
	offsetof(struct task_usage, read_bytes),
	offsetof(struct task_usage, written_bytes),
	offsetof(struct task_usage, disk_read_bytes),
	offsetof(struct task_usage, disk_written_bytes),
};

static double *sum_at(struct task_usage *u, size_t i)
{
	return (double *)(void *)((char *)u + sums[i]);
}

void task_usage_unknown(struct task_usage *u)
{
	for (size_t i = 0; i < ARRAY_SIZE(sums); i++)
		*sum_at(u, i) = NAN;
	u->max_rss_bytes = u->threads = NAN;
}

void task_usage_add(struct task_usage *a, const struct task_usage *b)
{
	struct task_usage other = *b;

	for (size_t i = 0; i < ARRAY_SIZE(sums); i++)
		*sum_at(a, i) += *sum_at(&other, i);
	a->max_rss_bytes = fmax(a->max_rss_bytes, b->max_rss_bytes);
	a->threads += b->threads;
}

/* Counters may not run backwards, but threads end and take theirs along. */
void task_usage_subtract(struct task_usage *a, const struct task_usage *b)
{
	struct task_usage other = *b;

	for (size_t i = 0; i < ARRAY_SIZE(sums); i++) {
		double *v = sum_at(a, i);

		*v -= *sum_at(&other, i);
		if (*v < 0)
			*v = 0;
	}
}

/* "Name:   123 kB" in a file of lines; NAN when it is not there. */
static double field_of(const char *text, const char *name)
{
	size_t n = strlen(name);

	for (const char *line = text; line && *line;) {
		if (strncmp(line, name, n) == 0)
			return (double)strtoull(line + n + strspn(line + n, " \t"), NULL, 10);
		line = strchr(line, '\n');
		line += line != NULL;
	}
	return NAN;
}

static bool read_task_file(pid_t pid, pid_t tid, const char *name, struct strbuf *text)
{
	char path[80];

	if (tid)
		snprintf(path, sizeof(path), "/proc/%d/task/%d/%s", (int)pid, (int)tid, name);
	else
		snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
	return file_read(path, TEXT_BYTES_MAX, text) == 0;
}

static double ticks_ns(unsigned long long ticks)
{
	long hz = sysconf(_SC_CLK_TCK);

	return (double)ticks * (1e9 / (double)(hz > 0 ? hz : 100));
}

/* Fields 10…17 of stat, times of children waited for included when they are asked for. */
static bool read_stat(pid_t pid, pid_t tid, struct task_usage *u)
{
	CLEANUP(strbuf_release) struct strbuf text = {0};
	unsigned long long minflt, cminflt, majflt, cmajflt, utime, stime, threads;
	long long cutime, cstime;
	const char *at;

	if (!read_task_file(pid, tid, "stat", &text))
		return false;
	at = strrchr(strbuf_str(&text), ')');
	if (!at || sscanf(at + 1,
			  " %*c %*d %*d %*d %*d %*d %*u %llu %llu %llu %llu %llu %llu %lld %lld "
			  "%*d %*d %llu",
			  &minflt, &cminflt, &majflt, &cmajflt, &utime, &stime, &cutime, &cstime,
			  &threads) != 9)
		return false;
	u->minor_faults = (double)(minflt + (tid ? 0 : cminflt));
	u->major_faults = (double)(majflt + (tid ? 0 : cmajflt));
	u->user_ns = ticks_ns(utime + (tid ? 0 : (unsigned long long)MAX(cutime, 0LL)));
	u->sys_ns = ticks_ns(stime + (tid ? 0 : (unsigned long long)MAX(cstime, 0LL)));
	u->threads = tid ? 1 : (double)threads;
	return true;
}

static void add_switches(pid_t pid, pid_t tid, struct task_usage *u)
{
	CLEANUP(strbuf_release) struct strbuf text = {0};

	if (!read_task_file(pid, tid, "status", &text))
		return;
	u->voluntary += field_of(strbuf_str(&text), "voluntary_ctxt_switches:");
	u->involuntary += field_of(strbuf_str(&text), "nonvoluntary_ctxt_switches:");
}

/* proc(5), schedstat: time on a CPU, and time runnable without one. Both are 0
 * without CONFIG_SCHED_INFO. */
static double run_delay_ns(pid_t pid, pid_t tid)
{
	CLEANUP(strbuf_release) struct strbuf text = {0};
	unsigned long long on_cpu_ns, delay_ns;

	if (!read_task_file(pid, tid, "schedstat", &text) ||
	    sscanf(strbuf_str(&text), "%llu %llu", &on_cpu_ns, &delay_ns) != 2 ||
	    !(on_cpu_ns + delay_ns))
		return NAN;
	return (double)delay_ns;
}

void task_usage_delay_read(pid_t pid, struct task_usage *u)
{
	u->run_delay_ns = run_delay_ns(pid, pid);
}

static void take_io(const char *text, struct task_usage *u)
{
	u->read_bytes = field_of(text, "rchar:");
	u->written_bytes = field_of(text, "wchar:");
	u->disk_read_bytes = field_of(text, "read_bytes:");
	u->disk_written_bytes = field_of(text, "write_bytes:");
}

static void read_io(pid_t pid, pid_t tid, struct task_usage *u)
{
	CLEANUP(strbuf_release) struct strbuf text = {0};

	if (read_task_file(pid, tid, "io", &text))
		take_io(strbuf_str(&text), u);
}

int task_usage_io_open(pid_t pid)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/io", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

void task_usage_io_read(int fd, struct task_usage *u)
{
	char text[1024];
	ssize_t n = pread(fd, text, sizeof(text) - 1, 0);

	if (n <= 0)
		return;
	text[n] = '\0';
	take_io(text, u);
}

static void read_high_water(pid_t pid, struct task_usage *u)
{
	CLEANUP(strbuf_release) struct strbuf text = {0};

	if (read_task_file(pid, 0, "status", &text))
		u->max_rss_bytes = field_of(strbuf_str(&text), "VmHWM:") * 1024;
}

bool task_usage_process(pid_t pid, struct task_usage *ret)
{
	struct pid_list threads = {0};
	struct task_usage u;

	task_usage_unknown(&u);
	if (!read_stat(pid, 0, &u))
		return false;
	if (proc_threads(pid, &threads) == 0) {
		u.voluntary = u.involuntary = u.run_delay_ns = 0;
		for (size_t i = 0; i < threads.n; i++) {
			add_switches(pid, threads.v[i], &u);
			u.run_delay_ns += run_delay_ns(pid, threads.v[i]);
		}
	}
	array_release(&threads);
	read_io(pid, 0, &u);
	read_high_water(pid, &u);
	*ret = u;
	return true;
}

bool task_usage_thread(pid_t tid, struct task_usage *ret)
{
	struct task_usage u;

	task_usage_unknown(&u);
	if (!read_stat(tid, tid, &u))
		return false;
	u.voluntary = u.involuntary = 0;
	add_switches(tid, tid, &u);
	u.run_delay_ns = run_delay_ns(tid, tid);
	read_io(tid, tid, &u);
	read_high_water(tid, &u);
	*ret = u;
	return true;
}

static double timeval_ns(const struct timeval *t)
{
	return (double)t->tv_sec * 1e9 + (double)t->tv_usec * 1e3;
}

void task_usage_rusage(const struct rusage *r, struct task_usage *u)
{
	u->user_ns = timeval_ns(&r->ru_utime);
	u->sys_ns = timeval_ns(&r->ru_stime);
	u->voluntary = (double)r->ru_nvcsw;
	u->involuntary = (double)r->ru_nivcsw;
	u->minor_faults = (double)r->ru_minflt;
	u->major_faults = (double)r->ru_majflt;
	u->max_rss_bytes = (double)r->ru_maxrss * 1024;
	if (isnan(u->disk_read_bytes)) {
		u->disk_read_bytes = (double)r->ru_inblock * SECTORS;
		u->disk_written_bytes = (double)r->ru_oublock * SECTORS;
	}
}

/* Adds a line of /proc/stat, after its name. False when it is none. */
static bool add_cpu_line(const char *columns, struct task_usage *u)
{
	unsigned long long user, nice, sys, idle, wait, irq = 0, softirq = 0;

	if (sscanf(columns, "%llu %llu %llu %llu %llu %llu %llu", &user, &nice, &sys, &idle, &wait,
		   &irq, &softirq) < 5)
		return false;
	u->user_ns += ticks_ns(user + nice);
	u->sys_ns += ticks_ns(sys + irq + softirq);
	return true;
}

void task_usage_system(const int *cpus, size_t n_cpus, struct task_usage *ret)
{
	CLEANUP(strbuf_release) struct strbuf text = {0};
	struct task_usage sum;
	bool complete;

	task_usage_unknown(ret);
	if (file_read("/proc/stat", 8 << 20, &text))
		return;
	sum = *ret;
	sum.user_ns = sum.sys_ns = 0;
	complete =
		n_cpus || (str_starts(strbuf_str(&text), "cpu ") && add_cpu_line(text.v + 4, &sum));
	for (size_t i = 0; i < n_cpus; i++) {
		char name[32];
		int n = snprintf(name, sizeof(name), "\ncpu%d ", cpus[i]);
		const char *line = strstr(strbuf_str(&text), name);

		/* One that is offline has no line, and no time. */
		if (line)
			complete &= add_cpu_line(line + n, &sum);
	}
	if (complete)
		*ret = sum;
}

void task_usage_cgroup(const char *path, struct task_usage *ret)
{
	CLEANUP(strbuf_release) struct strbuf text = {0};
	char file[4200];

	task_usage_unknown(ret);
	snprintf(file, sizeof(file), "%s/cpu.stat", path);
	if (file_read(file, TEXT_BYTES_MAX, &text) == 0) {
		ret->user_ns = field_of(strbuf_str(&text), "user_usec") * 1e3;
		ret->sys_ns = field_of(strbuf_str(&text), "system_usec") * 1e3;
	}
	snprintf(file, sizeof(file), "%s/cpuacct.stat", path);
	if (isnan(ret->user_ns) && file_read(file, TEXT_BYTES_MAX, &text) == 0) {
		ret->user_ns = ticks_ns((unsigned long long)field_of(strbuf_str(&text), "user "));
		ret->sys_ns = ticks_ns((unsigned long long)field_of(strbuf_str(&text), "system "));
	}
}
