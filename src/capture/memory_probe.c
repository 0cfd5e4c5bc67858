/* SPDX-License-Identifier: BSD-2-Clause */
#include "memory_probe.h"

#include <fcntl.h>
#include <inspect/procfs.h>
#include <pthread.h>
#include <time.h>

/* Shared by the one who asks and the thread that tries; the last of them frees it. */
struct probe {
	pthread_mutex_t lock;
	pthread_cond_t progress;
	unsigned users;
	memory_try_fn *fn;
	size_t n, done;
	pid_t pids[];
};

void memory_try(pid_t pid)
{
	char path[64], bytes[64];
	CLEANUP(closep) int fd = -1;

	snprintf(path, sizeof(path), "/proc/%d/maps", proc_living(pid));
	fd = open(path, O_RDONLY | O_CLOEXEC);
	/* What it says does not matter, only that it comes. */
	if (fd >= 0 && read(fd, bytes, sizeof(bytes)) < 0)
		return;
}

static struct probe *probe_new(const pid_t *pids, size_t n, memory_try_fn *fn)
{
	struct probe *p = calloc(1, sizeof(*p) + n * sizeof(*p->pids));
	pthread_condattr_t attr;

	if (!p)
		return NULL;
	pthread_mutex_init(&p->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&p->progress, &attr);
	pthread_condattr_destroy(&attr);
	p->users = 2;
	p->fn = fn;
	p->n = n;
	memcpy(p->pids, pids, n * sizeof(*pids));
	return p;
}

/* Called with the lock held, which it gives up. */
static void probe_leave(struct probe *p)
{
	bool last = !--p->users;

	pthread_mutex_unlock(&p->lock);
	if (!last)
		return;
	pthread_cond_destroy(&p->progress);
	pthread_mutex_destroy(&p->lock);
	free(p);
}

static void *try_all(void *arg)
{
	struct probe *p = arg;

	for (size_t i = 0; i < p->n; i++) {
		p->fn(p->pids[i]);
		pthread_mutex_lock(&p->lock);
		p->done = i + 1;
		pthread_cond_signal(&p->progress);
		pthread_mutex_unlock(&p->lock);
	}
	pthread_mutex_lock(&p->lock);
	probe_leave(p);
	return NULL;
}

static int start(struct probe *p)
{
	pthread_attr_t attr;
	pthread_t thread;
	int err = pthread_attr_init(&attr);

	if (!err)
		err = pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	if (!err)
		err = pthread_create(&thread, &attr, try_all, p);
	pthread_attr_destroy(&attr);
	return -err;
}

static struct timespec after(uint64_t ns)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	ns += (uint64_t)t.tv_nsec;
	t.tv_sec += (time_t)(ns / NSEC_PER_SEC);
	t.tv_nsec = (long)(ns % NSEC_PER_SEC);
	return t;
}

/* How many of them answered, up to the first that did not; or -errno. */
static ssize_t try_until_stuck(const pid_t *pids, size_t n, memory_try_fn *fn, uint64_t patience_ns)
{
	struct probe *p = probe_new(pids, n, fn);
	size_t done = 0;
	int err;

	if (!p)
		return -ENOMEM;
	err = start(p);
	pthread_mutex_lock(&p->lock);
	p->users -= err != 0;
	while (!err && p->done < n) {
		const struct timespec end = after(patience_ns);

		done = p->done;
		while (p->done == done && !err)
			err = -pthread_cond_timedwait(&p->progress, &p->lock, &end);
	}
	done = p->done;
	probe_leave(p);
	return err && err != -ETIMEDOUT ? err : (ssize_t)done;
}

int memory_probe(const pid_t *pids, size_t n, memory_try_fn *fn, uint64_t patience_ns,
		 bool *ret_stuck)
{
	uint64_t now_ns = patience_ns;

	memset(ret_stuck, 0, n * sizeof(*ret_stuck));
	for (size_t first = 0; first < n;) {
		ssize_t answered = try_until_stuck(pids + first, n - first, fn, now_ns);

		if (answered < 0)
			return (int)answered;
		first += (size_t)answered;
		if (first == n)
			break;
		ret_stuck[first++] = true;
		now_ns = patience_ns / 10;
	}
	return 0;
}
