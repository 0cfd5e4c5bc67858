/* SPDX-License-Identifier: BSD-2-Clause */
/* Frames between the kernel's code and a program at a tracepoint of the scheduler: ours, not the
 * target's. */
#ifndef PROBE_OWN_FRAMES_H
#define PROBE_OWN_FRAMES_H

#include <inspect/base.h>
#include <linux/types.h>

enum { OWN_FRAME_RANGES = 8 };

struct own_frames {
	struct {
		uint64_t from_va, to_va;
	} v[OWN_FRAME_RANGES]; /* 0, 0: not told */
};

/* From /proc/kallsyms; where it hides addresses, nothing is left out later. */
void own_frames_find(struct own_frames *ret);

/* How many frames, leaf first, to leave out. */
size_t own_frames_count(const struct own_frames *f, const __u64 *chain, size_t n);

/* What the kernel calls when a switch has several programs: the first range. */
enum { OWN_FRAMES_SWITCH_ITERATOR = 0 };

#endif
