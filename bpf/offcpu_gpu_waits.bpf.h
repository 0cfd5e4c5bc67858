/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Which call of a GPU's driver a thread waits in. All of it is read at the switch, while there are
 * descriptors and memory: what an ioctl is about stands in a struct of the thread.
 */
#ifndef OFFCPU_GPU_WAITS_BPF_H
#define OFFCPU_GPU_WAITS_BPF_H

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct rb_node___wait {
	struct rb_node___wait *rb_right, *rb_left;
};

struct rb_root___wait {
	struct rb_node___wait *rb_node;
};

struct rb_root_cached___wait {
	struct rb_root___wait rb_root;
};

struct eventpoll___wait {
	struct rb_root_cached___wait rbr;
};

struct epoll_filefd___wait {
	struct file___file *file;
};

struct epitem___wait {
	struct rb_node___wait rbn;
	struct epoll_filefd___wait ffd;
};

struct file___wait {
	void *private_data;
};

#pragma clang attribute pop

enum { GPU_POLLED_MAX = 8, GPU_WATCHED_MAX = 3 };

struct gpu_wait {
	struct gpu_call call;
	struct found_device device;
	struct xfer xfer;
};

/* Of a switch, and of the iterator, which switches interrupt. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 2);
	__type(key, __u32);
	__type(value, struct gpu_wait);
} gpu_wait_calls SEC(".maps");

static __noinline __u32 gpu_number_of_key(const struct gpu_key *key);

/* What the struct of an ioctl says, which may lie within that of an XFER_CMD. */
static __always_inline void gpu_wait_read(struct gpu_wait *w)
{
	struct gpu_call *call = &w->call;
	struct gpu_key *key = &call->key;

	if (key->number == GPU_XFER_CMD && key->class == GPU_CLASS_RM &&
	    !bpf_probe_read_user(&w->xfer, sizeof(w->xfer), (void *)call->arg)) {
		key->flags |= GPU_XFER;
		key->number = w->xfer.number;
		key->size_bytes = w->xfer.size_bytes;
		call->arg = w->xfer.user_va;
	}
	set_layout(call);
	if (call->layout.selector_off >= 0 &&
	    !bpf_probe_read_user(&key->selector, sizeof(key->selector),
				 (void *)(call->arg + call->layout.selector_off)))
		key->flags |= GPU_HAS_SELECTOR;
}

/* The number of the call, if the file is a watched device; 0: it is none. Memory is the current
 * task's alone. */
static __noinline __u32 gpu_wait_number(struct file___file *file, __u32 kind, __u32 command,
					__u64 user_va, bool is_current)
{
	__u32 which = !is_current;
	struct gpu_wait *w = bpf_map_lookup_elem(&gpu_wait_calls, &which);
	struct gpu_key *key;

	if (!w || (kind == GPU_IOCTL && is_of_kernel(command)) || !find_device(file, &w->device))
		return 0;
	key = &w->call.key;
	__builtin_memset(key, 0, sizeof(*key));
	key->kind = kind;
	set_device(key, &w->device);
	if (kind != GPU_IOCTL)
		return gpu_number_of_key(key);
	w->call.arg = user_va;
	key->number = command;
	if (key->class == GPU_CLASS_RM) {
		key->number = command & 0xff; /* _IOC_NR */
		key->size_bytes = command >> 16 & 0x3fff;
	}
	if (is_current)
		gpu_wait_read(w);
	return gpu_number_of_key(key);
}

/* The first of the descriptors of poll(2) that is a device. */
static __noinline __u32 gpu_polled_number(struct task_struct *task, __u64 from_va, __u32 n)
{
	for (__u32 i = 0; i < GPU_POLLED_MAX; i++) {
		struct file___file *file;
		struct poll_fd fd;
		__u32 number;

		if (i >= n || bpf_probe_read_user(&fd, sizeof(fd), (struct poll_fd *)from_va + i))
			return 0;
		file = fd.fd >= 0 ? file_of_fd(task, fd.fd) : NULL;
		number = file ? gpu_wait_number(file, GPU_POLL, 0, 0, true) : 0;
		if (number)
			return number;
	}
	return 0;
}

/* A device among the members of an epoll set: in the root of the kernel's tree and right below it
 * (fs/eventpoll.c), which are all of three. */
static __noinline __u32 gpu_watched_number(struct file___file *file, bool is_current)
{
	struct eventpoll___wait *set = BPF_CORE_READ((struct file___wait *)file, private_data);
	struct rb_node___wait *node[GPU_WATCHED_MAX] = {};

	node[0] = set ? BPF_CORE_READ(set, rbr.rb_root.rb_node) : NULL;
	if (!node[0] || !bpf_core_field_exists(struct epitem___wait, ffd))
		return 0;
	node[1] = BPF_CORE_READ(node[0], rb_left);
	node[2] = BPF_CORE_READ(node[0], rb_right);
	for (__u32 i = 0; i < GPU_WATCHED_MAX; i++) {
		struct epitem___wait *item =
			(void *)node[i] - bpf_core_field_offset(struct epitem___wait, rbn);
		struct file___file *member = node[i] ? BPF_CORE_READ(item, ffd.file) : NULL;
		__u32 number = member ? gpu_wait_number(member, GPU_EPOLL, 0, 0, is_current) : 0;

		if (number)
			return number;
	}
	return 0;
}

static __always_inline void gpu_note_wait(struct offcpu_key *wait, __u32 number)
{
	if (!number)
		return;
	wait->inode = number;
	wait->flags |= OFFCPU_GPU;
}

#endif
