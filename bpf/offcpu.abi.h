/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the program that sees threads wait and the tool exchange. */
#ifndef BPF_OFFCPU_ABI_H
#define BPF_OFFCPU_ABI_H

#ifndef __VMLINUX_H__
#include <linux/types.h>
#endif

#include "lib/log_linear.h"
#include "lib/stacks.abi.h"

enum {
	OFFCPU_ROWS_MAX = 16384, /* that may change between two drains */
	OFFCPU_TOTALS_MAX = 16384,
	OFFCPU_SYSCALLS = 512,
	OFFCPU_CALL_CODES = 4096,       /* abi (enum syscall_abi) * 1024 + number */
	OFFCPU_LOOPS_MAX = 512,         /* threads with an event loop */
	OFFCPU_PAGE_BYTES = 4096,       /* the least */
	OFFCPU_LINKS = 4,               /* who woke whom: so far back */
	OFFCPU_LOOP_TICK_NS = 2000000,  /* what runs is looked at as often */
	OFFCPU_LOOP_RETURN_NS = 20000,  /* of CPU, that a call takes to return after a wait */
	OFFCPU_CHAIN_MARK = 0x4e494843, /* "CHIN": which message it is */
	OFFCPU_FILES_MAX = 1024,
	OFFCPU_THREAD_WORDS_MAX = 16384,
	OFFCPU_FILE_PARTS = 16, /* of a path, from the leaf up */
	OFFCPU_FILE_BYTES = 64, /* of each */
	OFFCPU_LOOP_GAPS = 4,   /* of each, kept one by one; a power of two */

	/* Histogram: 4 buckets in each power of two from 1 us (2^10 ns) on; the first takes all
	 * below, the last all above. */
	OFFCPU_BUCKETS = 128, /* a power of two */
	OFFCPU_BUCKET_FIRST_LOG2 = 10,

	OFFCPU_NO_SYSCALL = -1, /* an exception: page faults */
	OFFCPU_NR_UNKNOWN = -2, /* a 32-bit process, or no registers */
};

/* Why a thread is off the CPU, as the switch tells it. */
enum offcpu_how {
	OFFCPU_BLOCKED,   /* it waits for something */
	OFFCPU_PREEMPTED, /* it could run on */
	OFFCPU_YIELDED,   /* it gave up the CPU and could run on */
	OFFCPU_THROTTLED, /* its cgroup's quota is used up */
	OFFCPU_STOPPED,   /* by a signal or a debugger */
	OFFCPU_FROZEN,    /* by its cgroup */
	OFFCPU_BORN,      /* new: it has not run yet */
	OFFCPU_ON_CPU,    /* it runs: by ticks, each for the time since the one before */
	OFFCPU_IN_CALL,   /* it is in a system call, off the CPU or on it; nr is the call's code */
	OFFCPU_IN_GPU,    /* … of a GPU's driver; nr is the number of its key, 0: unknown */
};

enum {
	OFFCPU_UNINTERRUPTIBLE = 1, /* state D */
	OFFCPU_IO = 2,              /* in_iowait: waits for a disk */
	OFFCPU_OPEN = 4,            /* not over at the end */
	OFFCPU_BEFORE = 8,          /* since before the start */
	OFFCPU_KTHREAD = 16,
	OFFCPU_GPU = 32, /* in a call of a GPU's driver: inode is the number of its gpu_key */
};

/* What a syscall's first argument is. */
enum offcpu_argument {
	OFFCPU_ARG_NONE,
	OFFCPU_ARG_FD,
	OFFCPU_ARG_ADDRESS, /* kept as it is: futex */
	OFFCPU_ARG_NUMBER,  /* kept as 32 bits: wait4's pid */
	OFFCPU_ARG_IOCTL,   /* a descriptor, with a command */
	OFFCPU_ARG_EPOLL,   /* a descriptor whose events are waited for */
	OFFCPU_ARG_POLL,    /* the one descriptor, or OFFCPU_POLL_… */
	OFFCPU_ARG_SELECT,
	OFFCPU_ARG_WAITV, /* of futex_waitv: the one address, or OFFCPU_POLL_… */
};

/* The file's device (that of its file system) and its inode say which file it is. */
#define OFFCPU_DEVICE_SHIFT 32
#define OFFCPU_DEVICE_MASK 0x3fffffff

#define OFFCPU_POLL_SEVERAL (1ULL << 63) /* with how many */
#define OFFCPU_POLL_AT (1ULL << 62)      /* with the address of the one struct */

/* Waker of a wait: a thread of the target by its serial, or one of these. */
enum {
	OFFCPU_WAKER_NONE = 0,
	OFFCPU_WAKER_IRQ = 0xffffffff,
	OFFCPU_WAKER_OTHER =
		0x80000000, /* with the tid (of the tool's namespace) in the low bits */
};

struct offcpu_link {
	__u64 stack; /* where the waker was; 0: a stranger, or not known */
	__u32 waker;
	__u32 pad;
};

/* The message: who ended a wait, who had ended his last one, … */
struct offcpu_chain {
	__u64 id; /* a hash of the links, never 0 */
	__u32 mark;
	__u32 n;
	struct offcpu_link links[OFFCPU_LINKS];
};

struct offcpu_key {
	__u64 stack;  /* id of a stack_record; 0 none */
	__u64 chain;  /* id of an offcpu_chain: who ended the wait; 0: not asked for */
	__u64 arg;    /* by the syscall's kind: an address, a number, or a descriptor with its
		       * file's device above; of page faults where the mapping begins */
	__u64 inode;  /* of the descriptor's file, or of the mapped one */
	__u32 thread; /* serial */
	__u32 waker;
	__s32 nr; /* the syscall, or OFFCPU_NO_… */
	__u16 file_mode;
	__u8 how;
	__u8 flags;
};

