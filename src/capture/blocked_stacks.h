/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Stacks of threads that do not run, read from outside: of those that waited already when the
 * program that takes stacks at the switch was attached, and those whose program was mapped too
 * recently for it.
 */
#ifndef CAPTURE_BLOCKED_STACKS_H
#define CAPTURE_BLOCKED_STACKS_H

#include <inspect/offcpu.h>
#include <inspect/task_state.h>

struct blocked_stack {
	pid_t tid;
	uint64_t waited_ns; /* so far, when it was read; TASK_STATE_TIME_UNKNOWN */
	struct stack_record *record;
};

typedef ARRAY(struct blocked_stack) blocked_stack_list;
void blocked_stacks_release(blocked_stack_list *l);

struct blocked_stacks;

/* 0 or -errno, explained. */
int blocked_stacks_new(const struct host *h, bool no_cache, struct blocked_stacks **ret,
		       struct diag *d);
void blocked_stacks_free(struct blocked_stacks *b);

/* Those of the selected threads, by tid; of one that runs while it is read the stack may be wrong,
 * as it no longer waits at the place that is looked up. 0 or -errno. */
int blocked_stacks_read(struct blocked_stacks *b, const struct task_selection *which,
			blocked_stack_list *ret);

const struct blocked_stack *blocked_stacks_find(const blocked_stack_list *l, pid_t tid);

#endif
