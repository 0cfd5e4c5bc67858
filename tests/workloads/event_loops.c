/* cflags: -O2 -fomit-frame-pointer */
/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * event_loops: the thread `loop` waits for a timer of 5 ms in epoll_wait, 60 times, and handles it: shortly,
 * but once by computing for 60 ms (handle_long), and once by waiting for 90 ms for another
 * descriptor (handle_blocking). The thread `spinner` meanwhile asks its epoll again and again
 * without ever waiting. Prints its own truth of `loop`, from the return of one epoll_wait to the
 * next call: `gaps N`, `sum NS`, `max NS`, `wall NS`.
 */
#include "cpu_time.h"

#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

enum { ROUNDS = 60, LONG = 20, BLOCKING = 40, TIMER_NS = 5000000, LONG_MS = 60, BLOCKING_MS = 90 };

static atomic_int ended;
static int silent[2]; /* a pipe that nobody writes to */

static uint64_t now(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

NOINLINE void compute(uint64_t ns)
{
	uint64_t until = now(CLOCK_THREAD_CPUTIME_ID) + ns;

	while (now(CLOCK_THREAD_CPUTIME_ID) < until)
		for (volatile int i = 0; i < 1000; i++)
			;
}

NOINLINE void handle_short(void)
{
	compute(50000);
	__asm__ volatile(""); /* no tail call */
}

NOINLINE void handle_long(void)
{
	compute(LONG_MS * 1000000ULL);
	__asm__ volatile("");
}

NOINLINE void handle_blocking(void)
{
	struct pollfd p = {.fd = silent[0], .events = POLLIN};

	poll(&p, 1, BLOCKING_MS);
	__asm__ volatile("");
}

static void handle(int round)
{
	if (round == LONG)
		handle_long();
	else if (round == BLOCKING)
		handle_blocking();
	else
		handle_short();
}

static int epoll_on(int fd)
{
	struct epoll_event e = {.events = EPOLLIN};
	int epoll = epoll_create1(0);

	if (epoll < 0 || epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &e))
		exit(1);
	return epoll;
}

static void *loop(void *unused)
{
	const struct itimerspec once = {.it_value.tv_nsec = TIMER_NS};
	int timer = timerfd_create(CLOCK_MONOTONIC, 0), epoll = epoll_on(timer);
	uint64_t begin = now(CLOCK_MONOTONIC), back = 0, sum = 0, max = 0, n = 0;

	for (int round = 0; round < ROUNDS; round++) {
		struct epoll_event e;
		uint64_t expired, gap;

		timerfd_settime(timer, 0, &once, NULL);
		if (back) {
			gap = now(CLOCK_MONOTONIC) - back;
			n++;
			sum += gap;
			max = gap > max ? gap : max;
		}
		if (epoll_wait(epoll, &e, 1, -1) != 1)
			exit(1);
		back = now(CLOCK_MONOTONIC);
		if (read(timer, &expired, sizeof(expired)) != sizeof(expired))
			exit(1);
		handle(round);
	}
	ended = 1;
	printf("gaps %llu\nsum %llu\nmax %llu\nwall %llu\n", (unsigned long long)n,
	       (unsigned long long)sum, (unsigned long long)max,
	       (unsigned long long)(now(CLOCK_MONOTONIC) - begin));
	return unused;
}

static void *spinner(void *unused)
{
	int epoll = epoll_on(silent[0]);
	struct epoll_event e;

	while (!ended)
		epoll_wait(epoll, &e, 1, 0);
	return unused;
}

int main(void)
{
	static void *(*const runs[])(void *) = {loop, spinner};
	static const char *const names[] = {"loop", "spinner"};
	pthread_t threads[2];

	if (pipe(silent))
		return 1;
	for (int i = 0; i < 2; i++) {
		if (pthread_create(&threads[i], NULL, runs[i], NULL))
			return 1;
		pthread_setname_np(threads[i], names[i]);
	}
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	return 0;
}
