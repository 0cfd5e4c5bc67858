/* SPDX-License-Identifier: BSD-2-Clause */
/* cflags: -O2 -fomit-frame-pointer */
/* Frames that realign the stack (the CFA is found through a saved register), and alloca. */
#include "uw.h"

#include <alloca.h>

NOINLINE static long aligned(int depth, int size)
{
	long wide[8] __attribute__((aligned(64)));
	char *room = alloca((size_t)size);

	memset(wide, depth, sizeof(wide));
	memset(room, size, (size_t)size);
	__asm__ volatile("" : : "r"(wide), "r"(room) : "memory");
	if (!depth) {
		uw_leaf();
		return room[1];
	}
	return aligned(depth - 1, size + 24) + wide[3] + room[0];
}

/* Arguments on the stack are reached from a realigned frame by another register. */
NOINLINE static long many(long a, long b, long c, long d, long e, long f, long g, long h)
{
	long wide[4] __attribute__((aligned(32))) = {a + b, c + d, e + f, g + h};

	__asm__ volatile("" : : "r"(wide) : "memory");
	return aligned(10, 100) + wide[1] + h;
}

int main(int argc, char **argv)
{
	while (uw_time_left(argc, argv))
		uw_sum += many(1, 2, 3, 4, 5, 6, 7, 8);
	return 0;
}
