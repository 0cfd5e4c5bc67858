/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What every wanted task is at now, for a reader: state, since when, the registers of its user
 * code, the syscall it is in, and its kernel stack. Nothing is attached and nothing is stopped; the
 * user stack is walked by the tool, from these registers.
 */
#include "lib/kernel_types.h"

#include <stddef.h>

#include "lib/filter.bpf.h"
#include "lib/stack.bpf.h"
#include "tasks.abi.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

const volatile struct tasks_setup setup;
struct tasks_shared shared;

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, TASKS_NAMED_MAX);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, __u32);
	__type(value, __u8);
} named SEC(".maps");

struct scratch {
	struct pt_regs regs;
	struct unwind_state state;
	struct tasks_record record;
	__u8 stack[TASKS_STACK_PAGES * TASKS_PAGE_BYTES];
};

/* Too large for the stack. A program of an iterator is not interrupted by another run of it. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct scratch);
} scratches SEC(".maps");

/* The run queue that a task is on, or was on last. The variable itself is in BTF, but its address
 * is known only with CONFIG_KALLSYMS_ALL. NULL: not known (no CONFIG_FAIR_GROUP_SCHED). */
static __always_inline struct rq *rq_of(struct task_struct *task)
{
	if (!bpf_core_field_exists(task->se.cfs_rq) || !bpf_core_field_exists(struct cfs_rq, rq))
		return NULL;
	return BPF_CORE_READ(task, se.cfs_rq, rq);
}

/*
 * exec_start is the run queue's clock_task, which leaves out what interrupts and the hypervisor
 * took (update_rq_clock_task); the clock itself is nearly the same on all CPUs.
 */
static __always_inline void take_times(struct task_struct *task, struct tasks_record *r)
{
	struct rq *rq = rq_of(task);

	r->exec_start = BPF_CORE_READ(task, se.exec_start);
	r->ran_until = 0;
	r->queued_at = 0;
	if (bpf_core_field_exists(task->sched_info.last_queued))
		r->queued_at = BPF_CORE_READ(task, sched_info.last_queued);
	if (rq && r->exec_start)
		r->ran_until =
			r->exec_start + BPF_CORE_READ(rq, clock) - BPF_CORE_READ(rq, clock_task);
}

/* The reader has just come onto this CPU: its run queue's clock is of now. */
static __always_inline void take_clocks(void)
{
	struct rq *rq = rq_of(this_task());

	shared.now_ns = bpf_ktime_get_ns();
	if (rq)
		shared.sched_now = BPF_CORE_READ(rq, clock);
}

#if defined(__TARGET_ARCH_x86)
static __always_inline void take_syscall(struct task_struct *task, const struct pt_regs *r,
					 struct tasks_record *to)
{
	to->syscall_nr = (__s64)r->orig_ax;
	to->calls_32_bit = to->is_32_bit || BPF_CORE_READ(task, thread_info.status) & TS_COMPAT;
	if (to->calls_32_bit) {
		to->args[0] = r->bx;
		to->args[1] = r->cx;
		to->args[2] = r->dx;
		to->args[3] = r->si;
		to->args[4] = r->di;
		to->args[5] = r->bp;
	} else {
		to->args[0] = r->di;
		to->args[1] = r->si;
		to->args[2] = r->dx;
		to->args[3] = r->r10;
		to->args[4] = r->r8;
		to->args[5] = r->r9;
	}
}
#elif defined(__TARGET_ARCH_arm64)
static __always_inline void take_syscall(struct task_struct *task, const struct pt_regs *r,
					 struct tasks_record *to)
{
	const struct pt_regs___syscall *more = (const void *)task_user_regs(task);

	to->syscall_nr = BPF_CORE_READ(more, syscallno);
	to->args[0] = BPF_CORE_READ(more, orig_x0);
	for (int i = 1; i < TASKS_ARGS; i++)
		to->args[i] = r->regs[i];
}
#endif

static __always_inline void take_registers(struct task_struct *task, struct scratch *s)
{
	struct tasks_record *r = &s->record;

	r->has_regs = 0;
	r->is_32_bit = 0;
	r->calls_32_bit = 0;
	r->syscall_nr = -1;
	if (r->flags & PF_KTHREAD || !task->mm)
		return;
	if (bpf_probe_read_kernel(&s->regs, sizeof(s->regs), task_user_regs(task)))
		return;
	/* Zeros: a worker that io_uring made in the process. */
	if (!regs_are_user(&s->regs))
		return;
	STATE_FROM_REGS(&s->state, &s->regs);
	r->has_regs = 1;
	r->is_32_bit = !!(REGS_ARE_32_BIT(&s->regs));
	r->pc = s->state.pc;
	__builtin_memcpy(r->regs, s->state.r, sizeof(r->regs));
	take_syscall(task, &s->regs, r);
}

