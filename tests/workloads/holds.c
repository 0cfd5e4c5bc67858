/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A program with the USDT probes that a glibc has which is built with --enable-systemtap, and two
 * locks: named libc.so.6 it is taken for one. Waits for a line; then a thread takes `outer` and
 * `inner` and gives them back in the order in which they were taken, 20 times, and keeps `outer`.
 * Prints "NAME HOLDS NS" by its own clock, and ends with its stdin.
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

/* A stapsdt note, as <sys/sdt.h> makes it: the argument is 8 bytes in a register. */
#define NOTE(name, argument)                                                                       \
	"990: nop\n"                                                                               \
	".pushsection .note.stapsdt,\"\",\"note\"\n"                                               \
	".balign 4\n"                                                                              \
	".4byte 992f-991f, 994f-993f, 3\n"                                                         \
	"991: .asciz \"stapsdt\"\n"                                                                \
	"992: .balign 4\n"                                                                         \
	"993: .8byte 990b, 0, 0\n"                                                                 \
	".asciz \"libc\"\n"                                                                        \
	".asciz \"" name "\"\n"                                                                    \
	".asciz \"" argument "\"\n"                                                                \
	"994: .balign 4\n"                                                                         \
	".popsection\n"

#if defined(__x86_64__)
#define PROBE(name, v) __asm__ volatile(NOTE(name, "8@%%rax") : : "a"(v) : "memory")
#else
#define PROBE(name, v)                                                                             \
	do {                                                                                       \
		register void *x0_ __asm__("x0") = (v);                                            \
		__asm__ volatile(NOTE(name, "8@x0") : : "r"(x0_) : "memory");                      \
	} while (0)
#endif

struct lock {
	pthread_mutex_t mutex;
	uint64_t since_ns, held_ns;
	int holds;
};

struct lock outer = {.mutex = PTHREAD_MUTEX_INITIALIZER};
struct lock inner = {.mutex = PTHREAD_MUTEX_INITIALIZER};

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

__attribute__((noinline)) static void take(struct lock *l)
{
	pthread_mutex_lock(&l->mutex);
	PROBE("mutex_acquired", &l->mutex);
	l->since_ns = now_ns();
}

__attribute__((noinline)) static void give_back(struct lock *l)
{
	l->held_ns += now_ns() - l->since_ns;
	l->holds++;
	pthread_mutex_unlock(&l->mutex);
	PROBE("mutex_release", &l->mutex);
}

static void *work(void *unused)
{
	for (int i = 0; i < 20; i++) {
		take(&outer);
		usleep(3000);
		take(&inner);
		usleep(3000);
		give_back(&outer);
		usleep(9000);
		give_back(&inner);
	}
	take(&outer);
	return unused;
}

int main(void)
{
	pthread_t thread;
	char byte;

	if (read(0, &byte, 1) != 1)
		return 1;
	pthread_create(&thread, NULL, work, NULL);
	pthread_join(thread, NULL);
	printf("outer %d %llu\ninner %d %llu\n", outer.holds, (unsigned long long)outer.held_ns,
	       inner.holds, (unsigned long long)inner.held_ns);
	fflush(stdout);
	while (read(0, &byte, 1) > 0)
		;
	return 0;
}
