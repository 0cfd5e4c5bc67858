/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * System calls added up: how often, how long, how many failed, by whatever the key is. Each watched
 * task has a state in task storage; a task without one costs one look-up, and is not watched.
 */
#include "lib/kernel_types.h"

#include <stddef.h>

#include "syscalls_locks.bpf.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* --- calls ------------------------------------------------------------------------------------ */

static __always_inline struct call_state *new_state(struct task_struct *task)
{
	struct call_state *st = states_new(task);

	if (!st) {
		count(SYSCALLS_STATES_FULL, 1);
		return NULL;
	}
	if (setup.with_stacks)
		stack_expect(task);
	st->fd = -1;
	st->since_ns = bpf_ktime_get_ns();
	return st;
}

static __always_inline bool is_other_program(struct task_struct *task)
{
	return !(TASK_READ(task, flags) & PF_KTHREAD) && target_pid(task) != setup.own_pid;
}

/* Those that have come since the start: into the cgroup, or under -a. */
static __noinline struct call_state *belated(struct task_struct *task)
{
	struct call_state *st = NULL;

	if (target_setup.filter == TARGET_ALL)
		return is_other_program(task) ? new_state(task) : NULL;
	if (target_setup.filter != TARGET_CGROUP || !is_other_program(task))
		return NULL;
	st = new_state(task);
	if (st && !is_in_cgroup(task))
		st->stranger = TASK_READ(task, cgroups);
	return st;
}

/* A task moves to another cgroup by another set. */
static __noinline bool is_stranger(struct call_state *st, struct task_struct *task)
{
	const void *cgroups = TASK_READ(task, cgroups);

	if (st->stranger != cgroups)
		st->stranger = is_in_cgroup(task) ? NULL : cgroups;
	return st->stranger;
}

static __always_inline void enter(struct task_struct *task, __u32 code)
{
	struct call_state *st = states_of(task);

	if (!st && target_setup.filter != TARGET_PROCESSES)
		st = belated(task);
	if (!st || (st->stranger && is_stranger(st, task)))
		return;
	st->born = st->running = st->from_before = 0;
	st->code = code;
	if (!is_wanted(code)) {
		st->enter_ns = 0;
		return;
	}
	if (setup.by & SYSCALLS_BY_FILE)
		note_call_file(st, task);
	if (setup.by & SYSCALLS_BY_LOCK)
		begin_futex(st, task);
	st->enter_ns = bpf_ktime_get_ns(); /* last: what we take is not the call's */
}

static __noinline void unmatched(struct call_state *st)
{
	if (st->running)
		count(SYSCALLS_FROM_BEFORE, 1);
	else if (!st->born && !setup.chosen_only && !st->stranger)
		count(SYSCALLS_UNMATCHED_EXIT, 1);
	st->born = st->running = 0;
}

/* The clock is read when it is known that the call counts: nothing costs others more. */
static __always_inline void leave(struct task_struct *task, struct pt_regs *regs, __s64 result)
{
	struct call_state *st = states_of(task);
	struct finished f = {.task = task, .regs = regs, .st = st, .result = result};
	__u64 value, now_ns;

	if (!st)
		return;
	if (!st->enter_ns) {
		unmatched(st);
		return;
	}
	now_ns = bpf_ktime_get_ns();
	if (!target_shared.active)
		return; /* again: it goes on up to the end, which may be before now */
	if (st->from_before && st->enter_ns < shared.start_ns)
		st->enter_ns = shared.start_ns;
	f.latency_ns = now_ns - st->enter_ns;
	st->enter_ns = 0;
	if (st->at_exec)
		return;
	if (st->from_before)
		count(SYSCALLS_FROM_BEFORE, 1);
	if (setup.by & SYSCALLS_BY_LOCK) {
		end_futex(&f, now_ns);
		return;
	}
	f.traits = traits_of(st->code);
	if (f.traits & SYSCALLS_NO_RESULT)
		f.result = result = 0;
	value = setup.of_bytes ? (__u64)result : f.latency_ns;
	if (f.traits & SYSCALLS_FUTEX && is_idle_futex(task, f.latency_ns)) {
		st->code = SYSCALLS_FUTEX_IDLE;
		f.traits &= ~SYSCALLS_FUTEX;
	}
	if (setup.by == SYSCALLS_BY_CALL)
		add_by_call(&f, value,
			    !setup.of_bytes || (f.traits & SYSCALLS_BYTES && result >= 0));
	else
		add_keyed(&f, value, !setup.of_bytes || (f.traits & SYSCALLS_BYTES && result >= 0));
	if (!setup.details)
		return;
	if (result < 0 && result >= -4095)
		add_detail(SYSCALLS_ERROR, st->code, -result, 0);
	if (f.traits & SYSCALLS_DETAILED)
		add_details(&f);
}

