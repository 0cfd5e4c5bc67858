/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the program that streams system calls and the tool exchange. */
#ifndef STREAM_ABI_H
#define STREAM_ABI_H

#ifndef __VMLINUX_H__
#include <linux/types.h>
#endif

enum {
	STREAM_NUMBERS = 1024, /* of one ABI; a code is abi * STREAM_NUMBERS + number */
	STREAM_CODES = 3 * STREAM_NUMBERS,
	STREAM_ARGS = 6,

	STREAM_CHUNK_BYTES = 1024, /* the most of one string, name or struct */
	STREAM_DATA_BYTES = 4096,  /* no chunk begins behind that */
	STREAM_STATE_DATA = STREAM_DATA_BYTES + STREAM_CHUNK_BYTES + 64,
	STREAM_IOVECS = 8,
	STREAM_ITEMS = 16, /* of argv */
	STREAM_ENVP_MAX = 256,
	STREAM_FILE_PARTS = 40, /* of a path, and mounts that it crosses */
	STREAM_FRAMES = 127,    /* of a stack */
	STREAM_KERNEL_FRAMES = 32,
	STREAM_FILES_MAX = 16384, /* whose names are sent once */
};

/* What is taken of an argument. */
enum stream_op {
	STREAM_NOTHING,
	STREAM_FD,
	STREAM_STRING,
	STREAM_BYTES,        /* as many as the count says, setup.string_bytes at most */
	STREAM_STRUCT,       /* size_bytes */
	STREAM_ARRAY,        /* count times size_bytes */
	STREAM_FD_SET,       /* as many bits as the first argument says */
	STREAM_SOCKADDR,     /* as many bytes as the count says */
	STREAM_SOCKADDR_OUT, /* as many as the int says that the count's argument points to */
	STREAM_IOV,
	STREAM_MSG,
	STREAM_ARGV,
	STREAM_POINTERS, /* how many up to NULL: envp */
};

enum {
	STREAM_COUNT_RESULT = 0xff, /* the count is the call's result */
	STREAM_FOLDER_CWD = 0xff,
};

struct stream_arg {
	__u8 op;      /* enum stream_op */
	__u8 at_exit; /* filled by the call */
	__u8 count;   /* index of the argument that is the count */
	__u8 folder;  /* of a path: index + 1 of its folder's descriptor, or STREAM_FOLDER_CWD */
	__u16 size_bytes;
	__u16 pad;
};

enum stream_call_flags {
	STREAM_WANTED = 1,
	STREAM_NO_RETURN = 2,
	STREAM_FD_RESULT = 4,
	STREAM_EXECS = 8,
	STREAM_TIMED_WAIT = 16, /* ETIMEDOUT is an end like any other */
};

struct stream_call {
	struct stream_arg args[STREAM_ARGS];
	__u32 flags; /* enum stream_call_flags */
	__u32 pad;
};

/* Set before loading. */
struct stream_setup {
	__u64 min_latency_ns;
	__u32 string_bytes; /* at most STREAM_CHUNK_BYTES */
	__u8 failed_only;
	__u8 with_names; /* of descriptors */
	__u8 with_stack;
	__u8 pad;
};

enum stream_end {
	STREAM_RETURNED,
	STREAM_NEVER_RETURNS,
	STREAM_THREAD_ENDED,
	STREAM_IN_FLIGHT,
	STREAM_FILE,  /* no call: args have device and inode of a file, a chunk its path */
	STREAM_STACK, /* no call: struct stream_stack, of the call that follows */
};

/* Shared while running. */
struct stream_shared {
	__u64 start_ns;
	__u64 lost; /* calls that found no room in the ring, or no memory */
};

/* By CPU. */
enum stream_count {
	STREAM_SENT,
	STREAM_LOST_RING,
	STREAM_LOST_MEMORY, /* no room for what a thread is doing */
	STREAM_NO_EXIT,     /* an enter while the call before had not ended */
	STREAM_COUNTS,
};

/* A record: this, then n_bytes of chunks. */
struct stream_head {
	__u64 start_ns, duration_ns;
	__s64 result;
	__u64 args[STREAM_ARGS];
	__u64 lost_before; /* stream_shared.lost when it was sent */
	__u32 pid, tid;
	__u32 own_pid, own_tid; /* in its own pid namespace */
	__u16 code;
	__u8 end;     /* enum stream_end */
	__u8 before;  /* in flight since before the start */
	__u8 missing; /* bits of arguments that could not be read at the entry */
	__u8 active;  /* inside of the program */
	__u16 n_bytes;
	__u32 stack_lost; /* its stack found no room in the ring */
	__u32 pad;
	char comm[16];
};

/* Chunks begin at multiples of 8. */
struct stream_chunk {
	__u8 arg;  /* STREAM_ARGS: the result */
	__u8 kind; /* enum stream_chunk_kind */
	__u8 truncated;
	__u8 pad;
	__u16 n_bytes;
	__u16 pad2;
};

enum stream_chunk_kind {
	STREAM_CHUNK_MEMORY,
	STREAM_CHUNK_ITEM,
	STREAM_CHUNK_FD,     /* struct stream_file */
	STREAM_CHUNK_FOLDER, /* struct stream_file */
	STREAM_CHUNK_INNER,
	STREAM_CHUNK_COUNT, /* __u64 */
};

/* Before the components of a path from the leaf up, each with its NUL; or before a socket. */
struct stream_file {
	__u64 inode;
	__u64 magic; /* of the file system */
	__u16 mode;
	__u8 deleted;
	__u8 above; /* there were more components */
	__u32 pad;
};

/* An address of a user stack, the innermost first, and the file that was mapped there. */
struct stream_frame {
	__u64 user_va; /* as it is: of a return address, which points behind its call */
	__u64 inode;   /* 0: no file */
	__u64 file_off;
	__u32 device; /* major << 20 | minor */
	__u32 pad;
};

/* The record before a call's: tid and start_ns of its head say which. */
struct stream_stack {
	struct stream_head head;
	__u32 n_user, stop; /* enum unwind_stop */
	__u32 n_kernel, pad;
	__u64 kernel[STREAM_KERNEL_FRAMES]; /* where the call last slept */
	struct stream_frame user[STREAM_FRAMES];
};

struct stream_socket {
	__u16 family, type, protocol;
	__u16 local_port, remote_port; /* in host order */
	__u16 path_bytes;              /* of AF_UNIX: of what follows */
	__u8 peers_path;               /* it is the other end's */
	__u8 pad[3];
	__u8 local[16], remote[16];
};

_Static_assert(sizeof(struct stream_arg) == 8, "shared with the tool");
_Static_assert(sizeof(struct stream_call) == 56, "shared with the tool");
_Static_assert(sizeof(struct stream_setup) == 16, "shared with the tool");
_Static_assert(sizeof(struct stream_head) == 128, "shared with the tool");
_Static_assert(sizeof(struct stream_chunk) == 8, "shared with the tool");
_Static_assert(sizeof(struct stream_file) == 24, "shared with the tool");
_Static_assert(sizeof(struct stream_frame) == 32, "shared with the tool");
_Static_assert(sizeof(struct stream_stack) == 144 + 8 * STREAM_KERNEL_FRAMES + 32 * STREAM_FRAMES,
	       "shared with the tool");
_Static_assert(sizeof(struct stream_socket) == 48, "shared with the tool");

#endif
