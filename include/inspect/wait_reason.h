/* SPDX-License-Identifier: BSD-2-Clause */
/* Why a thread is not on a CPU: the class that summaries add up by. */
#ifndef INSPECT_WAIT_REASON_H
#define INSPECT_WAIT_REASON_H

#include <inspect/base.h>

enum wait_reason {
	WAIT_RUNNABLE, /* it could run: preempted, woken and not run yet, gave up the CPU */
	WAIT_THROTTLED,
	WAIT_LOCK,
	WAIT_CONDITION, /* until another thread says so: condition, semaphore, barrier, future */
	WAIT_JOIN,      /* until another thread ends */
	WAIT_DISK,
	WAIT_NETWORK,
	WAIT_PIPE,
	WAIT_POLL,
	WAIT_SLEEP,
	WAIT_CHILD,
	WAIT_FAULT,
	WAIT_RECLAIM,
	WAIT_MMAP_LOCK,
	WAIT_GPU,
	WAIT_STOPPED,
	WAIT_OTHER,
	WAIT_RUNNING, /* on a CPU: in profiles that have both */
	WAIT_REASONS
};

/* "lock", "disk": as JSON has it; and as a heading: "mmap_lock". */
const char *wait_reason_name(enum wait_reason r);

struct wait_facts {
	const char *call;     /* "read", without the suffix of an ABI; NULL: in no syscall */
	const char *fd;       /* what its descriptor is ("/dev/nvidia0", "pipe:[7]"), or NULL */
	uint16_t fd_mode;     /* st_mode's type of file; 0 unknown */
	bool io;              /* the kernel accounts the wait as one for a disk */
	bool uninterruptible; /* state D */
	bool fault;           /* in an exception: call is NULL */
};

/* Of a blocked thread. */
enum wait_reason wait_reason_of(const struct wait_facts *f);

/* What the kernel's functions on the stack (any order) say better: waits for memory and for a
 * process's mappings. `first` stands where they say nothing. */
enum wait_reason wait_reason_by_stack(enum wait_reason first, const char *const *functions,
				      size_t n);

/* What a futex is part of. */
enum lock_use {
	LOCK_USE_UNKNOWN,
	LOCK_USE_MUTEX,
	LOCK_USE_RWLOCK,
	LOCK_USE_CONDITION,
	LOCK_USE_SEMAPHORE,
	LOCK_USE_BARRIER,
	LOCK_USE_FUTURE,
	LOCK_USE_THREAD,
	LOCK_USES
};

const char *lock_use_name(enum lock_use use); /* "rwlock"; "" unknown */

/* By the program's functions that wait at it, the innermost first; "" and NULL have no name. */
enum lock_use lock_use_of(const char *const *functions, size_t n);

/* The reason of a wait at such a futex. */
enum wait_reason wait_reason_of_lock(enum lock_use use);

/* Nothing to do, by design: the call waits for work (epoll_wait, accept, nanosleep, wait4). */
bool wait_is_idle(const char *call);

#endif
