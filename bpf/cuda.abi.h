/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the program that times CUDA's driver API and the tool exchange. No hidden padding. */
#ifndef BPF_CUDA_ABI_H
#define BPF_CUDA_ABI_H

#ifndef __VMLINUX_H__
#include <linux/types.h>
#endif

#include "lib/log_linear.h"

enum {
	CUDA_COMM = 16,
	CUDA_DEPTH = 8,       /* calls inside of calls that are told apart */
	CUDA_NOT_READY = 600, /* CUDA_ERROR_NOT_READY: an answer, no failure */
};

/* The cookie of a probe: the function's number (16 bits), and what struct cuda_arguments says, each
 * from that bit on. */
enum cuda_cookie {
	CUDA_AT_BYTES = 16, /* 4 bits each */
	CUDA_AT_TIMES = 20,
	CUDA_AT_STREAM = 24,
	CUDA_AT_SHIFT = 28,  /* 2 */
	CUDA_AT_NARROW = 30, /* 1 */
	CUDA_AT_FIELDS = 32, /* 2 */
	CUDA_AT_OFFSET = 40, /* 8 each */
	CUDA_AT_STREAM_OFFSET = 48,
	CUDA_FIELDS_MAX = 3,
};

enum cuda_by { CUDA_BY_THREAD = 1, CUDA_BY_COMM = 2, CUDA_BY_STREAM = 4 };

struct cuda_key {
	__u64 stream;
	__u32 function; /* number */
	__u32 pid, tid, pad;
	char comm[CUDA_COMM];
};

struct cuda_row {
	__u64 calls, errors, total_ns, max_ns, bytes;
	__u64 unreturned, unreturned_ns; /* their threads ended in them */
	__u32 slots[LOG_LINEAR_SLOTS];
	__u32 last_error;
	__u32 pad;
};

/* Calls that have not returned, the outermost first. */
struct cuda_begun {
	__u64 ns, cookie, bytes, stream;
};

struct cuda_thread {
	__u32 depth; /* calls, of which the first CUDA_DEPTH are kept */
	__u32 pid, tid, pad;
	char comm[CUDA_COMM];
	struct cuda_begun calls[CUDA_DEPTH];
};

struct cuda_setup {
	__u32 by; /* enum cuda_by */
	__u32 pad;
};

struct cuda_shared {
	__u64 rows_full, threads_full, too_deep, ends_without_begin;
};

#endif
