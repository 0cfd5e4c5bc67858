/* SPDX-License-Identifier: BSD-2-Clause */
/* The tool's side of bpf/lib/gpu_calls.bpf.h, for each program that includes it. */
#ifndef PROBE_GPU_WATCH_H
#define PROBE_GPU_WATCH_H

#include "core.h"

#include <inspect/gpu_counts.h>

/* Before loading. */
void gpu_watch_setup(uint32_t by, bool events, struct gpu_setup *ret);
/* After it: which devices are meant, and how their calls are read. 0 or -errno. */
int gpu_watch_fill(const struct probe_core *core, const struct gpu_watch *watch);
/* Whether an iterator can read the memory of a task: what a call that it is in is about. */
bool gpu_watch_reads_others(const struct host *h);
/* What the program has counted by CPU. 0 or -errno. */
int gpu_watch_losses(const struct probe_core *core, const struct gpu_shared *shared,
		     struct gpu_losses *ret);

/* Events of calls, in the order of their ends. */
struct gpu_events {
	struct ring_buffer *ring; /* NULL: without events */
	gpu_event_fn *fn;         /* while they are read */
	void *ctx;
	int err;
};
int gpu_events_open(struct gpu_events *e, const struct probe_core *core); /* 0 or -errno */
int gpu_events_fd(const struct gpu_events *e);                            /* -1: without events */
/* Hands on those that are there. 0 or -errno, or what fn returned. */
int gpu_events_read(struct gpu_events *e, gpu_event_fn *fn, void *ctx);
void gpu_events_release(struct gpu_events *e);

/* Calls by the numbers that a program gave them (bpf/offcpu_gpu.bpf.h). */
struct gpu_keys {
	ARRAY(struct gpu_key) v; /* number - 1; kind GPU_NOTHING: not read yet */
};
/* 0, -ENOENT, or -ENOMEM. */
int gpu_keys_find(struct gpu_keys *k, const struct probe_core *core, uint32_t number,
		  struct gpu_key *ret);

#endif
