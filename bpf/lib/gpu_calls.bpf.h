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
#include "vma.bpf.h"

const volatile struct gpu_setup gpu_setup;
struct gpu_shared gpu_shared;

enum {
	TYPE_MASK = 0170000, /* S_IFMT */
	TYPE_CHAR = 0020000,
	OPEN_PATH = 010000000, /* O_PATH, of all architectures that there are programs for */
	MINOR_BITS = 20,
};

/* Room that is used by one program at a time on a CPU. */
enum gpu_scratch {
	GPU_SCRATCH_CALL, /* a tracepoint of calls: nothing interrupts it */
	GPU_SCRATCH_ITERATOR,
	GPU_SCRATCHES,
};

struct gpu_call {
	__u64 enter_ns; /* 0: not in a call that is watched */
	__u64 arg;      /* address of the ioctl's struct, or of the mapping */
	__u64 length_bytes;
	__u64 range_bytes; /* what is unmapped, what of it is no device's too */
	struct gpu_layout layout;
	struct gpu_key key;
	__u32 crowded; /* other threads were in an ioctl when it began */
	__u32 seen; /* the begin or end of a call of its own: no other is since before the start */
	__u32 remap_flags;
	__u32 devices; /* of a poll: which of its descriptors are; of an epoll set: 1 if all are */
	__u64 stack;   /* id; 0: none was asked for */
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
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1024);
	__type(key, struct gpu_path);
	__type(value, struct gpu_path_device);
} gpu_paths SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct gpu_path);
} gpu_path_room SEC(".maps");

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

/* A device's minor, as it was found. */
struct found_device {
	__u32 id, minor;
	__u32 class;
};

static __noinline int gpu_count(__u32 what)
{
	__u64 *at = bpf_map_lookup_elem(&gpu_counts, &what);

	if (at)
		++*at;
	return 0;
}

/* --- devices ---------------------------------------------------------------------------------- */

/* Whether a file is a watched device, open for its driver. */
static __noinline bool find_device(struct file___file *file, struct found_device *ret)
{
	struct inode___file *inode = BPF_CORE_READ(file, f_inode);
	struct gpu_device_key key = {};
	struct gpu_device *device = NULL;
	__u32 rdev = 0;

	if (!inode || BPF_CORE_READ(file, f_flags) & OPEN_PATH)
		return false; /* O_PATH: a place in the tree, whose driver is never called */
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
	return true;
}

static __always_inline bool find_device_of_fd(struct task_struct *task, __s64 fd,
					      struct found_device *ret)
{
	struct file___file *file = fd >= 0 && fd <= 0x7fffffff ? file_of_fd(task, fd) : NULL;

	return file && find_device(file, ret);
}

/* The device of a node that could not be opened: there is no file to tell it. */
static __noinline bool find_device_of_path(__u64 user_va, struct found_device *ret)
{
	__u32 zero = 0;
	struct gpu_path *path = bpf_map_lookup_elem(&gpu_path_room, &zero);
	struct gpu_path_device *found;

	if (!path)
		return false;
	__builtin_memset(path, 0, sizeof(*path));
	if (bpf_probe_read_user_str(path->text, sizeof(path->text), (void *)user_va) <= 0)
		return false;
	found = bpf_map_lookup_elem(&gpu_paths, path);
	if (!found)
		return false;
	ret->id = found->device.id;
	ret->class = found->device.class;
	ret->minor = found->minor;
	return true;
}

static __always_inline void set_device(struct gpu_key *key, const struct found_device *device)
{
	key->device = device->id;
	key->minor = device->minor;
	key->class = device->class;
}

#include "gpu_sets.bpf.h"

#include "gpu_mappings.bpf.h"

/* --- entries ---------------------------------------------------------------------------------- */

/* bpf_copy_from_user_task: 5.18, for programs that may sleep. */
#define READS_OF_OTHERS bpf_core_enum_value_exists(enum bpf_func_id, BPF_FUNC_copy_from_user_task)