static __always_inline __u32 own_tid(struct task_struct *task)
{
	struct pid *pid = BPF_CORE_READ(task, thread_pid);
	unsigned int level = BPF_CORE_READ(pid, level);
	struct upid *at = &pid->numbers[0];
	int nr = 0;

	if (level >= PID_LEVELS_MAX)
		return 0;
	at = (void *)at + level * bpf_core_type_size(struct upid);
	bpf_core_read(&nr, sizeof(nr), &at->nr);
	return nr;
}

static __always_inline bool is_wanted(__u32 pid, __u32 tid)
{
	__u32 key = shared.filter == TASKS_THREADS ? tid : pid;

	return shared.filter == TASKS_ALL || bpf_map_lookup_elem(&named, &key);
}

static __always_inline void take_kernel_stack(struct task_struct *task, struct tasks_record *r)
{
	long bytes = r->on_cpu ? 0 : bpf_get_task_stack(task, r->kernel, sizeof(r->kernel), 0);

	r->n_kernel = bytes > 0 ? (__u16)(bytes / 8) : 0;
}

/* For the tool where it may not read the process's memory itself. Up to the first page that can't
 * be read. */
static __always_inline __u16 copy_stack(struct task_struct *task, struct scratch *s)
{
	__u64 page_va = s->record.regs[UNWIND_SLOT_SP] & ~(__u64)(TASKS_PAGE_BYTES - 1);
	__u16 n = 0;

	if (!s->record.has_regs || s->record.on_cpu)
		return 0;
#pragma clang loop unroll(full)
	for (int i = 0; i < TASKS_STACK_PAGES; i++) {
		if (n == i &&
		    !bpf_copy_from_user_task(s->stack + i * TASKS_PAGE_BYTES, TASKS_PAGE_BYTES,
					     (void *)(page_va + i * TASKS_PAGE_BYTES), task, 0))
			n = i + 1;
	}
	return n;
}

static __always_inline int list(struct bpf_iter__task *ctx, bool with_stack)
{
	struct task_struct *task = ctx->task;
	__u32 zero = 0, pid, tid;
	struct tasks_record *r;
	struct scratch *s;
	__u64 size_bytes, stack_bytes;

	if (!shared.now_ns)
		take_clocks();
	if (!task)
		return 0;
	pid = task_pid(task, setup.pid_ns_inode);
	tid = task_tid(task, setup.pid_ns_inode);
	if (!tid || !is_wanted(pid, tid))
		return 0;
	s = bpf_map_lookup_elem(&scratches, &zero);
	if (!s)
		return 0;
	r = &s->record;
	r->pid = pid;
	r->tid = tid;
	r->own_tid = own_tid(task);
	r->on_cpu = BPF_CORE_READ(task, on_cpu);
	r->state = task_state(task) | BPF_CORE_READ(task, exit_state);
	r->flags = BPF_CORE_READ(task, flags);
	r->frozen = task_is_frozen(task, r->state);
	bpf_core_read_str(r->comm, sizeof(r->comm), &task->comm);
	take_times(task, r);
	take_registers(task, s);
	take_kernel_stack(task, r);
	r->stack_pages = with_stack ? copy_stack(task, s) : 0;
	size_bytes = TASKS_HEAD_BYTES + (__u64)r->n_kernel * 8;
	stack_bytes = (__u64)r->stack_pages * TASKS_PAGE_BYTES;
	r->size_bytes = size_bytes + stack_bytes;
	barrier_var(size_bytes);
	if (size_bytes > sizeof(*r))
		return 0;
	/* -EOVERFLOW when the buffer is full: the kernel hands it on and asks again. */
	bpf_seq_write(ctx->meta->seq, r, size_bytes);
	barrier_var(stack_bytes);
	if (with_stack && stack_bytes <= sizeof(s->stack))
		bpf_seq_write(ctx->meta->seq, s->stack, stack_bytes);
	return 0;
}

SEC("iter/task")
int list_task(struct bpf_iter__task *ctx)
{
	return list(ctx, false);
}

/* bpf_copy_from_user_task: 5.18. */
SEC("iter.s/task")
int list_task_with_stack(struct bpf_iter__task *ctx)
{
	return list(ctx, true);
}
