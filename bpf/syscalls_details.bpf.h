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

/* One of the first four arguments; n is known to the compiler. */
static __always_inline __u64 arg_of(const struct finished *f, int n)
{
	__u64 value = 0;

#if defined(__TARGET_ARCH_x86)
	if (f->regs) {
		value = *call_arg_at(f->regs, n);
		/* One load for this and for the stack: the verifier of 6.1 refuses it. */
		barrier_var(value);
		return value;
	}
#endif
	call_arg_read(f->task, n, &value);
	return value;
}

static __always_inline void futex_wait(const struct finished *f, __u32 pid)
{
	if (!futex_waits(arg_of(f, 1) & FUTEX_OP_MASK))
		return;
	if (f->result == -EAGAIN)
		add_detail(SYSCALLS_LOCK_RACES, pid, arg_of(f, 0), 0);
	else
		add_detail(SYSCALLS_LOCK, pid, arg_of(f, 0), f->latency_ns);
}

static __always_inline void gpu_call(const struct finished *f, __u32 pid)
{
	__u32 command = arg_of(f, 1);

	if (f->traits & SYSCALLS_IOCTL) {
		if ((command >> 8 & 0xff) == IOCTL_NVIDIA &&
		    is_gpu_file(file_of_fd(f->task, arg_of(f, 0))))
			add_detail(SYSCALLS_GPU_IOCTL, command & 0xff, 0, f->latency_ns);
	} else if (f->result >= 0 && f->latency_ns > GPU_OPEN_SLOW_NS &&
		   is_gpu_file(file_of_fd(f->task, f->result))) {
		add_detail(SYSCALLS_GPU_OPEN, pid, 0, f->latency_ns);
	}
}

/* What is seldom or cheap is asked first: most calls end there. */
static __noinline int add_details(struct finished *f)
{
	__u32 traits = f->traits, pid, tid;
	__u64 bytes;

	if (traits & SYSCALLS_WRITES && (f->result < 0 || f->result >= SMALL_WRITE_BYTES))
		return 0;
	if (traits & SYSCALLS_EPOLL && (f->result < 0 || f->result > 1 || (__s32)arg_of(f, 3)))
		return 0;
	current_ids(f->task, &pid, &tid);
	if (traits & SYSCALLS_WRITES) {
		small_write(f, pid, tid, (__s32)arg_of(f, 0));
	} else if (traits & SYSCALLS_YIELDS) {
		add_detail(SYSCALLS_YIELD, tid, 0, f->latency_ns);
	} else if (traits & SYSCALLS_EPOLL) {
		add_detail(SYSCALLS_BUSY_POLL, tid, 0, f->latency_ns);
	} else if (traits & SYSCALLS_FUTEX) {
		futex_wait(f, pid);
	} else if (traits & (SYSCALLS_MAPS | SYSCALLS_UNMAPS)) {
		bytes = arg_of(f, 1);
		if (f->result >= 0)
			add_detail(traits & SYSCALLS_MAPS ? SYSCALLS_MAP : SYSCALLS_UNMAP, pid,
				   bytes, bytes);
	} else {
		gpu_call(f, pid);
	}
	return 0;
}

#endif
