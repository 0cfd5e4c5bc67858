/* SPDX-License-Identifier: BSD-2-Clause */
/* cflags: -shared -fPIC */
/* A libcuda.so.1 whose functions take a known time: those that wait sleep, but for one that spins,
 * the others return. */
#include <fcntl.h>
#include <poll.h>
#include <stddef.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

typedef int result;

static void sleep_us(long us)
{
	struct timespec t = {0, us * 1000};

	nanosleep(&t, NULL);
}

/* As the real one looks at memory that the GPU writes: without a name for anybody. */
static __attribute__((noinline)) void spin_us(long us)
{
	struct timespec start, now;

	clock_gettime(CLOCK_MONOTONIC, &start);
	do
		clock_gettime(CLOCK_MONOTONIC, &now);
	while ((now.tv_sec - start.tv_sec) * 1000000 + (now.tv_nsec - start.tv_nsec) / 1000 < us);
}

result cuEventSynchronize(void *event)
{
	return (void)event, spin_us(20000), 0;
}
result cuInit(unsigned flags)
{
	return (void)flags, 0;
}
result cuMemAlloc_v2(void **at, size_t n)
{
	return (void)at, n > 1UL << 40 ? 2 : (sleep_us(500), 0);
}
result cuMemFree_v2(void *at)
{
	return (void)at, 0;
}
result cuMemcpyHtoD_v2(void *to, const void *from, size_t n)
{
	return (void)to, (void)from, (void)n, sleep_us(1000), 0;
}
result cuMemcpyDtoHAsync_v2_ptsz(void *to, const void *from, size_t n, void *stream)
{
	return (void)to, (void)from, (void)n, (void)stream, 0;
}
/* Of the stream 1 it never returns. */
result cuStreamSynchronize_ptsz(void *stream)
{
	while (stream == (void *)1)
		pause();
	return sleep_us(5000), 0;
}
/* With FAKE_GPU, as the real one does when it blocks: by a poll of that device. */
result cuCtxSynchronize(void)
{
	const char *path = getenv("FAKE_GPU");
	struct pollfd p = {path ? open(path, O_RDWR) : -1, POLLIN, 0};

	if (p.fd < 0)
		return sleep_us(3000), 0;
	return poll(&p, 1, 30), close(p.fd), 0;
}
result cuLaunchKernel(void *f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
		      unsigned bz, unsigned shared, void *stream, void **params, void **extra)
{
	(void)f, (void)gx, (void)gy, (void)gz, (void)bx, (void)by, (void)bz, (void)shared;
	return (void)stream, (void)params, (void)extra, 0;
}
/* One of each way that arguments say bytes and stream in: all of it is the caller's. */
#define ANSWERS(name)                                                                              \
	result name(void)                                                                          \
	{                                                                                          \
		return 0;                                                                          \
	}
ANSWERS(cuMemAlloc)
ANSWERS(cuMemAllocPitch_v2)
ANSWERS(cuMemsetD16_v2)
ANSWERS(cuMemsetD2D32Async_ptsz)
ANSWERS(cuMemcpy2D)
ANSWERS(cuMemcpy2D_v2)
ANSWERS(cuMemcpy3DAsync_v2)
ANSWERS(cuMemcpyPeerAsync)
ANSWERS(cuMemcpyBatchAsync)
ANSWERS(cuMemcpyBatchAsync_v2_ptsz)
ANSWERS(cuMemPrefetchAsync)
ANSWERS(cuMemPrefetchAsync_v2)
ANSWERS(cuLaunchKernelEx)
result cuMemAllocator(void)
{
	return 0;
} /* no variant of cuMemAlloc */
