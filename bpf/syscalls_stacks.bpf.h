/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * User stacks of calls by their ids. A new one is kept in a map with the files that are mapped at
 * its addresses now, so that it can be named when the process has ended.
 */
#ifndef BPF_SYSCALLS_STACKS_BPF_H
#define BPF_SYSCALLS_STACKS_BPF_H

#include "syscalls_files.bpf.h"

/* What lib/stacks.bpf.h has walked and not met before: into the map, not into a ring. */
static __always_inline bool output_send(void *ctx, void *data, __u64 size_bytes, __u64 max_bytes);

#include "lib/stacks.bpf.h"
/* Behind the unwinder, which it serves too. */
#include "lib/targets.bpf.h"

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, SYSCALLS_STACKS_MAX);
	__type(key, __u64);
	__type(value, struct syscalls_stack);
} kept_stacks SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct syscalls_stack);
} new_stack SEC(".maps");

/* One frame of the walk's chain. Not 0: it is over. */
__noinline int keep_frame(__u32 i)
{
	__u32 zero = 0;
	struct unwind_walk *w = bpf_map_lookup_elem(&unwind_walks, &zero);
	struct syscalls_stack *stack = bpf_map_lookup_elem(&new_stack, &zero);
	struct syscalls_frame *frame;
	struct vma_place at;
	__u64 slot = i;

	barrier_var(slot);
	if (!w || !stack || slot >= SYSCALLS_STACK_FRAMES)
		return 1;
	barrier_var(slot);
	vma_find_place(this_task(), w->out[STACK_HEAD_WORDS + slot] - (i > 0), &at);
	frame = &stack->frames[slot];
	frame->user_va = w->out[STACK_HEAD_WORDS + slot];
	frame->file_off = at.file_off + (at.file_va && i > 0);
	frame->file.inode = at.inode;
	frame->file.device = at.device;
	frame->file.generation = at.generation;
	/* The key lies in the map: for a copy the stack has no room. */
	if (at.file_va)
		keep_file_name(&frame->file, (struct file___file *)at.file_va);
	return 0;
}

static __noinline bool keep_stack(struct unwind_walk *w)
{
	struct stack_record *record = (struct stack_record *)w->out;
	__u32 zero = 0, n = record->n_user;
	struct syscalls_stack *stack = bpf_map_lookup_elem(&new_stack, &zero);
	__u64 id = record->id;

	if (!stack)
		return false;
	if (n > SYSCALLS_STACK_FRAMES)
		n = SYSCALLS_STACK_FRAMES;
	stack->pid = record->pid;
	stack->n = n;
	stack->stop = record->stop;
	for (__u32 i = 0; i < SYSCALLS_STACK_FRAMES && i < n; i++)
		if (keep_frame(i))
			break;
	return !bpf_map_update_elem(&kept_stacks, &id, stack, BPF_ANY);
}

static __always_inline bool output_send(void *ctx, void *data, __u64 size_bytes, __u64 max_bytes)
{
	__u32 zero = 0;
	struct unwind_walk *w = bpf_map_lookup_elem(&unwind_walks, &zero);

	(void)ctx;
	(void)data;
	(void)size_bytes;
	(void)max_bytes;
	return w && keep_stack(w);
}

/* The current task's, in a call; 0: none could be had. */
static __noinline __u64 stack_of_call(struct task_struct *task)
{
	__u32 zero = 0;
	struct unwind_walk *w = bpf_map_lookup_elem(&unwind_walks, &zero);

	if (!w || !setup.with_stacks)
		return 0;
	return stack_take(NULL, w, task, target_pid(task), target_tid(task),
			  stack_registers(w, task), true);
}

/* Whether the last stack that was taken here had code in it that the tool had not seen yet. */
static __noinline bool stack_was_cut(void)
{
	__u32 zero = 0;
	const struct unwind_walk *w = bpf_map_lookup_elem(&unwind_walks, &zero);

	return w && setup.with_stacks && w->stop == UNWIND_NEW_MAPPING;
}

#endif
