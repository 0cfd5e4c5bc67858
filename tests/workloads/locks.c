/* SPDX-License-Identifier: BSD-2-Clause */
/* locks [THREADS [SECONDS [HOLD_MS [rw]]]]: THREADS threads take one mutex in turn, every other one
 * with a timeout, and sleep 5 ms, or HOLD_MS, while they hold it, for SECONDS; with "rw" it is a
 * reader-writer lock, every other one reads, and all rest 1 ms between. As many wait on a condition
 * that never comes, one on a semaphore, and two as glibc's conditions may since 2.41: for a word
 * with a lock's value. Prints "locked WAIT_S WALL_S ADDRESS": what they waited for it. */
#include <pthread.h>
#include <semaphore.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { WAIT_BITSET = 9, PRIVATE = 128, BY_REALTIME = 256 }; /* linux/futex.h */

/* Behind a word that points to itself, as crtbegin's __dso_handle does, where musl's pthread_join has the descriptor of
 * the thread. */
static struct {
	void *self;
	char pad[48];
	pthread_mutex_t lock;
} mutex = {.self = &mutex, .lock = PTHREAD_MUTEX_INITIALIZER};
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static int is_rw;
static pthread_mutex_t idle = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t never = PTHREAD_COND_INITIALIZER;
static sem_t post;
static double end_s;
static unsigned hold_us = 5000;

static double now_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static struct timespec later(void)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	t.tv_sec += 1;
	return t;
}

static void take(int other)
{
	struct timespec t = later();
	int with_timeout = other && !is_rw;

	if (is_rw && other)
		pthread_rwlock_rdlock(&rwlock);
	else if (is_rw)
		pthread_rwlock_wrlock(&rwlock);
	else if (!with_timeout)
		pthread_mutex_lock(&mutex.lock);
	while (with_timeout && pthread_mutex_timedlock(&mutex.lock, &t))
		t = later();
}

static void give(void)
{
	if (is_rw)
		pthread_rwlock_unlock(&rwlock);
	else
		pthread_mutex_unlock(&mutex.lock);
}

static void *fight(void *arg)
{
	double *waited_s = arg;
	int other = (uintptr_t)arg / sizeof(double) % 2;

	while (now_s() < end_s) {
		double begin_s = now_s();

		take(other);
		*waited_s += now_s() - begin_s;
		usleep(hold_us);
		give();
		if (is_rw)
			usleep(1000); /* readers would never all be gone else */
	}
	return NULL;
}

static void *wait_for_work(void *arg)
{
	pthread_mutex_lock(&idle);
	pthread_cond_wait(&never, &idle);
	return arg;
}

static void *wait_for_post(void *arg)
{
	sem_wait(&post);
	return arg;
}

static void *wait_as_glibc_241(void *arg)
{
	static uint32_t conditions[2][16] = {{[8] = 2}, {[8] = 3}};
	uint32_t *condition = &conditions[arg != NULL][8];

	while (now_s() < end_s) {
		struct timespec t = later();

		syscall(SYS_futex, condition, WAIT_BITSET | PRIVATE | BY_REALTIME, *condition, &t,
			NULL, ~0U);
	}
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
	hold_us = argc > 3 ? (unsigned)atoi(argv[3]) * 1000 : hold_us;
	is_rw = argc > 4;
	sem_init(&post, 0, 0);
	pthread_create(&idler, NULL, wait_as_glibc_241, NULL);
	pthread_create(&idler, NULL, wait_as_glibc_241, argv);
	pthread_create(&idler, NULL, wait_for_post, NULL);
	for (int i = 0; i < n; i++) {
		pthread_create(&idler, NULL, wait_for_work, NULL);
		pthread_create(&threads[i], NULL, fight, &waited_s[i]);
	}
	for (int i = 0; i < n; i++) {
		pthread_join(threads[i], NULL);
		sum_s += waited_s[i];
	}
	printf("locked %.3f %.3f %p\n", sum_s, now_s() - begin_s,
	       is_rw ? (void *)&rwlock : (void *)&mutex.lock);
	return 0;
}