/* Of the task's memory, which is the current one or, with GPU_SCRATCH_ITERATOR, another. */
static __always_inline long read_memory(void *to, __u32 n_bytes, __u64 at, struct task_struct *task,
					__u32 scratch)
{
	if (scratch == GPU_SCRATCH_CALL)
		return bpf_probe_read_user(to, n_bytes, (void *)at);
	if (READS_OF_OTHERS)
		return bpf_copy_from_user_task(to, n_bytes, (void *)at, task, 0);
	return -1;
}

static __noinline __u32 read_u32(struct gpu_call *st, __s32 off, __u8 bit, struct task_struct *task,
				 __u32 scratch)
{
	__u32 value = 0;

	if (off < 0)
		return 0;
	if (read_memory(&value, sizeof(value), st->arg + off, task, scratch)) {
		st->key.flags |= GPU_UNREADABLE;
		return 0;
	}
	st->key.flags |= bit;
	return value;
}

struct xfer {
	__u32 number, size_bytes;
	__u64 user_va;
};

/* What the kernel answers itself, of whatever file (do_vfs_ioctl of fs/ioctl.c): no driver sees
 * it. */
static __noinline bool is_of_kernel(__u32 command)
{
	switch (command) {
	case 0x5450:     /* FIONCLEX */
	case 0x5451:     /* FIOCLEX */
	case 0x5421:     /* FIONBIO */
	case 0x5452:     /* FIOASYNC */
	case 0x5460:     /* FIOQSIZE */
	case 2:          /* FIGETBSZ */
	case 0xc0045877: /* FIFREEZE */
	case 0xc0045878: /* FITHAW */
	case 0xc020660b: /* FS_IOC_FIEMAP */
	case 0x40049409: /* FICLONE */
	case 0x4020940d: /* FICLONERANGE */
	case 0xc0189436: /* FIDEDUPERANGE */
	case 0x80111500: /* FS_IOC_GETFSUUID */
	case 0x80811501: /* FS_IOC_GETFSSYSFSPATH */
		return true;
	default:
		return false;
	}
}

static __always_inline void set_command(struct gpu_key *key, __u32 command)
{
	key->number = command;
	if (key->class != GPU_CLASS_RM)
		return;
	key->number = command & 0xff; /* _IOC_NR */
	key->size_bytes = command >> 16 & 0x3fff;
}

