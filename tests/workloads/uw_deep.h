/* SPDX-License-Identifier: BSD-2-Clause */
/* 100 nested calls with frames of 256 bytes, none with a frame pointer. */
#include "uw.h"

NOINLINE static int nest(int depth)
{
	char frame[256];
	int below;

	memset(frame, depth, sizeof(frame));
	__asm__ volatile("" : : "r"(frame) : "memory");
	if (!depth) {
		uw_leaf();
		return frame[3];
	}
	below = nest(depth - 1);
	__asm__ volatile("");
	return below + frame[1];
}

int main(int argc, char **argv)
{
	while (uw_time_left(argc, argv))
		for (int i = 0; i < 100; i++)
			nest(100);
	return 0;
}
