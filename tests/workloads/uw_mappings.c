/* SPDX-License-Identifier: BSD-2-Clause */
/* cflags: -fomit-frame-pointer */
/*
 * uw_mappings N MS FILE: maps N pages of a file, every other one executable, and works MS of CPU
 * time; then the same long again while it maps and unmaps one without end.
 */
#include "uw.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>

static const int protections[] = {PROT_READ, PROT_READ | PROT_EXEC};

static void *map(int fd, long i)
{
	return mmap(NULL, 4096, protections[i & 1], MAP_PRIVATE, fd, 4096 * (i % 3));
}

static NOINLINE void many(int argc, char **argv)
{
	while (uw_time_left(argc, argv))
		uw_leaf();
	uw_sum++;
}

static NOINLINE void again(int fd, int argc, char **argv)
{
	static char ms[24];
	char *args[] = {argv[0], ms};

	(void)argc;
	snprintf(ms, sizeof(ms), "%lld", 2 * atoll(argv[2]));
	for (long i = 0; uw_time_left(2, args); i++) {
		void *page = map(fd, i | 1);

		for (int round = 0; round < 20; round++)
			uw_leaf();
		if (page != MAP_FAILED)
			munmap(page, 4096);
	}
	uw_sum++;
}

int main(int argc, char **argv)
{
	long mapped = 0;
	int fd = argc == 4 ? open(argv[3], O_RDONLY) : -1;

	if (fd < 0)
		return 2;
	while (mapped < atol(argv[1]) && map(fd, mapped) != MAP_FAILED)
		mapped++;
	printf("%ld\n", mapped);
	many(2, argv + 1);
	again(fd, argc, argv);
	return 0;
}
