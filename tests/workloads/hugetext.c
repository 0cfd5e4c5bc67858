/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * hugetext SECONDS mremap|mmap: moves the code of burn_remapped to anonymous memory at the same
 * addresses, as programs do to have it in huge pages, then burns there. Prints `cpu NS`.
 */
#include "cpu_time.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { PAGE = 4096 };

__attribute__((section("remapped_text"), aligned(PAGE), noinline, noclone)) uint64_t
burn_remapped(uint64_t x)
{
	KEEP_FRAME();
	for (int i = 0; i < 200000; i++)
		__asm__ volatile("" : "+r"(x));
	return x;
}

/* What follows in the last page stays the same, as whole pages are copied. */
extern char __start_remapped_text[], __stop_remapped_text[];

static void move(char *text, size_t size, int in_one_step)
{
	void *copy = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (copy == MAP_FAILED)
		exit(1);
	memcpy(copy, text, size);
	if (in_one_step) {
		if (mprotect(copy, size, PROT_READ | PROT_EXEC) ||
		    mremap(copy, size, size, MREMAP_MAYMOVE | MREMAP_FIXED, text) != text)
			exit(1);
		return;
	}
	if (mmap(text, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) !=
	    text)
		exit(1);
	memcpy(text, copy, size);
	if (mprotect(text, size, PROT_READ | PROT_EXEC))
		exit(1);
}

int main(int argc, char **argv)
{
	uint64_t end_ns = clock_ns(CLOCK_MONOTONIC) +
			  (uint64_t)((argc > 1 ? atof(argv[1]) : 1) * 1e9);
	size_t size = (size_t)(__stop_remapped_text - __start_remapped_text + PAGE - 1) / PAGE * PAGE;

	if (argc < 3)
		return 2;
	move(__start_remapped_text, size, !strcmp(argv[2], "mremap"));
	while (clock_ns(CLOCK_MONOTONIC) < end_ns)
		burn_remapped(1);
	printf("cpu %llu\n", (unsigned long long)rusage_cpu_ns(RUSAGE_SELF));
	return 0;
}
