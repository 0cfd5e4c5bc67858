/* SPDX-License-Identifier: BSD-2-Clause */
/* cflags: -ldl */
/* Calls of libcuda.so.1, loaded after DELAY_MS: cuda_calls LIBRARY DELAY_MS. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

typedef int fn();

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
