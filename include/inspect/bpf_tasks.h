/* SPDX-License-Identifier: BSD-2-Clause */
/* Times of all threads and waiting for locks, by BPF (bpf/vitals.bpf.c). */
#ifndef INSPECT_BPF_TASKS_H
#define INSPECT_BPF_TASKS_H

#include <inspect/host.h>
#include <inspect/task_times.h>

struct bpf_tasks;

/*
 * Locks and refusals are counted from now on. Where the kernel allows no program on its functions,
 * the ends of all system calls tell of refusals, at a price for all processes (about 20 ns a call):
 * in a short run alone. 0, or a negative errno with the reason in one static line.
 */
int bpf_tasks_open(const struct host *h, bool short_run, struct bpf_tasks **ret,
		   const char **ret_reason);
void bpf_tasks_close(struct bpf_tasks *b);

/* A task_times_fn; ctx is the struct bpf_tasks. */
int bpf_tasks_read(void *ctx, struct task_table *ret);

#endif
