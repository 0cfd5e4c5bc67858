/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Whether a system call is one of a GPU's driver, which one, and what the driver says of it, which
 * the result of ioctl(2) does not tell. Devices are known by number or inode, never by name:
 * descriptors may be dup'ed, inherited, sent over a socket, or of a renamed node.
 */
#ifndef BPF_LIB_GPU_CALLS_BPF_H
#define BPF_LIB_GPU_CALLS_BPF_H

#include "file.bpf.h"
#include "gpu.abi.h"
#include "targets.bpf.h"
#include "task_call.bpf.h"
#include "task_states.bpf.h"

const volatile struct gpu_setup gpu_setup;
struct gpu_shared gpu_shared;

enum {
	TYPE_MASK = 0170000, /* S_IFMT */
	TYPE_CHAR = 0020000,
	MINOR_BITS = 20,
	EPOLL_CTL_DELETE = 2,
};

struct gpu_call {
	__u64 enter_ns; /* 0: not in a call that is watched */
	__u64 arg;      /* address of the ioctl's struct, or of the mapping */
	__u64 length_bytes;
	struct gpu_layout layout;
	struct gpu_key key;
	__u32 crowded, pad;
	__u64 stack; /* id; 0: none was asked for */
};

TASK_STATES(gpu_calls, struct gpu_call)

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1024);
	__type(key, struct gpu_device_key);
	__type(value, struct gpu_device);
} gpu_devices SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1024);
	__type(key, struct gpu_layout_key);
	__type(value, struct gpu_layout);
} gpu_layouts SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, GPU_COUNTS);
	__type(key, __u32);
	__type(value, __u64);
} gpu_counts SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 22);
} gpu_events SEC(".maps");

/* A device's minor, as it was found; LRU: mappings and sets vanish with their process. */
struct found_device {
	__u32 id, minor;
	__u32 class;
	__u32 pad;
	__u64 length_bytes;
};

struct mapping_key {
	__u64 user_va;
	__u32 pid, pad;
};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 16384);
	__type(key, struct mapping_key);
	__type(value, struct found_device);
} gpu_mappings SEC(".maps");

/* Sets that hold a device: by file, or, as the tool found them, by process and descriptor. */
struct epoll_key {
	__u64 file;
	__u32 pid, fd;
};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 4096);
	__type(key, struct epoll_key);
	__type(value, struct found_device);
} gpu_epolls SEC(".maps");

static __noinline int gpu_count(__u32 what)
{
	__u64 *at = bpf_map_lookup_elem(&gpu_counts, &what);

	if (at)
		++*at;
	return 0;
}

/* --- devices ---------------------------------------------------------------------------------- */

/* Whether a file is a watched device. */
static __noinline bool find_device(struct file___file *file, struct found_device *ret)
{
	struct inode___file *inode = BPF_CORE_READ(file, f_inode);
	struct gpu_device_key key = {};
	struct gpu_device *device = NULL;
	__u32 rdev = 0;

	if (!inode)
		return false;
	if ((BPF_CORE_READ(inode, i_mode) & TYPE_MASK) == TYPE_CHAR) {
		rdev = key.device = BPF_CORE_READ(inode, i_rdev);
		device = bpf_map_lookup_elem(&gpu_devices, &key);
		if (!device) {
			key.device = rdev >> MINOR_BITS << MINOR_BITS;
			key.any_minor = 1;
			device = bpf_map_lookup_elem(&gpu_devices, &key);
		}
	}
	if (!device) {
		key.any_minor = 0;
		key.device = BPF_CORE_READ(inode, i_sb, s_dev);
		key.inode = BPF_CORE_READ(inode, i_ino);
		device = bpf_map_lookup_elem(&gpu_devices, &key);
	}
	if (!device)
		return false;
	ret->id = device->id;
	ret->class = device->class;
	ret->minor = rdev & ((1 << MINOR_BITS) - 1);
	ret->length_bytes = 0;
	return true;
}

static __always_inline bool find_device_of_fd(struct task_struct *task, __s64 fd,
					      struct found_device *ret)
{
	struct file___file *file = fd >= 0 && fd <= 0x7fffffff ? file_of_fd(task, fd) : NULL;

	return file && find_device(file, ret);
}

static __always_inline void set_device(struct gpu_key *key, const struct found_device *device)
{
	key->device = device->id;
	key->minor = device->minor;
	key->class = device->class;
}

/* --- entries ---------------------------------------------------------------------------------- */

