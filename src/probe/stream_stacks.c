/* SPDX-License-Identifier: BSD-2-Clause */
/* Stacks, which come before their calls, until these have come. */
#include "stream.h"

#include <bpf/libbpf.h>

void stream_stacks_release(struct stream_stacks *s)
{
	free(s->v);
	*s = (struct stream_stacks){0};
}

/* Between a stack and its call there is nothing else of that CPU; a call that was lost leaves its
 * stack here, until another of its thread or a later one takes the place. */
static struct stream_stack *place_for(struct stream_stacks *s, uint32_t tid)
{
	struct stream_stack *oldest = &s->v[0];

	for (size_t i = 0; i < s->n; i++) {
		if (s->v[i].head.tid == tid)
			return &s->v[i];
		if (s->v[i].head.start_ns < oldest->head.start_ns)
			oldest = &s->v[i];
	}
	return oldest;
}

int stream_stacks_keep(struct stream_stacks *s, const void *record, size_t n_bytes)
{
	struct stream_head h;
	int n;

	if (n_bytes < offsetof(struct stream_stack, user))
		return 0;
	if (!s->v) {
		n = libbpf_num_possible_cpus();
		s->n = 2 * (size_t)MAX(n, 1);
		s->v = calloc(s->n, sizeof(*s->v));
		if (!s->v)
			return -ENOMEM;
	}
	memcpy(&h, record, sizeof(h));
	memcpy(place_for(s, h.tid), record, MIN(n_bytes, sizeof(*s->v)));
	return 0;
}

static const struct stream_stack *find(const struct stream_stacks *s, const struct syscall_event *e)
{
	for (size_t i = 0; i < s->n; i++)
		if (s->v[i].head.tid == (uint32_t)e->tid && s->v[i].head.start_ns == e->start_ns)
			return &s->v[i];
	return NULL;
}

void stream_stacks_take(const struct stream_stacks *s, const struct stream_files *files,
			const struct own_frames *own, struct syscall_event *e)
{
	const struct stream_stack *from = find(s, e);
	size_t n_kernel, n_own;

	if (!from)
		return;
	n_kernel = MIN(from->n_kernel, (uint32_t)STREAM_KERNEL_FRAMES);
	n_own = own_frames_count(own, from->kernel, n_kernel);
	e->stack_stop = (uint8_t)MIN(from->stop, (uint32_t)UNWIND_STOPS - 1);
	for (size_t i = n_own; i < n_kernel && e->n_kernel < SYSCALL_KERNEL_FRAMES_MAX; i++)
		e->kernel[e->n_kernel++] = from->kernel[i];
	for (size_t i = 0; i < MIN(from->n_user, (uint32_t)STREAM_FRAMES); i++) {
		const struct stream_frame *f = &from->user[i];

		e->frames[e->n_frames++] = (struct syscall_frame){
			.user_va = f->user_va,
			.file_off = f->file_off,
			.path = f->inode ? stream_files_path(files, f->device, f->inode) : NULL,
			.maj = f->device >> 20,
			.min = f->device & 0xfffff,
			.ino = f->inode,
		};
	}
}
