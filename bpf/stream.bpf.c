/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Each wanted system call of the target as one record: what was passed and what it pointed to, at
 * the time of the call. It is gathered in the thread's storage from its entry on, and sent at its
 * end, so that what the filters leave out costs no room in the ring.
 */
#include "lib/kernel_types.h"

#include "lib/unwind.bpf.h"

#include "lib/targets.bpf.h"
#include "lib/task_call.bpf.h"
#include "stream_args.bpf.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

struct stream_shared shared;

enum { ETIMEDOUT = 110 };

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct stream_state);
} states SEC(".maps");

/* For calls of threads that have no state: those in flight since before the start. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct stream_state);
} scratch SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, STREAM_CODES);
	__type(key, __u32);
	__type(value, struct stream_call);
} calls SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 25);
} ring SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, STREAM_COUNTS);
	__type(key, __u32);
	__type(value, __u64);
} counts SEC(".maps");

#include "stream_stack.bpf.h" /* uses these maps */

static __always_inline void count(__u32 what)
{
	__u64 *n = bpf_map_lookup_elem(&counts, &what);

	if (n)
		++*n;
}

static __always_inline void count_lost(__u32 why)
{
	count(why);
	__sync_fetch_and_add(&shared.lost, 1);
}

static __always_inline void send(struct stream_state *st)
{
	__u64 size_bytes = sizeof(st->head) + st->head.n_bytes;

	st->head.lost_before = shared.lost;
	barrier_var(size_bytes);
	if (size_bytes > sizeof(*st))
		return;
	if (bpf_ringbuf_output(&ring, st, size_bytes, 0))
		count_lost(STREAM_LOST_RING);
	else
		count(STREAM_SENT);
}

/* --- calls ------------------------------------------------------------------------------------ */

static __always_inline void begin(struct stream_state *st, struct task_struct *task, __u32 code)
{
	st->head.start_ns = bpf_ktime_get_ns();
	st->head.duration_ns = 0;
	st->head.result = 0;
	st->head.pid = target_pid(task);
	st->head.tid = target_tid(task);
	st->head.own_pid = target_own_pid(task);
	st->head.own_tid = target_own_tid(task);
	st->head.code = code;
	st->head.end = STREAM_RETURNED;
	st->head.before = 0;
	st->head.missing = 0;
	st->head.n_bytes = 0;
	st->head.stack_lost = 0;
	st->n_kernel = 0;
	BPF_CORE_READ_STR_INTO(&st->head.comm, (struct task_struct___call *)task, comm);
}

static __always_inline bool is_wanted(struct task_struct *task, const struct stream_call *call)
{
	__u32 pid = target_pid(task), tid = target_tid(task);
	__u8 *state;

	if (is_target(task, pid, tid))
		return true;
	if (!(call->flags & STREAM_EXECS) || target_setup.filter != TARGET_PROCESSES)
		return false;
	/* The exec from which on it is measured is its first call. */
	state = bpf_map_lookup_elem(&targets, &pid);
	return state && *state == TARGET_AT_EXEC;
}

/* Apart, as a copy of the registers takes a third of the stack that a program has. */
__noinline int take_args(struct stream_state *st)
{
	struct call_args args;

	if (!st || call_args_read(this_task(), &args))
		return -1;
	for (int i = 0; i < STREAM_ARGS; i++)
		st->head.args[i] = args.v[i];
	return 0;
}

static __always_inline int enter(struct task_struct *task, long number)
{
	__u32 code = call_code(task, number);
	const struct stream_call *call = bpf_map_lookup_elem(&calls, &code);
	struct stream_state *st;

	if (!target_shared.active || !call || !(call->flags & STREAM_WANTED) ||
	    !is_wanted(task, call))
		return 0;
	st = bpf_task_storage_get(&states, task, NULL, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!st) {
		count_lost(STREAM_LOST_MEMORY);
		return 0;
	}
	if (st->head.active)
		count(STREAM_NO_EXIT);
	begin(st, task, code);
	if (take_args(st))
		return 0;
	st->head.active = 1;
	put_args(st, call, 0);
	if (call->flags & STREAM_NO_RETURN) {
		st->head.active = 0;
		st->head.end = STREAM_NEVER_RETURNS;
		if (setup.with_stack)
			put_stack(st, task);
		if (!setup.failed_only && !setup.min_latency_ns)
			send(st);
	}
	return 0;
}

static __always_inline bool is_failure(__s64 result)
{
	return result < 0 && result >= -4095;
}

static __always_inline bool is_left_out(const struct stream_call *call,
					const struct stream_head *head)
{
	if (head->duration_ns < setup.min_latency_ns)
		return true;
	if (!setup.failed_only)
		return false;
	return !is_failure(head->result) ||
	       (call->flags & STREAM_TIMED_WAIT && head->result == -ETIMEDOUT);
}

