/* SPDX-License-Identifier: BSD-2-Clause */
/* The system call that a thread waits in, as text, with what its arguments name. */
#ifndef CAPTURE_SNAPSHOT_CALL_H
#define CAPTURE_SNAPSHOT_CALL_H

#include "snapshot_impl.h"

#include <inspect/syscalls.h>

struct fd_names;
struct fd_peers;
struct lock_names;

/* What names things, for all threads of a snapshot. */
struct call_names {
	const struct snapshot_work *work;
	struct fd_names *fds;
	struct fd_peers *peers;
	struct lock_names *locks;
};

struct waiting_call {
	const struct call_names *names;
	const struct task_state *task;
	struct remote_memory *memory; /* of the task's process */
	enum syscall_abi abi;
	const char *name; /* of the call */
	struct strbuf text;
	struct strbuf object; /* the first file, socket or lock alone, raw */
	struct strbuf peer;   /* who has the other end of it, raw */
};

/* Fills text, object and peer. Out of memory shows in their `failed`. */
void waiting_call_describe(struct waiting_call *c);

#endif