SEC("tp_btf/sys_enter")
int BPF_PROG(on_sys_enter, struct pt_regs *regs, long number)
{
	struct task_struct *task = this_task();

	if (target_shared.active)
		enter(task, call_code(task, number));
	return 0;
}

SEC("tp_btf/sys_exit")
int BPF_PROG(on_sys_exit, struct pt_regs *regs, long result)
{
	if (target_shared.active)
		leave(this_task(), regs, result);
	return 0;
}

/* The tracepoints of single calls: struct syscall_trace_enter and _exit, kernel/trace/trace.h. */
struct one_call {
	__u64 head;
	__s32 number;
	__u32 pad;
	__s64 args_or_result[6];
};

SEC("tp/syscalls/sys_enter_getppid")
int on_one_enter(struct one_call *ctx)
{
	struct task_struct *task = this_task();

	if (target_shared.active)
		enter(task, call_code(task, ctx->number));
	return 0;
}

SEC("tp/syscalls/sys_exit_getppid")
int on_one_exit(struct one_call *ctx)
{
	if (target_shared.active)
		leave(this_task(), NULL, ctx->args_or_result[0]);
	return 0;
}

static __noinline int call_entered(const struct pt_regs *regs)
{
	struct task_struct *task = this_task();

	if (target_shared.active)
		enter(task, call_code(task, regs_call(regs)));
	return 0;
}

/* Inlined: one frame more would be too many. */
static __always_inline int call_returned(__s64 result)
{
	if (target_shared.active)
		leave(this_task(), NULL, result);
	return 0;
}

#include "lib/call_functions.bpf.h"

/* --- threads ---------------------------------------------------------------------------------- */

SEC("tp_btf/sched_process_fork")
int BPF_PROG(state_on_fork, struct task_struct *parent, struct task_struct *child)
{
	struct call_state *from = states_of(parent), *st;

	if (!from || target_setup.filter == TARGET_THREADS)
		return 0;
	st = new_state(child);
	if (!st)
		return 0;
	st->born = 1;
	st->at_exec = from->at_exec;
	st->stranger = from->stranger;
	count(SYSCALLS_STARTED_THREADS, 1);
	return 0;
}

SEC("tp_btf/sched_process_exec")
int BPF_PROG(state_on_exec, struct task_struct *task)
{
	struct call_state *st = states_of(task);

	if (st && st->at_exec) {
		st->at_exec = 0;
		st->since_ns = bpf_ktime_get_ns();
	}
	return 0;
}

static __noinline int keep_name(struct task_struct *task)
{
	__u32 tid = target_tid(task);
	char comm[SYSCALLS_COMM] = {};

	bpf_core_read_str(comm, sizeof(comm), &((struct task_struct___call *)task)->comm);
	return bpf_map_update_elem(&ended_names, &tid, comm, BPF_ANY);
}

