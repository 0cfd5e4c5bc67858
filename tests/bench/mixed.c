/* SPDX-License-Identifier: BSD-2-Clause */
/* cflags: -lz -lzstd */
/*
 * mixed [CPU-SECONDS [THREADS]]: what a server's profile looks like. Requests go down one of 200 call
 * paths, 20 to 60 calls deep, through 256 functions; the last calls differ each time. At the end
 * the C library sorts, allocates and formats, zlib and zstd compress, or the kernel reads zeros.
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

enum { PATHS = 200, DEPTH_MIN = 20, DEPTH_SPREAD = 40, BRANCH = 3, DATA_BYTES = 4096 };

struct request {
	uint64_t path;   /* decides the calls of the trunk */
	uint64_t branch; /* decides the last ones */
	uint64_t random;
	unsigned char *data, *packed;
	int zeros_fd;
};

typedef uint64_t call_fn(struct request *r, unsigned depth);

static uint64_t next(uint64_t *state)
{
	uint64_t x = *state += 0x9e3779b97f4a7c15ULL;

	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ULL;
	x = (x ^ x >> 27) * 0x94d049bb133111ebULL;
	return x ^ x >> 31;
}

static __attribute__((noinline)) uint64_t spin(uint64_t x, unsigned rounds)
{
	while (rounds--)
		x = x * 6364136223846793005ULL + 1442695040888963407ULL;
	return x;
}

static int by_value(const void *a, const void *b)
{
	const unsigned char *x = a, *y = b;

	return *x - *y;
}

static __attribute__((noinline)) uint64_t work(struct request *r)
{
	unsigned char *data = r->data, *packed = r->packed;
	uLongf packed_bytes = DATA_BYTES * 2;
	char text[64];
	void *p;

	switch (next(&r->random) % 8) {
	case 0:
		qsort(data, 512, 1, by_value);
		return data[0];
	case 1:
		compress2(packed, &packed_bytes, data, DATA_BYTES, 1);
		return packed_bytes;
	case 2:
		return ZSTD_compress(packed, DATA_BYTES * 2, data, DATA_BYTES, 1);
	case 3:
		p = malloc(1 + next(&r->random) % 100000);
		memset(p, 1, 1);
		free(p);
		return 1;
	case 4:
		snprintf(text, sizeof(text), "%g %lu", (double)r->random / 3, r->random);
		return (uint64_t)text[0];
	case 5:
		return (uint64_t)read(r->zeros_fd, data, DATA_BYTES);
	default:
		return spin(r->random, 5000);
	}
}

static call_fn *const calls[256];

static __attribute__((noinline)) uint64_t go(struct request *r, unsigned depth)
{
	uint64_t *chooser = depth > BRANCH ? &r->path : &r->branch;

	if (!depth)
		return work(r);
	return calls[next(chooser) % 256](r, depth - 1) + 1;
}

#define CALL(n) \
	static __attribute__((noinline)) uint64_t step_##n(struct request *r, unsigned depth) \
	{ \
		return spin(go(r, depth), 20 + 0x##n); \
	}
#define ROW(F, h) \
	F(h##0) F(h##1) F(h##2) F(h##3) F(h##4) F(h##5) F(h##6) F(h##7) \
	F(h##8) F(h##9) F(h##a) F(h##b) F(h##c) F(h##d) F(h##e) F(h##f)
#define ALL(F) \
	ROW(F, 0) ROW(F, 1) ROW(F, 2) ROW(F, 3) ROW(F, 4) ROW(F, 5) ROW(F, 6) ROW(F, 7) \
	ROW(F, 8) ROW(F, 9) ROW(F, a) ROW(F, b) ROW(F, c) ROW(F, d) ROW(F, e) ROW(F, f)
#define NAME(n) step_##n,

ALL(CALL)
static call_fn *const calls[256] = {ALL(NAME)};

static double cpu_seconds;

static double used(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void *serve(void *seed)
{
	struct request r = {.random = (uintptr_t)seed, .zeros_fd = open("/dev/zero", O_RDONLY)};

	r.data = calloc(1, DATA_BYTES);
	r.packed = malloc(DATA_BYTES * 2);
	for (unsigned i = 0; i < DATA_BYTES; i++)
		r.data[i] = next(&r.random) % 16;
	while (used() < cpu_seconds) {
		uint64_t path = next(&r.random) % PATHS;

		r.path = path;
		r.branch = next(&r.random);
		go(&r, DEPTH_MIN + (unsigned)(next(&path) % DEPTH_SPREAD));
	}
	return NULL;
}

int main(int argc, char **argv)
{
	unsigned threads = argc > 2 ? (unsigned)atoi(argv[2]) : 2;
	pthread_t ids[64];

	cpu_seconds = argc > 1 ? atof(argv[1]) : 20;
	for (unsigned i = 0; i < threads && i < 64; i++)
		pthread_create(&ids[i], NULL, serve, (void *)(uintptr_t)(i + 1));
	for (unsigned i = 0; i < threads && i < 64; i++)
		pthread_join(ids[i], NULL);
	return 0;
}
