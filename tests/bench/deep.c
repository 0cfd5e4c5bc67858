/* SPDX-License-Identifier: BSD-2-Clause */
/* cflags: -fomit-frame-pointer */
/*
 * deep [THREADS [DEPTH]]: threads that do the same piece of work again and again below DEPTH calls,
 * without frame pointers. For every line on stdin it prints the pieces done so far and the CPU time
 * that they took, in ns: what sampling costs a program shows in the time of a piece.
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { THREADS_MAX = 64, ROUNDS = 10000 };

static unsigned depth = 20;
static volatile uint64_t pieces[THREADS_MAX][8]; /* a cache line each */

static __attribute__((noinline)) void work(unsigned thread)
{
	for (;;) {
		for (volatile unsigned i = 0; i < ROUNDS; i++)
			;
		pieces[thread][0]++;
	}
}

static __attribute__((noinline)) void descend(unsigned left, unsigned thread)
{
	if (left)
		descend(left - 1, thread);
	else
		work(thread);
	__asm__ volatile(""); /* no tail call */
}

static void *thread_main(void *arg)
{
	descend(depth, (unsigned)(uintptr_t)arg);
	return arg;
}

int main(int argc, char **argv)
{
	unsigned threads = argc > 1 ? (unsigned)atoi(argv[1]) : 2;
	pthread_t ids[THREADS_MAX];
	char line[16];

	if (argc > 2)
		depth = (unsigned)atoi(argv[2]);
	if (!threads || threads > THREADS_MAX || depth > 10000) {
		fprintf(stderr, "usage: deep [THREADS [DEPTH]]\n");
		return 2;
	}
	for (unsigned i = 0; i < threads; i++)
		if (pthread_create(&ids[i], NULL, thread_main, (void *)(uintptr_t)i))
			return 1;
	printf("%d\n", getpid());
	fflush(stdout);
	while (fgets(line, sizeof(line), stdin)) {
		struct timespec t;
		uint64_t done = 0;

		for (unsigned i = 0; i < threads; i++)
			done += pieces[i][0];
		clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
		printf("%llu %llu\n", (unsigned long long)done,
		       (unsigned long long)t.tv_sec * 1000000000 + (unsigned long long)t.tv_nsec);
		fflush(stdout);
	}
	return 0;
}
