/* SPDX-License-Identifier: BSD-2-Clause */
/* pingpong ROUNDS [SECONDS_BEFORE]: two processes on one CPU pass a byte through two pipes. Prints
 * `us_per_round X` of wall time and
 * `cpu_us_per_round X` of both processes' CPU time. */
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* Of both, which what watches them has its part in: steadier than wall time on a busy machine. */
static double cpu_us(void)
{
	double us = 0;

	for (int who = RUSAGE_CHILDREN; who <= RUSAGE_SELF; who++) {
		struct rusage r;

		getrusage(who, &r);
		us += (double)(r.ru_utime.tv_sec + r.ru_stime.tv_sec) * 1e6 +
		      (double)(r.ru_utime.tv_usec + r.ru_stime.tv_usec);
	}
	return us;
}

static void pass(int from, int to, long rounds)
{
	char byte = 0;

	for (long i = 0; i < rounds; i++)
		if (read(from, &byte, 1) != 1 || write(to, &byte, 1) != 1)
			exit(1);
}

int main(int argc, char **argv)
{
	long rounds = argc > 1 ? atol(argv[1]) : 100000;
	int a[2], b[2];
	uint64_t begin_ns;
	cpu_set_t one;

	CPU_ZERO(&one);
	CPU_SET(0, &one);
	if (pipe(a) || pipe(b) || sched_setaffinity(0, sizeof(one), &one))
		return 1;
	if (argc > 2)
		usleep((useconds_t)(atof(argv[2]) * 1e6));
	if (!fork()) {
		pass(a[0], b[1], rounds);
		_exit(0);
	}
	begin_ns = now_ns();
	if (write(a[1], "", 1) != 1)
		return 1;
	pass(b[0], a[1], rounds - 1);
	wait(NULL);
	printf("us_per_round %.3f\n", (double)(now_ns() - begin_ns) / 1e3 / (double)rounds);
	printf("cpu_us_per_round %.3f\n", cpu_us() / (double)rounds);
	return 0;
}
