/* SPDX-License-Identifier: BSD-2-Clause */
/* The steps of a snapshot: snapshot.c calls them in this order. */
#ifndef CAPTURE_SNAPSHOT_IMPL_H
#define CAPTURE_SNAPSHOT_IMPL_H

#include "remote_memory.h"

#include <inspect/snapshot.h>
#include <inspect/unwind.h>

struct snapshot_session {
	const struct snapshot_config *config;
	struct task_reader *reader; /* NULL: from /proc */
	struct unwind_tables *tables;
	struct remote_memory memory;
	bool refused;  /* reading the memory of processes; then stacks are copied in the kernel */
	int signal_fd; /* -1: signals do as always */
};

/* A user stack as addresses, leaf first. */
struct snapshot_chain {
	uint64_t *v;
	size_t n;
	enum unwind_stop stop;
	bool guessed;
};

/* What the words at a futex say of the holders, if they are those of a mutex or of a rwlock. */
struct snapshot_guess {
	uint64_t mutex_va; /* 0: none */
	pid_t owner;
	bool of_glibc;      /* other C libraries have no owner there */
	uint64_t rwlock_va; /* 0: none */
	pid_t writer;
	uint32_t readers;
};

/* While one is taken. */
struct snapshot_work {
	struct snapshot_session *session;
	struct snapshot *result;
	struct unwind_walk walk;
	ARRAY(pid_t) locked;                  /* processes whose memory can't be looked at */
	ARRAY(struct snapshot_chain) chains;  /* by thread */
	ARRAY(struct snapshot_guess) guesses; /* by thread */
	ARRAY(char *) kernel_text; /* by thread, from /proc: names, leaf first; or NULL */
	uint64_t buffer[UNWIND_MAX_STACK];
};

bool snapshot_is_locked(const struct snapshot_work *w, pid_t pid);

/* What the target's threads are at now. 0 or -errno. */
int snapshot_read_tasks(struct snapshot_session *s, bool with_stacks, task_states *ret);

/* The same from /proc, without rights or BPF; kernel stacks as text where they may be read. */
int snapshot_proc_read(const struct task_selection *which, task_states *ret);
char *snapshot_proc_kernel(const struct task_state *t);

/* All user stacks: walked where a thread does not run, sampled where it does. 0 or -errno. */
int snapshot_walk(struct snapshot_work *w);

/*
 * Waits until a timer has hit each of the threads on a CPU, some tens of milliseconds at most. The
 * sample is borrowed during the call. Threads that did not run meanwhile get none. 0 or -errno.
 */
typedef int snapshot_sampled_fn(void *ctx, size_t index, const struct sample *s);
int snapshot_sample(const pid_t *tids, size_t n, snapshot_sampled_fn *fn, void *ctx);

/* What each thread waits for. 0 or -errno. */
int snapshot_waits(struct snapshot_work *w);
/* Who waits for whom in circles. 0 or -ENOMEM. */
int snapshot_find_cycles(struct snapshot *s);

/* Groups and their order. 0 or -errno. */
int snapshot_group(struct snapshot *s);

#endif
