/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Waits at futexes by lock. A private futex is an address in a process; a shared one that lies in a
 * file is a place in it, so that processes which map it elsewhere mean the same lock.
 */
#ifndef BPF_SYSCALLS_LOCKS_BPF_H
#define BPF_SYSCALLS_LOCKS_BPF_H

#include "syscalls_details.bpf.h"
#include "syscalls_rows.bpf.h"

enum {
	FUTEX_WAKE = 1,
	FUTEX_REQUEUE = 3,
	FUTEX_CMP_REQUEUE = 4,
	FUTEX_WAKE_OP = 5,
	FUTEX_LOCK_PI = 6,
	FUTEX_UNLOCK_PI = 7,
	FUTEX_WAKE_BITSET = 10,
	FUTEX_WAIT_REQUEUE_PI = 11,
	FUTEX_CMP_REQUEUE_PI = 12,
	FUTEX_LOCK_PI2 = 13,
	FUTEX_PRIVATE = 128,
	FUTEX_TID_MASK = 0x3fffffff,
	FUTEX2_PRIVATE = 128,
	ETIMEDOUT = 110,
	PTHREAD_OWNER_OFFSET = 8, /* struct __pthread_mutex_s: lock, count, owner */
	NR_FUTEX_WAITV = 449,     /* the same on all machines, as those that follow */
	NR_FUTEX_WAKE = 454,
	NR_FUTEX_WAIT = 455,
	NR_FUTEX_REQUEUE = 456,
};

/* What a futex call is about. */
struct futex_call {
	__u64 user_va;
	__u32 op; /* as of futex(2), whichever call it is */
	__u32 n;  /* how many are to be woken */
	__u8 is_private;
};

static __noinline int futex_call_read(struct task_struct *task, __u32 code, struct futex_call *c)
{
	bool in_its_memory = task == bpf_get_current_task_btf();
	struct call_args args;
	__u32 flags = FUTEX2_PRIVATE;

	if (call_args_read(task, &args))
		return -1;
	c->user_va = args.v[0];
	c->n = args.v[2];
	if (code == NR_FUTEX_WAITV) {
		/* The first of them stands for all: struct futex_waitv {val, uaddr, flags}. */
		if (in_its_memory) {
			bpf_probe_read_user(&c->user_va, sizeof(c->user_va), (void *)args.v[0] + 8);
			bpf_probe_read_user(&flags, sizeof(flags), (void *)args.v[0] + 16);
		}
		c->op = FUTEX_WAIT;
		c->is_private = flags & FUTEX2_PRIVATE;
	} else if (code == NR_FUTEX_WAKE || code == NR_FUTEX_WAIT) {
		c->op = code == NR_FUTEX_WAKE ? FUTEX_WAKE : FUTEX_WAIT;
		c->is_private = args.v[3] & FUTEX2_PRIVATE;
	} else if (code == NR_FUTEX_REQUEUE) {
		bpf_probe_read_user(&c->user_va, sizeof(c->user_va), (void *)args.v[0] + 8);
		c->op = FUTEX_REQUEUE;
		c->is_private = 1;
	} else {
		c->op = args.v[1] & FUTEX_OP_MASK;
		c->is_private = args.v[1] & FUTEX_PRIVATE;
	}
	return 0;
}

static __always_inline bool futex_waits(__u32 op)
{
	return op == FUTEX_WAIT || op == FUTEX_WAIT_BITSET || op == FUTEX_WAIT_REQUEUE_PI ||
	       op == FUTEX_LOCK_PI || op == FUTEX_LOCK_PI2;
}

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct vm_area_struct {
	unsigned long vm_start, vm_pgoff;
	struct file___file *vm_file;
};

#pragma clang attribute pop

