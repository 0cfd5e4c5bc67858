/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The user stack of a call: unwound here, and each address with the file that is mapped there now.
 * So it can be named when the process has ended, as a short-lived one has before the tool sees it.
 */
#ifndef STREAM_STACK_BPF_H
#define STREAM_STACK_BPF_H

#include "lib/vma.bpf.h"
#include "stream_chunks.bpf.h"

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

/* One frame for each call of bpf_loop; its state is in the walk, whose chain is read. */
static int put_frame(__u32 i, void *ctx)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct stream_frame frame = {};
	struct vma_place at;
	__u32 zero = 0;
	struct unwind_walk *w = bpf_map_lookup_elem(&unwind_walks, &zero);
	struct stream_state *st = bpf_task_storage_get(&states, task, NULL, 0);
	__u64 slot = i, offset;

	(void)ctx;
	barrier_var(slot);
	if (!w || !st || slot >= STREAM_FRAMES)
		return 1;
	barrier_var(slot);
	frame.user_va = w->out[slot];
	vma_find_place(task, frame.user_va - (i > 0), &at);
	frame.inode = at.inode;
	frame.device = at.device;
	frame.file_off = at.file_off + (at.file_va && i > 0);
	if (at.inode)
		send_file(at.device, at.inode, at.file_va);
	offset = st->head.n_bytes;
	if (offset > STREAM_DATA_BYTES)
		return 1;
	barrier_var(offset);
	__builtin_memcpy(&st->data[offset + sizeof(struct stream_chunk) +
				   sizeof(struct stream_stack) + slot * sizeof(frame)],
			 &frame, sizeof(frame));
	return 0;
}

static __noinline int put_stack(struct stream_state *st, struct task_struct *task)
{
	__u32 zero = 0;
	struct unwind_walk *w = bpf_map_lookup_elem(&unwind_walks, &zero);
	__u8 *at = chunk_begin(st);
	struct stream_stack *stack;
	__u64 n;

	if (!w || !at || bpf_probe_read_kernel(&w->regs, sizeof(w->regs), task_user_regs(task)) ||
	    !regs_are_user(&w->regs) || REGS_ARE_32_BIT(&w->regs))
		return 0;
	w->at = 0;
	w->stop = UNWIND_CONTINUE;
	STATE_FROM_REGS(&w->state, &w->regs);
	unwind_user(w, st->head.pid, STREAM_FRAMES);
	n = w->at;
	if (n > STREAM_FRAMES)
		n = STREAM_FRAMES;
	bpf_loop(n, put_frame, NULL, 0);
	stack = (struct stream_stack *)(at + sizeof(struct stream_chunk));
	stack->n = n;
	stack->stop = w->stop;
	chunk_end(st, at, STREAM_ARGS | STREAM_CHUNK_STACK << 8,
		  sizeof(*stack) + n * sizeof(struct stream_frame), false);
	return 0;
}

#endif
