/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * From one point in code to another in place of waits, added up by the stack at the first. A thread
 * counts as running all the time. Events that have no end are 1 ns each: their sum is their number.
 */
#ifndef OFFCPU_PROBES_BPF_H
#define OFFCPU_PROBES_BPF_H

#include "lib/probe_values.bpf.h"

/* Programs of uprobes can be preempted, and there is one walk for each CPU: whoever comes in
 * between has no stack. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);
} walks_taken SEC(".maps");

static __always_inline bool is_watched(void)
{
	return target_shared.active &&
	       bpf_task_storage_get(&threads, bpf_get_current_task_btf(), NULL, 0);
}

static __noinline __u64 walk_from(void *ctx, struct unwind_walk *w)
{
	struct task_struct *task = bpf_get_current_task_btf();
	long bytes = 0;
	bool sure;

	w->stop = stack_registers(w, task);
	w->at = STACK_HEAD_WORDS;
	if (stack_setup.with_kernel)
		bytes = bpf_get_stack(ctx, &w->out[STACK_HEAD_WORDS], STACK_KERNEL_FRAMES * 8, 0);
	w->at += bytes > 0 ? (__u32)bytes / 8 : 0;
	return stack_finish(ctx, w, target_pid(task), target_tid(task), &sure);
}

static __noinline __u64 stack_at(void *ctx)
{
	__u32 zero = 0;
	__u64 *taken = bpf_map_lookup_elem(&walks_taken, &zero);
	struct unwind_walk *w = bpf_map_lookup_elem(&unwind_walks, &zero);
	__u64 id = 0;

	if (!taken || !w || !setup.with_stacks)
		return 0;
	if (!__sync_fetch_and_add(taken, 1))
		id = walk_from(ctx, w);
	else
		stack_count_lost(false);
	__sync_fetch_and_add(taken, -1);
	return id;
}

static __noinline int probe_finish(const struct begun *b, __s64 result, __u64 latency_ns)
{
	struct thread *t = bpf_task_storage_get(&threads, bpf_get_current_task_btf(), NULL, 0);

	if (!t || !probe_is_wanted(b, result))
		return 0;
	t->wait.stack = b->stack;
	t->wait.how = OFFCPU_IN_CALL;
	t->wait.nr = 0;
	add_wait(t, latency_ns ? latency_ns : 1, 0, b->ns + latency_ns);
	return 0;
}

#include "lib/probe_points.bpf.h" /* uses these */

#endif
