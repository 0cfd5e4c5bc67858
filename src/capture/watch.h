/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What tracing, streaming, gpu_tracing and cuda_tracing have in common: signals, CMD, and how long
 * it goes on. Each calls these in this order, with a source of its own between:
 *
 *   watch_prepare              CMD is held before its exec, or runs already when there is a delay
 *   watch_target               for opening the source
 *   watch_go                   when the source has started
 *   watch_is_over, watch_wait  until it is over
 *   watch_close                in any case
 */
#ifndef INSPECT_CAPTURE_WATCH_H
#define INSPECT_CAPTURE_WATCH_H

#include <inspect/capture.h>
#include <inspect/probe_target.h>

/* How soon the end of the target is seen. */
#define WATCH_TICK_NS (50 * NSEC_PER_MSEC)

struct watch {
	const struct target *target;
	uint64_t duration_ns, delay_ns; /* 0: none */
	bool stdout_taken;              /* what CMD writes to stdout goes to stderr */
	struct watched *result;
	struct diag *d;
	int signal_fd; /* until the close */
};

/* 0 or -errno, explained, as in all that follow. */
int watch_prepare(struct watch *w);
bool watch_measures_child(const struct watch *w);
struct probe_target watch_target(const struct watch *w);
int watch_go(struct watch *w);

/* source_alive: whether anything of the target is left. */
bool watch_is_over(struct watch *w, bool source_alive);
/* Until fd is readable (-1: none), a signal, the end of CMD, or until_ns; never long. */
int watch_wait(struct watch *w, int fd, uint64_t until_ns);

/* failed: CMD is ended; had it not been let go, it never runs. */
void watch_close(struct watch *w, bool failed);

#endif
