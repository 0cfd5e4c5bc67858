/* SPDX-License-Identifier: BSD-2-Clause */
/* cflags: -O2 -fomit-frame-pointer */
#include "uw.h"

NOINLINE static long fib(long n)
{
	return n < 2 ? n : fib(n - 1) + fib(n - 2);
}

int main(int argc, char **argv)
{
	while (uw_time_left(argc, argv))
		uw_sum += fib(20);
	return 0;
}
