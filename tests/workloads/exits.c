/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * exits SECONDS CODE | exits SECONDS signal NUMBER: uses that much CPU time in burn_until, then ends
 * as asked.
 */
#include "cpu_time.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

NOINLINE void burn_until(uint64_t cpu_ns)
{
	volatile uint64_t x = 1;

	while (clock_ns(CLOCK_PROCESS_CPUTIME_ID) < cpu_ns)
		for (int i = 0; i < 20000; i++)
			x = x * 0x343fd + 0x269ec3;
}

int main(int argc, char **argv)
{
	const struct rlimit no_core = {0, 0};

	if (argc < 3) {
		fprintf(stderr, "usage: exits SECONDS CODE | exits SECONDS signal NUMBER\n");
		return 2;
	}
	burn_until((uint64_t)(atof(argv[1]) * 1e9));
	if (strcmp(argv[2], "signal") || argc < 4)
		return atoi(argv[2]);
	setrlimit(RLIMIT_CORE, &no_core);
	signal(atoi(argv[3]), SIG_DFL);
	raise(atoi(argv[3]));
	return 1;
}
