/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Where threads wait: at each switch of the CPU from or to a thread of the target, what it waits
 * for, with its stack, and who woke it. Waits are added up here, by thread, stack, reason and
 * waker.
 *
 * All that is known of a thread lies in its task storage. Who has one is measured: that is one
 * look for everybody else. Storage is made in places where memory may be asked for (fork, exec, the
 * iterator at the start), never under the lock of a run queue.
 */
#include "lib/kernel_types.h"

#include <stddef.h>

#include "lib/output.bpf.h"
#include "lib/stacks.bpf.h"

#include "lib/gpu_calls.bpf.h"
#include "lib/serial.bpf.h"
#include "lib/targets.bpf.h"
#include "lib/task_call.bpf.h"
#include "lib/task_states.bpf.h"
#include "lib/wait_rows.bpf.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

const volatile struct offcpu_setup setup;
const volatile struct offcpu_calls calls;
const volatile __u8 syscall_argument[OFFCPU_SYSCALLS]; /* enum offcpu_argument */
__u64 totals_added; /* the tool looks into the map when it has changed */

/* include/linux/sched.h */
enum {
	TASK_UNINTERRUPTIBLE = 0x02,
	TASK_STOPPED_OR_TRACED = 0x0c,
	TASK_DEAD = 0x80,
	TASK_STATES_WAITING = 0x90ff, /* with RTLOCK_WAIT and FROZEN */
};

/* Of its event loop, since the last wait for events. */
struct loop_gap {
	__u64 begin_ns;            /* 0: no such wait has ended yet */
	__u64 begin_on_ns;         /* on_ns then */
	__u64 wait_ns, wait_stack; /* its longest wait for something else */
	__u64 tick_stack;
	__u32 ticks;
	__u32 descriptor; /* of epoll */
	__u8 kind;        /* enum offcpu_argument of the loop's call; OFFCPU_ARG_NONE: no loop */
	bool from_tick;
	bool is_new; /* what is in the row is not this loop's */
};

struct thread {
	__u64 start_ns;
	__u64 since_ns;     /* it runs, or waits, since */
	__u64 woken_ns;     /* 0: not yet */
	__u64 throttled_ns; /* what throttled_ns() said when it was put off */
	__u64 exec_ns;      /* the kernel's account of its CPU time at the last switch */
	__u64 on_ns, off_ns, lost_ns, short_ns, switches;
	struct offcpu_key wait; /* what it waits for; its waker is filled in by the wake-up */
	/* With ticks: what has been counted of on_ns, up to when, and the last place it ran at. */
	__u64 tick_ns, untold_ns, tick_stack, tick_stack_ns;
	struct loop_gap gap;
	struct offcpu_link links[OFFCPU_LINKS]; /* of its last wake-up */
	__u32 n_links;
	__u32 pid, tid, own_pid;
	bool running;
	bool ended; /* its totals are told: it may be in the list of tasks and run yet */
};

TASK_STATES(threads, struct thread)

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, OFFCPU_TOTALS_MAX);
	__type(key, __u32);
	__type(value, struct offcpu_totals);
} totals SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct offcpu_delays);
} delays SEC(".maps");

/* --- rows ------------------------------------------------------------------------------------- */

static __always_inline void add_delay(__u64 ns)
{
	__u32 zero = 0, bucket;
	struct offcpu_delays *d = bpf_map_lookup_elem(&delays, &zero);

	if (!d)
		return;
	d->count++;
	if (ns > d->max_ns)
		d->max_ns = ns;
	bucket = bucket_of(ns);
	barrier_var(bucket); /* the compiler may not forget the bound, which the verifier needs */
	d->buckets[bucket & (OFFCPU_BUCKETS - 1)]++;
}

/* The thread waited for off_ns, queue_ns of it with the reason gone and no CPU yet. NULL: it is in
 * no row. */
