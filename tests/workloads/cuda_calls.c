/* SPDX-License-Identifier: BSD-2-Clause */
/* cflags: -ldl -Wl,-rpath,'$ORIGIN/cuda' */
/*
 * Calls of libcuda.so.1, loaded after DELAY_MS: cuda_calls LIBRARY DELAY_MS. With a third argument,
 * FIFO, it waits for a line there and then works, spins and sleeps: it prints what CPU time went
 * into work, what into cuEventSynchronize, and how long it was in cuStreamSynchronize, in ns. With a
 * fourth, two threads wait for a stream for good. With "layouts" for DELAY_MS it makes one call of each
 * way that arguments say bytes and stream in.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

typedef int fn();

static uint64_t now_ns(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

__attribute__((noinline)) static uint64_t work(void)
{
	uint64_t start_ns = now_ns(CLOCK_THREAD_CPUTIME_ID), ns;

	do
		ns = now_ns(CLOCK_THREAD_CPUTIME_ID) - start_ns;
	while (ns < 10000000);
	return ns;
}

__attribute__((noinline)) static void wait_for_gpu(fn *spins, fn *sleeps, uint64_t sums[2])
{
	uint64_t start_ns = now_ns(CLOCK_THREAD_CPUTIME_ID);

	spins(NULL);
	sums[0] += now_ns(CLOCK_THREAD_CPUTIME_ID) - start_ns;
	start_ns = now_ns(CLOCK_MONOTONIC);
	sleeps(NULL);
	sums[1] += now_ns(CLOCK_MONOTONIC) - start_ns;
}

static void *wait_for_good(void *lib)
{
	((fn *)dlsym(lib, "cuStreamSynchronize_ptsz"))((void *)1);
	return NULL;
}

static int work_and_wait(void *lib, const char *fifo, int for_good)
{
	uint64_t worked_ns = 0, sums[2] = {0};
	int gate = open(fifo, O_RDONLY);
	char line[16];

	if (gate < 0 || read(gate, line, sizeof(line)) <= 0)
		return 1;
	if (for_good) {
		pthread_t threads[2];

		pthread_create(&threads[0], NULL, wait_for_good, lib);
		pthread_create(&threads[1], NULL, wait_for_good, lib);
		pthread_join(threads[0], NULL);
	}
	for (int i = 0; i < 25; i++) {
		worked_ns += work();
		wait_for_gpu((fn *)dlsym(lib, "cuEventSynchronize"),
			     (fn *)dlsym(lib, "cuStreamSynchronize_ptsz"), sums);
	}
	printf("%llu %llu %llu\n", (unsigned long long)worked_ns, (unsigned long long)sums[0],
	       (unsigned long long)sums[1]);
	return 0;
}

/* What does not count has bits that would be seen. */
static int call_layouts(void *lib)
{
	const uint64_t no = 0x7777777777777777;
	uint64_t copy[25], launch[8];
	uint32_t old_copy[35];

	for (int i = 0; i < 25; i++)
		copy[i] = no;
	for (int i = 0; i < 35; i++)
		old_copy[i] = 0x77777777;
	for (int i = 0; i < 8; i++)
		launch[i] = no;
	launch[4] = 0x13; /* CUlaunchConfig.hStream, at 32 */
#define CALL(name, ...) ((fn *)dlsym(lib, name))(__VA_ARGS__)
	CALL("cuMemAlloc", no, no << 32 | 4096);
	CALL("cuMemAllocPitch_v2", no, no, (uint64_t)100, (uint64_t)30, 16);
	CALL("cuMemsetD16_v2", no, 7, (uint64_t)1000);
	CALL("cuMemsetD2D32Async_ptsz", no, no, 7, (uint64_t)100, (uint64_t)20, (uint64_t)0x11);
	old_copy[21] = 50; /* CUDA_MEMCPY2D_v1: WidthInBytes at 84, Height */
	old_copy[22] = 3;
	CALL("cuMemcpy2D", old_copy);
	copy[14] = 500; /* CUDA_MEMCPY2D: at 112 */
	copy[15] = 30;
	CALL("cuMemcpy2D_v2", copy);
	copy[22] = 100; /* CUDA_MEMCPY3D: at 176, and Depth */
	copy[23] = 20;
	copy[24] = 7;
	CALL("cuMemcpy3DAsync_v2", copy, (uint64_t)0x12);
	CALL("cuMemcpyPeerAsync", no, no, no, no, (uint64_t)777, (uint64_t)0x14);
	CALL("cuMemcpyBatchAsync", no, no, no, no, no, no, no, no, (uint64_t)0x15);
	CALL("cuMemcpyBatchAsync_v2_ptsz", no, no, no, no, no, no, no, (uint64_t)0x16, no);
	CALL("cuMemPrefetchAsync", no, (uint64_t)300, 0, (uint64_t)0x17, no);
	CALL("cuMemPrefetchAsync_v2", no, (uint64_t)400, no, 0, (uint64_t)0x18);
	CALL("cuLaunchKernelEx", launch, no, no, no);
	return 0;
}

int main(int argc, char **argv)
{
	void *lib, *at;
	fn *alloc, *release, *copy, *copy_async, *sync, *sync_all, *launch, *other;

	usleep(argc > 2 ? (unsigned)atoi(argv[2]) * 1000 : 0);
	lib = dlopen(argv[1], RTLD_NOW);
	if (!lib) {
		fprintf(stderr, "%s\n", dlerror());
		return 1;
	}
	if (argc > 2 && !strcmp(argv[2], "layouts"))
		return call_layouts(lib);
	if (argc > 3)
		return work_and_wait(lib, argv[3], argc > 4);
	alloc = (fn *)dlsym(lib, "cuMemAlloc_v2");
	release = (fn *)dlsym(lib, "cuMemFree_v2");
	copy = (fn *)dlsym(lib, "cuMemcpyHtoD_v2");
	copy_async = (fn *)dlsym(lib, "cuMemcpyDtoHAsync_v2_ptsz");
	sync = (fn *)dlsym(lib, "cuStreamSynchronize_ptsz");
	sync_all = (fn *)dlsym(lib, "cuCtxSynchronize");
	launch = (fn *)dlsym(lib, "cuLaunchKernel");
	other = (fn *)dlsym(lib, "cuMemAllocator");
	/* A library that is loaded late is met a moment later. */
	usleep(argc > 2 && atoi(argv[2]) ? 400000 : 0);
	for (int i = 0; i < 20; i++) {
		alloc(&at, (size_t)4096);
		copy(at, &at, (size_t)1000);
		launch(at, 1, 1, 1, 1, 1, 1, 0, (void *)0x57, NULL, NULL);
		copy_async(&at, at, (size_t)100, (void *)0x57);
		sync((void *)0x57);
		release(at);
		other();
	}
	alloc(&at, (size_t)1 << 41);
	sync_all();
	return 0;
}