static __noinline __u32 read_u32(__u64 at, __s32 off, __u8 bit, struct gpu_key *key)
{
	__u32 value = 0;

	if (off < 0)
		return 0;
	if (bpf_probe_read_user(&value, sizeof(value), (void *)(at + off))) {
		key->flags |= GPU_UNREADABLE;
		gpu_count(GPU_READS_FAILED);
		return 0;
	}
	key->flags |= bit;
	return value;
}

struct xfer {
	__u32 number, size_bytes;
	__u64 user_va;
};

static __always_inline void set_command(struct gpu_call *st, __u32 command)
{
	struct gpu_key *key = &st->key;
	struct xfer xfer;

	if (key->class != GPU_CLASS_RM) {
		key->number = command;
		return;
	}
	key->number = command & 0xff; /* _IOC_NR */
	key->size_bytes = command >> 16 & 0x3fff;
	if (key->number != GPU_XFER_CMD)
		return;
	if (bpf_probe_read_user(&xfer, sizeof(xfer), (void *)st->arg)) {
		key->flags |= GPU_UNREADABLE;
		gpu_count(GPU_READS_FAILED);
		return;
	}
	key->flags |= GPU_XFER;
	key->number = xfer.number;
	key->size_bytes = xfer.size_bytes;
	st->arg = xfer.user_va;
}

static __noinline void set_layout(struct gpu_call *st)
{
	struct gpu_layout_key at = {};
	struct gpu_layout *layout = NULL;

	st->layout.selector_off = st->layout.status_off = -1;
	st->layout.length_off = st->layout.client_off = -1;
	if (st->key.class != GPU_CLASS_OTHER) {
		at.class = st->key.class;
		at.number = st->key.number;
		at.size_bytes = st->key.size_bytes;
		layout = bpf_map_lookup_elem(&gpu_layouts, &at);
		if (!layout) {
			at.size_bytes = 0;
			layout = bpf_map_lookup_elem(&gpu_layouts, &at);
		}
		if (!layout)
			st->key.flags |= GPU_NO_LAYOUT;
	}
	if (layout)
		st->layout = *layout;
}

static __noinline bool enter_ioctl(struct gpu_call *st, struct task_struct *task,
				   const struct call_args *args)
{
	struct found_device device = {};

	__sync_fetch_and_add(&gpu_shared.ioctls_seen, 1);
	if (!find_device_of_fd(task, (__u32)args->v[0], &device))
		return false;
	__sync_fetch_and_add(&gpu_shared.ioctls_counted, 1);
	set_device(&st->key, &device);
	st->arg = args->v[2];
	set_command(st, args->v[1]);
	set_layout(st);
	st->key.selector = read_u32(st->arg, st->layout.selector_off, GPU_HAS_SELECTOR, &st->key);
	st->key.client = read_u32(st->arg, st->layout.client_off, 0, &st->key);
	if (st->layout.length_off >= 0)
		bpf_probe_read_user(&st->length_bytes, sizeof(st->length_bytes),
				    (void *)(st->arg + st->layout.length_off));
	return true;
}

struct poll_fd {
	__s32 fd;
	__s16 events, revents;
};

static __noinline bool enter_poll(struct gpu_call *st, struct task_struct *task,
				  const struct call_args *args)
{
	struct found_device device = {};

	for (__u32 i = 0; i < GPU_POLL_FDS; i++) {
		struct poll_fd fd;

		if (i >= args->v[1] ||
		    bpf_probe_read_user(&fd, sizeof(fd), (struct poll_fd *)args->v[0] + i))
			return false;
		if (!find_device_of_fd(task, fd.fd, &device))
			continue;
		set_device(&st->key, &device);
		return true;
	}
	return false;
}

static __noinline bool enter_epoll(struct gpu_call *st, struct task_struct *task,
				   const struct call_args *args)
{
	struct epoll_key key = {.file = (__u64)file_of_fd(task, args->v[0])};
	struct found_device *device = key.file ? bpf_map_lookup_elem(&gpu_epolls, &key) : NULL;

	if (!device) {
		key.file = 0;
		key.pid = target_pid(task);
		key.fd = args->v[0];
		device = bpf_map_lookup_elem(&gpu_epolls, &key);
	}
	if (!device)
		return false;
	set_device(&st->key, device);
	return true;
}

static __noinline bool enter_epoll_ctl(struct task_struct *task, const struct call_args *args)
{
	struct epoll_key key = {.file = (__u64)file_of_fd(task, args->v[0])};
	struct found_device device = {};

	if (!key.file || !find_device_of_fd(task, (__u32)args->v[2], &device))
		return false;
	if (args->v[1] == EPOLL_CTL_DELETE)
		bpf_map_delete_elem(&gpu_epolls, &key);
	else
		bpf_map_update_elem(&gpu_epolls, &key, &device, BPF_ANY);
	return false; /* not counted */
}

