/* SPDX-License-Identifier: BSD-2-Clause */
#include <inspect/cuda.h>

#define SYNC CUDA_WAITS | CUDA_SPINS

/* cuda.h of CUDA 13: the newest variant of each; what is in none any more is of CUDA 12's. */
const struct cuda_function cuda_functions[] = {
	{"cuCtxSynchronize", "sync", SYNC, {0}},
	{"cuStreamSynchronize", "sync", SYNC, {.stream = 1}},
	{"cuEventSynchronize", "sync", SYNC, {0}},

	{"cuMemAlloc", "memory", CUDA_NARROW, {.bytes = 2}},
	{"cuMemAllocPitch", "memory", CUDA_NARROW, {.bytes = 3, .times = 4}},
	{"cuMemAllocAsync", "memory", 0, {.bytes = 2, .stream = 3}},
	{"cuMemAllocFromPoolAsync", "memory", 0, {.bytes = 2, .stream = 4}},
	{"cuMemAllocManaged", "memory", 0, {.bytes = 2}},
	{"cuMemAllocHost", "memory", CUDA_NARROW, {.bytes = 2}},
	{"cuMemHostAlloc", "memory", 0, {.bytes = 2}},
	{"cuMemHostRegister", "memory", 0, {.bytes = 2}},
	{"cuMemHostUnregister", "memory", 0, {0}},
	{"cuMemFree", "memory", 0, {0}},
	{"cuMemFreeAsync", "memory", 0, {.stream = 2}},
	{"cuMemFreeHost", "memory", 0, {0}},
	{"cuMemCreate", "memory", 0, {.bytes = 2}},
	{"cuMemRelease", "memory", 0, {0}},
	{"cuMemAddressReserve", "memory", 0, {.bytes = 2}},
	{"cuMemAddressFree", "memory", 0, {.bytes = 2}},
	{"cuMemMap", "memory", 0, {.bytes = 2}},
	{"cuMemMapArrayAsync", "memory", 0, {.stream = 3}},
	{"cuMemUnmap", "memory", 0, {.bytes = 2}},
	{"cuMemSetAccess", "memory", 0, {.bytes = 2}},
	{"cuMemExportToShareableHandle", "memory", 0, {0}},
	{"cuMemImportFromShareableHandle", "memory", 0, {0}},
	{"cuMemPoolCreate", "memory", 0, {0}},
	{"cuMemPoolDestroy", "memory", 0, {0}},
	{"cuMemPoolTrimTo", "memory", 0, {0}},
	{"cuMulticastCreate", "memory", 0, {0}},
	{"cuMulticastBindMem", "memory", 0, {.bytes = 5}},
	{"cuMulticastBindAddr", "memory", 0, {.bytes = 4}},
	{"cuMulticastUnbind", "memory", 0, {.bytes = 4}},
	{"cuArrayCreate", "memory", 0, {0}},
	{"cuArray3DCreate", "memory", 0, {0}},
	{"cuArrayDestroy", "memory", 0, {0}},
	{"cuMipmappedArrayCreate", "memory", 0, {0}},
	{"cuMipmappedArrayDestroy", "memory", 0, {0}},
	{"cuIpcOpenMemHandle", "memory", 0, {0}},
	{"cuIpcCloseMemHandle", "memory", 0, {0}},
	{"cuMemAdvise", "memory", 0, {.bytes = 2}},
	{"cuMemPrefetchAsync", "memory", 0, {.bytes = 2, .stream = 5}},
	{"cuMemPrefetchBatchAsync", "memory", 0, {.stream = 8}},
	{"cuMemDiscardBatchAsync", "memory", 0, {.stream = 5}},
	{"cuMemDiscardAndPrefetchBatchAsync", "memory", 0, {.stream = 8}},

	{"cuMemcpy", "copy", CUDA_WAITS, {.bytes = 3}},
	{"cuMemcpyAsync", "copy", 0, {.bytes = 3, .stream = 4}},
	{"cuMemcpyPeer", "copy", CUDA_WAITS, {.bytes = 5}},
	{"cuMemcpyPeerAsync", "copy", 0, {.bytes = 5, .stream = 6}},
	{"cuMemcpyHtoD", "copy", CUDA_WAITS | CUDA_NARROW, {.bytes = 3}},
	{"cuMemcpyHtoDAsync", "copy", CUDA_NARROW, {.bytes = 3, .stream = 4}},
	{"cuMemcpyDtoH", "copy", SYNC | CUDA_NARROW, {.bytes = 3}},
	{"cuMemcpyDtoHAsync", "copy", CUDA_NARROW, {.bytes = 3, .stream = 4}},
	{"cuMemcpyDtoD", "copy", CUDA_WAITS | CUDA_NARROW, {.bytes = 3}},
	{"cuMemcpyDtoDAsync", "copy", CUDA_NARROW, {.bytes = 3, .stream = 4}},
	{"cuMemcpyDtoA", "copy", CUDA_WAITS | CUDA_NARROW, {.bytes = 4}},
	{"cuMemcpyAtoD", "copy", CUDA_WAITS | CUDA_NARROW, {.bytes = 4}},
	{"cuMemcpyHtoA", "copy", CUDA_WAITS | CUDA_NARROW, {.bytes = 4}},
	{"cuMemcpyHtoAAsync", "copy", CUDA_NARROW, {.bytes = 4, .stream = 5}},
	{"cuMemcpyAtoH", "copy", SYNC | CUDA_NARROW, {.bytes = 4}},
	{"cuMemcpyAtoHAsync", "copy", CUDA_NARROW, {.bytes = 4, .stream = 5}},
	{"cuMemcpyAtoA", "copy", CUDA_WAITS | CUDA_NARROW, {.bytes = 5}},
	{"cuMemcpy2D", "copy", CUDA_WAITS, {.bytes = 1, .fields = 2, .offset = 112}},
	{"cuMemcpy2DUnaligned", "copy", CUDA_WAITS, {.bytes = 1, .fields = 2, .offset = 112}},
	{"cuMemcpy2DAsync", "copy", 0, {.bytes = 1, .fields = 2, .offset = 112, .stream = 2}},
	{"cuMemcpy3D", "copy", CUDA_WAITS, {.bytes = 1, .fields = 3, .offset = 176}},
	{"cuMemcpy3DAsync", "copy", 0, {.bytes = 1, .fields = 3, .offset = 176, .stream = 2}},
	{"cuMemcpy3DPeer", "copy", CUDA_WAITS, {.bytes = 1, .fields = 3, .offset = 176}},
	{"cuMemcpy3DPeerAsync", "copy", 0, {.bytes = 1, .fields = 3, .offset = 176, .stream = 2}},
	{"cuMemcpyBatchAsync", "copy", 0, {.stream = 8}},
	{"cuMemcpy3DBatchAsync", "copy", 0, {.stream = 4}},
	{"cuMemBatchDecompressAsync", "copy", 0, {.stream = 5}},
	{"cuMemsetD8", "copy", CUDA_NARROW, {.bytes = 3}},
	{"cuMemsetD8Async", "copy", 0, {.bytes = 3, .stream = 4}},
	{"cuMemsetD16", "copy", CUDA_NARROW, {.bytes = 3, .shift = 1}},
	{"cuMemsetD16Async", "copy", 0, {.bytes = 3, .shift = 1, .stream = 4}},
	{"cuMemsetD32", "copy", CUDA_NARROW, {.bytes = 3, .shift = 2}},
	{"cuMemsetD32Async", "copy", 0, {.bytes = 3, .shift = 2, .stream = 4}},
	{"cuMemsetD2D8", "copy", CUDA_NARROW, {.bytes = 4, .times = 5}},
	{"cuMemsetD2D8Async", "copy", 0, {.bytes = 4, .times = 5, .stream = 6}},
	{"cuMemsetD2D16", "copy", CUDA_NARROW, {.bytes = 4, .times = 5, .shift = 1}},
	{"cuMemsetD2D16Async", "copy", 0, {.bytes = 4, .times = 5, .shift = 1, .stream = 6}},
	{"cuMemsetD2D32", "copy", CUDA_NARROW, {.bytes = 4, .times = 5, .shift = 2}},
	{"cuMemsetD2D32Async", "copy", 0, {.bytes = 4, .times = 5, .shift = 2, .stream = 6}},

	{"cuLaunch", "launch", 0, {0}},
	{"cuLaunchGrid", "launch", 0, {0}},
	{"cuLaunchGridAsync", "launch", 0, {.stream = 4}},
	{"cuLaunchKernel", "launch", 0, {.stream = 9}},
	{"cuLaunchKernelEx", "launch", 0, {.stream = 1, .stream_off = 32}},
	{"cuLaunchCooperativeKernel", "launch", 0, {.stream = 9}},
	{"cuLaunchCooperativeKernelMultiDevice", "launch", 0, {0}},
	{"cuLaunchHostFunc", "launch", 0, {.stream = 1}},
	{"cuGraphLaunch", "launch", 0, {.stream = 2}},
	{"cuGraphUpload", "launch", 0, {.stream = 2}},
};
const size_t n_cuda_functions = ARRAY_SIZE(cuda_functions);
_Static_assert(ARRAY_SIZE(cuda_functions) <= CUDA_FUNCTIONS_MAX, "an index is in a bitmap");

