/* SPDX-License-Identifier: BSD-2-Clause */
/* System calls added up: a row for each key, what findings are made of, and what is missing. */
#ifndef INSPECT_SYSCALL_TABLE_H
#define INSPECT_SYSCALL_TABLE_H

#include <inspect/array.h>
#include <inspect/hashmap.h>
#include <inspect/histogram.h>
#include <syscalls.abi.h>

struct syscall_row {
	struct syscalls_key key;
	uint64_t calls, errors, total_ns, bytes, io_calls;
	struct histogram h; /* of what is measured; h.sum is total_ns or bytes */
	/* In a call right now; open_ns is what they have waited so far, all together. */
	uint64_t in_flight, open_ns, oldest_ns, from_before;
	uint32_t pid;              /* of the first call: where names are looked for */
	uint32_t own_tid, own_pid; /* its thread and process in their own pid namespace */
	int32_t fd;
	char comm[SYSCALLS_COMM + 1];
};

struct syscall_detail {
	struct syscalls_detail_key key;
	struct syscalls_detail v;
};

struct syscall_thread {
	uint32_t pid, tid, own_tid; /* own: in its own pid namespace */
	char comm[SYSCALLS_COMM + 1];
	uint64_t watched_ns, in_call_ns;
	uint32_t code;
	bool in_call;
};

struct syscall_losses {
	uint64_t exits_without_enter, enters_without_exit;
	uint64_t keys_dropped_calls; /* calls whose key found no room: all in the row `rest` */
	uint64_t details_dropped, file_names_dropped, threads_dropped;
	uint64_t stacks_dropped;      /* by lock: calls whose stack found no room */
	uint64_t missed_by_recursion; /* program runs that the kernel left out */
};

struct syscall_table {
	ARRAY(struct syscall_row) rows;
	struct hashmap by_key; /* of rows */
	struct syscall_row rest;
	bool has_rest;
	ARRAY(struct syscall_detail) details;
	ARRAY(struct syscall_thread) threads; /* alive */
	uint64_t ended_threads, started_threads;
	uint64_t from_before; /* calls that had begun before the start */
	uint64_t threads_ns;  /* watched time of all threads, those that ended too */
	uint64_t elapsed_ns;
	struct syscall_losses losses;
};

void syscall_table_release(struct syscall_table *t);

/* What has come since `before` (a reading of the same counts): rows without a call are left out.
 * The maximum of an interval is exact when it is the greatest so far, else it comes from the
 * slots. 0 or -ENOMEM. */
int syscall_table_since(const struct syscall_table *now, const struct syscall_table *before,
			struct syscall_table *ret);

/* The row of a key, made when there is none (NULL: -ENOMEM); valid until the next one is made. */
struct syscall_row *syscall_table_row(struct syscall_table *t, const struct syscalls_key *key);

#endif
