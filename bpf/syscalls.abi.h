/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the program that adds up system calls and the tool exchange. Fixed widths, no padding. */
#ifndef BPF_SYSCALLS_ABI_H
#define BPF_SYSCALLS_ABI_H

#ifndef __VMLINUX_H__
#include <linux/types.h>
#endif

#include "lib/log_linear.h"

enum {
	SYSCALLS_NUMBERS = 1024,               /* of one ABI */
	SYSCALLS_CODES = SYSCALLS_NUMBERS * 4, /* a power of two: the index is masked */
	/* Numbers that no call has: of those beyond the table, and of waits at a futex that look
	 * like those of a thread without work. */
	SYSCALLS_UNKNOWN = SYSCALLS_NUMBERS - 1,
	SYSCALLS_FUTEX_IDLE = SYSCALLS_NUMBERS - 2,
	SYSCALLS_COMM = 16,
	SYSCALLS_NAME_BYTES = 64,
	SYSCALLS_NAME_PARTS = 16,
	SYSCALLS_STACKS_MAX = 2048,
	SYSCALLS_STACK_FRAMES = 40, /* of each; what lies further out is left out */
};

/* A call's code: abi (enum syscall_abi) * SYSCALLS_NUMBERS + number. */

/* What is looked at in a call. Of native calls alone: the numbers of others mean something else. */
enum syscalls_trait {
	SYSCALLS_FD_ARG0 = 1 << 0,   /* the first argument is a descriptor */
	SYSCALLS_FD_ARG4 = 1 << 1,   /* the fifth (mmap) */
	SYSCALLS_FD_RESULT = 1 << 2, /* the result is one */
	SYSCALLS_BYTES = 1 << 3,     /* the result is a number of bytes */
	SYSCALLS_WRITES = 1 << 4,    /* … that were written */
	SYSCALLS_MAPS = 1 << 5,      /* the second argument is the size of a new mapping */
	SYSCALLS_UNMAPS = 1 << 6,    /* … of one that goes */
	SYSCALLS_YIELDS = 1 << 7,
	SYSCALLS_EPOLL = 1 << 8, /* the fourth argument is the time-out */
	SYSCALLS_FUTEX = 1 << 9,
	SYSCALLS_IOCTL = 1 << 10,
	SYSCALLS_NO_RETURN = 1 << 11, /* exit, exit_group */
	SYSCALLS_IS_WAIT = 1 << 12,   /* by design: epoll_wait, nanosleep */
	SYSCALLS_NO_RESULT = 1 << 13, /* rt_sigreturn: what is there belongs to another call */
};

enum {
	SYSCALLS_DETAILED = SYSCALLS_FD_RESULT | SYSCALLS_WRITES | SYSCALLS_MAPS | SYSCALLS_UNMAPS |
			    SYSCALLS_YIELDS | SYSCALLS_EPOLL | SYSCALLS_FUTEX | SYSCALLS_IOCTL,
};

/* The parts of a key: --by. What is not asked for is 0. */
enum syscalls_by {
	SYSCALLS_BY_CALL = 1 << 0,
	SYSCALLS_BY_THREAD = 1 << 1,
	SYSCALLS_BY_COMM = 1 << 2,
	SYSCALLS_BY_FD = 1 << 3,
	SYSCALLS_BY_PATH = 1 << 4,
	SYSCALLS_BY_DEVICE = 1 << 5,
	SYSCALLS_BY_ERRNO = 1 << 6,
	SYSCALLS_BY_CGROUP = 1 << 7,
	SYSCALLS_BY_STACK = 1 << 8,
	SYSCALLS_BY_VALUE = 1 << 9, /* probes.abi.h: an argument, in `inode` */
	SYSCALLS_BY_LOCK = 1 << 10, /* waits at futexes alone: `stack` is the lock's id, `inode` its
				       address in `pid`, with several in `code`, or the offset in
				       the file of `cgroup` (its inode), `device` and `code` (its
				       generation) */
	SYSCALLS_BY_FILE = SYSCALLS_BY_FD | SYSCALLS_BY_PATH | SYSCALLS_BY_DEVICE,
};

struct syscalls_key {
	__u64 inode;
	__u64 cgroup;
	__u64 stack;  /* of a file: its generation */
	__u32 device; /* the kernel's number: major << 20 | minor; a file's, or a device's own */
	__u32 code;   /* not by call: 1 when it waits by design */
	__u32 pid, tid;
	__s32 fd; /* -1: none */
	__u32 error;
	char comm[SYSCALLS_COMM];
};

/* By lock, `code` of a private one: how many futexes futex_waitv(2) waits for, of which it is the
 * first and it is not known (yet) which it will be; with the bit, the address is that of their
 * array. */
enum { SYSCALLS_LOCKS = 0xff, SYSCALLS_LOCKS_UNREAD = 0x100 };

struct syscalls_row {
	__u64 calls, errors;
	__u64 total_ns, max; /* max: of what is measured */
	__u64 bytes, io;     /* moved, and by how many calls */
	__u32 pid;           /* of the first call, as its fd: where names are looked for */
	__s32 fd;
	char comm[SYSCALLS_COMM];
	__u32 own_tid, own_pid;        /* of the first call, in its own pid namespace */
	__u32 slots[LOG_LINEAR_SLOTS]; /* these may wrap: read them in time */
};

