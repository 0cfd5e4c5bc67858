/* SPDX-License-Identifier: BSD-2-Clause */
/* Why a thread is not on a CPU: the class that summaries add up by. */
#ifndef INSPECT_WAIT_REASON_H
#define INSPECT_WAIT_REASON_H

#include <inspect/base.h>

enum wait_reason {
	WAIT_RUNNABLE, /* it could run: preempted, woken and not run yet, gave up the CPU */
	WAIT_THROTTLED,
	WAIT_LOCK,
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

/* Nothing to do, by design: the call waits for work (epoll_wait, accept, nanosleep, wait4). */
bool wait_is_idle(const char *call);

#endif
