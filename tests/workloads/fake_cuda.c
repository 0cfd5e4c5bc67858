/* SPDX-License-Identifier: BSD-2-Clause */
/* cflags: -shared -fPIC */
/* A libcuda.so.1 whose functions take a known time: those that wait sleep, the others return. */
#include <stddef.h>
#include <time.h>

typedef int result;

static void sleep_us(long us)
{
	struct timespec t = {0, us * 1000};

	nanosleep(&t, NULL);
}

result cuInit(unsigned flags) { return (void)flags, 0; }
result cuMemAlloc_v2(void **at, size_t n) { return (void)at, n > 1UL << 40 ? 2 : (sleep_us(500), 0); }
result cuMemFree_v2(void *at) { return (void)at, 0; }
result cuMemcpyHtoD_v2(void *to, const void *from, size_t n) { return (void)to, (void)from, (void)n, sleep_us(1000), 0; }
result cuMemcpyDtoHAsync_v2_ptsz(void *to, const void *from, size_t n, void *stream)
{
	return (void)to, (void)from, (void)n, (void)stream, 0;
}
result cuStreamSynchronize_ptsz(void *stream) { return (void)stream, sleep_us(5000), 0; }
result cuCtxSynchronize(void) { return sleep_us(3000), 0; }
result cuLaunchKernel(void *f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
		      unsigned shared, void *stream, void **params, void **extra)
{
	(void)f, (void)gx, (void)gy, (void)gz, (void)bx, (void)by, (void)bz, (void)shared;
	return (void)stream, (void)params, (void)extra, 0;
}
result cuMemAllocator(void) { return 0; } /* no variant of cuMemAlloc */
