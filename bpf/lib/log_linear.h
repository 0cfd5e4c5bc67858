/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Where a value belongs in a log-linear histogram: 16 slots for each power of two, so that the
 * middle of a slot is at most 1/32 (3.2 %) from any value in it. Compiled for BPF and user space.
 */
#ifndef BPF_LIB_LOG_LINEAR_H
#define BPF_LIB_LOG_LINEAR_H

#ifndef __VMLINUX_H__
#include <linux/types.h>
#endif

enum {
	LOG_LINEAR_SUB_BITS = 4,
	LOG_LINEAR_SUB = 1 << LOG_LINEAR_SUB_BITS,
	LOG_LINEAR_TOP = 36, /* the highest power of two of its own: 2^37 ns are 137 s */
	LOG_LINEAR_SLOTS = (LOG_LINEAR_TOP - LOG_LINEAR_SUB_BITS + 2) * LOG_LINEAR_SUB,
};

/* Values below 16 have a slot each; those of 2^37 and more share the last one. BPF has no
 * instruction that counts leading zeros, and clang's expansion is longer than these steps. */
static inline __attribute__((always_inline)) __u32 log_linear_slot(__u64 value)
{
	__u64 rest = value, slot;
	__u32 log2 = 0;

	if (value < LOG_LINEAR_SUB)
		return (__u32)value;
	if (value >> (LOG_LINEAR_TOP + 1))
		return LOG_LINEAR_SLOTS - 1;
	if (rest >> 32) {
		rest >>= 32;
		log2 = 32;
	}
	if (rest >> 16) {
		rest >>= 16;
		log2 += 16;
	}
	if (rest >> 8) {
		rest >>= 8;
		log2 += 8;
	}
	if (rest >> 4) {
		rest >>= 4;
		log2 += 4;
	}
	if (rest >> 2) {
		rest >>= 2;
		log2 += 2;
	}
	log2 += (__u32)(rest >> 1);
	slot = (log2 - LOG_LINEAR_SUB_BITS + 1) * LOG_LINEAR_SUB +
	       (__u32)((value >> (log2 - LOG_LINEAR_SUB_BITS)) & (LOG_LINEAR_SUB - 1));
	/* Never more: for the verifier, which before 6.2 follows branches that cannot be taken. */
	__asm__ volatile("" : "+r"(slot));
	return slot < LOG_LINEAR_SLOTS ? (__u32)slot : LOG_LINEAR_SLOTS - 1;
}

#endif
