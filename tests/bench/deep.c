/* SPDX-License-Identifier: BSD-2-Clause */
/* cflags: -fomit-frame-pointer */
/*
 * deep [THREADS [DEPTH]]: threads that do the same piece of work again and again below DEPTH calls,
 * without frame pointers. For every line on stdin it prints the pieces done so far, the CPU time
 * that they took, and the time in which the threads stood still for 0.5 to 200 us at once without
 * another thread having had its turn, in ns.
 * What sampling costs a program shows in both: in the time of a piece with all that it does to
 * caches, and the noise of those; in the interruptions by themselves, whatever else runs.
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

enum { THREADS_MAX = 64, ROUNDS = 10000, STILL_MIN_NS = 500, STILL_MAX_NS = 200000 };

static unsigned depth = 20;
static double ticks_per_ns;
static struct counts {
	volatile uint64_t pieces, still_ticks;
} __attribute__((aligned(64))) counts[THREADS_MAX];

static uint64_t clock_ns(clockid_t id)
{
	struct timespec t;

	clock_gettime(id, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static inline uint64_t ticks(void)
{
#if defined(__x86_64__)
	return __builtin_ia32_rdtsc();
#elif defined(__aarch64__)
	uint64_t v;

	__asm__ volatile("mrs %0, cntvct_el0" : "=r"(v));
	return v;
#else
	return clock_ns(CLOCK_MONOTONIC);
#endif
}

static void calibrate(void)
{
	uint64_t start_ns = clock_ns(CLOCK_MONOTONIC), start = ticks(), ns;

	do
		ns = clock_ns(CLOCK_MONOTONIC) - start_ns;
	while (ns < 50000000);
	ticks_per_ns = (double)(ticks() - start) / (double)ns;
}

static __attribute__((noinline)) void work(unsigned thread)
{
	uint64_t least = (uint64_t)(STILL_MIN_NS * ticks_per_ns);
	uint64_t most = (uint64_t)(STILL_MAX_NS * ticks_per_ns), last = ticks();
	long switches = 0;

	while (counts[thread].pieces < UINT64_MAX) {
		for (unsigned i = 0; i < ROUNDS; i++) {
			uint64_t now = ticks(), still = now - last;

			last = now;
			if (still > least) {
				struct rusage usage;

				getrusage(RUSAGE_THREAD, &usage);
				if (still < most && usage.ru_nivcsw == switches)
					counts[thread].still_ticks += still;
				switches = usage.ru_nivcsw;
				last = ticks();
			}
		}
		counts[thread].pieces++;
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
	calibrate();
	for (unsigned i = 0; i < threads; i++)
		if (pthread_create(&ids[i], NULL, thread_main, (void *)(uintptr_t)i))
			return 1;
	printf("%d\n", getpid());
	fflush(stdout);
	while (fgets(line, sizeof(line), stdin)) {
		uint64_t done = 0, still = 0;

		for (unsigned i = 0; i < threads; i++) {
			done += counts[i].pieces;
			still += counts[i].still_ticks;
		}
		printf("%llu %llu %llu\n", (unsigned long long)done,
		       (unsigned long long)clock_ns(CLOCK_PROCESS_CPUTIME_ID),
		       (unsigned long long)((double)still / ticks_per_ns));
		fflush(stdout);
	}
	return 0;
}