/* What findings are made of, counted beside the rows. */
enum syscalls_detail_kind {
	SYSCALLS_ERROR = 1,   /* id: code; value: errno */
	SYSCALLS_SMALL_WRITE, /* id: tid; value: pid << 32 | fd. Less than 256 bytes; sum: bytes */
	SYSCALLS_YIELD,       /* id: tid */
	SYSCALLS_MAP,         /* id: pid; value: size */
	SYSCALLS_UNMAP,
	SYSCALLS_BUSY_POLL,  /* id: tid. Time-out 0, at most one event */
	SYSCALLS_LOCK,       /* id: pid; value: address. Waits; sum: ns */
	SYSCALLS_LOCK_RACES, /* id: pid; value: address. EAGAIN: no wait */
	SYSCALLS_GPU_IOCTL,  /* id: the command's number; sum: ns */
	SYSCALLS_GPU_OPEN,   /* id: pid; sum: ns */
	/* By lock: value is its id. */
	SYSCALLS_LOCK_TIMEOUT, /* waits that ended with ETIMEDOUT */
	SYSCALLS_LOCK_EAGAIN,  /* calls that did not wait */
	SYSCALLS_LOCK_WAITER,  /* id: tid, by stack; sum: ns */
	SYSCALLS_LOCK_WAKER,   /* id: tid, by stack; wakes that woke or moved somebody */
	SYSCALLS_LOCK_HOLDER,  /* id: tid (in its own pid namespace) that had it when a wait began,
				  as glibc notes it, or PI; sum: ns */
	SYSCALLS_LOCK_PI,      /* waits by PI operations */
	SYSCALLS_LOCK_MOVED,   /* waits that began at another lock: moved by FUTEX_REQUEUE */
};

struct syscalls_detail_key {
	__u32 kind, id;
	__u64 value;
	__u64 stack; /* id of a syscalls_stack, where there is one for this kind; else 0 */
};

/* The name of a file, as it was when it was first met: from the leaf up. */
struct syscalls_file_key {
	__u64 inode;
	__u32 device, generation; /* an inode's number is used again when its file is deleted */
};

struct syscalls_detail {
	__u64 count, sum, max;
	struct syscalls_file_key file; /* of SYSCALLS_SMALL_WRITE: as the first call met it */
};

struct syscalls_file {
	__u32 mode;  /* file type */
	__u32 rdev;  /* of a device */
	__u32 parts; /* used; more than there are: the path is longer */
	__u32 magic; /* of its file system */
	char part[SYSCALLS_NAME_PARTS][SYSCALLS_NAME_BYTES];
};

/* An address of code and the file that was mapped there (file.inode 0: none). */
struct syscalls_frame {
	__u64 user_va; /* as it is: of a return address, which points behind its call */
	__u64 file_off;
	struct syscalls_file_key file;
};

/* A user stack, leaf first. */
struct syscalls_stack {
	__u32 pid; /* of whom it was seen first */
	__u16 n;   /* frames */
	__u8 stop; /* enum unwind_stop */
	__u8 pad;
	struct syscalls_frame frames[SYSCALLS_STACK_FRAMES];
};

/* Counted for each CPU. */
enum syscalls_count {
	SYSCALLS_UNMATCHED_EXIT,
	SYSCALLS_UNMATCHED_ENTER,
	SYSCALLS_KEYS_FULL, /* calls whose key found no room: they are in row 0 */
	SYSCALLS_DETAILS_FULL,
	SYSCALLS_FILES_FULL,
	SYSCALLS_STATES_FULL,
	SYSCALLS_ENDED_THREADS,
	SYSCALLS_ENDED_NS, /* how long those were watched */
	SYSCALLS_STARTED_THREADS,
	SYSCALLS_FROM_BEFORE, /* calls that began before the start */
	SYSCALLS_COUNTS,
};

/* A thread, as the iterator hands it over at the end. */
struct syscalls_thread {
	struct syscalls_key key; /* of the call it is in */
	__u64 watched_ns;
	__u64 in_call_ns; /* 0: in none */
	__u32 pid, tid;
	__u32 in_call, from_before;
	__u32 code, own_tid, own_pid, pad;
	__u64 stack; /* by lock: of the call, 0: none */
	char comm[SYSCALLS_COMM];
};

/* Set before loading. */
struct syscalls_setup {
	__u32 by;
	__u32 own_pid;    /* never watched */
	__u32 rows_mask;  /* rows for calls, a power of two, less 1 */
	__u8 chosen_only; /* calls in `wanted` */
	__u8 of_bytes;    /* the distribution is of bytes */
	__u8 details;     /* count them */
	__u8 with_stacks; /* by lock */
	__u64 wanted[SYSCALLS_CODES / 64];
	__u16 traits[SYSCALLS_NUMBERS];
};

/* Shared while running. */
struct syscalls_shared {
	__u64 start_ns;               /* of the measurement */
	__u16 row_of[SYSCALLS_CODES]; /* of a call, 0: none yet */
};

_Static_assert(sizeof(struct syscalls_key) == 64, "no hidden padding");
_Static_assert(sizeof(struct syscalls_row) == 80 + 4 * LOG_LINEAR_SLOTS, "no hidden padding");
_Static_assert(sizeof(struct syscalls_detail_key) == 24, "no hidden padding");
_Static_assert(sizeof(struct syscalls_stack) == 8 + 32 * SYSCALLS_STACK_FRAMES,
	       "no hidden padding");
_Static_assert(sizeof(struct syscalls_file_key) == 16, "no hidden padding");
_Static_assert(sizeof(struct syscalls_thread) == 64 + 16 + 16 + 24 + 16, "no hidden padding");

#endif
