/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What vitals.bpf.c gives: a record for each thread, and maps of waiting for locks. */
#ifndef VITALS_ABI_H
#define VITALS_ABI_H

#include <linux/types.h>

enum { VITALS_WAITING_MAX = 16384, VITALS_LOCKS_MAX = 8192, VITALS_REFUSED_MAX = 4096 };

struct vitals_setup {
	__u64 pid_ns_inode; /* 0: the initial namespace */
};

struct vitals_record {
	__u32 pid, tid;
	__u64 run_ns, delay_ns, start_ns;
	__u32 fd_table, fd_limit;
	char comm[16];
};
_Static_assert(sizeof(struct vitals_record) == 56, "padding");

struct vitals_lock {
	__u32 pid;
	__u32 padding;
	__u64 user_va;
};
_Static_assert(sizeof(struct vitals_lock) == 16, "padding");

/* A thread that waits now. */
struct vitals_waiting {
	__u64 since_ns;
	struct vitals_lock lock;
};

/* All waits for one lock that have ended. */
struct vitals_waited {
	__u64 ns, times;
};

/* What the kernel refused a process for want of room, by its error. */
struct vitals_refused {
	__u64 emfile, enfile, eagain;
};

struct vitals_shared {
	__u64 dropped;         /* waits that the maps had no room for */
	__u64 refused_dropped; /* refusals, likewise */
};

#endif
