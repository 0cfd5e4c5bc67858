/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Calls of GPU drivers in place of waits: the time in each, added up by the stack that made it. A
 * thread is in a call while it is not `running`; what it is of has a number, in its key's `nr`.
 */
#ifndef OFFCPU_GPU_BPF_H
#define OFFCPU_GPU_BPF_H

enum { GPU_KEYS_MAX = 4096 };

/* Calls that were met, without who made them: their numbers, from 1 on. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, GPU_KEYS_MAX);
	__type(key, struct gpu_key);
	__type(value, __u32);
} gpu_keys SEC(".maps");

/* Numbers that were given out. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, GPU_KEYS_MAX);
	__type(key, __u32);
	__type(value, __u8);
} gpu_numbers SEC(".maps");

__u32 gpu_last_number; /* about: what is taken, the map knows */

/* 0: there is no room. Atomic operations that return something are of 5.12, and programs that sleep
 * have no locks before 6.3. */
static __noinline __u32 gpu_claim_number(void)
{
	__u8 taken = 1;

	for (__u32 i = 1; i <= 64; i++) {
		__u32 number = gpu_last_number + i;

		if (number > GPU_KEYS_MAX)
			break;
		if (!bpf_map_update_elem(&gpu_numbers, &number, &taken, BPF_NOEXIST)) {
			gpu_last_number = number;
			return number;
		}
		/* Before 6.8 a loop may not end in what is no jump (check_cfg: "back-edge"). */
		asm volatile("goto +0" : "+r"(i));
	}
	return 0;
}

/* Of a key without who made the call; 0: there is no room. */
static __noinline __u32 gpu_number_of_key(const struct gpu_key *key)
{
	__u32 *number = bpf_map_lookup_elem(&gpu_keys, key), next;

	if (number)
		return *number;
	next = gpu_claim_number();
	if (next)
		bpf_map_update_elem(&gpu_keys, key, &next, BPF_NOEXIST);
	number = bpf_map_lookup_elem(&gpu_keys, key); /* another CPU's may be there */
	if (!number)
		gpu_count(GPU_ROWS_FULL);
	return number ? *number : 0;
}

static __noinline __u32 gpu_number_of(const struct gpu_call *call)
{
	struct gpu_key key = call->key;

	key.pid = key.tid = key.client = 0;
	__builtin_memset(key.comm, 0, sizeof(key.comm));
	return gpu_number_of_key(&key);
}

/* What the thread is in. */
static __always_inline void gpu_name_call(struct offcpu_key *wait, const struct gpu_call *call)
{
	wait->stack = wait->chain = wait->arg = wait->inode = 0;
	wait->file_mode = 0;
	wait->waker = OFFCPU_WAKER_NONE;
	wait->how = OFFCPU_IN_GPU;
	wait->flags = 0;
	wait->nr = (__s32)gpu_number_of(call);
}

/* The same with the stack that made it. */
static __always_inline void gpu_note_call(void *ctx, struct thread *t, struct gpu_call *call,
					  struct task_struct *task)
{
	struct offcpu_key *wait = &t->wait;
	struct unwind_walk *w;
	__u32 zero = 0;

	gpu_name_call(wait, call);
	w = bpf_map_lookup_elem(&unwind_walks, &zero);
	if (w && setup.with_stacks)
		wait->stack =
			stack_take(ctx, w, task, t->pid, t->tid, stack_registers(w, task), true);
	call->stack = wait->stack;
}

SEC("tp_btf/sys_enter")
int BPF_PROG(on_gpu_call, struct pt_regs *regs, long number)
{
	struct task_struct *task;
	struct gpu_call *call;
	struct thread *t;
	__u8 kind;

	if (!target_shared.active)
		return 0;
	kind = gpu_kind_of(number);
	if (!kind || kind >= GPU_KINDS)
		return 0; /* first: every process pays for it */
	task = this_task();
	if (call_code(task, number) >= GPU_NUMBERS)
		return 0; /* of another ABI */
	t = threads_of(task);
	if (!t)
		return 0;
	call = gpu_calls_new(task);
	if (!call) {
		gpu_count(GPU_STATES_FULL);
		return 0;
	}
	t->running = true;
	call->seen = 1;
	call->enter_ns = 0;
	call->stack = 0;
	if (!gpu_call_begin(call, task, kind, GPU_SCRATCH_CALL))
		return 0;
	call->key.pid = t->pid;
	call->key.tid = t->tid;
	/* Of an open only the result says whether it is one. */
	if (call->key.kind != GPU_OPEN) {
		gpu_note_call(ctx, t, call, task);
		t->running = false;
	}
	call->enter_ns = bpf_ktime_get_ns(); /* last: what we take is not the call's */
	t->since_ns = call->enter_ns;
	return 0;
}

/* A thread of before the start: one that sleeps is in a call. Its stack is the tool's to find. */
static __always_inline int gpu_begin_in_call(struct task_struct *task)
{
	struct thread *t = task ? threads_of(task) : NULL;
	struct gpu_call *call = t ? gpu_call_of_sleeper(task) : NULL;

	if (!call || call->key.kind == GPU_OPEN)
		return 0;
	gpu_name_call(&t->wait, call);
	t->wait.flags = OFFCPU_BEFORE;
	t->since_ns = call->enter_ns;
	t->running = call->seen; /* it may have ended meanwhile */
	return 0;
}

SEC("tp_btf/sys_exit")
int BPF_PROG(on_gpu_call_end, struct pt_regs *regs, long result)
{
	__u64 now_ns, latency_ns, number = regs_call(regs);
	__u8 kind = gpu_kind_of(number);
	struct task_struct *task;
	struct offcpu_row *row;
	struct gpu_call *call;
	struct thread *t;
	bool unread;

	if (!target_shared.active || !kind)
		return 0;
	now_ns = bpf_ktime_get_ns();
	task = this_task();
	t = threads_of(task);
	if (!t)
		return 0;
	call = gpu_calls_of(task);
	if (kind >= GPU_KINDS)
		return gpu_set_changed(task, kind, result);
	if ((!call || !call->seen) && call_code(task, number) < GPU_NUMBERS)
		call = gpu_call_at_end(task, kind, now_ns);
	if (!call || !call->enter_ns)
		return 0;
	latency_ns = now_ns > call->enter_ns ? now_ns - call->enter_ns : 0;
	t->running = true;
	unread = call->key.flags & GPU_UNREADABLE;
	if (gpu_call_end(call, task, result)) {
		if (call->key.kind == GPU_OPEN || call->key.flags & GPU_BEFORE)
			gpu_note_call(ctx, t, call, task);
		else if (call->key.status || unread ||
			 call->key.flags & (GPU_FAILED | GPU_UNREADABLE))
			t->wait.nr = (__s32)gpu_number_of(call);
		row = add_wait(t, latency_ns, 0, now_ns);
		if (row && call->length_bytes) {
			row->bytes += call->length_bytes;
			row->io++;
		}
		bpf_get_current_comm(call->key.comm, sizeof(call->key.comm));
		if (gpu_setup.with_events)
			gpu_send_event(call, result, latency_ns);
	}
	call->enter_ns = 0;
	return 0;
}

#endif
