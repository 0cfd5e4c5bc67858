/* SPDX-License-Identifier: BSD-2-Clause */
/* Children that a target of -p has already: counters follow those that it starts from now on. */
#ifndef LEFT_OUT_H
#define LEFT_OUT_H

#include <inspect/capture.h>
#include <inspect/procfs.h>

struct left_out {
	struct pid_list pids;
	uint64_t cpu_ns; /* theirs so far */
};

/* Without memory or /proc none are known. */
void left_out_begin(struct left_out *l, const struct target *t);
void left_out_release(struct left_out *l);

/* What they have used since. */
uint64_t left_out_cpu_ns(const struct left_out *l);

/* The threads of what the target has started since. */
double left_out_new_threads(const struct left_out *l, const struct target *t);

#endif
