/* SPDX-License-Identifier: BSD-2-Clause */
/* One measurement of how long mutexes are held: the C library in the target's files, the loop. */
#ifndef INSPECT_HOLD_TRACING_H
#define INSPECT_HOLD_TRACING_H

#include <inspect/capture.h>
#include <inspect/hold_counts.h>

/* Now and then, while the target is there to be asked: totals up to now. 0 or the error that ends
 * it. */
typedef int hold_tick_fn(void *ctx, const struct syscall_table *t);

struct hold_tracing_config {
	const struct target *target;
	const struct host *host;
	uint64_t duration_ns, delay_ns; /* 0: none */
	bool stdout_taken;              /* what CMD writes to stdout goes to stderr */
	hold_tick_fn *tick;
	void *ctx;
};

struct hold_tracing {
	struct syscall_table table;
	struct holds_shared losses;
	struct watched watched;
};

/* 0; -ENOENT, explained: no C library of the target has probes. On failure CMD has not run, or was
 * ended. *ret must be released in both cases. */
int hold_tracing_run(const struct hold_tracing_config *c, struct hold_tracing *ret, struct diag *d);
void hold_tracing_release(struct hold_tracing *t);

#endif
