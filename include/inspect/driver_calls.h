/* SPDX-License-Identifier: BSD-2-Clause */
/* Calls of a GPU's driver, counted since the start of a session. */
#ifndef INSPECT_DRIVER_CALLS_H
#define INSPECT_DRIVER_CALLS_H

#include <inspect/histogram.h>

struct driver_calls {
	struct histogram latency; /* of ioctls that have ended, ns; its n is how many */
	uint64_t failed;          /* by errno, or by the driver's own status */
	uint64_t allocs;          /* that ask for objects and memory */
	uint64_t no_memory;       /* that the driver refused for want of memory */
	uint64_t missed;          /* that were not counted */
};

/* Everything up to now. 0 or -errno. */
typedef int driver_calls_fn(void *ctx, struct driver_calls *ret);

#endif
