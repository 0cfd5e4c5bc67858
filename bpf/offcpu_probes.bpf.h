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
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 4096);
	__type(key, __u32); /* CPU */
	__type(value, __u8);
} walks_taken SEC(".maps");

static __always_inline bool is_watched(void)
{
	return target_shared.active && threads_of(this_task());
}

static __noinline __u64 walk_from(void *ctx, struct unwind_walk *w)
{
	struct task_struct *task = this_task();
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
	__u32 zero = 0, cpu = bpf_get_smp_processor_id();
	struct unwind_walk *w = bpf_map_lookup_elem(&unwind_walks, &zero);
	__u8 taken = 1;
	__u64 id;

	if (!w || !setup.with_stacks)
		return 0;
	if (bpf_map_update_elem(&walks_taken, &cpu, &taken, BPF_NOEXIST)) {
		stack_count_lost(false);
		return 0;
	}
	id = walk_from(ctx, w);
	bpf_map_delete_elem(&walks_taken, &cpu);
	return id;
}

static __noinline int probe_finish(const struct begun *b, __s64 result, __u64 latency_ns)
{
	struct thread *t = threads_of(this_task());

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