static long note_shared_place(struct task_struct *task, struct vm_area_struct *vma, void *ctx)
{
	struct syscalls_key *key = ctx;
	struct file___file *file = BPF_CORE_READ(vma, vm_file);
	struct syscalls_file_key name = {};
	struct inode___file *inode;

	if (!file)
		return 0;
	inode = BPF_CORE_READ(file, f_inode);
	name.inode = BPF_CORE_READ(inode, i_ino);
	name.device = BPF_CORE_READ(inode, i_sb, s_dev);
	name.generation = key->code = BPF_CORE_READ(inode, i_generation);
	key->inode -= BPF_CORE_READ(vma, vm_start);
	key->inode += BPF_CORE_READ(vma, vm_pgoff) << 12;
	key->cgroup = name.inode;
	key->device = name.device;
	key->pid = 0;
	keep_file_name(&name, file);
	return 0;
}

/* The key of the lock, in key->stack mixed to one number. */
static __noinline int lock_key(struct task_struct *task, const struct futex_call *c,
			       struct syscalls_key *key)
{
	key->pid = target_pid(task);
	key->inode = c->user_va;
	if (!c->is_private)
		bpf_find_vma(task, c->user_va, note_shared_place, key, 0);
	key->stack = (key->inode + key->cgroup * 0x9e3779b97f4a7c15ULL) ^
		     ((__u64)key->pid + key->device) * 0xbf58476d1ce4e5b9ULL;
	return 0;
}

/* At the beginning of a wait, who holds it: the word of a PI futex, or what glibc keeps behind the
 * word of a mutex. Of another kind of lock this is any number: the tool looks whether it is one of
 * the process's threads. */
static __noinline int note_holder(struct call_state *st, struct task_struct *task)
{
	struct futex_call c;
	__u32 owner = 0;

	st->fd = 0;
	if (futex_call_read(task, st->code, &c) || !futex_waits(c.op))
		return 0;
	if (c.op == FUTEX_LOCK_PI || c.op == FUTEX_LOCK_PI2)
		bpf_probe_read_user(&owner, sizeof(owner), (void *)c.user_va);
	else if (c.op == FUTEX_WAIT)
		bpf_probe_read_user(&owner, sizeof(owner),
				    (void *)c.user_va + PTHREAD_OWNER_OFFSET);
	st->fd = owner & FUTEX_TID_MASK;
	return 0;
}

static __noinline int add_waker(struct finished *f, const struct futex_call *c, __u64 lock)
{
	bool requeues = c->op == FUTEX_REQUEUE || c->op == FUTEX_CMP_REQUEUE ||
			c->op == FUTEX_CMP_REQUEUE_PI;

	if (f->result <= 0 && c->op != FUTEX_UNLOCK_PI)
		return 0;
	if (f->result < 0)
		return 0;
	add_detail(SYSCALLS_LOCK_WAKER, target_tid(f->task), lock, f->result);
	if (requeues || c->n >= 0x7fffffff)
		add_detail(SYSCALLS_LOCK_BROADCAST, 0, lock, f->result);
	return 0;
}

/* In place of the other rows. Whether it was a wait, whose row is to be added to. */
static __noinline int add_lock(struct finished *f, struct syscalls_key *key)
{
	__u32 tid = target_tid(f->task);
	struct futex_call c = {};

	if (futex_call_read(f->task, f->st->code, &c))
		return 0;
	lock_key(f->task, &c, key);
	if (!futex_waits(c.op)) {
		add_waker(f, &c, key->stack);
		return 0;
	}
	if (f->result == -EAGAIN) {
		add_detail(SYSCALLS_LOCK_EAGAIN, 0, key->stack, 0);
		return 0;
	}
	if (f->result == -ETIMEDOUT)
		add_detail(SYSCALLS_LOCK_TIMEOUT, 0, key->stack, f->latency_ns);
	add_detail(SYSCALLS_LOCK_WAITER, tid, key->stack, f->latency_ns);
	if (f->st->fd > 0)
		add_detail(SYSCALLS_LOCK_HOLDER, f->st->fd, key->stack, f->latency_ns);
	if (c.op == FUTEX_LOCK_PI || c.op == FUTEX_LOCK_PI2 || c.op == FUTEX_WAIT_REQUEUE_PI)
		add_detail(SYSCALLS_LOCK_PI, 0, key->stack, f->latency_ns);
	return 1;
}

#endif
