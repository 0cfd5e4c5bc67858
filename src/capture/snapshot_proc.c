/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Tasks from /proc, where BPF is not allowed. Of a thread's registers /proc/PID/syscall gives only
 * stack and instruction pointer: a stack can be walked as long as no other is needed. Nothing there
 * says since when a thread waits.
 */
#include "snapshot_impl.h"

#include <inspect/procfs.h>

#define TEXT_BYTES_MAX 65536

static int read_task_file(const struct task_state *t, const char *name, struct strbuf *ret)
{
	char path[80];

	snprintf(path, sizeof(path), "/proc/%d/task/%d/%s", t->pid, t->tid, name);
	return file_read(path, TEXT_BYTES_MAX, ret);
}

/* "NR ARGS… SP PC", "-1 SP PC" outside of system calls, or "running" (proc_pid_syscall). */
static void read_syscall(struct task_state *t)
{
	CLEANUP(strbuf_release) struct strbuf text = {0};
	unsigned long long v[TASK_STATE_ARGS + 2] = {0};
	long long nr;
	const char *s;
	int n;

	if (read_task_file(t, "syscall", &text))
		return;
	s = strbuf_str(&text);
	if (str_starts(s, "running")) {
		t->on_cpu = t->state == 'R';
		return;
	}
	n = sscanf(s, "%lli %llx %llx %llx %llx %llx %llx %llx %llx", &nr, &v[0], &v[1], &v[2],
		   &v[3], &v[4], &v[5], &v[6], &v[7]);
	if (n != 3 && n != 9)
		return;
	t->syscall_nr = nr;
	for (int i = 0; i < TASK_STATE_ARGS && n == 9; i++)
		t->args[i] = v[i];
	unwind_set(&t->user, UNWIND_SLOT_SP, v[n - 3]);
	t->user.pc = v[n - 2];
	t->user.exact = 1;
	if (!t->user.pc)
		t->user.known = 0;
}

/* "CPU-NS WAIT-NS TIMES-RUN": any of them changes when a thread runs. */
static void read_stamp(struct task_state *t)
{
	CLEANUP(strbuf_release) struct strbuf text = {0};
	unsigned long long cpu_ns, wait_ns, times;

	if (read_task_file(t, "schedstat", &text) == 0 &&
	    sscanf(strbuf_str(&text), "%llu %llu %llu", &cpu_ns, &wait_ns, &times) == 3)
		t->stamp = cpu_ns + times + 1;
}

static bool is_kernel_thread(pid_t pid)
{
	char path[64], target[8];

	snprintf(path, sizeof(path), "/proc/%d/exe", proc_living(pid));
	return readlink(path, target, sizeof(target)) < 0 && errno == ENOENT;
}

static int add_thread(pid_t pid, pid_t tid, bool is_kernel, task_states *ret)
{
	struct task_state t = {
		.pid = pid,
		.tid = tid,
		.is_kernel = is_kernel,
		.since_ns = TASK_STATE_TIME_UNKNOWN,
		.syscall_nr = -1,
	};
	struct proc_stat stat;

	if (proc_stat_read(pid, tid, &stat))
		return 0; /* it has ended */
	t.state = stat.state;
	memcpy(t.comm, stat.comm, sizeof(t.comm) - 1);
	read_stamp(&t);
	read_syscall(&t);
	return array_push(ret, t);
}

static void pid_list_release(struct pid_list *l)
{
	array_release(l);
}

static int add_process(pid_t pid, task_states *ret)
{
	CLEANUP(pid_list_release) struct pid_list threads = {0};
	bool is_kernel = is_kernel_thread(pid);
	int err = 0;

	if (proc_threads(pid, &threads))
		return 0; /* it has ended */
	for (size_t i = 0; i < threads.n && !err; i++)
		err = add_thread(pid, threads.v[i], is_kernel, ret);
	return err;
}

int snapshot_proc_read(const struct task_selection *which, task_states *ret)
{
	CLEANUP(pid_list_release) struct pid_list all = {0};
	int err = 0;

	ret->n = 0;
	for (size_t i = 0; i < which->n_pids && !err; i++)
		err = add_process(which->pids[i], ret);
	for (size_t i = 0; i < which->n_tids && !which->n_pids && !err; i++) {
		pid_t pid = proc_of_thread(which->tids[i]);

		if (pid)
			err = add_thread(pid, which->tids[i], is_kernel_thread(pid), ret);
	}
	if (which->n_pids || which->n_tids || err)
		return err;
	err = proc_pids(&all);
	for (size_t i = 0; i < all.n && !err; i++)
		err = add_process(all.v[i], ret);
	return err;
}

char *snapshot_proc_kernel(const struct task_state *t)
{
	struct strbuf text = {0};
	char *ret;

	if (!t->on_cpu && read_task_file(t, "stack", &text) == 0 && !strbuf_take(&text, &ret))
		return ret;
	strbuf_release(&text);
	return NULL;
}
