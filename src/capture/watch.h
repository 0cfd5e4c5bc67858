/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What all measurements without a recording have in common (tracing, streaming, gpu_tracing,
 * cuda_tracing, hold_tracing): signals, CMD, how long it goes on, and the order of its steps.
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

/* Of a config and a result that have these members, as those of all of them. */
#define WATCH_OF(config, measured, diag)                                                           \
	{                                                                                          \
		.target = (config)->target, .duration_ns = (config)->duration_ns,                  \
		.delay_ns = (config)->delay_ns, .stdout_taken = (config)->stdout_taken,            \
		.result = &(measured)->watched, .d = (diag),                                       \
	}

/* What is measured; ctx is that of watch_run. Each returns 0 or -errno, explained; -ECANCELED:
 * whoever reads it wants no more. */
struct watch_steps {
	int (*open)(void *ctx);   /* CMD is held before its exec; with a delay it runs already */
	int (*start)(void *ctx);  /* it counts from now on; CMD is let go behind it */
	bool (*alive)(void *ctx); /* whether anything of the target is left */
	int (*turn)(void *ctx);   /* waits (watch_wait), and does what is due */
	int (*finish)(void *ctx); /* stops, and reads the end; also when a turn was canceled */
	void (*close)(void *ctx); /* in any case; NULL: nothing to be done */
};

/* From the start to the end: 0 or -errno, explained if the step that failed did so. On failure CMD
 * is ended; had it not been let go, it never ran. -ECANCELED if a step was canceled. */
int watch_run(struct watch *w, const struct watch_steps *steps, void *ctx);

bool watch_measures_child(const struct watch *w);
struct probe_target watch_target(const struct watch *w); /* from `open` on */
/* Until fd is readable (-1: none), a signal, the end of CMD, or until_ns; never long. 0 or -errno,
 * explained. */
int watch_wait(struct watch *w, int fd, uint64_t until_ns);

#endif