static __always_inline int leave(struct task_struct *task, __s64 result)
{
	struct stream_state *st = bpf_task_storage_get(&states, task, NULL, 0);
	const struct stream_call *call;
	__u32 code;

	if (!st || !st->head.active || !target_shared.active)
		return 0;
	st->head.active = 0;
	st->head.duration_ns = bpf_ktime_get_ns() - st->head.start_ns;
	st->head.result = result;
	code = st->head.code;
	call = bpf_map_lookup_elem(&calls, &code);
	if (!call || is_left_out(call, &st->head))
		return 0;
	/* An exec that failed before it counted is the affair of whoever looked for the program. */
	if (call->flags & STREAM_EXECS && is_failure(result) &&
	    !is_target(task, st->head.pid, st->head.tid))
		return 0;
	if (!(call->flags & STREAM_EXECS && !result) && (st->head.missing || !is_failure(result)))
		put_args(st, call, 1);
	if (call->flags & STREAM_FD_RESULT && result >= 0)
		put_fd(st, STREAM_ARGS | STREAM_CHUNK_FD << 8, result);
	if (setup.with_stack && !(call->flags & STREAM_EXECS && !result))
		put_stack(st, task);
	send(st);
	return 0;
}

SEC("tp_btf/sys_enter")
int BPF_PROG(on_sys_enter, struct pt_regs *regs, long number)
{
	(void)regs;
	return enter(this_task(), number);
}

SEC("tp_btf/sys_exit")
int BPF_PROG(on_sys_exit, struct pt_regs *regs, long result)
{
	(void)regs;
	return leave(this_task(), result);
}

/* The tracepoints of single calls: other calls, and other processes', cost nothing. */
struct one_call_context {
	__u64 common;
	int number; /* no more may be read of a call without arguments */
	int pad;
	long result; /* of the exit */
};

SEC("tp")
int on_one_enter(struct one_call_context *ctx)
{
	return enter(this_task(), ctx->number);
}

SEC("tp")
int on_one_exit(struct one_call_context *ctx)
{
	return leave(this_task(), ctx->result);
}

static __noinline int call_entered(const struct pt_regs *regs)
{
	return enter(this_task(), regs_call(regs));
}

static __noinline int call_returned(__s64 result)
{
	return leave(this_task(), result);
}

#include "lib/call_functions.bpf.h"

/* A thread that ends inside of a call. */
SEC("tp_btf/sched_process_exit")
int BPF_PROG(on_thread_exit, struct task_struct *task)
{
	struct stream_state *st = bpf_task_storage_get(&states, task, NULL, 0);

	if (!st || !st->head.active || !target_shared.active)
		return 0;
	st->head.active = 0;
	st->head.end = STREAM_THREAD_ENDED;
	st->head.duration_ns = bpf_ktime_get_ns() - st->head.start_ns;
	if (!setup.failed_only && st->head.duration_ns >= setup.min_latency_ns)
		send(st);
	return 0;
}

/* --- at the end: what has not returned -------------------------------------------------------- */

/* A call that began before the start: which, and with what arguments. */
static __noinline int send_from_before(struct task_struct *task)
{
	__u32 zero = 0, code;
	struct stream_state *st = bpf_map_lookup_elem(&scratch, &zero);
	const struct stream_call *call;
	struct file___file *file;
	struct call_args args;

	if (!st || !call_of_sleeper(task, &code) || call_args_read(task, &args))
		return 0;
	call = bpf_map_lookup_elem(&calls, &code);
	if (!call || !(call->flags & STREAM_WANTED))
		return 0;
	begin(st, task, code);
	st->head.end = STREAM_IN_FLIGHT;
	st->head.before = 1;
	st->head.duration_ns = st->head.start_ns - shared.start_ns;
	/* As a loop, 6.1 takes it for one without an end. */
#pragma unroll
	for (int i = 0; i < STREAM_ARGS; i++) {
		st->head.args[i] = args.v[i];
		file = call->args[i].op == STREAM_FD ? file_of_fd(task, args.v[i]) : NULL;
		if (file)
			put_file(st, i | STREAM_CHUNK_FD << 8, (__u64)file);
	}
	if (setup.with_stack)
		put_sleepers_stack(st, task);
	send(st);
	return 0;
}

SEC("iter/task")
int in_flight(struct bpf_iter__task___call *ctx)
{
	struct task_struct *task = (struct task_struct *)ctx->task;
	struct stream_state *st;

	if (!task || setup.failed_only || !is_target(task, target_pid(task), target_tid(task)))
		return 0;
	st = bpf_task_storage_get(&states, task, NULL, 0);
	if (!st)
		return send_from_before(task);
	if (!st->head.active)
		return 0;
	st->head.end = STREAM_IN_FLIGHT;
	st->head.duration_ns = bpf_ktime_get_ns() - st->head.start_ns;
	if (st->head.duration_ns < setup.min_latency_ns)
		return 0;
	if (setup.with_stack)
		put_sleepers_stack(st, task);
	send(st);
	return 0;
}
