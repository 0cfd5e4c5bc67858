/* SPDX-License-Identifier: BSD-2-Clause */
/* Functions of CUDA's driver API (libcuda.so.1) that are worth timing. */
#ifndef INSPECT_CUDA_H
#define INSPECT_CUDA_H

#include <inspect/base.h>

enum { CUDA_FUNCTIONS_MAX = 128 };

/* Where a call says how many bytes it is about, and its stream. Arguments count from 1; 0: none. */
struct cuda_arguments {
	uint8_t bytes, times; /* the product of both, in units of 1 << shift */
	uint8_t stream;
	uint8_t shift;
	uint8_t fields;     /* … of so many numbers in the struct that `bytes` points to, */
	uint8_t offset;     /* of which the first is there */
	uint8_t stream_off; /* not 0: it is there, in the struct that `stream` points to */
	bool narrow;        /* numbers of 32 bits */
};

enum cuda_flags {
	CUDA_WAITS = 1, /* it returns when the GPU is done: what it sleeps is a wait for the GPU */
	CUDA_SPINS = 2, /* … and so is its CPU time; copies to the GPU take the bytes themselves */
	CUDA_NARROW = 4, /* its first version had numbers of 32 bits */
};

struct cuda_function {
	const char *name;  /* without the suffixes of its variants */
	const char *group; /* "sync", "memory", "copy", "launch" */
	unsigned flags;    /* enum cuda_flags, or'ed */
	struct cuda_arguments arguments;
};

extern const struct cuda_function cuda_functions[];
extern const size_t n_cuda_functions;

/* The function that a symbol is a variant of ("cuMemAlloc_v2", "cuStreamSynchronize_ptsz"): its
 * index, -ENOENT: another one. *ret (NULL: not wanted): of that variant, whose arguments may be
 * others. */
int cuda_function_find(const char *symbol, struct cuda_arguments *ret);

static inline bool cuda_function_launches(const struct cuda_function *f)
{
	return str_eq(f->group, "launch");
}

#endif
