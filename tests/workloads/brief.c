/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * brief N: N times 1 ms of CPU in main and 4 ms in a thread that then ends. A timer for each thread
 * sees main, and none of the threads when it is slower than theirs. Prints `main NS` and
 * `main_clock NS`, of a task-clock.
 */
#include "cpu_time.h"
#include "task_clock.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static void burn(uint64_t ns)
{
	uint64_t end = clock_ns(CLOCK_THREAD_CPUTIME_ID) + ns;

	while (clock_ns(CLOCK_THREAD_CPUTIME_ID) < end)
		for (volatile int i = 0; i < 2000; i++)
			;
}

static void *brief(void *arg)
{
	burn(4000000);
	return arg;
}

int main(int argc, char **argv)
{
	int n = argc > 1 ? atoi(argv[1]) : 100, clock = task_clock_open(0, 0);
	uint64_t main_clock_ns = 0;

	for (int i = 0; i < n; i++) {
		pthread_t thread;

		burn(1000000);
		if (pthread_create(&thread, NULL, brief, NULL))
			return 1;
		pthread_join(thread, NULL);
	}
	if (read(clock, &main_clock_ns, sizeof(main_clock_ns)) < 0)
		return 1;
	printf("main %llu\nmain_clock %llu\n",
	       (unsigned long long)clock_ns(CLOCK_THREAD_CPUTIME_ID),
	       (unsigned long long)main_clock_ns);
	return 0;
}
