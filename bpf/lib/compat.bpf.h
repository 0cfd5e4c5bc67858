/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Where kernels differ, each case with its version. */
#ifndef BPF_LIB_COMPAT_BPF_H
#define BPF_LIB_COMPAT_BPF_H

#include "kernel_types.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

enum {
	PF_KTHREAD = 0x00200000, /* include/linux/sched.h */
	PID_LEVELS_MAX = 32,     /* MAX_PID_NS_LEVEL, include/linux/pid_namespace.h */
	USER32_CS = 0x23,        /* arch/x86/include/asm/segment.h */
	TS_COMPAT = 0x2,         /* arch/x86/include/asm/thread_info.h */
	PSR_MODE32 = 0x10,       /* arch/arm64/include/uapi/asm/ptrace.h */
	PSR_MODE_MASK = 0x0f,
	PF_EXITING = 0x00000004,
	/* THREAD_SIZE of x86-64, and of arm64 with pages of 4 and 16 KiB. */
	KERNEL_STACK_BYTES = 16384,
};

#if defined(__TARGET_ARCH_x86)
static __always_inline bool regs_are_user(const struct pt_regs *r)
{
	return r->cs & 3;
}
#define REGS_ARE_32_BIT(r) (((r)->cs & 0xffff) == USER32_CS)
#define REGS_IP(r) ((r)->ip)
#define REGS_ARG2(r) ((r)->si) /* of a system call */
#define REGS_ARG3(r) ((r)->dx)
#elif defined(__TARGET_ARCH_arm64)
static __always_inline bool regs_are_user(const struct pt_regs *r)
{
	return !(r->pstate & PSR_MODE_MASK);
}
#define REGS_ARE_32_BIT(r) ((r)->pstate & PSR_MODE32)
#define REGS_IP(r) ((r)->pc)
#define REGS_ARG2(r) ((r)->regs[1])
#define REGS_ARG3(r) ((r)->regs[2])
#endif

/* Whether a perf event has hit user code. */
static __always_inline bool context_is_user(struct bpf_perf_event_data *ctx)
{
#if defined(__TARGET_ARCH_x86)
	return ctx->regs.cs & 3;
#else
	return !(ctx->regs.pstate & PSR_MODE_MASK);
#endif
}

/* Since 5.13 tracing programs have task storage, and a current task whose type the verifier knows
 * (5.11); bpf_for_each_map_elem came with it. Before, it is a number, whose fields must be read. */
#define HAS_TASK_STORAGE bpf_core_enum_value_exists(enum bpf_func_id, BPF_FUNC_for_each_map_elem)

static __always_inline struct task_struct *this_task(void)
{
	if (HAS_TASK_STORAGE)
		return bpf_get_current_task_btf();
	return (struct task_struct *)bpf_get_current_task();
}

/* A load where that is possible. */
#define TASK_READ(task, field) (HAS_TASK_STORAGE ? (task)->field : BPF_CORE_READ(task, field))

/* bpf_task_pt_regs: 5.15. Before, a task's registers lie at the end of its kernel stack, without
 * the padding of 6.9 (task_pt_regs in arch/{x86,arm64}/include/asm/processor.h). */
#define HAS_TASK_REGS bpf_core_enum_value_exists(enum bpf_func_id, BPF_FUNC_task_pt_regs)

static __always_inline const struct pt_regs *regs_on_stack(struct task_struct *task)
{
	return BPF_CORE_READ(task, stack) + KERNEL_STACK_BYTES - bpf_core_type_size(struct pt_regs);
}

/* Where the registers are that a task's user code had when it entered the kernel, whatever is there
 * if it never did. */
static __always_inline const struct pt_regs *task_user_regs(struct task_struct *task)
{
	if (HAS_TASK_REGS)
		return (const struct pt_regs *)bpf_task_pt_regs(task);
	return regs_on_stack(task);
}

static __always_inline long read_user_regs(struct pt_regs *ret)
{
	return bpf_probe_read_kernel(ret, sizeof(*ret), task_user_regs(this_task()));
}

/* The id of the event whose tick this is, as PERF_EVENT_IOC_ID gives it: links with a cookie are of
 * 5.15. What the program gets as its context is a bpf_perf_event_data_kern; only loads from it are
 * translated. */
static __always_inline __u64 current_event_id(struct bpf_perf_event_data *ctx)
{
	struct bpf_perf_event_data_kern *kern = (void *)ctx;

	return BPF_CORE_READ(kern, event, id);
}

