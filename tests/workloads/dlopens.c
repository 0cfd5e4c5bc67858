/* SPDX-License-Identifier: BSD-2-Clause */
/* cflags: -fomit-frame-pointer -ldl */
/*
 * dlopens SECONDS LIBRARY FUNCTION: half of the time in own code, then loads a library that was not
 * there before and calls its crc32-like function FUNCTION(0, bytes, n) for the other half, below
 * in_library.
 */
#include "cpu_time.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

typedef unsigned long sum_fn(unsigned long start, const unsigned char *bytes, unsigned n);

static unsigned char bytes[1 << 16];
static volatile unsigned long sum;

NOINLINE void before_library(uint64_t end_ns)
{
	while (clock_ns(CLOCK_MONOTONIC) < end_ns)
		for (unsigned i = 0; i < sizeof(bytes); i++)
			sum += bytes[i] * i;
}

NOINLINE void in_library(sum_fn *call, uint64_t end_ns)
{
	while (clock_ns(CLOCK_MONOTONIC) < end_ns)
		sum += call(sum, bytes, sizeof(bytes));
}

int main(int argc, char **argv)
{
	uint64_t start_ns = clock_ns(CLOCK_MONOTONIC), half_ns;
	void *library;
	sum_fn *call;

	if (argc != 4) {
		fprintf(stderr, "usage: dlopens SECONDS LIBRARY FUNCTION\n");
		return 2;
	}
	half_ns = (uint64_t)(atof(argv[1]) * 5e8);
	before_library(start_ns + half_ns);
	library = dlopen(argv[2], RTLD_NOW);
	*(void **)&call = library ? dlsym(library, argv[3]) : NULL;
	if (!call)
		return 1;
	in_library(call, start_ns + 2 * half_ns);
	return 0;
}
