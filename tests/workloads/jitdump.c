/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * jitdump SECONDS FOLDER [again]: machine code in one place that is another function in each
 * quarter of the time, and says so in FOLDER/jit-PID.dump alone: jit_red; jit_green in its place; jit_green moved
 * elsewhere (CODE_MOVE); jit_blue in the old place, after the page was mapped anew (the records of
 * the mapping come later than the code's). Written at the end, as compilers do. Prints `NAME NS` of
 * CPU time for each. With `again` it then execs itself, and so writes to the same file anew.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { TURNS = 100000, PAGE = 4096 };

/* void code(uint64_t turns), with a frame */
#ifdef __x86_64__
static const unsigned char code[] = {
	0x55,             /* push %rbp */
	0x48, 0x89, 0xe5, /* mov %rsp,%rbp */
	0x48, 0xff, 0xcf, /* 1: dec %rdi */
	0x75, 0xfb,       /* jne 1b */
	0x5d, 0xc3,       /* pop %rbp; ret */
};
#else
static const unsigned char code[1];
#endif

static uint64_t clock_ns(clockid_t id)
{
	struct timespec t;

	clock_gettime(id, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static void put(FILE *dump, const void *v, size_t n)
{
	if (fwrite(v, 1, n, dump) != n)
		exit(1);
}

static FILE *dump_open(const char *folder)
{
	struct {
		uint32_t magic, version, total_size, elf_mach, pad, pid;
		uint64_t timestamp, flags;
	} header = {0x4a695444, 1, 40, 62, 0, (uint32_t)getpid(), clock_ns(CLOCK_MONOTONIC), 0};
	char path[512];
	FILE *dump;

	snprintf(path, sizeof(path), "%s/jit-%d.dump", folder, (int)getpid());
	dump = fopen(path, "w+");
	if (!dump || setvbuf(dump, NULL, _IOFBF, 1 << 20))
		exit(1);
	if (mmap(NULL, PAGE, PROT_READ | PROT_EXEC, MAP_PRIVATE, fileno(dump), 0) == MAP_FAILED)
		exit(1);
	put(dump, &header, sizeof(header));
	return dump;
}

static void dump_load(FILE *dump, const void *at, const char *name, uint64_t index)
{
	struct {
		uint32_t id, total_size;
		uint64_t timestamp;
		uint32_t pid, tid;
		uint64_t vma, addr, size, index;
	} load = {0,
		  (uint32_t)(sizeof(load) + strlen(name) + 1 + sizeof(code)),
		  clock_ns(CLOCK_MONOTONIC),
		  (uint32_t)getpid(),
		  (uint32_t)getpid(),
		  (uintptr_t)at,
		  (uintptr_t)at,
		  sizeof(code),
		  index};

	put(dump, &load, sizeof(load));
	put(dump, name, strlen(name) + 1);
	put(dump, code, sizeof(code));
}

static void dump_move(FILE *dump, const void *from, const void *to, uint64_t index)
{
	struct {
		uint32_t id, total_size;
		uint64_t timestamp;
		uint32_t pid, tid;
		uint64_t vma, from, to, size, index;
	} move = {1,
		  sizeof(move),
		  clock_ns(CLOCK_MONOTONIC),
		  (uint32_t)getpid(),
		  (uint32_t)getpid(),
		  (uintptr_t)to,
		  (uintptr_t)from,
		  (uintptr_t)to,
		  sizeof(code),
		  index};

	put(dump, &move, sizeof(move));
}

static void *map_code(void *at)
{
	void *page = mmap(at, PAGE, PROT_READ | PROT_WRITE | PROT_EXEC,
			  MAP_PRIVATE | MAP_ANONYMOUS | (at ? MAP_FIXED : 0), -1, 0);

	if (page == MAP_FAILED)
		exit(77);
	memcpy(page, code, sizeof(code));
	return page;
}

__attribute__((noinline, noclone)) uint64_t call_jit(void *page, uint64_t duration_ns)
{
	uint64_t end_ns = clock_ns(CLOCK_MONOTONIC) + duration_ns;
	uint64_t before_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	void (*jit)(uint64_t);

	memcpy(&jit, &page, sizeof(jit));
	while (clock_ns(CLOCK_MONOTONIC) < end_ns)
		jit(TURNS);
	return clock_ns(CLOCK_THREAD_CPUTIME_ID) - before_ns;
}

int main(int argc, char **argv)
{
	uint64_t quarter_ns = (uint64_t)((argc > 1 ? atof(argv[1]) : 1) / 4 * 1e9);
	uint64_t red_ns, green_ns, blue_ns;
	FILE *dump;
	char *page, *other;

	if (argc < 3 || sizeof(code) == 1)
		return 77;
	dump = dump_open(argv[2]);
	page = map_code(NULL);
	dump_load(dump, page, "jit_red", 1);
	red_ns = call_jit(page, quarter_ns);
	dump_load(dump, page, "jit_green", 2);
	green_ns = call_jit(page, quarter_ns);
	other = map_code(NULL);
	dump_move(dump, page, other, 2);
	green_ns += call_jit(other, quarter_ns);
	dump_load(dump, page, "jit_blue", 3);
	map_code(page);
	blue_ns = call_jit(page, quarter_ns);
	printf("jit_red %llu\njit_green %llu\njit_blue %llu\n", (unsigned long long)red_ns,
	       (unsigned long long)green_ns, (unsigned long long)blue_ns);
	if (fclose(dump))
		return 1;
	if (argc > 3) {
		fflush(stdout);
		execl("/proc/self/exe", argv[0], argv[1], argv[2], NULL);
	}
	return argc > 3;
}
