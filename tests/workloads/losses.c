/* cflags: -O2 -fomit-frame-pointer */
/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * losses WHAT: more than a tool has room for.
 *	stacks   two threads wait 1,000 times each, every time at another stack (leaf)
 *	absent   a thread waits below a page of its stack that is not in memory (absent)
 */
#include "cpu_time.h"

#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { DEPTH = 40, STACKS = 1000, THREADS = 2, PAGE = 4096, ABOVE = 16 * PAGE };

NOINLINE void leaf(void)
{
	const struct timespec shortly = {.tv_nsec = 50000};

	nanosleep(&shortly, NULL);
	__asm__ volatile(""); /* no tail call */
}

/* Each number has a path of its own. */
NOINLINE void down(unsigned path, int depth)
{
	if (!depth) {
		leaf();
	} else if (path & 1) {
		down(path >> 1, depth - 1);
		__asm__ volatile("nop"); /* a call of its own */
	} else {
		down(path >> 1, depth - 1);
		__asm__ volatile("");
	}
}

static void *wait_everywhere(void *first)
{
	for (unsigned i = 0; i < STACKS; i++)
		down(i * 2 + (first != NULL), DEPTH);
	return NULL;
}

/* Takes the pages between its own frame and that of its callers out of memory, and never returns. */
NOINLINE void absent(char *from)
{
	char *page = (char *)(((uintptr_t)from + PAGE) & ~(uintptr_t)(PAGE - 1));

	madvise(page, ABOVE - 2 * PAGE, MADV_DONTNEED);
	for (int i = 0; i < 30; i++)
		usleep(10000);
	_exit(0);
}

/* Its return address is in the middle of what is taken out. */
NOINLINE void in_the_middle(void)
{
	volatile char below[ABOVE / 2];

	below[0] = 0;
	absent((char *)below);
}

NOINLINE void on_top(void)
{
	volatile char above[ABOVE];

	above[0] = 0;
	in_the_middle();
	__asm__ volatile("" ::"r"(above));
}

int main(int argc, char **argv)
{
	pthread_t threads[THREADS];

	if (argc > 1 && !strcmp(argv[1], "absent"))
		on_top();
	if (argc < 2 || strcmp(argv[1], "stacks"))
		return 1;
	for (int i = 0; i < THREADS; i++)
		if (pthread_create(&threads[i], NULL, wait_everywhere, i ? NULL : threads))
			return 1;
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	return 0;
}
