/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The stack of a call. The user's is unwound here, each address with the file that is mapped there
 * now. So it can be named when the process has ended, as a short-lived one has before the tool sees
 * it. The kernel's is that of the last switch away from the thread: at its end a call has none to
 * speak of.
 */
#ifndef STREAM_STACK_BPF_H
#define STREAM_STACK_BPF_H

#include "lib/file.bpf.h"
#include "lib/vma.bpf.h"
#include "stream_chunks.bpf.h"

enum { STREAM_OWN_FRAMES = 2 /* the program, and bpf_trace_runN, which calls it */ };

/* Files whose names the tool has. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, STREAM_FILES_MAX);
	__type(key, __u64[2]);
	__type(value, __u8);
} files_sent SEC(".maps");

/* The record with a file's name: the calls' own storage has a call in it. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct stream_state);
} file_records SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct stream_stack);
} stack_records SEC(".maps");

static __noinline int send_file(__u64 device, __u64 inode, __u64 file_va)
{
	__u64 key[2] = {device, inode}, size_bytes;
	__u32 zero = 0;
	__u8 value = 1;
	struct stream_state *st = bpf_map_lookup_elem(&file_records, &zero);

	if (!st || bpf_map_lookup_elem(&files_sent, key))
		return 0;
	st->head.end = STREAM_FILE;
	st->head.args[0] = device;
	st->head.args[1] = inode;
	st->head.n_bytes = 0;
	put_file(st, STREAM_CHUNK_FD << 8, file_va);
	size_bytes = sizeof(st->head) + st->head.n_bytes;
	barrier_var(size_bytes);
	if (size_bytes > sizeof(*st))
		return 0;
	if (!bpf_ringbuf_output(&ring, st, size_bytes, 0))
		bpf_map_update_elem(&files_sent, key, &value, BPF_ANY);
	return 0;
}

/* One frame of the walk's chain. Not 0: it is over. */
__noinline int put_frame(__u32 i)
{
	struct vma_place at;
	__u32 zero = 0;
	struct unwind_walk *w = bpf_map_lookup_elem(&unwind_walks, &zero);
	struct stream_stack *stack = bpf_map_lookup_elem(&stack_records, &zero);
	__u64 slot = i;

	barrier_var(slot);
	if (!w || !stack || slot >= STREAM_FRAMES)
		return 1;
	barrier_var(slot);
	vma_find_place(this_task(), w->out[slot] - (i > 0), &at);
	stack->user[slot] = (struct stream_frame){
		.user_va = w->out[slot],
		.file_off = at.file_off + (at.file_va && i > 0),
		.inode = at.inode,
		.device = at.device,
	};
	if (at.inode)
		send_file(at.device, at.inode, at.file_va);
	return 0;
}

/* Whether what follows is told of it. */
static __noinline int send_stack(struct stream_state *st, struct stream_stack *stack)
{
	__u64 n_user = stack->n_user;

	stack->head.end = STREAM_STACK;
	stack->head.tid = st->head.tid;
	stack->head.start_ns = st->head.start_ns;
	barrier_var(n_user);
	if (n_user > STREAM_FRAMES || (!n_user && !stack->n_kernel))
		return 0;
	st->head.stack_lost = bpf_ringbuf_output(&ring, stack,
						 offsetof(struct stream_stack, user) +
							 n_user * sizeof(struct stream_frame),
						 0) != 0;
	return 0;
}

static __noinline int put_stack(struct stream_state *st, struct task_struct *task)
{
	__u32 zero = 0;
	struct unwind_walk *w = bpf_map_lookup_elem(&unwind_walks, &zero);
	struct stream_stack *stack = bpf_map_lookup_elem(&stack_records, &zero);

	if (!w || !stack ||
	    bpf_probe_read_kernel(&w->regs, sizeof(w->regs), task_user_regs(task)) ||
	    !regs_are_user(&w->regs) || REGS_ARE_32_BIT(&w->regs))
		return 0;
	w->at = 0;
	w->stop = UNWIND_CONTINUE;
	STATE_FROM_REGS(&w->state, &w->regs);
	unwind_user(w, st->head.pid, STREAM_FRAMES);
	stack->n_user = w->at > STREAM_FRAMES ? STREAM_FRAMES : w->at;
	stack->stop = w->stop;
	for (__u32 i = 0; i < STREAM_FRAMES && i < stack->n_user; i++)
		if (put_frame(i))
			break;
	stack->n_kernel = st->n_kernel;
	__builtin_memcpy(stack->kernel, st->kernel, sizeof(stack->kernel));
	return send_stack(st, stack);
}

/* Of a thread that sleeps in its call. */
static __noinline int put_sleepers_stack(struct stream_state *st, struct task_struct *task)
{
	__u32 zero = 0;
	struct stream_stack *stack = bpf_map_lookup_elem(&stack_records, &zero);
	long bytes;

	if (!stack)
		return 0;
	bytes = bpf_get_task_stack(task, stack->kernel, sizeof(stack->kernel), 0);
	stack->n_kernel = bytes > 0 ? (__u32)bytes / 8 : 0;
	stack->n_user = 0;
	return send_stack(st, stack);
}

SEC("tp_btf/sched_switch")
int BPF_PROG(on_sleep, bool preempt, struct task_struct *prev)
{
	struct stream_state *st;
	long bytes;

	if (preempt || !target_shared.active)
		return 0;
	st = bpf_task_storage_get(&states, prev, NULL, 0);
	if (!st || !st->head.active)
		return 0;
	bytes = bpf_get_stack(ctx, st->kernel, sizeof(st->kernel), STREAM_OWN_FRAMES);
	st->n_kernel = bytes > 0 ? (__u32)bytes / 8 : 0;
	return 0;
}

#endif
