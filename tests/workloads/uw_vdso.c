/* SPDX-License-Identifier: BSD-2-Clause */
/* cflags: -O2 -fomit-frame-pointer */
/* Time from the vdso, whose code is in no file. */
#include "uw.h"

NOINLINE static void ask(int n)
{
	for (int i = 0; i < n; i++)
		uw_sum += (long)clock_ns(CLOCK_MONOTONIC);
}

int main(int argc, char **argv)
{
	while (uw_time_left(argc, argv))
		ask(1000);
	return 0;
}