/* The word that the kernel clears when a thread ends (clone(2), CLONE_CHILD_CLEARTID): who joins
 * the thread waits there. */
struct offcpu_thread_word {
	__u64 user_va;
	__u32 pid, pad;
};

struct offcpu_file_key {
	__u64 inode;
	__u32 device, pad;
};

/* What a descriptor is of: a path, or the ends of a socket, addresses as in the network. */
struct offcpu_file {
	__u32 parts; /* one more than there is room for when the path is longer */
	__u16 family, protocol, local_port, remote_port;
	__u8 local[16], remote[16];
	__u32 pad;
	char part[OFFCPU_FILE_PARTS][OFFCPU_FILE_BYTES];
};

struct offcpu_row {
	__u64 wait_ns;  /* up to the wake-up */
	__u64 queue_ns; /* from the wake-up until it ran */
	__u64 count;
	__u64 max_ns;  /* of wait_ns + queue_ns for those that were runnable all through */
	__u64 last_ns; /* when its stack was last there */
	__u64 errors, bytes, io; /* of calls: that failed; moved, and by how many of them */
	__u32 pid, tid;
	__u32 buckets[OFFCPU_BUCKETS];
};

/* From wake-ups until threads ran, of the waits in rows. By CPU. */
struct offcpu_delays {
	__u64 count, max_ns;
	__u64 buckets[OFFCPU_BUCKETS];
};

/* Of a thread, when it ends, and of all others at the end. */
struct offcpu_totals {
	__u64 start_ns, end_ns;
	__u64 on_ns;
	__u64 off_ns;   /* blocked, stopped, runnable and throttled together */
	__u64 lost_ns;  /* of it, what found no place in the rows */
	__u64 short_ns; /* of it, waits that --min-wait and --max-wait leave out */
	__u64 switches;
	__u32 pid, tid;
	__u32 own_pid; /* in its own pid namespace */
	__u32 pad;
	char comm[16];
};

/* What the iterator at the end writes for each thread. */
struct offcpu_ended {
	struct offcpu_totals totals;
	__u32 serial, pad;
};

/* From the end of a wait for events to the next one. */
struct offcpu_gap {
	__u64 begin_ns, gap_ns, ran_ns;
	__u64 stack;  /* id of a stack_record, where most of its time went; 0: not seen */
	__u8 waited;  /* the stack is where it waited longest; else where a tick hit it */
	__u8 is_open; /* not over at the end */
	__u8 pad[6];
};

/* A thread's event loop. A log-linear histogram of its gaps, as struct histogram has it. */
struct offcpu_loop {
	__u64 slots[LOG_LINEAR_SLOTS];
	__u64 n, sum, max;
	__u64 waits, polls; /* calls that waited; ticks that hit one that did not */
	struct offcpu_gap longest[OFFCPU_LOOP_GAPS]; /* in any order; gap_ns 0: none */
	__u32 pid, tid;
	__s32 nr; /* the call */
	__u32 pad;
};

/* Set before loading. */
struct offcpu_setup {
	__u64 min_wait_ns, max_wait_ns; /* max 0: none */
	__u8 with_stacks;
	__u8 with_kthreads;
	__u8 has_state_argument; /* sched_switch tells the state: 5.18 */
	__u8 with_wakers;        /* as part of the key */
	__u8 with_ticks;         /* what runs is counted too */
	__u8 with_chains;        /* who woke whom, with stacks */
	__u8 with_calls;         /* system calls in place of waits */
	__u8 with_probe;         /* or what happens at a point in code */
	__u8 with_loops;
	__u8 with_gpus; /* waits for a GPU's driver are told by its call */
	__u8 pad[2];
	__u32 n_cpus; /* that there may be */
};

/* The same, with calls. */
struct offcpu_calls {
	__u64 wanted[OFFCPU_CALL_CODES / 64];
	/* Of native ones: the result says how many. */
	__u64 moves_bytes[OFFCPU_CALL_CODES / 4 / 64];
	__u32 execve, rt_sigreturn; /* their codes */
};

/* Counted by the program, by CPU. */
struct offcpu_losses {
	__u64 rows_full, totals_full, threads_full; /* waits, threads, threads */
	__u64 loops_full;                           /* gaps of threads without a row */
	__u64 chains_lost;                          /* waits */
};

_Static_assert(sizeof(struct offcpu_chain) == 80, "shared with the tool");
_Static_assert(sizeof(struct offcpu_key) == 48, "shared with the tool");
_Static_assert(sizeof(struct offcpu_row) == 72 + 4 * OFFCPU_BUCKETS, "shared with the tool");
_Static_assert(sizeof(struct offcpu_delays) == 8 * (2 + OFFCPU_BUCKETS), "shared with the tool");
_Static_assert(sizeof(struct offcpu_totals) == 88, "shared with the tool");
_Static_assert(sizeof(struct offcpu_ended) == 96, "shared with the tool");
_Static_assert(sizeof(struct offcpu_gap) == 40, "shared with the tool");
_Static_assert(sizeof(struct offcpu_loop) ==
		       8 * (LOG_LINEAR_SLOTS + 5) + 40 * OFFCPU_LOOP_GAPS + 16,
	       "shared with the tool");
_Static_assert(sizeof(struct offcpu_setup) == 32, "shared with the tool");

#endif