static __always_inline struct offcpu_row *add_wait(struct thread *t, __u64 off_ns, __u64 queue_ns,
						   __u64 now_ns)
{
	struct offcpu_losses *l;
	struct offcpu_row *row;
	__u64 wait_ns = off_ns - queue_ns;
	__u32 bucket;

	t->off_ns += off_ns;
	if (off_ns < setup.min_wait_ns || (setup.max_wait_ns && off_ns > setup.max_wait_ns)) {
		t->short_ns += off_ns;
		return NULL;
	}
	row = row_of(&t->wait, t->pid, t->tid);
	if (!row) {
		t->lost_ns += off_ns;
		l = losses();
		if (l)
			l->rows_full++;
		return NULL;
	}
	row->wait_ns += wait_ns;
	row->queue_ns += queue_ns;
	row->count++;
	row->last_ns = now_ns;
	if (!wait_ns)
		wait_ns = queue_ns;
	else if (queue_ns)
		add_delay(queue_ns);
	if (wait_ns > row->max_ns)
		row->max_ns = wait_ns;
	bucket = bucket_of(wait_ns);
	barrier_var(bucket); /* the compiler may not forget the bound, which the verifier needs */
	row->buckets[bucket & (OFFCPU_BUCKETS - 1)]++;
	return row;
}

/* Time on a CPU that no row has yet, at the stack of the last tick. */
static __always_inline void add_running(struct thread *t)
{
	struct offcpu_key key = {.stack = t->tick_stack,
				 .thread = t->wait.thread,
				 .nr = OFFCPU_NR_UNKNOWN,
				 .how = OFFCPU_ON_CPU};
	__u64 ran_ns = t->untold_ns;
	struct offcpu_losses *l;
	struct offcpu_row *row;

	t->untold_ns = 0;
	row = ran_ns ? row_of(&key, t->pid, t->tid) : NULL;
	if (row) {
		row->wait_ns += ran_ns;
		row->count++;
		row->last_ns = t->tick_stack_ns;
		return;
	}
	l = ran_ns ? losses() : NULL;
	if (l)
		l->rows_full++;
}

/* It has run since the last tick, or since it got the CPU. */
static __always_inline void note_running(struct thread *t, __u64 now_ns)
{
	__u64 from_ns = t->tick_ns > t->since_ns ? t->tick_ns : t->since_ns;

	if (now_ns > from_ns)
		t->untold_ns += now_ns - from_ns;
	t->tick_ns = now_ns;
}

/* Of off_ns, what its quota does not account for: no CPU was free yet. A task that has come to
 * another queue, or is throttled still, has none. */
static __always_inline __u64 after_throttling(const struct thread *t, struct task_struct *task,
					      __u64 off_ns)
{
	__u64 ns = throttled_ns(task) - t->throttled_ns;

	return ns && ns < off_ns ? off_ns - ns : 0;
}

static __always_inline void end_wait(struct thread *t, struct task_struct *task, __u64 now_ns)
{
	__u64 off_ns = now_ns - t->since_ns, queue_ns = 0;
	__u8 how = t->wait.how;

	if (now_ns < t->since_ns)
		return;
	if (how == OFFCPU_PREEMPTED || how == OFFCPU_YIELDED || how == OFFCPU_BORN)
		queue_ns = off_ns;
	else if (how == OFFCPU_THROTTLED)
		queue_ns = after_throttling(t, task, off_ns);
	else if (t->woken_ns > t->since_ns && t->woken_ns <= now_ns)
		queue_ns = now_ns - t->woken_ns;
	add_wait(t, off_ns, queue_ns, now_ns);
}

#include "offcpu_files.bpf.h"
#include "offcpu_gpu_waits.bpf.h"
#include "offcpu_reason.bpf.h"

/* --- threads ---------------------------------------------------------------------------------- */

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, OFFCPU_THREAD_WORDS_MAX);
	__type(key, struct offcpu_thread_word);
	__type(value, __u32); /* tid */
} thread_words SEC(".maps");

/* By the time a wait for its end is over, its process may be gone. */
static __noinline void keep_thread_word(struct task_struct *task)
{
	struct offcpu_thread_word word = {.pid = target_pid(task)};
	__u32 tid = target_tid(task);

	word.user_va = (__u64)BPF_CORE_READ(task, clear_child_tid);
	if (word.user_va)
		bpf_map_update_elem(&thread_words, &word, &tid, BPF_ANY);
}

