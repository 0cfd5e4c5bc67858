/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What every thread of a process is at now: state, what it waits for and since when, kernel and
 * user stack. Tasks are read by an iterator in the kernel where BPF is allowed, else from /proc;
 * user stacks are walked in the process's memory from outside. No thread is stopped, or traced.
 */
#ifndef INSPECT_SNAPSHOT_H
#define INSPECT_SNAPSHOT_H

#include <inspect/capture.h>
#include <inspect/task_state.h>

/* How far the user stack of a thread can be trusted. */
enum snapshot_stack {
	SNAPSHOT_STACK_STILL,   /* the thread did not run while it was read */
	SNAPSHOT_STACK_SAMPLED, /* it runs: as a timer found it */
	SNAPSHOT_STACK_MOVED,   /* it ran while it was read: frames may not belong together */
	SNAPSHOT_STACK_NONE,    /* it has none, or none could be had: see `missing` */
};

/* What a thread waits for. */
struct snapshot_wait {
	const char *call;   /* "futex", "epoll_wait (i386)"; NULL: in no system call */
	const char *text;   /* for people: "futex(lock_b, WAIT)"; "" nothing to add */
	const char *object; /* that alone, to see what threads have in common: "lock_b"; NULL */
	const char *peer;   /* who has the other end of a pipe or Unix socket; NULL not known */
	bool by_design;     /* it waits for work: epoll_wait, accept, … */
	pid_t owner;        /* the thread that holds the lock; 0 not known */
	uint32_t readers;   /* that hold it, of a rwlock without an owner */
	uint64_t lock_va;   /* of the lock; 0: none with a known owner or readers */
};

struct snapshot_thread {
	struct task_state task;
	enum snapshot_stack stack;
	const char *missing; /* why there is no user stack; NULL: there is one, or none to be had */
	struct snapshot_wait wait;
	struct symbol_path path; /* root first: user frames, then the kernel's */
	uint32_t group;
	uint32_t cycle; /* of those that wait for each other, from 1 on; 0: in none */
};

/* Threads with the same functions on their stacks, in the same state, in the same call. */
struct snapshot_group {
	size_t first, n; /* in `order` */
};

struct snapshot {
	struct profile *profile; /* symbolized; of its rows each is one thread */
	struct arena arena;      /* of the texts */
	ARRAY(struct snapshot_thread) threads;
	ARRAY(struct snapshot_group) groups; /* the odd ones first */
	ARRAY(uint32_t) order;               /* indexes of threads by group */
	uint32_t n_cycles;
	uint32_t n_left_out;        /* kernel threads that sleep, when all are looked at */
	bool by_iterator;           /* else from /proc */
	uint64_t wall_ns;           /* CLOCK_REALTIME at the start */
	uint64_t read_ns, total_ns; /* until every thread was read; and named */
};

void snapshot_release(struct snapshot *s);

struct snapshot_config {
	const struct target *target;
	const struct host *host;
	struct naming_options naming;
	bool several; /* ^C ends the waiting between them, not the tool */
	note_list *notes;
};

/* What several snapshots share. */
struct snapshot_session;
int snapshot_session_new(const struct snapshot_config *c, struct snapshot_session **ret,
			 struct diag *d);
void snapshot_session_free(struct snapshot_session *s);
static inline void snapshot_session_freep(struct snapshot_session **s)
{
	snapshot_session_free(*s);
}

/* Until that time (CLOCK_MONOTONIC). False: a signal has ended it. */
bool snapshot_wait_until(struct snapshot_session *s, uint64_t at_ns);

/* 0 or -errno, explained. A target that has ended leaves a snapshot without threads. */
int snapshot_take(struct snapshot_session *s, struct snapshot *ret, struct diag *d);

#endif
