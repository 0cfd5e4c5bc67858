/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * busy [THREADS [DEPTH]]: threads that burn CPU below DEPTH calls until they are killed.
 * Prints its pid once all of them run.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { THREADS_MAX = 64 };

static unsigned depth = 20;
static volatile unsigned running;

static __attribute__((noinline)) void burn(void)
{
	__atomic_fetch_add(&running, 1, __ATOMIC_SEQ_CST);
	for (volatile unsigned long i = 0; running; i++)
		;
}

static __attribute__((noinline)) void descend(unsigned left)
{
	if (left)
		descend(left - 1);
	else
		burn();
	__asm__ volatile(""); /* no tail call */
}

static void *thread_main(void *arg)
{
	descend(depth);
	return arg;
}

int main(int argc, char **argv)
{
	unsigned threads = argc > 1 ? (unsigned)atoi(argv[1]) : 2;
	pthread_t ids[THREADS_MAX];

	if (argc > 2)
		depth = (unsigned)atoi(argv[2]);
	if (!threads || threads > THREADS_MAX || depth > 10000) {
		fprintf(stderr, "usage: busy [THREADS [DEPTH]]\n");
		return 2;
	}
	for (unsigned i = 0; i < threads; i++)
		if (pthread_create(&ids[i], NULL, thread_main, NULL))
			return 1;
	while (running < threads)
		usleep(1000);
	printf("%d\n", getpid());
	fflush(stdout);
	pause();
	return 0;
}