/* First versions (a symbol without "_v2") whose arguments are others. */
static const struct {
	const char *name;
	struct cuda_arguments arguments;
} first_versions[] = {
	{"cuMemcpy2D", {.bytes = 1, .fields = 2, .offset = 84, .narrow = true}},
	{"cuMemcpy2DUnaligned", {.bytes = 1, .fields = 2, .offset = 84, .narrow = true}},
	{"cuMemcpy2DAsync", {.bytes = 1, .fields = 2, .offset = 84, .stream = 2, .narrow = true}},
	{"cuMemcpy3D", {.bytes = 1, .fields = 3, .offset = 128, .narrow = true}},
	{"cuMemcpy3DAsync", {.bytes = 1, .fields = 3, .offset = 128, .stream = 2, .narrow = true}},
	{"cuMemPrefetchAsync", {.bytes = 2, .stream = 4}},
	{"cuMemcpyBatchAsync", {.stream = 9}},
	{"cuMemcpy3DBatchAsync", {.stream = 5}},
};

/* Behind the name nothing but variants: of the API's version, of per-thread default streams. */
static bool is_suffix(const char *at, unsigned *ret_version)
{
	*ret_version = 1;
	while (*at) {
		if (str_starts(at, "_ptsz") || str_starts(at, "_ptds")) {
			at += strlen("_ptsz");
		} else if (str_starts(at, "_v") && at[2] >= '1' && at[2] <= '9') {
			*ret_version = (unsigned)(at[2] - '0');
			at += strlen("_v2");
		} else {
			return false;
		}
	}
	return true;
}

static struct cuda_arguments arguments_of(const struct cuda_function *f, unsigned version)
{
	struct cuda_arguments a = f->arguments;

	if (version > 1)
		return a;
	for (size_t i = 0; i < ARRAY_SIZE(first_versions); i++)
		if (str_eq(first_versions[i].name, f->name))
			return first_versions[i].arguments;
	a.narrow = f->flags & CUDA_NARROW;
	return a;
}

int cuda_function_find(const char *symbol, struct cuda_arguments *ret)
{
	unsigned version;

	for (size_t i = 0; i < n_cuda_functions; i++) {
		const struct cuda_function *f = &cuda_functions[i];

		if (!str_starts(symbol, f->name) || !is_suffix(symbol + strlen(f->name), &version))
			continue;
		if (ret)
			*ret = arguments_of(f, version);
		return (int)i;
	}
	return -ENOENT;
}
