/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the iterator over tasks and the tool exchange. Fixed widths, explicit padding. */
#ifndef BPF_TASKS_ABI_H
#define BPF_TASKS_ABI_H

#ifndef __VMLINUX_H__
#include <linux/types.h>
#endif

#include "lib/unwind_step.h"

enum {
	TASKS_KERNEL_FRAMES = 64,
	TASKS_ARGS = 6,
	TASKS_COMM_BYTES = 16, /* TASK_COMM_LEN */
	TASKS_NAMED_MAX = 65536,
	TASKS_STACK_PAGES = 4, /* with the head they must fit into a buffer of 32 KiB */
	TASKS_PAGE_BYTES = 4096,
};

enum tasks_filter {
	TASKS_ALL,
	TASKS_PROCESSES, /* pids in `named` */
	TASKS_THREADS,   /* tids in `named` */
};

/* One task: the head, the used part of the kernel's stack, leaf first, and whole pages of the
 * user's stack from the one on that the stack pointer is in. */
struct tasks_record {
	__u64 size_bytes; /* of this record */
	__u64 exec_start; /* changes whenever the task runs */
	__u64 ran_until;  /* the scheduler's clock when it last left a CPU; 0: not known */
	__u64 queued_at;  /* the same, when it began to wait for a CPU; 0: does not wait */
	__u64 pc;
	__u64 regs[UNWIND_REGS]; /* slots of unwind_step.h */
	__u64 args[TASKS_ARGS];  /* of the syscall */
	__s64 syscall_nr;        /* -1: in none */
	__u32 pid, tid;          /* as the tool's pid namespace numbers them */
	__u32 own_tid;           /* as the task's own pid namespace does */
	__u32 state;             /* task_struct.__state | exit_state */
	__u32 flags;             /* PF_* */
	__u16 n_kernel;
	__u16 stack_pages;
	__u8 on_cpu;
	__u8 has_regs; /* the user code's, as saved when it entered the kernel */
	__u8 is_32_bit;
	__u8 calls_32_bit; /* the syscall is one of i386: int $0x80, or is_32_bit */
	__u8 frozen;       /* by its cgroup */
	__u8 pad[3];
	char comm[TASKS_COMM_BYTES];
	__u64 kernel[TASKS_KERNEL_FRAMES];
};
#define TASKS_HEAD_BYTES 272

_Static_assert(offsetof(struct tasks_record, kernel) == TASKS_HEAD_BYTES, "no hidden padding");

/* Set before loading. */
struct tasks_setup {
	__u64 pid_ns_inode; /* 0: the initial namespace */
};

/* Set before each run; the clocks by its first task. */
struct tasks_shared {
	__u64 filter;    /* enum tasks_filter */
	__u64 now_ns;    /* CLOCK_MONOTONIC */
	__u64 sched_now; /* the scheduler's clock at that time; 0: not known */
};

_Static_assert(sizeof(struct tasks_setup) == 8, "shared with the tool");
_Static_assert(sizeof(struct tasks_shared) == 24, "shared with the tool");

#endif
