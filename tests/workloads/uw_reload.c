/* SPDX-License-Identifier: BSD-2-Clause */
/* cflags: -fomit-frame-pointer -ldl */
/*
 * uw_reload MS A B: for MS of CPU time one plug-in after the other is loaded, runs 10 ms and is
 * unloaded, each where the one before was. Prints how many were loaded, and how many of those at the
 * address of the one before.
 */
#include "cpu_time.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef void run_fn(uint64_t cpu_ns);

/* The address it ran at, or NULL. */
static NOINLINE void *turn(const char *path)
{
	void *plug = dlopen(path, RTLD_NOW);
	run_fn *run = NULL;

	if (plug)
		*(void **)&run = dlsym(plug, "plug_run");
	if (!run)
		return NULL;
	run(10000000);
	dlclose(plug);
	return (void *)run;
}

int main(int argc, char **argv)
{
	char zeros[16384]; /* what a rule of the other plug-in takes for a return address */
	unsigned loaded = 0, same = 0;
	void *before = NULL;
	uint64_t end_ns;

	if (argc != 4)
		return 2;
	memset(zeros, 0, sizeof(zeros));
	__asm__ volatile("" : : "r"(zeros) : "memory");
	end_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID) + strtoull(argv[1], NULL, 10) * 1000000;
	while (clock_ns(CLOCK_PROCESS_CPUTIME_ID) < end_ns) {
		void *now = turn(argv[2 + loaded++ % 2]);

		if (!now)
			return 1;
		same += now == before;
		before = now;
	}
	printf("%u %u\n", loaded, same);
	return zeros[loaded % sizeof(zeros)];
}