static __always_inline struct thread *add_thread(struct task_struct *task, __u64 now_ns)
{
	struct thread *t;
	struct offcpu_losses *l;

	if (task->flags & PF_KTHREAD && !setup.with_kthreads)
		return NULL;
	t = threads_new(task);
	if (!t) {
		l = losses();
		if (l)
			l->threads_full++;
		return NULL;
	}
	if (setup.with_stacks)
		stack_expect(task);
	t->start_ns = t->since_ns = now_ns;
	t->exec_ns = task->se.sum_exec_runtime;
	t->pid = target_pid(task);
	t->tid = target_tid(task);
	t->own_pid = target_own_pid(task);
	t->wait.thread = next_serial(setup.n_cpus);
	keep_thread_word(task);
	return t;
}

static __always_inline void fill_totals(const struct thread *t, struct task_struct *task,
					__u64 now_ns, struct offcpu_totals *ret)
{
	ret->start_ns = t->start_ns;
	ret->end_ns = now_ns;
	ret->on_ns = t->on_ns;
	ret->off_ns = t->off_ns;
	ret->lost_ns = t->lost_ns;
	ret->short_ns = t->short_ns;
	ret->switches = t->switches;
	ret->pid = t->pid;
	ret->tid = t->tid;
	ret->own_pid = t->own_pid;
	BPF_CORE_READ_STR_INTO(&ret->comm, task, comm);
}

static __always_inline void end_thread(struct thread *t, struct task_struct *task, __u64 now_ns)
{
	struct offcpu_totals total = {};
	struct offcpu_losses *l;
	__u32 serial = t->wait.thread;

	if (t->ended)
		return;
	t->ended = true;
	fill_totals(t, task, now_ns, &total);
	if (!bpf_map_update_elem(&totals, &serial, &total, BPF_ANY)) {
		__sync_fetch_and_add(&totals_added, 1);
		return;
	}
	l = losses();
	if (l)
		l->totals_full++;
}

#include "offcpu_loops.bpf.h"

/*
 * A switch that no program saw: seen on 6.18 when the CPU comes from a task that is within bpf(2)
 * itself, as the tool is. How long the thread has run since, the kernel knows.
 */
static __always_inline void miss_enter(struct thread *t, struct task_struct *task, __u64 now_ns)
{
	__u64 ran_ns = task->se.sum_exec_runtime - t->exec_ns;

	if (now_ns < t->since_ns || ran_ns > now_ns - t->since_ns)
		ran_ns = 0;
	end_wait(t, task, now_ns - ran_ns);
	if (setup.with_loops)
		loop_enter(t, now_ns - ran_ns - t->since_ns, now_ns - ran_ns);
	t->since_ns = now_ns - ran_ns;
}

/* The same of the switch away from it: what it waited for is not known. */
static __always_inline void miss_leave(struct thread *t, struct task_struct *task, __u64 now_ns)
{
	__u64 ran_ns = task->se.sum_exec_runtime - t->exec_ns;

	if (now_ns < t->since_ns || ran_ns > now_ns - t->since_ns)
		return;
	t->gap.begin_ns = 0; /* it may have waited for events, or not */
	t->switches++;
	t->on_ns += ran_ns;
	t->untold_ns += setup.with_ticks ? ran_ns : 0;
	t->since_ns += ran_ns;
	t->running = false;
	t->wait.stack = t->wait.chain = t->wait.arg = t->wait.inode = 0;
	t->wait.file_mode = 0;
	t->wait.waker = OFFCPU_WAKER_NONE;
	t->wait.nr = OFFCPU_NR_UNKNOWN;
	t->wait.how = OFFCPU_BLOCKED;
	t->wait.flags = 0;
	t->woken_ns = 0;
}

