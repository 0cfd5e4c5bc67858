/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * counts PAGES CHILDREN THREADS SLEEPS: touches PAGES fresh pages and gives them back; CHILDREN processes and THREADS
 * threads do the same and sleep SLEEPS times each. Prints what getrusage says of it all at the end:
 * `minflt N`, `majflt N`, `nvcsw N`, `nivcsw N`, `cpu_ns N`, `maxrss N` (bytes).
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define TASKS_MAX 64

static long pages, sleeps;

static void touch(void)
{
	volatile char *p = mmap(NULL, (size_t)pages * 4096, PROT_READ | PROT_WRITE,
				MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		_exit(1);
	madvise((void *)p, (size_t)pages * 4096, MADV_NOHUGEPAGE);
	for (long i = 0; i < pages; i++)
		p[i * 4096] = 1;
	munmap((void *)p, (size_t)pages * 4096);
}

static void *work(void *ignored)
{
	touch();
	for (long i = 0; i < sleeps; i++)
		usleep(200);
	return ignored;
}

static int64_t cpu_ns(const struct rusage *r)
{
	return (r->ru_utime.tv_sec + r->ru_stime.tv_sec) * 1000000000LL +
	       (r->ru_utime.tv_usec + r->ru_stime.tv_usec) * 1000LL;
}

int main(int argc, char **argv)
{
	pthread_t threads[TASKS_MAX];
	struct rusage self, children;
	int n_children, n_threads;

	if (argc != 5)
		return 2;
	pages = atol(argv[1]);
	n_children = atoi(argv[2]) % TASKS_MAX;
	n_threads = atoi(argv[3]) % TASKS_MAX;
	sleeps = atol(argv[4]);
	touch();
	for (int i = 0; i < n_children; i++)
		if (fork() == 0) {
			work(NULL);
			_exit(0);
		}
	while (wait(NULL) > 0)
		;
	for (int i = 0; i < n_threads; i++)
		if (pthread_create(&threads[i], NULL, work, NULL))
			return 1;
	for (int i = 0; i < n_threads; i++)
		pthread_join(threads[i], NULL);
	getrusage(RUSAGE_SELF, &self);
	getrusage(RUSAGE_CHILDREN, &children);
	printf("minflt %ld\nmajflt %ld\nnvcsw %ld\nnivcsw %ld\ncpu_ns %lld\nmaxrss %ld\n",
	       self.ru_minflt + children.ru_minflt, self.ru_majflt + children.ru_majflt,
	       self.ru_nvcsw + children.ru_nvcsw, self.ru_nivcsw + children.ru_nivcsw,
	       (long long)(cpu_ns(&self) + cpu_ns(&children)),
	       1024 * (self.ru_maxrss > children.ru_maxrss ? self.ru_maxrss : children.ru_maxrss));
	return 0;
}
