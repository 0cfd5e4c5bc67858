/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the calls about futexes ask for. */
#ifndef BPF_SYSCALLS_FUTEX_BPF_H
#define BPF_SYSCALLS_FUTEX_BPF_H

#include "syscalls_state.bpf.h"

enum {
	FUTEX_WAIT = 0,
	FUTEX_WAKE = 1,
	FUTEX_REQUEUE = 3,
	FUTEX_CMP_REQUEUE = 4,
	FUTEX_WAKE_OP = 5,
	FUTEX_LOCK_PI = 6,
	FUTEX_UNLOCK_PI = 7,
	FUTEX_WAIT_BITSET = 9,
	FUTEX_WAKE_BITSET = 10,
	FUTEX_WAIT_REQUEUE_PI = 11,
	FUTEX_CMP_REQUEUE_PI = 12,
	FUTEX_LOCK_PI2 = 13,
	FUTEX_OP_MASK = 0x7f,
	FUTEX_PRIVATE = 128, /* the same bit in the flags of the newer calls */
	FUTEX_TID_MASK = 0x3fffffff,
	FUTEX_ALL = 0x7fffffff,
	PTHREAD_OWNER_OFFSET = 8, /* struct __pthread_mutex_s: lock, count, owner */
	NR_FUTEX_WAITV = 449,     /* the same on all machines, as those that follow */
	NR_FUTEX_WAKE = 454,
	NR_FUTEX_WAIT = 455,
	NR_FUTEX_REQUEUE = 456,
};

/* struct futex_waitv, include/uapi/linux/futex.h. */
struct futex_waiter {
	__u64 value, user_va;
	__u32 flags, reserved;
};

static __always_inline bool futex_waits(__u32 op)
{
	return op == FUTEX_WAIT || op == FUTEX_WAIT_BITSET || op == FUTEX_WAIT_REQUEUE_PI ||
	       op == FUTEX_LOCK_PI || op == FUTEX_LOCK_PI2;
}

static __always_inline bool futex_is_pi(__u32 op)
{
	return op == FUTEX_LOCK_PI || op == FUTEX_LOCK_PI2 || op == FUTEX_WAIT_REQUEUE_PI;
}

static __always_inline bool futex_moves(__u32 op)
{
	return op == FUTEX_REQUEUE || op == FUTEX_CMP_REQUEUE || op == FUTEX_CMP_REQUEUE_PI;
}

/* The i-th of an array of them, of the current task. */
static __always_inline void futex_waiter_read(__u64 array_va, __u64 i, __u64 *ret_va,
					      __u8 *ret_private)
{
	struct futex_waiter waiter = {};

	if (bpf_probe_read_user(&waiter, sizeof(waiter), (void *)array_va + i * sizeof(waiter)))
		return;
	*ret_va = waiter.user_va;
	*ret_private = !!(waiter.flags & FUTEX_PRIVATE);
}

/* Of another task than the current one: without what its memory says. */
static __noinline int futex_call_read(struct task_struct *task, __u32 code, struct futex_call *c)
{
	bool in_its_memory = task == this_task();
	struct call_args args;

	*c = (struct futex_call){};
	if (call_args_read(task, &args))
		return -1;
	c->user_va = args.v[0];
	c->n = args.v[2];
	if (code == NR_FUTEX_WAITV) {
		/* The first stands for all, until its end says which. */
		c->op = FUTEX_WAIT;
		c->is_private = 1;
		c->n = args.v[1];
		c->several = c->n > 1 || !in_its_memory;
		if (in_its_memory)
			futex_waiter_read(args.v[0], 0, &c->user_va, &c->is_private);
	} else if (code == NR_FUTEX_WAKE || code == NR_FUTEX_WAIT) {
		c->op = code == NR_FUTEX_WAKE ? FUTEX_WAKE : FUTEX_WAIT;
		c->is_private = !!(args.v[3] & FUTEX_PRIVATE);
	} else if (code == NR_FUTEX_REQUEUE) {
		c->op = FUTEX_REQUEUE;
		c->moves_all = (__u32)args.v[3] == FUTEX_ALL;
		futex_waiter_read(args.v[0], 0, &c->user_va, &c->is_private);
		futex_waiter_read(args.v[0], 1, &c->to_va, &c->to_is_private);
	} else {
		c->op = args.v[1] & FUTEX_OP_MASK;
		c->is_private = c->to_is_private = !!(args.v[1] & FUTEX_PRIVATE);
		if (futex_moves(c->op) || c->op == FUTEX_WAIT_REQUEUE_PI || c->op == FUTEX_WAKE_OP)
			c->to_va = args.v[4];
		c->moves_all = futex_moves(c->op) && (__u32)args.v[3] == FUTEX_ALL;
	}
	return 0;
}

/* The one that ended a futex_waitv of the current task. */
static __noinline int futex_several_read(struct task_struct *task, __u64 which,
					 struct futex_call *c)
{
	__u64 array_va;

	if (!call_arg_read(task, 0, &array_va))
		futex_waiter_read(array_va, which, &c->user_va, &c->is_private);
	return 0;
}

/* Who holds it: the word of a PI futex, or what glibc keeps behind the word of a mutex. Of another
 * kind of lock this is any number: the tool looks whether it is one of the process's threads. */
static __always_inline __u32 futex_holder(const struct futex_call *c)
{
	__u32 owner = 0;

	if (c->op == FUTEX_LOCK_PI || c->op == FUTEX_LOCK_PI2)
		bpf_probe_read_user(&owner, sizeof(owner), (void *)c->user_va);
	else if (c->op == FUTEX_WAIT)
		bpf_probe_read_user(&owner, sizeof(owner),
				    (void *)c->user_va + PTHREAD_OWNER_OFFSET);
	return owner & FUTEX_TID_MASK;
}

#endif
