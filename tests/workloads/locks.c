/* SPDX-License-Identifier: BSD-2-Clause */
/* THREADS threads take one mutex in turn and sleep while they hold it, for SECONDS; as many wait on
 * a condition that never comes. Prints "locked WAIT_S WALL_S ADDRESS": what they waited for it. */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { HOLD_US = 5000 };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER, idle = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t never = PTHREAD_COND_INITIALIZER;
static double end_s;

static double now_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void *fight(void *arg)
{
	double *waited_s = arg;

	while (now_s() < end_s) {
		double begin_s = now_s();

		pthread_mutex_lock(&mutex);
		*waited_s += now_s() - begin_s;
		usleep(HOLD_US);
		pthread_mutex_unlock(&mutex);
	}
	return NULL;
}

static void *wait_for_work(void *arg)
{
	pthread_mutex_lock(&idle);
	pthread_cond_wait(&never, &idle);
	return arg;
}

int main(int argc, char **argv)
{
	int n = argc > 1 ? atoi(argv[1]) : 4;
	double begin_s = now_s(), sum_s = 0, waited_s[64] = {0};
	pthread_t threads[64], idler;

	if (n < 1 || n > 64)
		return 2;
	end_s = begin_s + (argc > 2 ? atof(argv[2]) : 3);
	for (int i = 0; i < n; i++) {
		pthread_create(&idler, NULL, wait_for_work, NULL);
		pthread_create(&threads[i], NULL, fight, &waited_s[i]);
	}
	for (int i = 0; i < n; i++) {
		pthread_join(threads[i], NULL);
		sum_s += waited_s[i];
	}
	printf("locked %.3f %.3f %p\n", sum_s, now_s() - begin_s, (void *)&mutex);
	return 0;
}
