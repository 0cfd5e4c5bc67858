/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * gen_perf_script [SAMPLES [SEED]]: perf-script text on stdout, the same for the same arguments.
 * 210000 samples (the default) are about 500 MB with 160,000 different stacks of 30 to 80 frames:
 * a few hundred trunks, as the call paths of a server, that branch in their last frames.
 * Build: cc -O2 -o gen_perf_script gen_perf_script.c
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { FUNCTIONS = 5000, SITES = 4, TRUNKS = 300, FRAMES_MAX = 80 };

/* As many stacks to draw from as give 160,000 different ones in 210,000 draws. */
#define POOL_PER_SAMPLE 1.74

static uint64_t next(uint64_t *state)
{
	uint64_t x = *state += 0x9e3779b97f4a7c15ULL;

	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ULL;
	x = (x ^ x >> 27) * 0x94d049bb133111ebULL;
	return x ^ x >> 31;
}

static const char *const modules[] = {
	"/lib/libc.so.6", "/app/server", "/app/server", "/app/libcore.so", "[kernel]", "/app/libh.so",
};

static const char *const forms[] = {
	"work_%u", "get_%u", "lru<int, long>::at%u", "find%u(K const&)", "parse%u", "do%u",
};

/* The text of each call site, made once: printing is then copying. */
static char lines[FUNCTIONS * SITES][160];

static void make_lines(uint64_t seed)
{
	for (unsigned f = 0; f < FUNCTIONS; f++) {
		uint64_t state = seed + f, va = 0x7f0000000000 + (uint64_t)f * 4096;
		unsigned module = next(&state) % 6, form = next(&state) % 6;
		char name[100];

		snprintf(name, sizeof(name), forms[form], f);
		for (unsigned s = 0; s < SITES; s++) {
			unsigned off = (unsigned)(next(&state) % 2048);

			snprintf(lines[f * SITES + s], sizeof(lines[0]), "\t%16" PRIx64 " %s+0x%x (%s)\n",
				 va + off, name, off, modules[module]);
		}
	}
}

static unsigned pick_site(uint64_t *state)
{
	return (unsigned)(next(state) % (FUNCTIONS * SITES));
}

/* Stack `index` of the pool, root first; its length. */
static unsigned make_stack(uint64_t seed, uint64_t index, unsigned *sites)
{
	uint64_t own = seed ^ index * 0xd1342543de82ef95ULL, trunk;
	unsigned n = 0, trunk_n, branch_n;

	trunk = seed + 7919 * (next(&own) % TRUNKS);
	trunk_n = 28 + (unsigned)(next(&trunk) % 42 * (next(&trunk) % 42) / 42);
	branch_n = 2 + (unsigned)(next(&own) % 9);
	while (n < trunk_n)
		sites[n++] = pick_site(&trunk);
	while (n < trunk_n + branch_n)
		sites[n++] = pick_site(&own);
	return n;
}

int main(int argc, char **argv)
{
	uint64_t samples = argc > 1 ? strtoull(argv[1], NULL, 10) : 210000;
	uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 10) : 1, state = seed;
	uint64_t pool = (uint64_t)((double)samples * POOL_PER_SAMPLE) + 1;
	static char buffer[1 << 20];

	setvbuf(stdout, buffer, _IOFBF, sizeof(buffer));
	make_lines(seed);
	for (uint64_t i = 0; i < samples; i++) {
		unsigned sites[FRAMES_MAX], n = make_stack(seed, next(&state) % pool, sites);
		unsigned worker = (unsigned)(next(&state) % 16);

		printf("worker %u  4711/%u [%03u] %" PRIu64 ".%06" PRIu64 ":   10101010 cpu-clock:u: \n",
		       worker, 4712 + worker, worker % 4, 1000 + i / 99, i % 99 * 10101);
		while (n)
			fputs(lines[sites[--n]], stdout);
		putchar('\n');
	}
	return fflush(stdout) || ferror(stdout);
}