static __noinline bool enter_munmap(struct gpu_call *st, struct task_struct *task,
				    const struct call_args *args)
{
	struct mapping_key key = {.user_va = args->v[0], .pid = target_pid(task)};
	struct found_device *device = bpf_map_lookup_elem(&gpu_mappings, &key);

	if (!device)
		return false;
	set_device(&st->key, device);
	st->arg = args->v[0];
	st->length_bytes = device->length_bytes;
	bpf_map_delete_elem(&gpu_mappings, &key);
	return true;
}

static __noinline bool enter_fd(struct gpu_call *st, struct task_struct *task,
				const struct call_args *args)
{
	bool maps = st->key.kind == GPU_MMAP;
	struct found_device device = {};

	if (!find_device_of_fd(task, (__s32)args->v[maps ? 4 : 0], &device))
		return false;
	set_device(&st->key, &device);
	if (maps)
		st->length_bytes = args->v[1];
	return true;
}

/* Whether the call is one to be watched. */
static __noinline bool gpu_call_begin(struct gpu_call *st, struct task_struct *task, __u8 kind)
{
	struct call_args args = {};

	if (call_args_read(task, &args))
		return false;
	__builtin_memset(&st->key, 0, sizeof(st->key));
	st->arg = st->length_bytes = 0;
	st->key.kind = kind;
	switch (kind) {
	case GPU_IOCTL:
		return enter_ioctl(st, task, &args);
	case GPU_OPEN:
		return true; /* its result says of what */
	case GPU_MUNMAP:
		return enter_munmap(st, task, &args);
	case GPU_POLL:
		return enter_poll(st, task, &args);
	case GPU_EPOLL:
		return enter_epoll(st, task, &args);
	case GPU_EPOLL_CTL:
		return enter_epoll_ctl(task, &args);
	default:
		return enter_fd(st, task, &args);
	}
}

static __always_inline __u8 gpu_kind_of(__u64 number)
{
	return number < GPU_NUMBERS ? gpu_setup.kinds[number] : GPU_NOTHING;
}

/* --- exits ------------------------------------------------------------------------------------ */

static __noinline int gpu_send_event(const struct gpu_call *st, __s64 result, __u64 latency_ns)
{
	struct gpu_event *e = bpf_ringbuf_reserve(&gpu_events, sizeof(*e), 0);
	__u64 n = st->key.size_bytes;

	if (!e) {
		__sync_fetch_and_add(&gpu_shared.lost_events, 1);
		return 0;
	}
	e->key = st->key;
	e->stack = st->stack;
	e->start_ns = st->enter_ns;
	e->duration_ns = latency_ns;
	e->result = result;
	e->arg = st->arg;
	e->length_bytes = st->length_bytes;
	e->lost_before = gpu_shared.lost_events;
	e->in_flight = 0;
	__builtin_memset(e->head, 0, sizeof(e->head));
	if (st->key.class == GPU_CLASS_UVM)
		n = GPU_UVM_HEAD_BYTES;
	if (st->key.kind != GPU_IOCTL || st->key.class == GPU_CLASS_OTHER)
		n = 0;
	if (n > GPU_HEAD_BYTES)
		n = GPU_HEAD_BYTES;
	barrier_var(n); /* the bound must come right before the call */
	if (n > GPU_HEAD_BYTES || bpf_probe_read_user(e->head, n, (void *)st->arg))
		n = 0;
	e->n_head = n;
	bpf_ringbuf_submit(e, 0);
	return 0;
}

/* What the call was of, and how it ended; false: not of a device. */
static __noinline bool gpu_call_end(struct gpu_call *st, struct task_struct *task, __s64 result)
{
	struct found_device device = {};

	if (st->key.kind == GPU_OPEN) {
		if (!find_device_of_fd(task, result, &device))
			return false;
		set_device(&st->key, &device);
	}
	if (result < 0 && result >= -4095) {
		st->key.flags |= GPU_FAILED;
		st->key.status = -result;
		st->length_bytes = 0;
		return true;
	}
	if (st->key.kind == GPU_IOCTL)
		st->key.status = read_u32(st->arg, st->layout.status_off, GPU_HAS_STATUS, &st->key);
	if (st->key.kind == GPU_MMAP) {
		struct mapping_key key = {.user_va = result, .pid = st->key.pid};

		device.id = st->key.device;
		device.minor = st->key.minor;
		device.class = st->key.class;
		device.length_bytes = st->length_bytes;
		bpf_map_update_elem(&gpu_mappings, &key, &device, BPF_ANY);
		st->arg = result;
	}
	return true;
}

#endif