static __always_inline void end_thread(struct call_state *st, struct task_struct *task)
{
	__u64 now_ns = bpf_ktime_get_ns(), from_ns;

	from_ns = st->since_ns > shared.start_ns ? st->since_ns : shared.start_ns;
	count(SYSCALLS_ENDED_THREADS, 1);
	if (now_ns > from_ns && target_shared.active)
		count(SYSCALLS_ENDED_NS, now_ns - from_ns);
	/* The ends of calls are not seen any more when it is over. */
	if (st->enter_ns && target_shared.active && !(traits_of(st->code) & SYSCALLS_NO_RETURN))
		count(SYSCALLS_UNMATCHED_ENTER, 1);
	if (setup.by & (SYSCALLS_BY_THREAD | SYSCALLS_BY_LOCK))
		keep_name(task);
	st->stranger = task; /* it is in the list of tasks for a while yet */
}

SEC("tp_btf/sched_process_exit")
int BPF_PROG(state_on_exit, struct task_struct *task)
{
	struct call_state *st = states_of(task);

	if (st && !st->at_exec && !st->stranger)
		end_thread(st, task);
	states_end(task);
	return 0;
}

/* Marks the threads that are watched; those asleep in a call have been in it since before. */
SEC("iter/task")
int mark(struct bpf_iter__task___call *ctx)
{
	struct task_struct *task = (void *)ctx->task;
	struct call_state *st;
	__u8 *state = NULL;
	__u32 key, code;

	if (!task || task_is_over(task) || !is_other_program(task) || states_of(task))
		return 0;
	if (target_setup.filter == TARGET_CGROUP) {
		if (!is_in_cgroup(task))
			return 0;
	} else if (target_setup.filter != TARGET_ALL) {
		key = target_setup.filter == TARGET_THREADS ? target_tid(task) : target_pid(task);
		state = bpf_map_lookup_elem(&targets, &key);
		if (!state)
			return 0;
	}
	st = new_state(task);
	if (!st)
		return 0;
	st->at_exec = state && *state == TARGET_AT_EXEC;
	st->running = 1;
	if (st->at_exec || !call_of_sleeper(task, &code))
		return 0;
	if (!is_wanted(code))
		return 0;
	st->code = code;
	st->from_before = 1;
	if (setup.by & SYSCALLS_BY_FILE)
		note_call_file(st, task);
	if (setup.by & SYSCALLS_BY_LOCK)
		begin_futex_before(st, task);
	st->enter_ns = st->since_ns;
	return 0;
}

/* Every watched thread, with the call it is in. */
SEC("iter/task")
int collect(struct bpf_iter__task___call *ctx)
{
	struct task_struct *task = (void *)ctx->task;
	struct syscalls_thread out = {.key = {.fd = -1}};
	__u64 now_ns = measured_until(), from_ns, enter_ns;
	struct call_state *st;
	__u32 code;

	if (!task)
		return 0;
	st = states_of(task);
	if (!st || st->at_exec || st->stranger)
		return 0;
	from_ns = st->since_ns > shared.start_ns ? st->since_ns : shared.start_ns;
	out.watched_ns = now_ns > from_ns ? now_ns - from_ns : 0;
	enter_ns = st->enter_ns;
	out.in_call = enter_ns != 0;
	if (st->from_before && enter_ns < shared.start_ns)
		enter_ns = shared.start_ns;
	out.in_call_ns = enter_ns && now_ns > enter_ns ? now_ns - enter_ns : 0;
	out.from_before = st->from_before;
	out.pid = target_pid(task);
	out.tid = target_tid(task);
	out.own_tid = target_own_tid(task);
	out.own_pid = target_own_pid(task);
	bpf_core_read_str(out.comm, sizeof(out.comm), &((struct task_struct___call *)task)->comm);
	code = out.code = st->code;
	if (setup.by & SYSCALLS_BY_LOCK) {
		collect_futex(st, now_ns, &out);
		bpf_seq_write((struct seq_file *)ctx->meta->seq, &out, sizeof(out));
		return 0;
	}
	if (out.in_call && traits_of(code) & SYSCALLS_FUTEX && is_idle_futex(task, out.in_call_ns))
		code = SYSCALLS_FUTEX_IDLE; /* for now: the call goes on */
	fill_key(&out.key, st, code, task);
	bpf_seq_write((struct seq_file *)ctx->meta->seq, &out, sizeof(out));
	return 0;
}
