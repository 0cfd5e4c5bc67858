/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * forker CHILDREN MS [exec]: that many children, at most two at a time, each burning MS ms of CPU
 * in burn_child and ending; with `exec` each runs this program again first, as `forker child MS`.
 * Prints `children N` and `children_cpu NS`.
 */
#include "cpu_time.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { AT_ONCE = 2 };

NOINLINE void burn_child(uint64_t ns)
{
	volatile uint64_t x = 1;

	while (clock_ns(CLOCK_THREAD_CPUTIME_ID) < ns)
		for (int i = 0; i < 20000; i++)
			x = x * 0x343fd + 0x269ec3;
}

static void start(const char *program, const char *ms, int run_again)
{
	pid_t pid = fork();

	if (pid < 0)
		exit(1);
	if (pid)
		return;
	if (run_again) {
		execl(program, program, "child", ms, NULL);
		_exit(127);
	}
	burn_child((uint64_t)(atof(ms) * 1e6));
	_exit(0);
}

int main(int argc, char **argv)
{
	int children, running = 0, failed = 0, status;

	if (argc < 3) {
		fprintf(stderr, "usage: forker CHILDREN MS [exec]\n");
		return 2;
	}
	if (!strcmp(argv[1], "child")) {
		burn_child((uint64_t)(atof(argv[2]) * 1e6));
		return 0;
	}
	children = atoi(argv[1]);
	for (int i = 0; i < children; i++) {
		if (running == AT_ONCE) {
			failed |= wait(&status) < 0 || status;
			running--;
		}
		start("/proc/self/exe", argv[2], argc > 3);
		running++;
	}
	while (running--)
		failed |= wait(&status) < 0 || status;
	printf("children %d\nchildren_cpu %llu\n", children,
	       (unsigned long long)rusage_cpu_ns(RUSAGE_CHILDREN));
	return failed;
}
