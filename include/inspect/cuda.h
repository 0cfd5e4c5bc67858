/* SPDX-License-Identifier: BSD-2-Clause */
/* Functions of CUDA's driver API (libcuda.so.1) that are worth timing. */
#ifndef INSPECT_CUDA_H
#define INSPECT_CUDA_H

#include <inspect/base.h>

struct cuda_function {
	const char *name;              /* without the suffixes of its variants */
	const char *group;             /* "sync", "memory", "copy", "launch" */
	uint8_t bytes_arg, stream_arg; /* from 1 on; 0: none */
};

extern const struct cuda_function cuda_functions[];
extern const size_t n_cuda_functions;

/* The function that a symbol is a variant of ("cuMemAlloc_v2", "cuStreamSynchronize_ptsz"): its
 * index, -ENOENT: another one. */
int cuda_function_find(const char *symbol);

static inline bool cuda_function_launches(const struct cuda_function *f)
{
	return str_eq(f->group, "launch");
}

/* Whether it returns when the GPU is done: what it sleeps in between is a wait for the GPU. */
static inline bool cuda_function_waits(const struct cuda_function *f)
{
	return str_eq(f->group, "sync") ||
	       (str_eq(f->group, "copy") && !str_ends(f->name, "Async"));
}

/* Whether the CPU time in it is waiting too. Copies to the GPU take the bytes themselves. */
static inline bool cuda_function_spins(const struct cuda_function *f)
{
	return str_eq(f->group, "sync") || str_eq(f->name, "cuMemcpyDtoH");
}

#endif