/* Called `state` before 5.14. */
static __always_inline __u32 task_state(struct task_struct *task)
{
	struct task_struct___old_state *old = (void *)task;

	if (bpf_core_field_exists(task->__state))
		return BPF_CORE_READ(task, __state);
	return BPF_CORE_READ(old, state);
}

/* include/linux/sched.h */
enum { TASK_FROZEN = 0x8000, PF_FROZEN = 0x00010000, PF_IS_KTHREAD = 0x00200000 };

/* By the freezer of its cgroup: v2 has a bit of the task; v1 a state since 6.1, a flag before,
 * which means something else of later kernels' threads. */
static __always_inline bool task_is_frozen(struct task_struct *task, __u32 state)
{
	if (state & TASK_FROZEN || (task->flags & (PF_FROZEN | PF_IS_KTHREAD)) == PF_FROZEN)
		return true;
	return bpf_core_field_exists(task->frozen) && BPF_CORE_READ_BITFIELD(task, frozen);
}

/* The syscall that a task is in, with its first argument, by the registers at its entry; -1 for an
 * exception. */
#if defined(__TARGET_ARCH_x86)
static __always_inline __s32 regs_syscall(struct task_struct *task, const struct pt_regs *r,
					  __u64 *ret_arg)
{
	*ret_arg = r->di;
	return (__s32)r->orig_ax;
}

static __always_inline __s32 task_syscall(struct task_struct *task)
{
	const struct pt_regs *r = task_user_regs(task);
	__u64 nr = 0;

	if (HAS_TASK_REGS)
		return (__s32)r->orig_ax;
	bpf_probe_read_kernel(&nr, sizeof(nr), &r->orig_ax);
	return (__s32)nr;
}
#elif defined(__TARGET_ARCH_arm64)
/* struct pt_regs continues behind user_pt_regs: orig_x0, syscallno
 * (arch/arm64/include/asm/ptrace.h). */
static __always_inline __s32 regs_syscall(struct task_struct *task, const struct pt_regs *r,
					  __u64 *ret_arg)
{
	struct {
		__u64 orig_x0;
		__s32 nr, unused;
	} more = {};

	if (bpf_probe_read_kernel(&more, sizeof(more), (void *)task_user_regs(task) + sizeof(*r)))
		return -1;
	*ret_arg = more.orig_x0;
	return more.nr;
}

static __always_inline __s32 task_syscall(struct task_struct *task)
{
	__u64 unused;

	return regs_syscall(task, task_user_regs(task), &unused);
}
#endif

/*
 * Whether the current code runs for an interrupt, and not for the task. `ctx` is that of a tp_btf
 * program: the tracepoint's arguments, which lie on the kernel stack in use. Interrupts have one
 * of their own, but those that come out of user code on x86 (call_on_irqstack_cond): there the
 * saved registers are those of no syscall, as for page faults. preempt_count would be exact,
 * but a program that names it does not load where kallsyms has no variables (CONFIG_KALLSYMS_ALL).
 */
static __always_inline bool is_in_interrupt(void *ctx, struct task_struct *task)
{
	__u64 at = (__u64)ctx, stack = (__u64)TASK_READ(task, stack);

	if (!TASK_READ(task, pid) || at < stack || at >= stack + KERNEL_STACK_BYTES)
		return true;
	if (TASK_READ(task, flags) & PF_KTHREAD)
		return false;
	return task_syscall(task) == -1;
}

/* The quota of its cgroup keeps the task off its CPU. Before 6.18 the queue it is on says so, which
 * may be said of neighbours too. */
static __always_inline bool is_throttled(struct task_struct *task)
{
	struct task_struct___quota *quota = (void *)task;

	if (bpf_core_field_exists(quota->throttled))
		return BPF_CORE_READ(quota, throttled);
	return bpf_core_field_exists(task->se.cfs_rq->throttle_count) &&
	       BPF_CORE_READ(task, se.cfs_rq, throttle_count) > 0;
}

/* How long the queue that the task is on has been throttled, without the time that has not ended
 * yet: 6.6; 0 before. */
static __always_inline __u64 throttled_ns(struct task_struct *task)
{
	struct cfs_rq___quota *queue = (void *)BPF_CORE_READ(task, se.cfs_rq);

	return bpf_core_field_exists(queue->throttled_clock_self_time)
		       ? BPF_CORE_READ(queue, throttled_clock_self_time)
		       : 0;
}

#endif
