/* SPDX-License-Identifier: BSD-2-Clause */
/* One measurement of system calls or probes: target, child, the loop, the table at its end. */
#ifndef INSPECT_TRACING_H
#define INSPECT_TRACING_H

#include <inspect/capture.h>
#include <inspect/probe_counts.h>
#include <inspect/syscall_counts.h>

/* After each interval: what has come since the one before. Not 0: ends the measurement with that
 * error; -ECANCELED ends it quietly. The table is the callback's to change. */
typedef int tracing_interval_fn(void *ctx, const struct syscall_counts *c, struct syscall_table *t);

/* Now and then, while the target is there to be asked. 0 or the error that ends it. */
typedef int tracing_tick_fn(void *ctx, struct syscall_counts *c);

struct tracing_config {
	const struct target *target;
	const struct host *host;
	/* Points to time instead of system calls, NULL: none. Its target is filled here, and what
	 * follows up to details is not used. */
	const struct probe_counts_config *probe;
	const struct syscall_set *only; /* NULL: all calls */
	uint32_t by;                    /* enum syscalls_by */
	bool of_bytes, details;
	bool with_stacks;                            /* by lock: user stacks */
	uint64_t duration_ns, delay_ns, interval_ns; /* 0: none */
	unsigned intervals_max;                      /* 0: no limit */
	bool stdout_taken;                           /* what CMD writes to stdout goes to stderr */
	tracing_interval_fn *interval;
	tracing_tick_fn *tick; /* of system calls; NULL: none */
	void *ctx;
};

struct tracing {
	struct syscall_counts *counts; /* stopped; for names of files. NULL: probes */
	struct probe_counts *probes;   /* stopped */
	struct unwind_tables *tables;  /* what counts unwind by; NULL: no stacks */
	struct syscall_table table;    /* of the whole measurement */
	enum syscall_attach attached;
	struct watched watched;
};

/* 0; on failure CMD has not run, or was ended. *ret must be released in both cases. */
int tracing_run(const struct tracing_config *c, note_list *notes, struct tracing *ret,
		struct diag *d);
void tracing_release(struct tracing *t);

#endif
