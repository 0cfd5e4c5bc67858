/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Who is measured, as every program shares it with the tool (src/probe/core.c). */
#ifndef BPF_LIB_TARGETS_ABI_H
#define BPF_LIB_TARGETS_ABI_H

#ifndef __VMLINUX_H__
#include <linux/types.h>
#endif

enum target_filter {
	TARGET_ALL,
	TARGET_PROCESSES, /* pids in `targets`, children added */
	TARGET_THREADS,   /* tids in `targets` */
	TARGET_CGROUP,    /* whoever is in target_setup.cgroup_id, or below it */
};

/* The value in `targets`. */
enum target_state {
	TARGET_NONE,
	TARGET_LIVE,
	TARGET_AT_EXEC, /* counts from its exec on */
	TARGET_ENDED,   /* kept until its last records are read */
};

enum { TARGET_CGROUP_DEPTH = 16 };

/* Set before loading. */
struct target_setup {
	__u64 pid_ns_inode; /* 0: the initial namespace */
	__u64 cgroup_id;
	__u32 filter;   /* enum target_filter */
	__u8 unwinds;   /* user stacks are wanted: ranges are kept for forks and execs */
	__u8 with_idle; /* TARGET_ALL: the idle task too */
	__u8 cgroup_v1; /* of the hierarchy that has the perf_event controller */
	__u8 pad;
};

/* Shared while running. */
struct target_shared {
	__u64 active;     /* set: the program measures */
	__u64 live;       /* targets that have not ended */
	__u64 unfollowed; /* children that found no place in `targets` */
	__u64 stopped_ns; /* when it ceased to be active; 0: not yet */
};

_Static_assert(sizeof(struct target_setup) == 24, "shared with the tool");
_Static_assert(sizeof(struct target_shared) == 32, "shared with the tool");

#endif
