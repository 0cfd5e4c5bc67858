/* cflags: -O2 -fomit-frame-pointer */
/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * faults FILE SECONDS: maps the file, and for that long drops its pages from memory and touches them
 * again (touch_pages): page faults that wait for its file system. Ends by printing its own truth,
 * of touching, where nothing else waits, `waits N` (voluntary switches, getrusage(2)), and of wall time
 * `off NS` without a CPU.
 */
#include "cpu_time.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

NOINLINE int touch_pages(const volatile char *map, size_t bytes)
{
	int sum = 0;

	for (size_t i = 0; i < bytes; i += 4096)
		sum += map[i];
	return sum;
}

int main(int argc, char **argv)
{
	int fd = argc > 2 ? open(argv[1], O_RDONLY) : -1;
	uint64_t end_ns, off_ns = 0;
	struct rusage before, after;
	long waits = 0;
	struct stat s;
	char *map;

	if (fd < 0 || fstat(fd, &s))
		return 1;
	map = mmap(NULL, (size_t)s.st_size, PROT_READ, MAP_SHARED, fd, 0);
	if (map == MAP_FAILED || madvise(map, (size_t)s.st_size, MADV_RANDOM))
		return 1;
	end_ns = now_ns() + (uint64_t)(atof(argv[2]) * 1e9);
	while (now_ns() < end_ns) {
		uint64_t begin_ns, cpu_ns;

		if (madvise(map, (size_t)s.st_size, MADV_DONTNEED) || fdatasync(fd) ||
		    posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED))
			return 1;
		getrusage(RUSAGE_SELF, &before);
		begin_ns = now_ns();
		cpu_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
		touch_pages(map, (size_t)s.st_size);
		off_ns += now_ns() - begin_ns - (clock_ns(CLOCK_THREAD_CPUTIME_ID) - cpu_ns);
		getrusage(RUSAGE_SELF, &after);
		waits += after.ru_nvcsw - before.ru_nvcsw;
	}
	printf("waits %ld\noff %llu\n", waits, (unsigned long long)off_ns);
	return 0;
}
