/* SPDX-License-Identifier: BSD-2-Clause */
/* Which sampler: the one in the kernel where it can be had and is of use, else perf's own. */
#ifndef CAPTURE_SAMPLING_H
#define CAPTURE_SAMPLING_H

#include "waiting.h"

struct unwind_tables;

struct sampling {
	struct source *source;
	struct unwind_tables *tables; /* that rows for BPF lie in; NULL: perf's sampler */
	bool stack_copies;            /* some samples carry registers and a stack copy */
	bool waits;                   /* the source is that of waiting.h */
};

/* An unwind_rows_fn over struct unwind_tables. */
struct dso;
struct unwind_rows;
int unwind_rows_of_tables(void *ctx, const struct dso *d, bool quick, struct unwind_rows *ret);

/*
 * `automatic`: stacks by --call-graph auto; no_cache: unwind tables are not kept on disk. Which
 * sampler it is goes to *notes, and for perf's what stands in the way of the other. 0 or -errno,
 * with the diag of the last one tried.
 */
int sampling_new(const struct sampler_config *config, bool automatic, bool no_cache,
		 const struct host *host, note_list *notes, struct sampling *ret, struct diag *d);
/* Waits in place of samples. */
int sampling_waits(const struct sampler_config *config, const struct waits_config *waits,
		   bool no_cache, const struct host *host, note_list *notes,
		   struct waits *ret_waits, struct sampling *ret, struct diag *d);
void sampling_release(struct sampling *s);

/* After the last read: losses that no record has told, and what else should be known. */
int sampling_untold_losses(const struct sampling *s, record_fn *emit, void *ctx);
int sampling_final_notes(const struct sampling *s, note_list *notes);

#endif