static __always_inline void leave(void *ctx, struct task_struct *task, bool preempt, __u32 state,
				  __u64 now_ns)
{
	struct thread *t = threads_of(task);
	struct unwind_walk *w;
	__u32 zero = 0;
	int stop;

	if (!t)
		return;
	if (!t->running)
		miss_enter(t, task, now_ns);
	if (setup.with_ticks)
		note_running(t, now_ns);
	if (now_ns > t->since_ns)
		t->on_ns += now_ns - t->since_ns;
	t->running = false;
	t->exec_ns = task->se.sum_exec_runtime;
	t->since_ns = now_ns;
	t->woken_ns = 0;
	t->switches++;
	if (!preempt && state & TASK_DEAD) {
		if (setup.with_ticks)
			add_running(t);
		end_thread(t, task, now_ns);
		threads_end(task);
		return;
	}
	w = bpf_map_lookup_elem(&unwind_walks, &zero);
	if (!w)
		return;
	stop = setup.with_stacks ? stack_registers(w, task) : stack_call_registers(w, task);
	begin_wait(t, task, w, stop, how_of(task, preempt, state), state, true);
	if (setup.with_stacks)
		t->wait.stack = stack_take(ctx, w, task, t->pid, t->tid, stop, t->wait.nr >= 0);
	if (setup.with_loops)
		loop_leave(t, now_ns);
}

static __always_inline void enter(struct task_struct *task, __u64 now_ns)
{
	struct thread *t = threads_of(task);

	if (!t)
		return;
	if (t->running)
		miss_leave(t, task, now_ns);
	if (!t->running)
		end_wait(t, task, now_ns);
	if (setup.with_loops && !t->running)
		loop_enter(t, now_ns - t->since_ns, now_ns);
	t->running = true;
	t->since_ns = now_ns;
}

SEC("tp_btf/sched_switch")
int BPF_PROG(on_switch, bool preempt, struct task_struct *prev, struct task_struct *next)
{
	__u64 now_ns;
	__u32 state;

	/* A thread that has left the list of tasks may get here when its process has ended and all
	 * is over: nobody else tells of it. */
	state = setup.has_state_argument ? (__u32)ctx[3] : task_state(prev);
	if (!target_shared.active && (preempt || !(state & TASK_DEAD)))
		return 0;
	now_ns = bpf_ktime_get_ns();
	leave(ctx, prev, preempt, state & TASK_STATES_WAITING, now_ns);
	if (target_shared.active)
		enter(next, now_ns);
	return 0;
}

#include "offcpu_wakers.bpf.h"

SEC("tp_btf/sched_waking")
int BPF_PROG(on_waking, struct task_struct *task)
{
	struct thread *t;

	if (!target_shared.active)
		return 0;
	t = threads_of(task);
	if (!t || t->running || t->woken_ns)
		return 0;
	t->woken_ns = bpf_ktime_get_ns();
	if (setup.with_wakers)
		note_waker(ctx, t);
	return 0;
}

/* What runs: the time since the last tick belongs to where this one hits. */
SEC("perf_event")
int on_tick(struct bpf_perf_event_data *ctx)
{
	struct task_struct *task = this_task();
	__u64 now_ns = bpf_ktime_get_ns();
	struct unwind_walk *w;
	struct thread *t;
	__u32 zero = 0;

	if (!target_shared.active)
		return 0;
	t = threads_of(task);
	w = bpf_map_lookup_elem(&unwind_walks, &zero);
	if (!t || !w || !t->running)
		return 0;
	if (setup.with_loops)
		loop_tick(ctx, w, task, t, now_ns);
	if (!setup.with_ticks)
		return 0;
	note_running(t, now_ns);
	if (setup.with_stacks)
		t->tick_stack = stack_of_tick(ctx, w, task, t->pid, t->tid);
	t->tick_stack_ns = now_ns;
	add_running(t);
	return 0;
}

#include "offcpu_calls.bpf.h"
#include "offcpu_gpu.bpf.h"
#include "offcpu_probes.bpf.h"

/* --- who is measured -------------------------------------------------------------------------- */

SEC("tp_btf/sched_process_fork")
int BPF_PROG(on_birth, struct task_struct *parent, struct task_struct *child)
{
	struct thread *t;
	bool wanted;

	if (!target_shared.active || target_setup.filter == TARGET_THREADS)
		return 0;
	if (target_setup.filter == TARGET_ALL)
		wanted = target_tid(child);
	else if (target_setup.filter == TARGET_CGROUP)
		wanted = is_in_cgroup(child);
	else
		wanted = threads_of(parent);
	t = wanted ? add_thread(child, bpf_ktime_get_ns()) : NULL;
	if (!t)
		return 0;
	t->wait.how = OFFCPU_BORN;
	/* It begins with the end of its parent's call, which is none of its own. */
	t->running = setup.with_calls || setup.with_probe;
	return 0;
}

