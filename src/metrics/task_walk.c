/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Times of threads by a walk through /proc, for who may not use BPF. All threads of a target; of
 * all processes their sums and the delay of the first one, two files each, and within a time
 * limit: where there are thousands, what is left out is counted.
 */
#include "readings.h"

#include <dirent.h>
#include <fcntl.h>
#include <inspect/clock.h>
#include <limits.h>

enum { TEXT_MAX = 4096, THREADS_MAX = 1 << 16 };

#define WALK_NS_MAX (120 * NSEC_PER_MSEC)

static unsigned number_of(const char *name)
{
	char *end;
	unsigned long v = *name >= '1' && *name <= '9' ? strtoul(name, &end, 10) : 0;

	return v && !*end && v <= INT_MAX ? (unsigned)v : 0;
}

/* A file below /proc, which is made as it is read: at once. False: it is gone. */
static bool read_file(int proc_fd, const char *name, char *buf, size_t size)
{
	int fd = openat(proc_fd, name, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd >= 0 ? read(fd, buf, size - 1) : -1;

	closep(&fd);
	buf[MAX(n, 0)] = '\0';
	return n > 0;
}

/* Fields FIRST to LAST (0 the one behind the name) of whole numbers. */
static void take_numbers(const char *at, unsigned first, unsigned last, uint64_t *ret)
{
	for (unsigned i = 0; i <= last; i++) {
		at += strspn(at, " ");
		if (i >= first)
			ret[i - first] = strtoull(at, NULL, 10);
		at += strcspn(at, " ");
	}
}

/* What stat says of a thread, or (tid 0) of a process with all its threads. Thousands of them are
 * read: no memory is taken, and nothing is converted twice. */
static bool read_task(int proc_fd, unsigned pid, unsigned tid, struct task_times *ret)
{
	enum { USER_TIME = 11, SYSTEM_TIME = 12, START = 19 };
	uint64_t tick_ns = 1000000000u / (uint64_t)MAX(sysconf(_SC_CLK_TCK), 1L);
	uint64_t v[START - USER_TIME + 1];
	const char *open_paren, *close_paren;
	char path[64], text[TEXT_MAX];

	if (tid)
		snprintf(path, sizeof(path), "%u/task/%u/stat", pid, tid);
	else
		snprintf(path, sizeof(path), "%u/stat", pid);
	if (!read_file(proc_fd, path, text, sizeof(text)))
		return false;
	open_paren = strchr(text, '(');
	close_paren = strrchr(text, ')');
	if (!open_paren || !close_paren || close_paren < open_paren)
		return false;
	take_numbers(close_paren + 1, USER_TIME, START, v);
	*ret = (struct task_times){
		.pid = pid,
		.tid = tid ? tid : pid,
		.run_ns = (v[0] + v[SYSTEM_TIME - USER_TIME]) * tick_ns,
		.start = v[START - USER_TIME] * tick_ns,
	};
	snprintf(ret->comm, sizeof(ret->comm), "%.*s", (int)(close_paren - open_paren - 1),
		 open_paren + 1);
	return true;
}

/* Run time in nanoseconds, and the delay. A process's file is that of its first thread. */
static void read_schedstat(int proc_fd, bool of_thread, struct task_times *t)
{
	char path[64], text[128];
	uint64_t v[2] = {0};

	if (of_thread)
		snprintf(path, sizeof(path), "%u/task/%u/schedstat", t->pid, t->tid);
	else
		snprintf(path, sizeof(path), "%u/schedstat", t->pid);
	if (read_file(proc_fd, path, text, sizeof(text)))
		take_numbers(text, 0, 1, v);
	if (!v[0] && !v[1])
		return; /* a kernel without them */
	if (of_thread)
		t->run_ns = v[0];
	t->delay_ns = v[1];
}

static int add_threads(int proc_fd, unsigned pid, struct task_table *ret)
{
	char path[64];
	int fd, err = 0;
	DIR *dir;

	snprintf(path, sizeof(path), "%u/task", pid);
	fd = openat(proc_fd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	dir = fd >= 0 ? fdopendir(fd) : NULL;
	if (!dir) {
		closep(&fd);
		return 0;
	}
	for (struct dirent *e; !err && ret->tasks.n < THREADS_MAX && (e = readdir(dir));) {
		unsigned tid = number_of(e->d_name);
		struct task_times t;

		if (!tid || !read_task(proc_fd, pid, tid, &t))
			continue;
		read_schedstat(proc_fd, true, &t);
		err = array_push(&ret->tasks, t);
	}
	closedir(dir);
	return err;
}

static int add_processes(int proc_fd, struct task_table *ret)
{
	uint64_t begin_ns = clock_own_cpu_ns();
	int fd = openat(proc_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), err = 0;
	DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;

	if (!dir) {
		err = -errno;
		closep(&fd);
		return err;
	}
	ret->leaders_only = true;
	for (struct dirent *e; !err && (e = readdir(dir));) {
		unsigned pid = number_of(e->d_name);
		struct task_times t;

		if (!pid)
			continue;
		if (clock_own_cpu_ns() - begin_ns > WALK_NS_MAX) {
			ret->left_out++;
		} else if (read_task(proc_fd, pid, 0, &t)) {
			read_schedstat(proc_fd, false, &t);
			err = array_push(&ret->tasks, t);
		}
	}
	closedir(dir);
	return err;
}

int task_walk_missing(const char *root, const pid_t *pids, size_t n, struct task_table *t)
{
	CLEANUP(closep) int proc_fd = -1;
	size_t known = t->tasks.n;
	char path[PATH_SIZE];
	int err = 0;

	snprintf(path, sizeof(path), "%s/proc", root);
	proc_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	for (size_t i = 0; i < n && !err && proc_fd >= 0; i++)
		if (!task_table_at(t, known, (uint32_t)pids[i]))
			err = add_threads(proc_fd, (unsigned)pids[i], t);
	task_table_sort(t);
	return err;
}

int task_walk(const char *root, const pid_t *pids, size_t n, struct task_table *ret)
{
	CLEANUP(closep) int proc_fd = -1;
	char path[PATH_SIZE];
	int err = 0;

	snprintf(path, sizeof(path), "%s/proc", root);
	proc_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (proc_fd < 0)
		return -errno;
	ret->source = "/proc/PID/task/TID/schedstat";
	ret->targets_only = n != 0;
	if (!n) {
		ret->source = "/proc/PID/stat";
		ret->delay_source = "/proc/PID/schedstat (of first threads)";
		err = add_processes(proc_fd, ret);
	}
	for (size_t i = 0; i < n && !err; i++)
		err = add_threads(proc_fd, (unsigned)pids[i], ret);
	task_table_sort(ret);
	return err;
}
