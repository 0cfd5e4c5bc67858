/* SPDX-License-Identifier: BSD-2-Clause */
/* The probe of waits, for its own sources. */
#ifndef PROBE_OFFCPU_IMPL_H
#define PROBE_OFFCPU_IMPL_H

#include "gpu_watch.h"
#include "iterator.h"
#include "rings.h"
#include "stack_store.h"

#include <bpf/bpf.h>
#include <inspect/offcpu.h>

struct offcpu; /* the skeleton */

struct offcpu_probe {
	struct offcpu *skeleton;
	struct probe_core core;
	struct probe_rings rings;
	ARRAY(int) tick_fds;
	int rows_fds[2], rows_now_fd; /* the object's; the first of them is in use */
	bool stopped;
	uint64_t rows_read, totals_read; /* how many had been added by then */
	struct stack_store stacks;
	ARRAY(struct offcpu_ended) threads;
	struct gpu_events gpu_events;
	struct gpu_keys gpu_keys;
	struct bpf_program *begin_gpu; /* finds the calls that threads are in at the start */
	/* Room for a batch. */
	struct offcpu_key *keys;
	struct offcpu_row *rows;
	uint32_t *serials;
	struct offcpu_totals *totals;
};

#endif
