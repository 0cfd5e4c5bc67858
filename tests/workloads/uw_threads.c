/* SPDX-License-Identifier: BSD-2-Clause */
/* cflags: -O2 -fomit-frame-pointer */
/* Threads: their stacks end in clone, not in main. */
#include "uw.h"

#include <pthread.h>

enum { THREADS = 4 };

static char **args;

NOINLINE static int nest(int depth)
{
	int below = depth ? nest(depth - 1) : (uw_leaf(), 1);

	__asm__ volatile("");
	return below + depth;
}

static void *worker(void *arg)
{
	while (uw_time_left(2, args))
		nest(30);
	return arg;
}

int main(int argc, char **argv)
{
	pthread_t threads[THREADS];
	char *usual[] = {argv[0], "500", NULL};

	args = argc > 1 ? argv : usual;
	for (int i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, worker, NULL);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	return 0;
}
