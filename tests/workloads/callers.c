/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Calls from two functions: `callers N` makes N getppid in often() and N / 10 in seldom(), then a
 * 2 * N / 10 writes of 7 bytes in writes(), every other one to a descriptor that there is not; then a
 * thread blocks in blocked() in a read of stdin until there is something.
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

static volatile long made; /* keeps calls from becoming jumps */

static __attribute__((noinline)) void often(long n)
{
	for (long i = 0; i < n; i++)
		made += syscall(SYS_getppid) > 0;
}

static __attribute__((noinline)) void seldom(long n)
{
	for (long i = 0; i < n; i++)
		made -= syscall(SYS_getppid) > 0; /* alike, the two would become one */
}

static __attribute__((noinline)) void writes(long n)
{
	int null = open("/dev/null", O_WRONLY);

	for (long i = 0; i < n; i++)
		made += write(null, "1234567", 7) - write(-1, "1234567", 7);
}

static __attribute__((noinline)) void *blocked(void *unused)
{
	char c;

	(void)unused;
	made += read(0, &c, 1);
	return NULL;
}

int main(int argc, char **argv)
{
	long n = argc > 1 ? atol(argv[1]) : 1000;
	pthread_t thread;

	usleep(600000); /* unwind tables of a new program take a while */
	often(n);
	seldom(n / 10);
	writes(n / 10);
	if (pthread_create(&thread, NULL, blocked, NULL))
		return 1;
	pthread_join(thread, NULL);
	return 0;
}
