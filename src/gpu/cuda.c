/* SPDX-License-Identifier: BSD-2-Clause */
#include <inspect/cuda.h>

/* cuda.h of CUDA 12, The Driver API. */
const struct cuda_function cuda_functions[] = {
	{"cuCtxSynchronize", "sync", 0, 0},
	{"cuStreamSynchronize", "sync", 0, 1},
	{"cuEventSynchronize", "sync", 0, 0},
	{"cuMemAlloc", "memory", 2, 0},
	{"cuMemAllocPitch", "memory", 0, 0},
	{"cuMemAllocAsync", "memory", 2, 3},
	{"cuMemAllocFromPoolAsync", "memory", 2, 4},
	{"cuMemAllocManaged", "memory", 2, 0},
	{"cuMemAllocHost", "memory", 2, 0},
	{"cuMemHostAlloc", "memory", 2, 0},
	{"cuMemHostRegister", "memory", 2, 0},
	{"cuMemHostUnregister", "memory", 0, 0},
	{"cuMemCreate", "memory", 2, 0},
	{"cuMemRelease", "memory", 0, 0},
	{"cuMemMap", "memory", 2, 0},
	{"cuMemUnmap", "memory", 2, 0},
	{"cuMemFree", "memory", 0, 0},
	{"cuMemFreeAsync", "memory", 0, 2},
	{"cuMemFreeHost", "memory", 0, 0},
	{"cuMemcpy", "copy", 3, 0},
	{"cuMemcpyAsync", "copy", 3, 4},
	{"cuMemcpyHtoD", "copy", 3, 0},
	{"cuMemcpyHtoDAsync", "copy", 3, 4},
	{"cuMemcpyDtoH", "copy", 3, 0},
	{"cuMemcpyDtoHAsync", "copy", 3, 4},
	{"cuMemcpyDtoD", "copy", 3, 0},
	{"cuMemcpyDtoDAsync", "copy", 3, 4},
	{"cuMemcpyPeerAsync", "copy", 5, 6},
	{"cuMemcpy2DAsync", "copy", 0, 2},
	{"cuMemcpy3DAsync", "copy", 0, 2},
	{"cuMemsetD8Async", "copy", 3, 4},
	{"cuMemsetD32Async", "copy", 0, 4},
	{"cuLaunchKernel", "launch", 0, 9},
	{"cuLaunchKernelEx", "launch", 0, 0},
	{"cuLaunchCooperativeKernel", "launch", 0, 9},
	{"cuLaunchHostFunc", "launch", 0, 1},
	{"cuGraphLaunch", "launch", 0, 2},
};
const size_t n_cuda_functions = ARRAY_SIZE(cuda_functions);

/* Behind the name nothing but variants: of the API's version, of per-thread default streams. */
static bool is_suffix(const char *at)
{
	while (*at) {
		if (str_starts(at, "_ptsz") || str_starts(at, "_ptds"))
			at += strlen("_ptsz");
		else if (str_starts(at, "_v") && at[2] >= '1' && at[2] <= '9')
			at += strlen("_v2");
		else
			return false;
	}
	return true;
}

int cuda_function_find(const char *symbol)
{
	for (size_t i = 0; i < n_cuda_functions; i++)
		if (str_starts(symbol, cuda_functions[i].name) &&
		    is_suffix(symbol + strlen(cuda_functions[i].name)))
			return (int)i;
	return -ENOENT;
}
