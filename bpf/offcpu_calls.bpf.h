/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * System calls in place of waits: the time in each, added up by the stack that made it. A thread
 * is in a call while it is not `running`. Of the kernel's stack nothing is taken: where a call
 * enters it is the same place for all.
 */
#ifndef OFFCPU_CALLS_BPF_H
#define OFFCPU_CALLS_BPF_H

static __always_inline bool is_wanted_call(__u32 code)
{
	barrier_var(code); /* the compiler may not forget the bound, which the verifier needs */
	code &= OFFCPU_CALL_CODES - 1;
	return calls.wanted[code / 64] >> (code & 63) & 1;
}

static __always_inline bool moves_bytes(__u32 code)
{
	if (code >= OFFCPU_CALL_CODES / 4) /* the numbers of other ABIs mean something else */
		return false;
	barrier_var(code);
	code &= OFFCPU_CALL_CODES / 4 - 1;
	return calls.moves_bytes[code / 64] >> (code & 63) & 1;
}

/* Until it is told otherwise, without a stack. */
static __always_inline void begin_call(struct thread *t, __u32 code, __u8 flags)
{
	struct offcpu_key *call = &t->wait;

	if (!is_wanted_call(code))
		return;
	call->stack = call->chain = call->arg = call->inode = 0;
	call->file_mode = 0;
	call->waker = OFFCPU_WAKER_NONE;
	call->how = OFFCPU_IN_CALL;
	call->nr = (__s32)code;
	call->flags = flags;
	t->running = false;
	t->since_ns = bpf_ktime_get_ns();
}

/* A thread that was there at the start: one that sleeps is in a call. */
static __always_inline void begin_in_call(struct thread *t, struct task_struct *task)
{
	__u32 code;

	t->running = true;
	if (call_of_sleeper(task, &code))
		begin_call(t, code, OFFCPU_BEFORE);
}

SEC("tp_btf/sys_enter")
int BPF_PROG(on_call, struct pt_regs *regs, long number)
{
	struct task_struct *task = this_task();
	struct unwind_walk *w;
	struct thread *t;
	__u32 zero = 0;

	if (!target_shared.active)
		return 0;
	t = threads_of(task);
	w = bpf_map_lookup_elem(&unwind_walks, &zero);
	if (!t || !w)
		return 0;
	t->running = true;
	begin_call(t, call_code(task, number), 0);
	if (t->running || !setup.with_stacks)
		return 0;
	t->wait.stack = stack_take(ctx, w, task, t->pid, t->tid, stack_registers(w, task), true);
	t->since_ns = bpf_ktime_get_ns(); /* what we take is not the call's */
	return 0;
}

SEC("tp_btf/sys_exit")
int BPF_PROG(on_call_end, struct pt_regs *regs, long result)
{
	__u64 now_ns = bpf_ktime_get_ns();
	struct offcpu_row *row;
	struct thread *t;

	if (!target_shared.active)
		return 0;
	t = threads_of(this_task());
	if (!t || t->running)
		return 0;
	t->running = true;
	row = add_wait(t, now_ns > t->since_ns ? now_ns - t->since_ns : 0, 0, now_ns);
	if (!row || t->wait.nr == calls.rt_sigreturn) /* its result is another call's */
		return 0;
	if (result < 0 && result >= -4095) {
		row->errors++;
	} else if (moves_bytes((__u32)t->wait.nr)) {
		row->bytes += result;
		row->io++;
	}
	return 0;
}

/* The call that ends a thread does not return, and is none that it is still in. */
SEC("tp_btf/sched_process_exit")
int BPF_PROG(on_caller_exit, struct task_struct *task)
{
	struct thread *t = threads_of(task);

	if (!t || !target_shared.active)
		return 0;
	end_thread(t, task, bpf_ktime_get_ns());
	if (HAS_TASK_STORAGE)
		bpf_task_storage_delete(&threads, task);
	threads_end(task);
	return 0;
}

#endif
