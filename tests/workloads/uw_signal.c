/* SPDX-License-Identifier: BSD-2-Clause */
/* cflags: -O2 -fomit-frame-pointer */
/* uw_signal MS [other]: a signal handler, on a stack of its own with `other`, which interrupts code
 * at any instruction. */
#include "uw.h"

#include <signal.h>
#include <sys/time.h>

static char other_stack[65536];

NOINLINE static void handled(int depth)
{
	if (depth)
		handled(depth - 1);
	else
		for (int i = 0; i < 100; i++)
			uw_leaf();
	__asm__ volatile("");
}

static void handler(int sig)
{
	handled(sig % 8 + 4);
	__asm__ volatile("");
}

NOINLINE static long interrupted(int depth)
{
	long below = depth ? interrupted(depth - 1) : (uw_leaf(), 1);

	__asm__ volatile("");
	return below + depth;
}

int main(int argc, char **argv)
{
	stack_t stack = {.ss_sp = other_stack, .ss_size = sizeof(other_stack)};
	struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESTART};
	struct itimerval timer = {0};
	uint64_t begin_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);

	handled(0);
	/* A sixth of the time is the handler's, on a slow machine too. */
	timer.it_value.tv_usec =
		(suseconds_t)(6 * (clock_ns(CLOCK_THREAD_CPUTIME_ID) - begin_ns) / 1000);
	timer.it_interval = timer.it_value;
	if (argc > 2) {
		sigaltstack(&stack, NULL);
		action.sa_flags |= SA_ONSTACK;
	}
	sigaction(SIGPROF, &action, NULL);
	setitimer(ITIMER_PROF, &timer, NULL);
	while (uw_time_left(argc, argv))
		uw_sum += interrupted(20);
	return 0;
}
