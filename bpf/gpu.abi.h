/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the program that watches calls of GPU drivers and the tool exchange. No hidden padding. */
#ifndef BPF_GPU_ABI_H
#define BPF_GPU_ABI_H

#ifndef __VMLINUX_H__
#include <linux/types.h>
#endif

#include "lib/log_linear.h"

enum {
	GPU_NUMBERS = 512, /* of native system calls that are told apart */
	GPU_COMM = 16,
	GPU_HEAD_BYTES = 96,     /* of a struct that goes with an event */
	GPU_UVM_HEAD_BYTES = 16, /* … of UVM's, whose size is not in the command */
	GPU_POLL_FDS = 16,       /* looked at in a poll */
	GPU_XFER_CMD = 0xd3,     /* NV_ESC_IOCTL_XFER_CMD: {cmd, size, ptr} */
	GPU_PATH_BYTES = 128,    /* of a device's node, with its 0 */
};

/* Which calls a device understands. */
enum gpu_class {
	GPU_CLASS_NONE,
	GPU_CLASS_RM,    /* nvidiactl, nvidiaN: _IOC_NR says what */
	GPU_CLASS_UVM,   /* nvidia-uvm: plain integers */
	GPU_CLASS_OTHER, /* another driver's: number, direction, size */
};

enum gpu_kind {
	GPU_NOTHING,
	GPU_IOCTL,
	GPU_OPEN,
	GPU_CLOSE,
	GPU_MMAP,
	GPU_MUNMAP,
	GPU_MREMAP,
	GPU_MAP_OVER, /* a mapping of something else where a device was mapped */
	GPU_POLL,
	GPU_EPOLL,
	GPU_OPEN_AT, /* a system call whose path is its second argument: a call of it is GPU_OPEN */
	GPU_KINDS,
	/* Watched, not counted. */
	GPU_EPOLL_CTL = GPU_KINDS,
	GPU_EPOLL_NEW,
};

/* Where a device is looked up: a char device by its number, all of its major with `any_minor`, any
 * file by file system and inode. */
struct gpu_device_key {
	__u64 inode;
	__u32 device; /* the kernel's number: major << 20 | minor */
	__u32 any_minor;
};

struct gpu_device {
	__u32 id; /* the tool's */
	__u32 class;
};

/* Where an open that fails is looked up: by the path that it was given, with zeros behind it. */
struct gpu_path {
	char text[GPU_PATH_BYTES];
};

struct gpu_path_device {
	struct gpu_device device;
	__u32 minor, pad;
};

/* Offsets in the struct of an ioctl; -1: there is none. */
struct gpu_layout_key {
	__u32 class;
	__u32 number;
	__u32 size_bytes; /* 0: any */
};

struct gpu_layout {
	__s32 selector_off; /* __u32 */
	__s32 status_off;   /* __u32 */
	__s32 length_off;   /* __u64 */
	__s32 client_off;   /* __u32 */
};

enum gpu_key_flags {
	GPU_HAS_SELECTOR = 1,
	GPU_HAS_STATUS = 2,  /* of the driver */
	GPU_FAILED = 4,      /* by errno, which is in `status` */
	GPU_XFER = 8,        /* came by XFER_CMD */
	GPU_NO_LAYOUT = 16,  /* the tables do not say where its fields are */
	GPU_UNREADABLE = 32, /* a field could not be read */
	GPU_BEFORE = 64,    /* begun before the start: its time counts from there, if it is known */
	GPU_STARTING = 128, /* of rows: in the first seconds of its process */
};

/* A call's identity; in rows what is not asked for is 0. */
struct gpu_key {
	__u32 number; /* escape, UVM number, or the whole command of other drivers */
	__u32 size_bytes;
	__u32 selector;
	__u32 status; /* the driver's, or an errno */
	__u32 device, minor;
	__u32 pid, tid, client;
	__u8 kind;  /* enum gpu_kind */
	__u8 class; /* enum gpu_class */
	__u8 flags; /* enum gpu_key_flags */
	__u8 pad;
	char comm[GPU_COMM];
};

enum gpu_by {
	GPU_BY_THREAD = 1, /* pid and tid */
	GPU_BY_COMM = 2,
	GPU_BY_CLIENT = 4,
};

struct gpu_row {
	__u64 calls, total_ns, max_ns, bytes;
	__u32 seconds,
		last_second; /* in how many of them it was called, and in which the last time */
	__u32 slots[LOG_LINEAR_SLOTS];
};

/* Which ioctl, whoever calls it. */
struct gpu_queue_key {
	__u32 class, number, selector;
};

/* What tells calls that queue behind each other from calls that differ in length: what they take
 * from the end of the one before. Of calls that do not fail. */
struct gpu_queue {
	__u64 alone, alone_ns;     /* begun when no other thread was in an ioctl */
	__u64 crowded, crowded_ns; /* … when others were */
	__u64 judged,
		judged_ns; /* crowded calls with some alone before them; from the end before */
	__u64 early;       /* … of them, those that ended in two thirds of what one alone takes */
};

/* Waits of a thread at sets or lists that have a device. */
struct gpu_waiter {
	__u64 ended, ended_ns; /* by a device */
	__u64 others;          /* by time, or by something else */
	__u32 pid, pad;
	char comm[GPU_COMM];
};

struct gpu_event {
	struct gpu_key key; /* all parts */
	__u64 start_ns, duration_ns;
	__s64 result;
	__u64 arg;          /* address of the struct, or of the mapping */
	__u64 length_bytes; /* of a mapping, or what the struct says */
	__u64 range_bytes;  /* unmapped from `arg` on, what is of no device too */
	__u64 lost_before;  /* events that found no room, in all */
	__u64 stack;        /* id of a stack_record; 0: none */
	__u32 n_head;       /* bytes of the struct, at exit */
	__u32 remap_flags;  /* of mremap(2), from `arg` on, of `range_bytes` */
	__u8 head[GPU_HEAD_BYTES];
};

/* What a thread is in at the end. */
struct gpu_thread {
	struct gpu_key key;
	__u64 in_call_ns;
};

struct gpu_setup {
	__u32 own_pid;
	__u32 by; /* enum gpu_by */
	__u8 with_events, pad[7];
	__u64 page_bytes;
	__u8 kinds[GPU_NUMBERS]; /* enum gpu_kind of each native system call */
};

struct gpu_shared {
	__u64 lost_events;
	__u64 ioctls_seen, ioctls_counted;
	__u64 in_ioctl;    /* threads that are in one of a watched device */
	__u64 last_end_ns; /* of such an ioctl */
	__u64 start_ns;    /* a call of before is in it since then; 0: not told */
	__u64 set_changes; /* epoll sets in which members may have come or gone */
};

/* By CPU. */
enum gpu_counter {
	GPU_ROWS_FULL,
	GPU_STATES_FULL,
	GPU_READS_FAILED,
	GPU_RANGES_CUT, /* unmapped, of more mappings than are looked at */
	GPU_SETS_CUT,   /* epoll sets of more members than are looked at */
	GPU_COUNTS,
};

_Static_assert(sizeof(struct gpu_key) == 56, "shared with the tool");
_Static_assert(sizeof(struct gpu_event) == 56 + 72 + GPU_HEAD_BYTES, "shared with the tool");

#endif
