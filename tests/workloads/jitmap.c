/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * jitmap SECONDS [NAME|- [SECONDS …]]: machine code in an anonymous page, which keeps a frame
 * pointer, burns CPU and calls the C function called_from_jit, which burns too. With NAME it has
 * that name in /tmp/perf-PID.map, written after 0.1 s, which stays. Prints `jit NS` (callees included) and `callback
 * NS`; then execs itself with the rest of its arguments: all these have the page at one address.
 */
#include "cpu_time.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { TURNS = 100000, PAGE_VA = 0x10000000 };

static uint64_t callback_ns;

NOINLINE void called_from_jit(void)
{
	uint64_t start_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	volatile uint64_t x = 1;

	for (int i = 0; i < TURNS / 4; i++)
		x = x * 0x343fd + 0x269ec3;
	callback_ns += clock_ns(CLOCK_THREAD_CPUTIME_ID) - start_ns;
}

#ifdef __x86_64__
/* void code(uint64_t turns, void (*callback)(void)) */
static const unsigned char code[] = {
	0x55,                               /* push %rbp */
	0x48, 0x89, 0xe5,                   /* mov %rsp,%rbp */
	0x53,                               /* push %rbx */
	0x48, 0x83, 0xec, 0x08,             /* sub $8,%rsp */
	0x48, 0x89, 0xf3,                   /* mov %rsi,%rbx */
	0x48, 0xff, 0xcf,                   /* 1: dec %rdi */
	0x75, 0xfb,                         /* jne 1b */
	0xff, 0xd3,                         /* call *%rbx */
	0x48, 0x83, 0xc4, 0x08,             /* add $8,%rsp */
	0x5b, 0x5d, 0xc3,                   /* pop %rbx; pop %rbp; ret */
};
#else
static const unsigned char code[1];
#endif

static void write_map(const void *start, const char *name)
{
	char path[64];
	FILE *map;

	snprintf(path, sizeof(path), "/tmp/perf-%d.map", (int)getpid());
	map = fopen(path, "w");
	if (!map)
		exit(1);
	fprintf(map, "%llx %zx %s\n", (unsigned long long)(uintptr_t)start, sizeof(code), name);
	fclose(map);
}

NOINLINE void call_jit(void (*jit)(uint64_t, void (*)(void)), uint64_t end_ns)
{
	while (clock_ns(CLOCK_MONOTONIC) < end_ns)
		jit(TURNS, called_from_jit);
}

int main(int argc, char **argv)
{
	uint64_t end_ns = clock_ns(CLOCK_MONOTONIC) +
			  (uint64_t)((argc > 1 ? atof(argv[1]) : 1) * 1e9);
	void (*jit)(uint64_t, void (*)(void));
	void *page = mmap((void *)PAGE_VA, 4096, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (page == MAP_FAILED || sizeof(code) == 1)
		return 77;
	memcpy(page, code, sizeof(code));
	if (mprotect(page, 4096, PROT_READ | PROT_EXEC))
		return 77;
	memcpy(&jit, &page, sizeof(jit));
	if (argc > 2 && strcmp(argv[2], "-")) {
		call_jit(jit, clock_ns(CLOCK_MONOTONIC) + 100000000);
		write_map(page, argv[2]);
	}
	call_jit(jit, end_ns);
	printf("jit %llu\ncallback %llu\n", (unsigned long long)clock_ns(CLOCK_THREAD_CPUTIME_ID),
	       (unsigned long long)callback_ns);
	if (argc > 3) {
		fflush(stdout);
		argv[2] = argv[0];
		execv("/proc/self/exe", argv + 2);
	}
	return 0;
}
