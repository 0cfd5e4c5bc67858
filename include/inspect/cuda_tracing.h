/* SPDX-License-Identifier: BSD-2-Clause */
/* One measurement of CUDA's driver API: the library in the target's files, the loop, the table. */
#ifndef INSPECT_CUDA_TRACING_H
#define INSPECT_CUDA_TRACING_H

#include <inspect/capture.h>
#include <inspect/cuda.h>
#include <inspect/cuda_counts.h>

struct cuda_tracing_config {
	const struct target *target;
	const struct host *host;
	uint32_t by; /* enum cuda_by */
	bool launches;
	uint64_t duration_ns, delay_ns; /* 0: none */
	bool stdout_taken;              /* what CMD writes to stdout goes to stderr */
};

/* A library that was found. */
struct cuda_library {
	char *path;
	uint64_t device, inode;
	size_t n_functions, n_symbols; /* that were attached to */
	uint64_t attach_ns;
	pid_t pid;             /* that had mapped it while we watched, before it was attached to */
	uint64_t unwatched_ns; /* for so long at most; 0: it was attached to before */
	bool found[CUDA_FUNCTIONS_MAX]; /* by function's index: a variant of it was there */
};

struct cuda_tracing {
	struct cuda_table table;
	ARRAY(struct cuda_library) libraries;
	uint64_t pair_ns; /* what two probes cost a call, measured here; 0: not known */
	struct watched watched;
};

/* 0; on failure CMD has not run, or was ended. *ret must be released in both cases. */
int cuda_tracing_run(const struct cuda_tracing_config *c, note_list *notes,
		     struct cuda_tracing *ret, struct diag *d);
void cuda_tracing_release(struct cuda_tracing *t);

#endif
