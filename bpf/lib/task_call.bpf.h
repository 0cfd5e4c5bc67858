/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The system call that a task is in: which one of which ABI, and with what arguments. */
#ifndef BPF_LIB_TASK_CALL_BPF_H
#define BPF_LIB_TASK_CALL_BPF_H

#include "compat.bpf.h"

enum {
	CALL_NUMBERS = 1024, /* of one ABI */
	CALL_I386 = 1,
	CALL_X32 = 2,
	X32_SYSCALL_BIT = 1 << 30, /* arch/x86/include/uapi/asm/unistd.h */
	E_TOO_BIG = 7,
};

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct thread_info___call {
	unsigned long flags;
	unsigned int status;
};

struct task_struct___call {
	struct thread_info___call thread_info;
	char comm[16];
};

struct pt_regs___call {
	__u64 orig_x0;
	__s32 syscallno;
};

struct bpf_iter_meta___call {
	struct seq_file *seq;
};

struct bpf_iter__task___call {
	struct bpf_iter_meta___call *meta;
	struct task_struct___call *task;
};

#pragma clang attribute pop

/* abi * CALL_NUMBERS + number; a number that no kernel has is the last one. */
static __always_inline __u32 call_code(struct task_struct *task, long number)
{
	__u32 nr = (__u32)number, abi = 0;

#if defined(__TARGET_ARCH_x86)
	if (TASK_READ((struct task_struct___call *)task, thread_info.status) & TS_COMPAT)
		abi = CALL_I386;
	else if (nr & X32_SYSCALL_BIT && nr < X32_SYSCALL_BIT + CALL_NUMBERS)
		abi = CALL_X32;
	if (abi == CALL_X32)
		nr -= X32_SYSCALL_BIT;
#endif
	if (nr >= CALL_NUMBERS)
		nr = CALL_NUMBERS - 1;
	return abi * CALL_NUMBERS + nr;
}

/* Its number, by the registers of its entry. */
static __always_inline __u64 regs_call(const struct pt_regs *regs)
{
#if defined(__TARGET_ARCH_x86)
	return regs->orig_ax;
#else
	return task_syscall(this_task());
#endif
}

struct call_args {
	__u64 v[6];
};

/* Of the call that it is in, or has just made: registers stay until it is back in user code. No
 * more of them than needed: the stack has little room. */
static __always_inline long call_args_read(struct task_struct *task, struct call_args *ret)
{
	const struct pt_regs *at = task_user_regs(task);
	long err;

#if defined(__TARGET_ARCH_x86)
	struct {
		unsigned long r10, r9, r8, ax, cx, dx, si, di;
	} r;

	err = bpf_probe_read_kernel(&r, sizeof(r), &at->r10);
	ret->v[0] = r.di;
	ret->v[1] = r.si;
	ret->v[2] = r.dx;
	ret->v[3] = r.r10;
	ret->v[4] = r.r8;
	ret->v[5] = r.r9;
#elif defined(__TARGET_ARCH_arm64)
	ret->v[0] = BPF_CORE_READ((const struct pt_regs___call *)at, orig_x0);
	err = bpf_probe_read_kernel(&ret->v[1], 5 * sizeof(ret->v[1]), &at->regs[1]);
#endif
	return err;
}

/* Where one of them lies in the registers of the call's entry. */
#if defined(__TARGET_ARCH_x86)
static __always_inline const unsigned long *call_arg_at(const struct pt_regs *r, int n)
{
	switch (n) {
	case 0:
		return &r->di;
	case 1:
		return &r->si;
	case 2:
		return &r->dx;
	default:
		return &r->r10;
	}
}
#elif defined(__TARGET_ARCH_arm64)
static __always_inline const void *call_arg_at(const struct pt_regs *r, int n)
{
	return n ? (const void *)&r->regs[n] : &((const struct pt_regs___call *)r)->orig_x0;
}
#endif

/* One of the first four alone, at a fraction of the cost; n is known to the compiler. */
static __always_inline long call_arg_read(struct task_struct *task, int n, __u64 *ret)
{
	return bpf_probe_read_kernel(ret, sizeof(*ret), call_arg_at(task_user_regs(task), n));
}

/* Whether a task sleeps in a call, and in which. One that runs may be in user code, with the
 * registers of its last call still there. */
static __always_inline bool call_of_sleeper(struct task_struct *task, __u32 *ret_code)
{
	const struct pt_regs *at = task_user_regs(task);
	long number;

	if (!task_state(task))
		return false;
#if defined(__TARGET_ARCH_x86)
	if (bpf_probe_read_kernel(&number, sizeof(number), &at->orig_ax))
		return false;
#elif defined(__TARGET_ARCH_arm64)
	number = BPF_CORE_READ((const struct pt_regs___call *)at, syscallno);
#endif
	if (number < 0)
		return false;
	*ret_code = call_code(task, number);
	return true;
}

#endif
