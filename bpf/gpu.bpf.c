/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Calls of GPU drivers (lib/gpu_calls.bpf.h), added up by call, device and status; each as an event
 * too, where that is asked for. */
#include "lib/kernel_types.h"

#include "lib/gpu_calls.bpf.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

enum { ROWS_MAX = 8192 };

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, ROWS_MAX);
	__type(key, struct gpu_key);
	__type(value, struct gpu_row);
} rows SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct gpu_row);
} new_row SEC(".maps");

SEC("tp_btf/sys_enter")
int BPF_PROG(on_sys_enter, struct pt_regs *regs, long number)
{
	struct task_struct *task;
	struct gpu_call *st;
	__u32 pid;
	__u8 kind;

	if (!target_shared.active)
		return 0;
	kind = gpu_kind_of(number);
	if (!kind || kind >= GPU_KINDS)
		return 0; /* first: every process pays for it */
	task = this_task();
	if (call_code(task, number) >= GPU_NUMBERS)
		return 0; /* of another ABI */
	pid = target_pid(task);
	if (pid == gpu_setup.own_pid || !is_target(task, pid, target_tid(task)))
		return 0;
	st = gpu_calls_new(task);
	if (!st) {
		gpu_count(GPU_STATES_FULL);
		return 0;
	}
	st->seen = 1;
	st->enter_ns = 0;
	if (!gpu_call_begin(st, task, kind, GPU_SCRATCH_CALL))
		return 0;
	st->key.pid = pid;
	st->key.tid = target_tid(task);
	if (kind == GPU_IOCTL) {
		st->crowded = gpu_shared.in_ioctl != 0;
		__sync_fetch_and_add(&gpu_shared.in_ioctl, 1);
	}
	st->enter_ns = bpf_ktime_get_ns(); /* last: what we take is not the call's */
	return 0;
}

/* --- exits ------------------------------------------------------------------------------------ */

static __noinline int add_row(const struct gpu_call *st, __u64 latency_ns)
{
	struct gpu_key key = st->key;
	struct gpu_row *row;
	__u32 zero = 0;

	if (!(gpu_setup.by & GPU_BY_THREAD))
		key.pid = key.tid = 0;
	if (!(gpu_setup.by & GPU_BY_COMM))
		__builtin_memset(key.comm, 0, sizeof(key.comm));
	if (!(gpu_setup.by & GPU_BY_CLIENT))
		key.client = 0;
	row = bpf_map_lookup_elem(&rows, &key);
	if (!row) {
		row = bpf_map_lookup_elem(&new_row, &zero);
		if (!row)
			return 0;
		bpf_map_update_elem(&rows, &key, row, BPF_NOEXIST);
		row = bpf_map_lookup_elem(&rows, &key); /* another CPU's may be there */
	}
	if (!row) {
		gpu_count(GPU_ROWS_FULL);
		return 0;
	}
	__sync_fetch_and_add(&row->calls, 1);
	__sync_fetch_and_add(&row->total_ns, latency_ns);
	__sync_fetch_and_add(&row->bytes, st->length_bytes);
	if (key.flags & GPU_BEFORE)
		return 0; /* a part of its time is no latency */
	__sync_fetch_and_add(&row->slots[log_linear_slot(latency_ns)], 1);
	if (st->key.kind == GPU_IOCTL && st->crowded) {
		__sync_fetch_and_add(&row->crowded_calls, 1);
		__sync_fetch_and_add(&row->crowded_ns, latency_ns);
	}
	if (latency_ns > row->max_ns)
		row->max_ns = latency_ns;
	return 0;
}

/* Among the threads that are in an ioctl: those of which the begin was seen. */
static __always_inline bool is_counted_in(const struct gpu_call *st)
{
	return st->enter_ns && st->key.kind == GPU_IOCTL && !(st->key.flags & GPU_BEFORE);
}

/* The end of a call that has no begin here. */
static __always_inline struct gpu_call *begun_unseen(struct task_struct *task, __u64 number,
						     __u8 kind, __u64 now_ns, long result)
{
	__u32 pid = target_pid(task);

	if (pid == gpu_setup.own_pid || !is_target(task, pid, target_tid(task)) ||
	    call_code(task, number) >= GPU_NUMBERS)
		return NULL;
	if (kind < GPU_KINDS)
		return gpu_call_at_end(task, kind, now_ns);
	gpu_set_changed(task, kind, result);
	return NULL;
}

SEC("tp_btf/sys_exit")
int BPF_PROG(on_sys_exit, struct pt_regs *regs, long result)
{
	__u64 now_ns, latency_ns, number = regs_call(regs);
	__u8 kind = gpu_kind_of(number);
	struct task_struct *task;
	struct gpu_call *st;

	if (!target_shared.active || !kind)
		return 0;
	now_ns = bpf_ktime_get_ns();
	task = this_task();
	st = gpu_calls_of(task);
	if (kind >= GPU_KINDS || !st || !st->seen)
		st = begun_unseen(task, number, kind, now_ns, result);
	if (!st || !st->enter_ns)
		return 0;
	latency_ns = now_ns - st->enter_ns;
	if (is_counted_in(st))
		__sync_fetch_and_add(&gpu_shared.in_ioctl, -1);
	if (gpu_call_end(st, task, result)) {
		bpf_get_current_comm(st->key.comm, sizeof(st->key.comm));
		add_row(st, latency_ns);
		if (gpu_setup.with_events)
			gpu_send_event(st, result, latency_ns);
	}
	st->enter_ns = 0;
	return 0;
}

/* A thread that is killed in a call never leaves it. */
SEC("tp_btf/sched_process_exit")
int BPF_PROG(state_on_exit, struct task_struct *task)
{
	struct gpu_call *st = gpu_calls_of(task);

	if (!st)
		return 0;
	if (is_counted_in(st))
		__sync_fetch_and_add(&gpu_shared.in_ioctl, -1);
	st->enter_ns = 0;
	gpu_calls_end(task);
	return 0;
}

/* --- the start ------------------------------------------------------------------------------- */

static __always_inline int mark_task(struct task_struct *task)
{
	__u32 pid;

	if (!task || task_is_over(task))
		return 0;
	pid = target_pid(task);
	if (pid != gpu_setup.own_pid && is_target(task, pid, target_tid(task)))
		gpu_call_of_sleeper(task);
	return 0;
}

/* What threads are in already. */
SEC("iter/task")
int mark(struct bpf_iter__task___call *ctx)
{
	return mark_task((void *)ctx->task);
}

/* The same with what the caller's memory says. */
SEC("iter.s/task")
int mark_reading(struct bpf_iter__task___call *ctx)
{
	return mark_task((void *)ctx->task);
}

/* --- the end ---------------------------------------------------------------------------------- */

/* Every thread that is in a call. */
SEC("iter/task")
int collect(struct bpf_iter__task___call *ctx)
{
	struct task_struct *task = (void *)ctx->task;
	__u64 now_ns = bpf_ktime_get_ns();
	struct gpu_thread out = {};
	struct gpu_call *st;

	if (!task)
		return 0;
	st = gpu_calls_of(task);
	if (!st || !st->enter_ns || st->key.kind == GPU_OPEN)
		return 0;
	out.key = st->key;
	out.in_call_ns = now_ns > st->enter_ns ? now_ns - st->enter_ns : 0;
	bpf_core_read_str(out.key.comm, sizeof(out.key.comm),
			  &((struct task_struct___call *)task)->comm);
	bpf_seq_write((struct seq_file *)ctx->meta->seq, &out, sizeof(out));
	return 0;
}
