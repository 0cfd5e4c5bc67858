/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sampling with stacks unwound in the kernel: bpf/sampler.bpf.c on perf events, one for each CPU
 * and -e, however many threads there are. What it hands on are records as perf writes them.
 */
#ifndef INSPECT_BPF_SAMPLER_H
#define INSPECT_BPF_SAMPLER_H

#include <inspect/host.h>
#include <inspect/note_list.h>
#include <inspect/probe_target.h>
#include <inspect/source.h>

struct bpf_sampler_config {
	const struct perf_event_attr *attrs; /* as for sampling without stacks, CPU-wide */
	const char *const *names;
	size_t n_events;
	bool callchain, user_only, kernel_only, idle_cpus;
	unsigned max_stack;  /* user frames; 0: 127 */
	unsigned ring_pages; /* per CPU, a power of two; 0: default */

	struct probe_target target;

	/* Samples in code whose rows are not there yet are handed on with these user registers
	 * (perf's) and a copy of the stack instead of user frames. By register, from the lowest:
	 * its slot in struct unwind_state, UNWIND_REGS for pc. 0: such stacks end there. */
	uint64_t early_regs;
	const uint8_t *early_slots;

	/* To compare: every sample of the one event is followed by perf's own of the same tick, as
	 * an event of its own (index 1), with these user registers and so much stack. */
	uint64_t copy_regs;
	uint32_t copy_bytes; /* 0: no */
};

/*
 * Loads the program, opens events and rings, and makes the rows of the processes that are there;
 * nothing counts yet. What had to be less than asked goes to *notes. On failure the diag explains
 * and nothing stays in the kernel.
 */
int bpf_sampler_new(const struct bpf_sampler_config *c, const struct host *h, note_list *notes,
		    struct source **ret, struct diag *d);

/* As sampler_untold_losses (perf_sampler.h). Samples alone are told as lost, exactly; other records
 * are of everybody's processes, and what is missing of them becomes a note. */
int bpf_sampler_untold_losses(struct source *s, record_fn *emit, void *ctx);

/* What a user should know after the end: children that were not followed, files without room. */
int bpf_sampler_notes(const struct source *s, note_list *notes);

#endif
