/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One system call of one thread, as a source tells it: numbers, and what its pointers pointed to
 * when it was made.
 */
#ifndef INSPECT_SYSCALL_EVENT_H
#define INSPECT_SYSCALL_EVENT_H

#include <inspect/syscalls.h>

#define SYSCALL_CAPTURES_MAX 64
#define SYSCALL_RESULT SYSCALL_ARGS /* a capture's `arg`: the result instead of an argument */

enum syscall_capture_kind {
	CAPTURE_MEMORY, /* what the argument points to: a struct, an array, bytes, a text */
	CAPTURE_ITEM,   /* one string of argv, or the bytes of one iovec; in their order */
	CAPTURE_NAME,   /* of a descriptor: a path, a socket */
	CAPTURE_FOLDER, /* the folder that a relative path starts from */
	CAPTURE_INNER,  /* what a pointer in a struct points to: a socket's address, iovecs */
	CAPTURE_COUNT,  /* a number, uint64_t: how many strings argv or envp has */
};

struct syscall_capture {
	uint8_t arg;
	uint8_t kind;   /* enum syscall_capture_kind */
	bool truncated; /* there was more than was taken */
	uint32_t n_bytes;
	const void *data; /* borrowed, not aligned */
};

/* A frame of the user stack, the innermost first. */
struct syscall_frame {
	uint64_t user_va;  /* a return address, but for the first */
	uint64_t file_off; /* of user_va */
	const char
		*path; /* of the file that was mapped there, as its process knows it; NULL: none */
	uint32_t maj, min;
	uint64_t ino; /* 0: no file */
};

#define SYSCALL_FRAMES_MAX 128
#define SYSCALL_KERNEL_FRAMES_MAX 32

enum syscall_end {
	SYSCALL_RETURNED,
	SYSCALL_NEVER_RETURNS, /* exit */
	SYSCALL_THREAD_ENDED,  /* inside of the call */
	SYSCALL_IN_FLIGHT,     /* it has not ended; duration_ns is its age so far */
};

struct syscall_event {
	int32_t pid, tid;
	int32_t own_pid, own_tid; /* in the thread's own pid namespace; 0: not known */
	char comm[16];
	uint32_t nr; /* without SYSCALL_X32_BIT */
	uint8_t abi; /* enum syscall_abi */
	uint8_t end; /* enum syscall_end */
	bool before; /* in flight since before the start: the age is at least duration_ns */
	uint64_t args[SYSCALL_ARGS];
	int64_t result;
	uint64_t start_ns; /* CLOCK_MONOTONIC */
	uint64_t duration_ns;
	uint32_t n_frames;  /* 0: no stack was asked for, or there is none */
	uint8_t stack_stop; /* enum unwind_stop: why it ended */
	struct syscall_frame frames[SYSCALL_FRAMES_MAX];
	/* The kernel's, the innermost first: where the call last slept, or does. */
	uint32_t n_kernel;
	uint64_t kernel[SYSCALL_KERNEL_FRAMES_MAX];
	bool stack_lost; /* the ring had no room for it */
	uint32_t n_captures;
	struct syscall_capture captures[SYSCALL_CAPTURES_MAX];
};

#endif