/* A child of the tool counts from here on; a process may have come into the cgroup since. */
SEC("tp_btf/sched_process_exec")
int BPF_PROG(on_start, struct task_struct *task, int old_pid, struct linux_binprm *binprm)
{
	__u32 pid = target_pid(task);
	struct thread *t = threads_of(task);
	bool wanted = false;
	__u8 *state;

	if (t)
		t->tid = pid; /* another thread than the first has taken its place */
	if (t || !target_shared.active)
		return 0;
	if (target_setup.filter == TARGET_CGROUP) {
		wanted = is_in_cgroup(task);
	} else if (target_setup.filter == TARGET_PROCESSES) {
		state = bpf_map_lookup_elem(&targets, &pid);
		wanted = state && (*state == TARGET_LIVE || *state == TARGET_AT_EXEC);
	}
	t = wanted ? add_thread(task, bpf_ktime_get_ns()) : NULL;
	if (!t)
		return 0;
	t->running = true;
	if (setup.with_calls)
		begin_call(t, calls.execve, 0);
	return 0;
}

/* The iterator's own, as switches come in between: only registers. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct unwind_walk);
} begin_walk SEC(".maps");

/* All that exist when the measurement begins. */
SEC("iter/task")
int begin(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	__u64 now_ns = bpf_ktime_get_ns();
	struct unwind_walk *w;
	struct thread *t;
	__u32 state, zero = 0;

	/* One that has ended and is in the list yet, as a main thread before the others, waits for
	 * nothing. */
	if (!task || BPF_CORE_READ(task, exit_state) || (!HAS_TASK_STORAGE && task_is_over(task)) ||
	    threads_of(task) || !is_target(task, target_pid(task), target_tid(task)))
		return 0;
	t = add_thread(task, now_ns);
	if (!t)
		return 0;
	if (setup.with_calls) {
		begin_in_call(t, task);
		return 0;
	}
	state = task_state(task) & TASK_STATES_WAITING;
	if (setup.with_probe || BPF_CORE_READ(task, on_cpu)) {
		t->running = true;
		return 0;
	}
	w = bpf_map_lookup_elem(&begin_walk, &zero);
	if (!w)
		return 0;
	begin_wait(t, task, w, stack_registers(w, task), how_of(task, !state, state), state, false);
	t->wait.flags |= OFFCPU_BEFORE;
	return 0;
}

/* Then the GPU's calls that they are in: by itself, as programs that sleep have no serials before
 * 6.3 (bpf_spin_lock). */
SEC("iter/task")
int begin_gpu(struct bpf_iter__task *ctx)
{
	return gpu_begin_in_call(ctx->task);
}

/* The same with what the caller's memory says of them. */
SEC("iter.s/task")
int begin_gpu_reading(struct bpf_iter__task *ctx)
{
	return gpu_begin_in_call(ctx->task);
}

/* All that exist when it ends: their waits up to now, and what they did. */
SEC("iter/task")
int end(struct bpf_iter__task *ctx)
{
	struct offcpu_ended ended = {};
	struct task_struct *task = ctx->task;
	__u64 now_ns = bpf_ktime_get_ns();
	struct thread *t;

	if (!task)
		return 0;
	t = threads_of(task);
	if (!t || t->ended)
		return 0;
	if (t->running && setup.with_ticks)
		note_running(t, now_ns);
	if (setup.with_ticks)
		add_running(t);
	if (setup.with_loops) {
		if (!t->running && now_ns > t->since_ns)
			loop_waited(t, now_ns - t->since_ns);
		loop_end_gap(t, now_ns, true);
	}
	if (t->running) {
		t->on_ns += now_ns > t->since_ns ? now_ns - t->since_ns : 0;
	} else {
		t->wait.flags |= OFFCPU_OPEN;
		end_wait(t, task, now_ns);
	}
	t->ended = true;
	fill_totals(t, task, now_ns, &ended.totals);
	ended.serial = t->wait.thread;
	bpf_seq_write(ctx->meta->seq, &ended, sizeof(ended));
	return 0;
}
