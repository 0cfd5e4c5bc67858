/* SPDX-License-Identifier: BSD-2-Clause */
/* Attaching an object's programs to points in code (bpf/lib/probe_points.bpf.h). */
#ifndef PROBE_POINTS_H
#define PROBE_POINTS_H

#include "core.h"

#include <inspect/probe_counts.h>

/* Those of one object, by the kind of point: where it begins, and where it ends. */
struct point_programs {
	struct bpf_program *begin[PROBE_KINDS], *end[PROBE_KINDS];
	struct bpf_program *at_return[PROBE_KINDS]; /* of functions, when there is no other end */
	/* In place of PROBE_KERNEL's, for a function and its own return; NULL: there are none. */
	struct bpf_program *fentry, *fexit;
	bool by_trampoline; /* points_choose took those */
};

/* From a skeleton's programs. */
#define POINT_PROGRAMS_OF(progs)                                                                   \
	(struct point_programs)                                                                    \
	{                                                                                          \
		.begin = {[PROBE_FUNCTION] = (progs).on_uprobe,                                    \
			  [PROBE_USDT] = (progs).on_usdt,                                          \
			  [PROBE_TRACEPOINT] = (progs).on_tracepoint,                              \
			  [PROBE_KERNEL] = (progs).on_kprobe},                                     \
		.end = {[PROBE_FUNCTION] = (progs).on_uprobe_end,                                  \
			[PROBE_USDT] = (progs).on_usdt_end,                                        \
			[PROBE_TRACEPOINT] = (progs).on_tracepoint_end,                            \
			[PROBE_KERNEL] = (progs).on_kretprobe},                                    \
		.at_return = {[PROBE_FUNCTION] = (progs).on_uretprobe,                             \
			      [PROBE_KERNEL] = (progs).on_kretprobe},                              \
	}

/* Before the load. What is not attached is not loaded: a kernel without kprobes would refuse all.
 * config NULL: none is. h: NULL where p has no fentry. */
void points_choose(struct point_programs *p, const struct probe_counts_config *config,
		   const struct host *h, struct probes_setup *setup);

/* 0 or -errno, explained. */
int points_attach(struct probe_core *c, const struct point_programs *p,
		  const struct probe_counts_config *config, const struct host *h, struct diag *d);

#endif
