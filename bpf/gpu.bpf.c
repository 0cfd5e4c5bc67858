/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Calls of GPU drivers (lib/gpu_calls.bpf.h), added up by call, device and status; each as an event
 * too, where that is asked for. */
#include "lib/kernel_types.h"

#include "lib/gpu_calls.bpf.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

enum {
	ROWS_MAX = 8192,
	QUEUES_MAX = 1024,
	WAITERS_MAX = 4096,
};

#define NSEC_PER_SEC 1000000000ULL
#define STARTING_NS (10 * NSEC_PER_SEC) /* what a process asks and allocates then is its start */

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

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, QUEUES_MAX);
	__type(key, struct gpu_queue_key);
	__type(value, struct gpu_queue);
} queues SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, WAITERS_MAX);
	__type(key, __u32); /* tid */
	__type(value, struct gpu_waiter);
} waiters SEC(".maps");

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct task_struct___age {
	struct task_struct___age *group_leader;
	__u64 start_time;
};

#pragma clang attribute pop

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

static __always_inline bool is_starting(__u64 now_ns)
{
	struct task_struct___age *task = (void *)this_task();

	return now_ns < BPF_CORE_READ(task, group_leader, start_time) + STARTING_NS;
}

static __noinline int add_row(const struct gpu_call *st, __u64 now_ns, __u64 latency_ns)
{
	__u32 second = now_ns / NSEC_PER_SEC;
	struct gpu_key key = st->key;
	struct gpu_row *row;
	__u32 zero = 0;

	if (!(gpu_setup.by & GPU_BY_THREAD))
		key.pid = key.tid = 0;
	if (!(gpu_setup.by & GPU_BY_COMM))
		__builtin_memset(key.comm, 0, sizeof(key.comm));
	if (!(gpu_setup.by & GPU_BY_CLIENT))
		key.client = 0;
	if (is_starting(now_ns))
		key.flags |= GPU_STARTING;
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
	if (row->last_second != second) {
		row->last_second = second;
		row->seconds++;
	}
	if (key.flags & GPU_BEFORE)
		return 0; /* a part of its time is no latency */
	__sync_fetch_and_add(&row->slots[log_linear_slot(latency_ns)], 1);
	if (latency_ns > row->max_ns)
		row->max_ns = latency_ns;
	return 0;
}

/* Whether it was queued is judged when all calls are known. */
static __noinline int add_to_queue(const struct gpu_call *st, __u64 now_ns, __u64 latency_ns)
{
	struct gpu_queue_key key = {st->key.class, st->key.number, st->key.selector};
	__u64 from_ns = gpu_shared.last_end_ns, own_ns;
	struct gpu_queue *q, none = {};

	gpu_shared.last_end_ns = now_ns;
	if (st->key.status || st->key.flags & (GPU_FAILED | GPU_UNREADABLE))
		return 0;
	q = bpf_map_lookup_elem(&queues, &key);
	if (!q) {
		bpf_map_update_elem(&queues, &key, &none, BPF_NOEXIST);
		q = bpf_map_lookup_elem(&queues, &key);
	}
	if (!q)
		return 0;
	if (!st->crowded) {
		__sync_fetch_and_add(&q->alone, 1);
		__sync_fetch_and_add(&q->alone_ns, latency_ns);
		return 0;
	}
	__sync_fetch_and_add(&q->crowded, 1);
	__sync_fetch_and_add(&q->crowded_ns, latency_ns);
	if (!q->alone)
		return 0;
	if (from_ns < st->enter_ns)
		from_ns = st->enter_ns;
	own_ns = now_ns > from_ns ? now_ns - from_ns : 0;
	__sync_fetch_and_add(&q->judged, 1);
	__sync_fetch_and_add(&q->judged_ns, own_ns);
	if (own_ns * 3 < q->alone_ns / q->alone * 2)
		__sync_fetch_and_add(&q->early, 1);
	return 0;
}

/* Whether a device is why a wait was over. */
static __noinline bool device_ended(const struct gpu_call *st, __s64 result)
{
	__u16 events = 0;

	if (result <= 0)
		return false;
	if (st->key.kind == GPU_EPOLL)
		return st->devices;
	for (__u32 i = 0; i < GPU_POLL_FDS; i++) {
		const struct poll_fd *fd = (const void *)st->arg + i * sizeof(*fd);

		if (st->devices >> i & 1 &&
		    !bpf_probe_read_user(&events, sizeof(events), &fd->revents) && events)
			return true;
	}
	return false;
}

static __noinline int add_wait(const struct gpu_call *st, __s64 result, __u64 latency_ns)
{
	__u32 tid = st->key.tid;
	struct gpu_waiter *w = bpf_map_lookup_elem(&waiters, &tid), none = {};

	if (st->key.flags & (GPU_BEFORE | GPU_FAILED))
		return 0;
	if (!w) {
		none.pid = st->key.pid;
		__builtin_memcpy(none.comm, st->key.comm, sizeof(none.comm));
		bpf_map_update_elem(&waiters, &tid, &none, BPF_NOEXIST);
		w = bpf_map_lookup_elem(&waiters, &tid);
	}
	if (!w)
		return 0;
	/* Of one thread: nobody else writes it. */
	if (device_ended(st, result)) {
		w->ended++;
		w->ended_ns += latency_ns;
	} else {
		w->others++;
	}
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
	bool counted;

	if (!target_shared.active || !kind)
		return 0;
	now_ns = bpf_ktime_get_ns();
	if (!target_shared.active)
		return 0; /* again: it goes on up to the end, which may be before now */
	task = this_task();
	st = gpu_calls_of(task);
	if (kind >= GPU_KINDS || !st || !st->seen)
		st = begun_unseen(task, number, kind, now_ns, result);
	if (!st || !st->enter_ns)
		return 0;
	latency_ns = now_ns - st->enter_ns;
	counted = is_counted_in(st);
	if (counted)
		__sync_fetch_and_add(&gpu_shared.in_ioctl, -1);
	if (gpu_call_end(st, task, result)) {
		bpf_get_current_comm(st->key.comm, sizeof(st->key.comm));
		add_row(st, now_ns, latency_ns);
		if (counted)
			add_to_queue(st, now_ns, latency_ns);
		if (st->key.kind == GPU_POLL || st->key.kind == GPU_EPOLL)
			add_wait(st, result, latency_ns);
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
	__u64 now_ns = measured_until();
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
