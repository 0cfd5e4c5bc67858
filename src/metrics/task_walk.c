/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Times of threads by a walk through /proc, for who may not use BPF. All threads of a target; of
 * all processes their sums, which cost one file each, and within a time limit: where there are
 * thousands, what is left out is counted.
 */
#include "readings.h"

#include <dirent.h>
#include <inspect/clock.h>
#include <limits.h>

enum { TEXT_MAX = 4096, THREADS_MAX = 1 << 16 };

#define WALK_NS_MAX (80 * NSEC_PER_MSEC)

static unsigned number_of(const char *name)
{
	char *end;
	unsigned long v = *name >= '1' && *name <= '9' ? strtoul(name, &end, 10) : 0;

	return v && !*end && v <= INT_MAX ? (unsigned)v : 0;
}

/* What stat says of a thread, or (tid 0) of a process with all its threads. */
static bool read_task(const char *root, unsigned pid, unsigned tid, struct task_times *ret)
{
	CLEANUP(strbuf_release) struct strbuf text = {0};
	double tick_ns = 1e9 / (double)MAX(sysconf(_SC_CLK_TCK), 1L);
	const char *open_paren, *close_paren;
	bool found = tid ? root_read(root, &text, TEXT_MAX, "/proc/%u/task/%u/stat", pid, tid)
			 : root_read(root, &text, TEXT_MAX, "/proc/%u/stat", pid);

	open_paren = strchr(strbuf_str(&text), '(');
	close_paren = strrchr(strbuf_str(&text), ')');
	if (!found || !open_paren || !close_paren || close_paren < open_paren)
		return false;
	*ret = (struct task_times){
		.pid = pid,
		.tid = tid ? tid : pid,
		.run_ns = (uint64_t)((line_number(close_paren + 1, 11) +
				      line_number(close_paren + 1, 12)) *
				     tick_ns),
		.start = (uint64_t)(line_number(close_paren + 1, 19) * tick_ns),
	};
	snprintf(ret->comm, sizeof(ret->comm), "%.*s", (int)(close_paren - open_paren - 1),
		 open_paren + 1);
	return true;
}

/* Run time in nanoseconds, and the delay. */
static void read_schedstat(const char *root, struct task_times *t)
{
	CLEANUP(strbuf_release) struct strbuf text = {0};
	double run, delay;

	root_read(root, &text, TEXT_MAX, "/proc/%u/task/%u/schedstat", t->pid, t->tid);
	run = line_number(strbuf_str(&text), 0);
	delay = line_number(strbuf_str(&text), 1);
	if (isnan(run) || isnan(delay) || (run <= 0 && delay <= 0))
		return; /* a kernel without them */
	t->run_ns = (uint64_t)run;
	t->delay_ns = (uint64_t)delay;
}

static int add_threads(const char *root, unsigned pid, struct task_table *ret)
{
	char path[PATH_SIZE];
	DIR *dir;
	int err = 0;

	snprintf(path, sizeof(path), "%s/proc/%u/task", root, pid);
	dir = opendir(path);
	if (!dir)
		return 0;
	for (struct dirent *e; !err && ret->tasks.n < THREADS_MAX && (e = readdir(dir));) {
		unsigned tid = number_of(e->d_name);
		struct task_times t;

		if (!tid || !read_task(root, pid, tid, &t))
			continue;
		read_schedstat(root, &t);
		err = array_push(&ret->tasks, t);
	}
	closedir(dir);
	return err;
}

static int add_processes(const char *root, struct task_table *ret)
{
	uint64_t begin_ns = clock_own_cpu_ns();
	char path[PATH_SIZE];
	DIR *dir;
	int err = 0;

	snprintf(path, sizeof(path), "%s/proc", root);
	dir = opendir(path);
	if (!dir)
		return -errno;
	ret->leaders_only = true;
	for (struct dirent *e; !err && (e = readdir(dir));) {
		unsigned pid = number_of(e->d_name);
		struct task_times t;

		if (!pid)
			continue;
		if (clock_own_cpu_ns() - begin_ns > WALK_NS_MAX)
			ret->left_out++;
		else if (read_task(root, pid, 0, &t))
			err = array_push(&ret->tasks, t);
	}
	closedir(dir);
	return err;
}

int task_walk(const char *root, const pid_t *pids, size_t n, struct task_table *ret)
{
	int err = 0;

	ret->source = "/proc/PID/task/TID/schedstat";
	ret->targets_only = n != 0;
	if (!n) {
		ret->source = "/proc/PID/stat";
		err = add_processes(root, ret);
	}
	for (size_t i = 0; i < n && !err; i++)
		err = add_threads(root, (unsigned)pids[i], ret);
	task_table_sort(ret);
	return err;
}
