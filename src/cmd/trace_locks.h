/* SPDX-License-Identifier: BSD-2-Clause */
/* What --locks knows of one lock, beside its row. */
#ifndef INSPECT_CMD_TRACE_LOCKS_H
#define INSPECT_CMD_TRACE_LOCKS_H

#include "trace.h"

#include <inspect/wait_reason.h>

/* The thread that did most of something at a lock, and from where it did most of that. */
struct lock_role {
	uint32_t tid;    /* 0: nobody */
	uint64_t amount; /* ns of waiting; or wake-ups */
	uint64_t stack;  /* id; 0: none was had */
};

struct lock_facts {
	uint64_t waiters, timeouts, races, pi_waits, moved;
	struct lock_role waiter, waker, holder;
};

/* Details of locks, in order: those of one lock are found at once. */
struct lock_details {
	const struct syscall_detail **v;
	size_t n;
};

int lock_details_sort(const struct syscall_table *t, struct lock_details *ret); /* 0, -ENOMEM */
void lock_details_release(struct lock_details *d);

/* lock: its id, the row's key.stack; pid: its process, 0 shared by several. */
struct lock_facts lock_facts_of(const struct trace_view *view, const struct lock_details *d,
				uint64_t lock, uint32_t pid);

/* "4711 worker"; in the result's arena. */
const char *lock_thread_text(const struct trace_view *view, uint32_t tid, struct result *r);

/* Where the top waiter waits and the top waker wakes from: a section each. 0 or -ENOMEM. */
struct code_names;
int lock_stacks_add(const struct trace_view *view, const struct lock_facts *f, size_t number,
		    const char *lock, struct code_names *code, struct result *r);

/* What the functions of a stack wait at: those that wait are asked. */
enum lock_use lock_use_by_stack(const struct syscall_counts *counts, uint64_t id,
				struct code_names *code);

/* Of the two words of a condition the second gets the address of the first. 0 or -ENOMEM. */
int lock_words_join(const struct syscall_counts *counts, struct syscall_table *t);

#endif
