/* SPDX-License-Identifier: BSD-2-Clause */
/* CUDA's driver API timed (bpf/cuda.bpf.c): a row with a histogram for each function. */
#ifndef INSPECT_CUDA_COUNTS_H
#define INSPECT_CUDA_COUNTS_H

#include <cuda.abi.h>
#include <inspect/diag.h>
#include <inspect/histogram.h>
#include <inspect/host.h>
#include <inspect/note_list.h>
#include <inspect/probe_target.h>

/* A function in a file. */
struct cuda_point {
	uint64_t file_off;
	uint64_t cookie; /* enum cuda_cookie */
};

struct cuda_count {
	struct cuda_key key;
	uint64_t calls, errors, bytes;
	uint64_t in_flight, open_ns, oldest_ns;
	uint64_t unreturned, unreturned_ns; /* their threads ended in them */
	uint32_t last_error;
	struct histogram h; /* latency */
};

struct cuda_table {
	ARRAY(struct cuda_count) rows;
	uint64_t elapsed_ns;
	uint64_t lost;               /* calls without room for what is kept of them */
	uint64_t ends_without_begin; /* calls of before the start */
};
static inline void cuda_table_release(struct cuda_table *t)
{
	array_release(&t->rows);
}

struct cuda_counts;

/* Loads; nothing is attached but what follows the target. On failure the diag explains. */
int cuda_counts_new(const struct probe_target *target, uint32_t by, const struct host *h,
		    struct cuda_counts **ret, struct diag *d);
/* Attaches to functions of an open file, for all processes that map it; the path is for the diag.
 * 0 or -errno, explained. */
int cuda_counts_attach(struct cuda_counts *c, int fd, const char *path,
		       const struct cuda_point *points, size_t n, struct diag *d);
/* What the two probes of a function cost each call here, measured on a function of our own. 0 or
 * -errno: not known. */
int cuda_counts_cost(struct cuda_counts *c, uint64_t *ret_ns);
int cuda_counts_start(struct cuda_counts *c); /* 0 or -errno */
void cuda_counts_stop(struct cuda_counts *c);
void cuda_counts_free(struct cuda_counts *c);
bool cuda_counts_alive(const struct cuda_counts *c);
int cuda_counts_read(struct cuda_counts *c, struct cuda_table *ret);
int cuda_counts_notes(const struct cuda_counts *c, note_list *notes);

#endif
