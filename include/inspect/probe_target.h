/* SPDX-License-Identifier: BSD-2-Clause */
/* Whom a BPF program measures, and where what it unwinds by comes from: common to all of them. */
#ifndef INSPECT_PROBE_TARGET_H
#define INSPECT_PROBE_TARGET_H

#include <inspect/process.h>
#include <lib/unwind_step.h>
#include <sys/types.h>

/* What is known of a file's code, as in struct unwind_table. */
struct unwind_rows {
	const struct unwind_row *rows;
	size_t n_rows;
	const struct unwind_rule *rules;
	size_t n_rules;
	uint64_t base_off; /* the file offset that rows count from */
};

/*
 * Finds the rows of a file, which stay valid; d->fd is open, d->id the file's own. Called from one
 * thread at a time, but not always from the same. 0 or -errno: there are none; -EAGAIN, only with
 * `quick`: making them would take long.
 */
typedef int unwind_rows_fn(void *ctx, const struct dso *d, bool quick, struct unwind_rows *ret);

/* All is borrowed. */
struct probe_target {
	const pid_t *pids; /* processes; their children are followed */
	size_t n_pids;
	const pid_t *tids; /* single threads, when there are no pids */
	size_t n_tids;
	const int *cpus; /* NULL: all online */
	size_t n_cpus;
	bool all;
	int cgroup_fd;   /* -1: none */
	pid_t child;     /* a stopped child that will exec: measured from its exec on; 0: none */
	bool child_runs; /* it has done so already */
	const char *command; /* what the child will execute, as execvp(3) finds it; NULL: nothing */

	unwind_rows_fn *rows; /* NULL: user stacks are not unwound */
	void *rows_ctx;
};

#endif
