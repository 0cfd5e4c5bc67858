/* SPDX-License-Identifier: BSD-2-Clause */
/* What the scheduler has accounted to each thread, whoever read it: the kernel's task iterator or a
 * walk through /proc. */
#ifndef INSPECT_TASK_TIMES_H
#define INSPECT_TASK_TIMES_H

#include <inspect/array.h>

struct task_times {
	uint32_t pid, tid;   /* of this program's pid namespace */
	uint64_t run_ns;     /* on a CPU since it began */
	uint64_t delay_ns;   /* runnable but not on a CPU */
	uint64_t start;      /* tells apart two tasks of one tid */
	uint32_t fd_table;   /* room for descriptors, above the highest one; 0 unknown */
	uint32_t fd_limit;   /* RLIMIT_NOFILE */
	uint32_t uid;        /* of a process's first thread, as are the next two */
	uint32_t user_tasks; /* of its user, all threads together; 0 unknown */
	uint32_t user_limit; /* RLIMIT_NPROC; 0 none, as for root */
	char comm[16];       /* NUL-terminated; any bytes */
};

/* Waiting for one futex, summed over threads since the start of the session. */
struct lock_wait {
	uint32_t pid;
	uint32_t waiters; /* times */
	uint64_t user_va;
	uint64_t wait_ns;
};

/* Calls that the kernel refused a process for want of room, since the start of the session. */
struct task_refusals {
	uint32_t pid;
	uint64_t emfile;      /* descriptors: its own limit */
	uint64_t enfile;      /* files: the system's limit */
	uint64_t eagain;      /* fork and clone: the system's limit of processes */
	uint64_t user_eagain; /* likewise: its user's (RLIMIT_NPROC) */
};

struct task_table {
	ARRAY(struct task_times) tasks; /* by tid once sorted */
	ARRAY(struct lock_wait) locks;
	bool has_locks;         /* locks were looked at */
	uint64_t locks_dropped; /* waits that there was no room for */
	const char *no_locks;   /* why not */
	ARRAY(struct task_refusals) refusals;
	bool has_refusals;         /* they were looked for */
	uint64_t refusals_dropped; /* that there was no room for */
	const char *no_refusals;   /* why not */
	const char *refusals_source;
	bool targets_only;  /* a walk: other tasks than the target's are not in it */
	bool leaders_only;  /* of processes that were left out, only the sums over their threads */
	size_t left_out;    /* processes that were not read for want of time */
	const char *source; /* "BPF task iterator", "/proc/PID/task/TID/schedstat" */
	const char *delay_source; /* where the delays are from elsewhere; NULL */
};
void task_table_release(struct task_table *t);
void task_table_sort(struct task_table *t);
/* The entry of a thread among the first n, which are sorted; or NULL. */
const struct task_times *task_table_at(const struct task_table *t, size_t n, uint32_t tid);
/* The entry of the same task (tid and start), or NULL. Sorted. */
const struct task_times *task_table_find(const struct task_table *t, const struct task_times *like);

/* Fills an empty table. 0 or -errno. */
typedef int task_times_fn(void *ctx, struct task_table *ret);

#endif
