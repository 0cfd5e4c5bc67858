/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Calls in a tight loop: `calls NR N`, or `calls dd N`, which reads and writes a byte in turns like
 * dd bs=1. Prints ns of CPU time for each call, the least of ten parts of the loop: whoever else wants
 * the CPU has no part in it.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { PARTS = 10 };

static double now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static void make_calls(long nr, long n)
{
	int from, to;
	char c;

	if (nr >= 0) {
		for (long i = 0; i < n; i++)
			syscall(nr, -1, 0, 0);
		return;
	}
	from = open("/dev/zero", O_RDONLY);
	to = open("/dev/null", O_WRONLY);
	for (long i = 0; i < n / 2; i++)
		if (read(from, &c, 1) != 1 || write(to, &c, 1) != 1)
			abort();
	close(from);
	close(to);
}

static double loop(long nr, long n)
{
	double least = 1e18;

	for (int part = 0; part < PARTS; part++) {
		double start = now_ns();

		make_calls(nr, n / PARTS);
		start = (now_ns() - start) / (double)(n / PARTS);
		least = start < least ? start : least;
	}
	return least;
}

int main(int argc, char **argv)
{
	long nr = argc > 1 && strcmp(argv[1], "dd") ? atol(argv[1]) : -1;

	printf("%.1f\n", loop(nr, argc > 2 ? atol(argv[2]) : 1000000));
	return 0;
}
