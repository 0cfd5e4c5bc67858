/* cflags: -O2 -fomit-frame-pointer */
/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * wait_shares SECONDS [THREADS [told]]: each thread `worker` sleeps 40 % of its time (phase_sleep), waits 30 %
 * for the_lock, which the thread `holder` has (phase_lock), 20 % for a pipe that the thread
 * `feeder` writes to (phase_pipe), and computes for 10 % (phase_compute). With THREADS above 1 they
 * only sleep and compute. `told`: it begins when a line comes from its standard input.
 * Ends by printing its own truth for the first worker: `sleep NS`, `lock NS`, `pipe NS` and
 * `compute NS` of wall time, `cpu NS`, `wall NS`.
 */
#include "cpu_time.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { SLEEP, LOCK, PIPE, COMPUTE, PHASES, CYCLE_US = 100000, THREADS_MAX = 2000 };

pthread_mutex_t the_lock = PTHREAD_MUTEX_INITIALIZER;
static atomic_int has_lock, wants_lock, wants_byte, ended;
static int ends[2];
static uint64_t spent[PHASES], wall_ns, cpu_ns, end_ns;
static int alone;

static uint64_t now(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

NOINLINE void phase_sleep(void)
{
	usleep(alone ? CYCLE_US * 4 / 10 : CYCLE_US * 9 / 10);
	__asm__ volatile(""); /* no tail call */
}

NOINLINE void phase_lock(void)
{
	while (!has_lock && !ended)
		usleep(100);
	wants_lock = 1;
	pthread_mutex_lock(&the_lock);
	wants_lock = 0;
	pthread_mutex_unlock(&the_lock);
	__asm__ volatile("");
}

NOINLINE void phase_pipe(void)
{
	char byte;

	wants_byte = 1;
	if (read(ends[0], &byte, 1) < 1)
		exit(1);
	__asm__ volatile("");
}

NOINLINE void phase_compute(void)
{
	uint64_t until = now(CLOCK_THREAD_CPUTIME_ID) + CYCLE_US * 100;

	while (now(CLOCK_THREAD_CPUTIME_ID) < until)
		for (volatile int i = 0; i < 1000; i++)
			;
}

static void *holder(void *unused)
{
	while (!ended) {
		pthread_mutex_lock(&the_lock);
		has_lock = 1;
		while (!wants_lock && !ended)
			usleep(200);
		usleep(CYCLE_US * 3 / 10);
		has_lock = 0;
		pthread_mutex_unlock(&the_lock);
		while (wants_lock && !ended)
			usleep(200);
	}
	return unused;
}

static void *feeder(void *unused)
{
	while (!ended) {
		while (!wants_byte && !ended)
			usleep(200);
		wants_byte = 0;
		usleep(CYCLE_US * 2 / 10);
		if (write(ends[1], "", 1) < 1)
			exit(1);
	}
	return unused;
}

static void *worker(void *first)
{
	static void (*const phases[PHASES])(void) = {phase_sleep, phase_lock, phase_pipe,
						     phase_compute};
	uint64_t begin = now(CLOCK_MONOTONIC), at = begin;

	while (at < end_ns) {
		for (int i = 0; i < PHASES; i++) {
			uint64_t before = at;

			if (!alone && (i == LOCK || i == PIPE || i == COMPUTE))
				continue;
			phases[i]();
			at = now(CLOCK_MONOTONIC);
			if (first)
				spent[i] += at - before;
		}
	}
	if (first) {
		wall_ns = at - begin;
		cpu_ns = now(CLOCK_THREAD_CPUTIME_ID);
	}
	return NULL;
}

static pthread_t start(void *(*run)(void *), void *arg, const char *name)
{
	pthread_t t;

	if (pthread_create(&t, NULL, run, arg))
		exit(1);
	pthread_setname_np(t, name);
	return t;
}

int main(int argc, char **argv)
{
	static const char *const names[PHASES] = {"sleep", "lock", "pipe", "compute"};
	static pthread_t workers[THREADS_MAX];
	int n = argc > 2 ? atoi(argv[2]) : 1;

	if (argc < 2 || n < 1 || n > THREADS_MAX || pipe(ends))
		return 1;
	alone = n == 1;
	if (argc > 3 && getchar() < 0)
		return 1;
	end_ns = now(CLOCK_MONOTONIC) + (uint64_t)(atof(argv[1]) * 1e9);
	if (alone) {
		start(holder, NULL, "holder");
		start(feeder, NULL, "feeder");
	}
	for (int i = 0; i < n; i++)
		workers[i] = start(worker, i ? NULL : &spent, "worker");
	for (int i = 0; i < n; i++)
		pthread_join(workers[i], NULL);
	ended = 1;
	for (int i = 0; i < PHASES; i++)
		printf("%s %llu\n", names[i], (unsigned long long)spent[i]);
	printf("cpu %llu\nwall %llu\n", (unsigned long long)cpu_ns, (unsigned long long)wall_ns);
	return 0;
}
