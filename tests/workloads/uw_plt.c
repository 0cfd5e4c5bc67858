/* SPDX-License-Identifier: BSD-2-Clause */
/* cflags: -O2 -fomit-frame-pointer -fno-builtin -Wl,-z,lazy */
/* Cheap functions of another library, through the PLT; with LD_BIND_NOT=1 each call is resolved. */
#include "uw.h"

NOINLINE static long calls(int n)
{
	long sum = 0;

	for (int i = 0; i < n; i++)
		sum += labs(-i) + (long)llabs(i) + atoi("7");
	return sum;
}

int main(int argc, char **argv)
{
	while (uw_time_left(argc, argv))
		uw_sum += calls(200);
	return 0;
}