/* False: there is no struct to be read. */
static __always_inline bool follow_xfer(struct gpu_call *st, struct task_struct *task,
					__u32 scratch)
{
	struct gpu_key *key = &st->key;
	struct xfer xfer;

	if (key->class != GPU_CLASS_RM || key->number != GPU_XFER_CMD || key->flags & GPU_XFER)
		return true;
	if (read_memory(&xfer, sizeof(xfer), st->arg, task, scratch)) {
		key->flags |= GPU_UNREADABLE;
		return false;
	}
	key->flags |= GPU_XFER;
	key->number = xfer.number;
	key->size_bytes = xfer.size_bytes;
	st->arg = xfer.user_va;
	return true;
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

/* What the call is about. A page that is not in memory cannot be read at the begin, but at the end,
 * when the driver has read it. */
static __noinline int read_struct(struct gpu_call *st, struct task_struct *task, __u32 scratch)
{
	st->layout.selector_off = st->layout.status_off = -1;
	st->layout.length_off = st->layout.client_off = -1;
	if (!follow_xfer(st, task, scratch))
		return 0;
	set_layout(st);
	st->key.selector = read_u32(st, st->layout.selector_off, GPU_HAS_SELECTOR, task, scratch);
	st->key.client = read_u32(st, st->layout.client_off, 0, task, scratch);
	if (st->layout.length_off >= 0)
		read_memory(&st->length_bytes, sizeof(st->length_bytes),
			    st->arg + st->layout.length_off, task, scratch);
	return 0;
}

static __noinline bool enter_ioctl(struct gpu_call *st, struct task_struct *task,
				   const struct call_args *args, __u32 scratch)
{
	struct found_device device = {};

	if (scratch == GPU_SCRATCH_CALL)
		__sync_fetch_and_add(&gpu_shared.ioctls_seen, 1);
	if (is_of_kernel(args->v[1]) || !find_device_of_fd(task, (__u32)args->v[0], &device))
		return false;
	if (scratch == GPU_SCRATCH_CALL)
		__sync_fetch_and_add(&gpu_shared.ioctls_counted, 1);
	set_device(&st->key, &device);
	st->arg = args->v[2];
	set_command(&st->key, args->v[1]);
	read_struct(st, task, scratch);
	return true;
}

struct poll_fd {
	__s32 fd;
	__s16 events, revents;
};

static __noinline bool enter_poll(struct gpu_call *st, struct task_struct *task,
				  const struct call_args *args, __u32 scratch)
{
	struct found_device device = {};

	for (__u32 i = 0; i < GPU_POLL_FDS; i++) {
		struct poll_fd fd;

		if (i >= args->v[1] ||
		    read_memory(&fd, sizeof(fd), args->v[0] + i * sizeof(fd), task, scratch))
			break;
		if (!find_device_of_fd(task, fd.fd, &device))
			continue;
		if (!st->devices)
			set_device(&st->key, &device);
		st->devices |= 1u << i;
	}
	st->arg = args->v[0];
	return st->devices;
}

static __noinline bool enter_epoll(struct gpu_call *st, struct task_struct *task,
				   const struct call_args *args, __u32 scratch)
{
	struct file___file *file = file_of_fd(task, args->v[0]);
	struct found_device device = {};

	enum gpu_set_has has = file ? gpu_set_find(file, scratch, &device) : SET_HAS_NONE;

	if (has == SET_HAS_NONE)
		return false;
	set_device(&st->key, &device);
	st->devices = has == SET_HAS_ONLY;
	return true;
}

static __noinline bool enter_close(struct gpu_call *st, struct task_struct *task,
				   const struct call_args *args)
{
	struct found_device device = {};

	if (!find_device_of_fd(task, (__s32)args->v[0], &device))
		return false;
	set_device(&st->key, &device);
	return true;
}

/* Its copy of the registers is not below what it is called beside. */
static __noinline long gpu_read_args(struct task_struct *task, struct call_args *ret)
{
	return call_args_read(task, ret);
}

/* Whether the call that the task is in is one to be watched. */
static __noinline bool gpu_call_begin(struct gpu_call *st, struct task_struct *task, __u8 kind,
				      __u32 scratch)
{
	struct call_args args = {};

	if (gpu_read_args(task, &args))
		return false;
	__builtin_memset(&st->key, 0, sizeof(st->key));
	st->arg = st->length_bytes = st->range_bytes = 0;
	st->remap_flags = st->devices = 0;
	st->key.kind = kind;
	switch (kind) {
	case GPU_IOCTL:
		return enter_ioctl(st, task, &args, scratch);
	case GPU_OPEN_AT:
	case GPU_OPEN:
		st->key.kind = GPU_OPEN;
		st->arg = args.v[kind == GPU_OPEN_AT];
		return true; /* its result says of what */
	case GPU_MMAP:
		return enter_mmap(st, task, &args);
	case GPU_MUNMAP:
		return enter_unmap(st, args.v[0], args.v[1]);
	case GPU_MREMAP:
		return enter_mremap(st, &args);
	case GPU_POLL:
		return enter_poll(st, task, &args, scratch);
	case GPU_EPOLL:
		return enter_epoll(st, task, &args, scratch);
	default:
		return enter_close(st, task, &args);
	}
}

static __always_inline __u8 gpu_kind_of(__u64 number)
{
	return number < GPU_NUMBERS ? gpu_setup.kinds[number] : GPU_NOTHING;
}

/* --- calls of before the start ---------------------------------------------------------------- */

/* The same of a call that has begun already. What it closes or unmaps is no longer to be seen. */
static __always_inline bool gpu_call_began(struct gpu_call *st, struct task_struct *task, __u8 kind,
					   __u32 scratch)
{
	if (kind == GPU_CLOSE || kind == GPU_MUNMAP || kind == GPU_MREMAP ||
	    !gpu_call_begin(st, task, kind, scratch))
		return false;
	st->key.pid = target_pid(task);
	st->key.tid = target_tid(task);
	st->key.flags |= GPU_BEFORE;
	st->crowded = 0;
	return true;
}

/* The call that a task sleeps in at the start, if none of its own was seen since; NULL: none. */
static __always_inline struct gpu_call *gpu_call_of_sleeper(struct task_struct *task)
{
	struct gpu_call *st;
	__u32 code;
	__u8 kind;

	if (TASK_READ(task, flags) & PF_KTHREAD || !call_of_sleeper(task, &code))
		return NULL;
	kind = gpu_kind_of(code);
	if (!kind || kind >= GPU_KINDS)
		return NULL;
	st = gpu_calls_new(task);
	if (!st) {
		gpu_count(GPU_STATES_FULL);
		return NULL;
	}
	if (st->seen || !gpu_call_began(st, task, kind, GPU_SCRATCH_ITERATOR))
		return NULL;
	st->enter_ns = gpu_shared.start_ns ? gpu_shared.start_ns : bpf_ktime_get_ns();
	barrier();
	if (st->seen) /* it has run meanwhile, and was counted at its end */
		st->enter_ns = 0;
	return st->enter_ns ? st : NULL;
}

/* At the end of a call whose begin no program saw: the state is the call's now, with what only the
 * thread itself can read. It is in it since now if no iterator has met it. NULL: it is none. */
static __always_inline struct gpu_call *gpu_call_at_end(struct task_struct *task, __u8 kind,
							__u64 now_ns)
{
	struct gpu_call *st;
	__u64 since_ns;

	st = gpu_calls_new(task);
	if (!st) {
		gpu_count(GPU_STATES_FULL);
		return NULL;
	}
	since_ns = st->enter_ns;
	st->seen = 1;
	st->enter_ns = 0;
	if (!gpu_call_began(st, task, kind, GPU_SCRATCH_CALL))
		return NULL;
	st->enter_ns = since_ns ? since_ns : now_ns;
	return st;
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
	e->range_bytes = st->range_bytes;
	e->lost_before = gpu_shared.lost_events;
	e->remap_flags = st->remap_flags;
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

/* At the end of an ioctl: what could not be read at its begin, and what the driver says. */
static __noinline int end_ioctl(struct gpu_call *st, struct task_struct *task, bool failed)
{
	if (st->key.flags & GPU_UNREADABLE) {
		st->key.flags &= ~(GPU_UNREADABLE | GPU_NO_LAYOUT);
		read_struct(st, task, GPU_SCRATCH_CALL);
	}
	if (!failed)
		st->key.status =
			read_u32(st, st->layout.status_off, GPU_HAS_STATUS, task, GPU_SCRATCH_CALL);
	if (st->key.flags & GPU_UNREADABLE)
		gpu_count(GPU_READS_FAILED);
	return 0;
}

/* What the call was of, and how it ended; false: not of a device. */
static __noinline bool gpu_call_end(struct gpu_call *st, struct task_struct *task, __s64 result)
{
	bool failed = result < 0 && result >= -4095;
	struct found_device device = {};

	if (st->key.kind == GPU_OPEN) {
		if (failed ? !find_device_of_path(st->arg, &device)
			   : !find_device_of_fd(task, result, &device))
			return false;
		set_device(&st->key, &device);
	}
	if (st->key.kind == GPU_IOCTL)
		end_ioctl(st, task, failed);
	if (failed) {
		st->key.flags |= GPU_FAILED;
		st->key.status = -result;
		st->length_bytes = 0;
		return true;
	}
	if (st->key.kind == GPU_CLOSE)
		__sync_fetch_and_add(&gpu_shared.set_changes, 1);
	if (st->key.kind == GPU_MMAP)
		st->arg = result;
	return true;
}

#endif
