/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Waits as a source of samples: each row that the program has added up becomes one of the event
 * "offcpu", whose weight is ns, and whose leaf frame is what was waited for. Those frames are
 * addresses that no kernel code has, named by KSYMBOL records, so that perf shows them too.
 */
#ifndef CAPTURE_WAITING_H
#define CAPTURE_WAITING_H

#include <inspect/capture.h>
#include <inspect/waits.h>

struct waiting_config {
	const struct probe_target *target;
	bool no_cache; /* of unwind tables, on disk */
	bool with_stacks, user_only, kernel_only, kthreads;
	unsigned max_stack, ring_pages;
	uint64_t min_wait_ns, max_wait_ns;
	bool chains; /* who woke whom, above what is waited for */
	bool loops;
	struct offcpu_room room;
	bool calls; /* the event is "syscalls", the leaf frame the call */
	const struct syscall_set *only;
	const struct probe_counts_config *probe; /* the event is "probe", the leaf frame its text */
	const struct gpu_calls_config *gpu;      /* the same of GPU drivers: "gpu-driver" */
	uint64_t tick_hz; /* above 0: what runs is in it too, and the event is "wall" */
};

/* *waits, which outlives the source, is filled while it is read. 0 or -errno, with the diag. */
int waiting_new(const struct waiting_config *c, const struct host *h, note_list *notes,
		struct waits *waits, struct source **ret, struct diag *d);

/* After the last read: what was lost, as LOST records and in waits->lost. */
int waiting_finish(struct source *s, record_fn *emit, void *ctx);
int waiting_notes(const struct source *s, note_list *notes);

/* With the number of a site: the stack goes on with who ended the wait. */
#define SITE_WITH_LINKS 0x40000000U

/* For pipeline_sites; ctx is the struct waits. */
void waiting_found(void *ctx, uint32_t site, uint32_t stack);

#endif
