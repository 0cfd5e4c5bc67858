/* SPDX-License-Identifier: BSD-2-Clause */
/* What the workloads of the unwinder share: MS of CPU time from the command line, and a leaf. */
#ifndef WORKLOAD_UW_H
#define WORKLOAD_UW_H

#include "cpu_time.h"

#include <stdlib.h>
#include <string.h>

static volatile long uw_sum;

/* Of this thread; looked at every now and then, so that what is measured is not the clock. */
static inline int uw_time_left(int argc, char **argv)
{
	static __thread unsigned asked;

	if (asked++ % 16)
		return 1;
	return clock_ns(CLOCK_THREAD_CPUTIME_ID) <
	       (argc > 1 ? (uint64_t)atoll(argv[1]) : 500) * 1000000;
}

NOINLINE __attribute__((unused)) static void uw_leaf(void)
{
	for (int i = 0; i < 3000; i++)
		uw_sum += i;
}

#endif
