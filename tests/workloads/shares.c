/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * shares SECONDS [THREADS]: 60, 30 and 10 % of the CPU time in burn_sixty, burn_thirty and
 * burn_ten, each called through level_01 … level_40. Without THREADS main does it, else that many
 * threads, each from `worker`. Bursts are short and of changing length, and the function that is
 * furthest behind its share is next: every window of some milliseconds has the shares, and no
 * sampling rate is in step with them. On a busy machine it goes on until each thread has had half of
 * the CPU time of a quiet one, so that there is something to sample.
 * Ends by printing its own truth, in ns of CPU: lines `NAME NS`, and `cpu NS` for the process.
 */
#include "cpu_time.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { FUNCTIONS = 3, THREADS_MAX = 2000, BURST = 100000 };

/* The time is spent in the function itself; different constants keep the linker and the compiler
 * from making one function of the three. */
#define BURN(name, constant)                                                                       \
	NOINLINE void name(unsigned n)                                                             \
	{                                                                                          \
		uint64_t x = (constant);                                                           \
		KEEP_FRAME();                                                                      \
		for (unsigned i = 0; i < n; i++)                                                   \
			__asm__ volatile("imul $0x343fd, %0, %0\n\tadd $0x269ec3, %0" : "+r"(x));  \
	}

#if !defined(__x86_64__)
#undef BURN
#define BURN(name, constant)                                                                       \
	NOINLINE void name(unsigned n)                                                             \
	{                                                                                          \
		volatile uint64_t x = (constant);                                                  \
		KEEP_FRAME();                                                                      \
		for (unsigned i = 0; i < n; i++)                                                   \
			x = x * 0x343fd + 0x269ec3;                                                \
	}
#endif

BURN(burn_sixty, 60)
BURN(burn_thirty, 30)
BURN(burn_ten, 10)

typedef void burn_fn(unsigned n);
static const struct {
	const char *name;
	burn_fn *burn;
	uint64_t weight; /* 1 / share, in thirtieths */
} functions[FUNCTIONS] = {
	{"burn_sixty", burn_sixty, 5}, {"burn_thirty", burn_thirty, 10}, {"burn_ten", burn_ten, 30}};

NOINLINE void level_40(burn_fn *burn, unsigned n)
{
	burn(n);
	__asm__ volatile(""); /* no tail call */
}

#define LEVEL(this, next)                                                                          \
	NOINLINE void level_##this(burn_fn *burn, unsigned n)                                      \
	{                                                                                          \
		level_##next(burn, n);                                                             \
		__asm__ volatile("");                                                              \
	}
LEVEL(39, 40) LEVEL(38, 39) LEVEL(37, 38) LEVEL(36, 37) LEVEL(35, 36) LEVEL(34, 35) LEVEL(33, 34)
LEVEL(32, 33) LEVEL(31, 32) LEVEL(30, 31) LEVEL(29, 30) LEVEL(28, 29) LEVEL(27, 28) LEVEL(26, 27)
LEVEL(25, 26) LEVEL(24, 25) LEVEL(23, 24) LEVEL(22, 23) LEVEL(21, 22) LEVEL(20, 21) LEVEL(19, 20)
LEVEL(18, 19) LEVEL(17, 18) LEVEL(16, 17) LEVEL(15, 16) LEVEL(14, 15) LEVEL(13, 14) LEVEL(12, 13)
LEVEL(11, 12) LEVEL(10, 11) LEVEL(09, 10) LEVEL(08, 09) LEVEL(07, 08) LEVEL(06, 07) LEVEL(05, 06)
LEVEL(04, 05) LEVEL(03, 04) LEVEL(02, 03) LEVEL(01, 02)

struct work {
	pthread_t thread;
	uint64_t wall_ns, least_cpu_ns;
	uint64_t cpu_ns[FUNCTIONS];
};

NOINLINE void spend(struct work *w)
{
	uint64_t end_ns = clock_ns(CLOCK_MONOTONIC) + w->wall_ns, random = 1;
	uint64_t now_ns, last_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	uint64_t enough_ns = last_ns + w->least_cpu_ns;

	while (clock_ns(CLOCK_MONOTONIC) < end_ns || last_ns < enough_ns) {
		unsigned next = 0;

		for (unsigned i = 1; i < FUNCTIONS; i++)
			if (w->cpu_ns[i] * functions[i].weight <
			    w->cpu_ns[next] * functions[next].weight)
				next = i;
		random = random * 6364136223846793005 + 1442695040888963407;
		level_01(functions[next].burn, BURST / 2 + (unsigned)(random >> 33) % BURST);
		now_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
		w->cpu_ns[next] += now_ns - last_ns;
		last_ns = now_ns;
	}
}

NOINLINE void *worker(void *arg)
{
	spend(arg);
	__asm__ volatile("");
	return NULL;
}

int main(int argc, char **argv)
{
	static struct work work[THREADS_MAX];
	double seconds = argc > 1 ? atof(argv[1]) : 1;
	int threads = argc > 2 ? atoi(argv[2]) : 0;

	if (seconds <= 0 || threads < 0 || threads > THREADS_MAX) {
		fprintf(stderr, "usage: shares SECONDS [THREADS]\n");
		return 2;
	}
	for (int i = 0; i <= threads; i++) {
		double cpus = (double)sysconf(_SC_NPROCESSORS_ONLN);

		work[i].wall_ns = (uint64_t)(seconds * 1e9);
		work[i].least_cpu_ns = (uint64_t)(seconds * 5e8);
		if (threads > cpus)
			work[i].least_cpu_ns = (uint64_t)(seconds * 5e8 * cpus / threads);
	}
	for (int i = 0; i < threads; i++)
		if (pthread_create(&work[i].thread, NULL, worker, &work[i]))
			return 1;
	if (!threads)
		spend(&work[0]);
	for (int i = 0; i < threads; i++)
		pthread_join(work[i].thread, NULL);
	for (unsigned f = 0; f < FUNCTIONS; f++) {
		uint64_t sum = 0;

		for (int i = 0; i <= threads; i++)
			sum += work[i].cpu_ns[f];
		printf("%s %llu\n", functions[f].name, (unsigned long long)sum);
	}
	printf("cpu %llu\n", (unsigned long long)rusage_cpu_ns(RUSAGE_SELF));
	return 0;
}
