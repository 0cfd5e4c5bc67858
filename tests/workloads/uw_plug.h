/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A plug-in for uw_reload, and one of two programs that execute each other (PROGRAM): two sources
 * give all functions another name (NAME) and the outer one another size of frame (FRAME_BYTES), so
 * that the same addresses are unwound by other rules.
 */
#ifndef WORKLOAD_UW_PLUG_H
#define WORKLOAD_UW_PLUG_H

#include "cpu_time.h"

#include <stdlib.h>
#include <string.h>

#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)

static volatile long sum;

NOINLINE static void JOIN(NAME, _leaf)(void)
{
	for (int i = 0; i < 20000; i++)
		sum += i;
}

/* For so much CPU time. */
NOINLINE void JOIN(NAME, _run)(uint64_t cpu_ns)
{
	uint64_t end_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID) + cpu_ns;
	char frame[FRAME_BYTES];

	memset(frame, 0, sizeof(frame));
	__asm__ volatile("" : : "r"(frame) : "memory");
	while (clock_ns(CLOCK_THREAD_CPUTIME_ID) < end_ns)
		JOIN(NAME, _leaf)();
	sum += frame[cpu_ns % FRAME_BYTES];
}

#ifdef PROGRAM
#include <stdio.h>
#include <unistd.h>

/* TURNS OTHER: runs 10 ms, then executes OTHER for the turn after. */
int main(int argc, char **argv)
{
	char turns[16];
	char *next[] = {argv[2], turns, argv[0], NULL};

	if (argc != 3)
		return 2;
	JOIN(NAME, _run)(10000000);
	snprintf(turns, sizeof(turns), "%d", atoi(argv[1]) - 1);
	return atoi(argv[1]) > 1 ? execv(argv[2], next) : 0;
}
#else
/* What the program asks for by name. */
void plug_run(uint64_t cpu_ns) __attribute__((alias(NAME_TEXT)));
#endif

#endif
