/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Raw futex calls whose waits are known: `futexes WHAT`. Prints for each lock "NAME WAITS NS", what
 * its own clock says.
 *
 *   requeue    3 threads wait at `from`; one is woken, two are moved to `to` and woken there later
 *   requeue2   the same by futex_wait, futex_requeue and futex_wake (454 to 456)
 *   late       the same, but nobody wakes at `to`: one waiter's time is up, one waits on at the end
 *   races N    N calls that come too late to wait (EAGAIN) at `first`
 *   anonymous  two processes wait 20 ms each, 5 times, at one word of shared anonymous memory
 *   condition  two threads wait for a condition within another variable, which is given 200 times
 *   several    a thread waits at `first` and `second` (futex_waitv), and is woken at `second`
 */
#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* By number: headers are older than the calls. */
enum {
	NR_WAITV = 449,
	NR_WAKE = 454,
	NR_WAIT = 455,
	NR_REQUEUE = 456,
	SIZE_U32 = 2,
	PRIVATE = 128,
};

struct waiter {
	uint64_t value, address;
	uint32_t flags, reserved;
};

uint32_t from, to, first, second;
static int newer, late;
static uint64_t moved_ns;
static uint64_t at_from_ns, at_to_ns;
static int waits_at_to;
static pthread_mutex_t sums = PTHREAD_MUTEX_INITIALIZER;

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

__attribute__((noinline)) long wait_at_from(const struct timespec *timeout)
{
	long r;

	if (newer)
		r = syscall(NR_WAIT, &from, 0UL, ~0U, SIZE_U32 | PRIVATE, NULL, 0);
	else
		r = syscall(SYS_futex, &from, FUTEX_WAIT_PRIVATE, 0, timeout, NULL, 0);
	__asm__ volatile("" ::: "memory");
	return r;
}

__attribute__((noinline)) long move_to(void)
{
	struct waiter pair[2] = {{0, (uintptr_t)&from, SIZE_U32 | PRIVATE, 0},
				 {0, (uintptr_t)&to, SIZE_U32 | PRIVATE, 0}};
	long r;

	if (newer)
		r = syscall(NR_REQUEUE, pair, 0, 1, 0x7fffffff);
	else
		r = syscall(SYS_futex, &from, FUTEX_CMP_REQUEUE_PRIVATE, 1, 0x7fffffffL, &to, 0);
	__asm__ volatile("" ::: "memory");
	return r;
}

__attribute__((noinline)) long wake_at(uint32_t *lock)
{
	long r;

	if (newer)
		r = syscall(NR_WAKE, lock, ~0U, 1, SIZE_U32 | PRIVATE);
	else
		r = syscall(SYS_futex, lock, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
	__asm__ volatile("" ::: "memory");
	return r;
}

static void *waiter(void *index)
{
	const struct timespec timeout = {.tv_nsec = 300000000};
	uint64_t begin_ns = now_ns(), end_ns;

	wait_at_from(late && index == (void *)1 ? &timeout : NULL);
	end_ns = now_ns();
	pthread_mutex_lock(&sums);
	/* The first is the one that is woken. */
	if (index == (void *)0) {
		at_from_ns += end_ns - begin_ns;
	} else {
		at_from_ns += moved_ns - begin_ns;
		at_to_ns += end_ns - moved_ns;
		waits_at_to++;
	}
	pthread_mutex_unlock(&sums);
	return NULL;
}

static __attribute__((noinline)) void requeue(void)
{
	pthread_t threads[3];

	for (intptr_t i = 0; i < 3; i++) {
		pthread_create(&threads[i], NULL, waiter, (void *)i);
		usleep(20000); /* who comes first is first */
	}
	usleep(80000);
	moved_ns = now_ns();
	if (move_to() != 3)
		exit(1);
	usleep(200000);
	if (late) {
		usleep(200000);
		/* The third one waits on. */
		printf("from 3 %llu\nto 1 %llu\n", (unsigned long long)at_from_ns,
		       (unsigned long long)at_to_ns);
		fflush(stdout);
		_exit(0);
	}
	for (int i = 1; i < 3; i++)
		if (wake_at(&to) != 1)
			exit(1);
	for (int i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	printf("from 3 %llu\nto %d %llu\n", (unsigned long long)at_from_ns, waits_at_to,
	       (unsigned long long)at_to_ns);
}

static void *wait_at_several(void *unused)
{
	struct waiter both[2] = {{0, (uintptr_t)&first, SIZE_U32 | PRIVATE, 0},
				 {0, (uintptr_t)&second, SIZE_U32 | PRIVATE, 0}};
	uint64_t begin_ns = now_ns();

	if (syscall(NR_WAITV, both, 2, 0, NULL, 0) != 1)
		exit(1);
	printf("second 1 %llu\n", (unsigned long long)(now_ns() - begin_ns));
	return unused;
}

static __attribute__((noinline)) void several(void)
{
	pthread_t thread;

	pthread_create(&thread, NULL, wait_at_several, NULL);
	usleep(100000);
	if (wake_at(&second) != 1)
		exit(1);
	pthread_join(thread, NULL);
}

static void races(int n)
{
	for (int i = 0; i < n; i++)
		if (!syscall(SYS_futex, &first, FUTEX_WAIT_PRIVATE, 1, NULL, NULL, 0) ||
		    errno != EAGAIN)
			exit(1);
}

/* Of two mappings of the same memory the second process uses the other. */
static void anonymous(void)
{
	const struct timespec timeout = {.tv_nsec = 20000000};
	uint32_t *word =
		mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (fork() == 0)
		word = mremap(word, 0, 8192, MREMAP_MAYMOVE);
	for (int i = 0; i < 5; i++)
		syscall(SYS_futex, word + 5, FUTEX_WAIT, 0, &timeout, NULL, 0);
	while (wait(NULL) > 0)
		;
}

struct queue {
	char before[24];
	pthread_mutex_t lock;
	pthread_cond_t more;
	int times;
} queue = {.lock = PTHREAD_MUTEX_INITIALIZER, .more = PTHREAD_COND_INITIALIZER};

static void *wait_for_more(void *arg)
{
	pthread_mutex_lock(&queue.lock);
	for (int seen = 0; seen < 200;) {
		while (queue.times == seen)
			pthread_cond_wait(&queue.more, &queue.lock);
		seen = queue.times;
	}
	pthread_mutex_unlock(&queue.lock);
	return arg;
}

static void condition(void)
{
	pthread_t threads[2];

	for (int i = 0; i < 2; i++)
		pthread_create(&threads[i], NULL, wait_for_more, NULL);
	for (int i = 0; i < 200; i++) {
		usleep(2000);
		pthread_mutex_lock(&queue.lock);
		queue.times++;
		pthread_cond_broadcast(&queue.more);
		pthread_mutex_unlock(&queue.lock);
	}
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";

	newer = !strcmp(what, "requeue2") || !strcmp(what, "several");
	if (newer && syscall(NR_WAKE, &to, ~0U, 1, SIZE_U32 | PRIVATE) < 0 && errno == ENOSYS)
		return 77; /* a kernel without them */
	late = !strcmp(what, "late");
	if (!strcmp(what, "several"))
		several();
	else if (!strcmp(what, "races"))
		races(argc > 2 ? atoi(argv[2]) : 1);
	else if (!strcmp(what, "condition"))
		condition();
	else if (!strcmp(what, "anonymous"))
		anonymous();
	else
		requeue();
	return 0;
}
