/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What findings are made of, counted beside the rows. */
#ifndef BPF_SYSCALLS_DETAILS_BPF_H
#define BPF_SYSCALLS_DETAILS_BPF_H

#include "syscalls_futex.bpf.h"

enum {
	EAGAIN = 11,
	SMALL_WRITE_BYTES = 256,
	IOCTL_NVIDIA = 'F', /* NV_IOCTL_MAGIC, nv-ioctl-numbers.h of the open kernel modules */
	NVIDIA_MAJOR = 195,
	GPU_OPEN_SLOW_NS = 100 * 1000 * 1000,
	IDLE_CONDITION_NS = 20 * 1000 * 1000,
	IDLE_WAIT_NS = 500 * 1000 * 1000,
};

/* A node of NVIDIA's driver, by its number or (a stand-in of it) by its name. */
static __noinline int is_gpu_file(struct file___file *file)
{
	char name[8] = {};

	if (!file)
		return 0;
	if (BPF_CORE_READ(file, f_inode, i_rdev) >> 20 == NVIDIA_MAJOR)
		return 1;
	bpf_probe_read_kernel_str(name, sizeof(name),
				  BPF_CORE_READ(file, f_path.dentry, d_name.name));
	return name[0] == 'n' && name[1] == 'v' && name[2] == 'i' && name[3] == 'd' &&
	       name[4] == 'i' && name[5] == 'a';
}

static __always_inline bool add_to_detail(const struct syscalls_detail_key *key, __u64 sum)
{
	struct syscalls_detail *at = bpf_map_lookup_elem(&details, key);

	if (!at)
		return false;
	__sync_fetch_and_add(&at->count, 1);
	__sync_fetch_and_add(&at->sum, sum);
	if (sum > at->max) /* of two at once the smaller may stay */
		at->max = sum;
	return true;
}

static __noinline void add_detail_key(const struct syscalls_detail_key *key, __u64 sum)
{
	struct syscalls_detail first = {.count = 1, .sum = sum, .max = sum};

	if (add_to_detail(key, sum))
		return;
	if (bpf_map_update_elem(&details, key, &first, BPF_NOEXIST) && !add_to_detail(key, sum))
		count(SYSCALLS_DETAILS_FULL, 1);
}

static __noinline void add_detail(__u32 kind, __u32 id, __u64 value, __u64 sum)
{
	struct syscalls_detail_key key = {.kind = kind, .id = id, .value = value};

	add_detail_key(&key, sum);
}

/* A server's most frequent detail. Its key has the thread, so that nobody else counts there. */
static __noinline int small_write(struct finished *f, __u32 pid, __u32 tid, __s32 fd)
{
	struct syscalls_detail_key key = {
		.kind = SYSCALLS_SMALL_WRITE, .id = tid, .value = (__u64)pid << 32 | (__u32)fd};
	struct syscalls_detail first = {.count = 1, .sum = f->result, .max = f->result};
	struct syscalls_detail *at = bpf_map_lookup_elem(&details, &key);

	if (at) {
		at->count++;
		at->sum += f->result;
		return 0;
	}
	note_file(f->st, f->task, fd);
	first.file = f->st->file;
	if (bpf_map_update_elem(&details, &key, &first, BPF_NOEXIST))
		count(SYSCALLS_DETAILS_FULL, 1);
	return 0;
}

/* A guess: conditions and semaphores (WAIT_BITSET in glibc) are waited at for long when there is
 * nothing to do, mutexes (WAIT) only when something is wrong; Go parks its threads with WAIT. A
 * time-out is how CPython asks for its lock. */
static __noinline int is_idle_futex(struct task_struct *task, __u64 waited_ns)
{
	struct call_args args;
	__u32 op;

	if (waited_ns < IDLE_CONDITION_NS || call_args_read(task, &args))
		return 0;
	op = args.v[1] & FUTEX_OP_MASK;
	if (op == FUTEX_WAIT_BITSET && !args.v[3])
		return 1;
	return (op == FUTEX_WAIT_BITSET || op == FUTEX_WAIT) && waited_ns >= IDLE_WAIT_NS;
}

static __always_inline int futex_wait(struct finished *f, __u32 pid, const struct call_args *args)
{
	__u32 op = args->v[1] & FUTEX_OP_MASK;

	if (!futex_waits(op))
		return 0;
	if (f->result == -EAGAIN)
		add_detail(SYSCALLS_LOCK_RACES, pid, args->v[0], 0);
	else
		add_detail(SYSCALLS_LOCK, pid, args->v[0], f->latency_ns);
	return 0;
}

/* The ids of the current task, by a helper where that has the right numbers. */
static __always_inline void current_ids(struct task_struct *task, __u32 *pid, __u32 *tid)
{
	__u64 both;

	if (target_setup.pid_ns_inode) {
		*pid = target_pid(task);
		*tid = target_tid(task);
		return;
	}
	both = bpf_get_current_pid_tgid();
	*pid = both >> 32;
	*tid = both;
}

static __always_inline long first_arg(struct finished *f, __u64 *ret)
{
#if defined(__TARGET_ARCH_x86)
	if (f->regs) {
		*ret = f->regs->di;
		return 0;
	}
#endif
	return call_first_arg_read(f->task, ret);
}

static __noinline int add_details(struct finished *f)
{
	__u32 traits = f->traits, pid, tid;
	struct call_args args;
	__u64 fd;

	/* Most of those that come here. */
	if (traits & SYSCALLS_WRITES) {
		if (f->result < 0 || f->result >= SMALL_WRITE_BYTES || first_arg(f, &fd))
			return 0;
		current_ids(f->task, &pid, &tid);
		return small_write(f, pid, tid, (__s32)fd);
	}
	current_ids(f->task, &pid, &tid);
	if (traits & SYSCALLS_YIELDS) {
		add_detail(SYSCALLS_YIELD, tid, 0, f->latency_ns);
		return 0;
	}
	if (call_args_read(f->task, &args))
		return 0;
	if (traits & SYSCALLS_FUTEX)
		return futex_wait(f, pid, &args);
	if (traits & SYSCALLS_MAPS && f->result >= 0)
		add_detail(SYSCALLS_MAP, pid, args.v[1], args.v[1]);
	else if (traits & SYSCALLS_UNMAPS && f->result >= 0)
		add_detail(SYSCALLS_UNMAP, pid, args.v[1], args.v[1]);
	else if (traits & SYSCALLS_EPOLL && !(__s32)args.v[3] && f->result >= 0 && f->result <= 1)
		add_detail(SYSCALLS_BUSY_POLL, tid, 0, f->latency_ns);
	else if (traits & SYSCALLS_IOCTL && ((__u32)args.v[1] >> 8 & 0xff) == IOCTL_NVIDIA &&
		 is_gpu_file(file_of_fd(f->task, args.v[0])))
		add_detail(SYSCALLS_GPU_IOCTL, args.v[1] & 0xff, 0, f->latency_ns);
	else if (traits & SYSCALLS_FD_RESULT && f->result >= 0 &&
		 f->latency_ns > GPU_OPEN_SLOW_NS && is_gpu_file(file_of_fd(f->task, f->result)))
		add_detail(SYSCALLS_GPU_OPEN, pid, 0, f->latency_ns);
	return 0;
}

#endif
