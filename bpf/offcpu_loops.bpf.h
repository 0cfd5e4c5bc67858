/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Event loops: how long a thread takes from the end of one wait for events until it waits again.
 * Nothing is attached to system calls, which would cost everybody: both ends are switches of the
 * CPU. Calls that find something ready at once are within such a gap; ticks see them.
 *
 * A thread has one loop: the first epoll descriptor that it waits on, or if there is none poll or
 * select. Whatever else it waits for is within the gap.
 */
#ifndef OFFCPU_LOOPS_BPF_H
#define OFFCPU_LOOPS_BPF_H

#include "lib/log_linear.h"

const struct offcpu_loop no_loop = {};

/* By serial of the thread. Made ahead: there is no memory to be had at a switch. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, OFFCPU_LOOPS_MAX);
	__type(key, __u32);
	__type(value, struct offcpu_loop);
} loops SEC(".maps");

static __always_inline __u8 argument_of(__s32 nr)
{
	return nr >= 0 && nr < OFFCPU_SYSCALLS ? syscall_argument[nr & (OFFCPU_SYSCALLS - 1)]
					       : OFFCPU_ARG_NONE;
}

static __always_inline struct offcpu_loop *loop_of(const struct thread *t)
{
	__u32 serial = t->wait.thread;
	struct offcpu_loop *loop = bpf_map_lookup_elem(&loops, &serial);
	struct offcpu_losses *l;

	if (loop)
		return loop;
	if (bpf_map_update_elem(&loops, &serial, &no_loop, BPF_NOEXIST)) {
		l = losses();
		if (l)
			l->loops_full++;
		return NULL;
	}
	loop = bpf_map_lookup_elem(&loops, &serial);
	if (loop) {
		loop->pid = t->pid;
		loop->tid = t->tid;
	}
	return loop;
}

/* Whether this call waits for the events of the thread's loop. */
static __always_inline bool is_loop_call(struct loop_gap *g, __s32 nr, __u64 arg)
{
	__u8 kind = argument_of(nr);

	if (kind == OFFCPU_ARG_EPOLL && g->kind != OFFCPU_ARG_EPOLL) {
		/* What it polled until now was no loop. */
		*g = (struct loop_gap){.kind = kind, .descriptor = (__u32)arg, .is_new = true};
		return true;
	}
	if (kind == OFFCPU_ARG_EPOLL)
		return g->descriptor == (__u32)arg;
	if (kind != OFFCPU_ARG_POLL && kind != OFFCPU_ARG_SELECT)
		return false;
	if (!g->kind) {
		g->kind = kind;
		g->is_new = true;
	}
	return g->kind != OFFCPU_ARG_EPOLL;
}

static __always_inline void loop_keep_longest(struct offcpu_loop *loop,
					      const struct offcpu_gap *gap)
{
	__u32 least = 0;

	for (__u32 i = 1; i < OFFCPU_LOOP_GAPS; i++)
		if (loop->longest[i].gap_ns < loop->longest[least & (OFFCPU_LOOP_GAPS - 1)].gap_ns)
			least = i;
	least &= OFFCPU_LOOP_GAPS - 1;
	if (gap->gap_ns > loop->longest[least].gap_ns)
		loop->longest[least] = *gap;
}

static __always_inline __u64 loop_ran_ns(const struct thread *t, __u64 now_ns)
{
	return t->on_ns + (t->running && now_ns > t->since_ns ? now_ns - t->since_ns : 0);
}

/* Within the gap it waited at t->wait.stack, for something else. */
static __always_inline void loop_waited(struct thread *t, __u64 off_ns)
{
	struct loop_gap *g = &t->gap;

	if (!g->begin_ns || off_ns <= g->wait_ns)
		return;
	g->wait_ns = off_ns;
	g->wait_stack = t->wait.stack;
}

/* The gap ends, if there is one: the thread waits for events again, or the measurement is over. */
static __always_inline void loop_end_gap(struct thread *t, __u64 now_ns, bool is_open)
{
	struct loop_gap *g = &t->gap;
	struct offcpu_gap gap = {.begin_ns = g->begin_ns, .is_open = is_open};
	struct offcpu_loop *loop;
	__u32 slot;

	if (!g->begin_ns || now_ns < g->begin_ns)
		return;
	g->begin_ns = 0;
	loop = loop_of(t);
	if (!loop)
		return;
	gap.gap_ns = now_ns - gap.begin_ns;
	gap.ran_ns = loop_ran_ns(t, now_ns) - g->begin_on_ns;
	gap.waited = g->wait_ns > gap.ran_ns || !g->ticks;
	gap.stack = gap.waited ? g->wait_stack : g->tick_stack;
	loop->n++;
	loop->sum += gap.gap_ns;
	if (gap.gap_ns > loop->max)
		loop->max = gap.gap_ns;
	slot = log_linear_slot(gap.gap_ns);
	barrier_var(slot); /* the compiler may not forget the bound, which the verifier needs */
	if (slot < LOG_LINEAR_SLOTS)
		loop->slots[slot]++;
	loop_keep_longest(loop, &gap);
}

/* The call that t->wait says, or that a tick has hit, is its loop's: the row that it is counted in,
 * begun anew when another call was taken for the loop until now. */
static __always_inline struct offcpu_loop *loop_note(struct thread *t, __s32 nr)
{
	__u32 serial = t->wait.thread;
	struct offcpu_loop *loop;

	if (t->gap.is_new)
		bpf_map_update_elem(&loops, &serial, &no_loop, BPF_EXIST);
	loop = loop_of(t);
	if (loop && t->gap.is_new) {
		loop->pid = t->pid;
		loop->tid = t->tid;
		loop->nr = nr;
	}
	t->gap.is_new = false;
	return loop;
}

static __always_inline void loop_begin_gap(struct thread *t, __u64 now_ns, bool from_tick)
{
	struct loop_gap *g = &t->gap;

	g->begin_ns = now_ns;
	g->begin_on_ns = loop_ran_ns(t, now_ns);
	g->wait_ns = g->wait_stack = g->tick_stack = 0;
	g->ticks = 0;
	g->from_tick = from_tick;
}

/* It has the CPU again after t->wait, which took off_ns. */
static __always_inline void loop_enter(struct thread *t, __u64 off_ns, __u64 now_ns)
{
	if (t->wait.how == OFFCPU_BLOCKED && is_loop_call(&t->gap, t->wait.nr, t->wait.arg))
		loop_begin_gap(t, now_ns, false);
	else
		loop_waited(t, off_ns);
}

/* It is about to wait, with what t->wait says. */
static __always_inline void loop_leave(struct thread *t, __u64 now_ns)
{
	struct offcpu_loop *loop;

	if (t->wait.how != OFFCPU_BLOCKED || !is_loop_call(&t->gap, t->wait.nr, t->wait.arg))
		return;
	loop = loop_note(t, t->wait.nr);
	if (loop)
		loop->waits++;
	/* This may be the call that the tick has hit. */
	if (t->gap.from_tick && now_ns - t->gap.begin_ns < OFFCPU_LOOP_TICK_NS)
		t->gap.begin_ns = 0;
	loop_end_gap(t, now_ns, false);
}

/* A tick has hit the thread: within the loop's call one gap ends and the next begins, without a
 * wait in between; else it may be what tells where the gap's time went, each tick with the same
 * chance. */
static __always_inline void loop_tick(struct bpf_perf_event_data *ctx, struct unwind_walk *w,
				      struct task_struct *task, struct thread *t, __u64 now_ns)
{
	struct offcpu_loop *loop;
	__s32 nr = OFFCPU_NO_SYSCALL;
	__u64 arg = 0;

	if (!context_is_user(ctx) && stack_registers(w, task) == UNWIND_CONTINUE)
		nr = regs_syscall(task, &w->regs, &arg);
	if (is_loop_call(&t->gap, nr, arg)) {
		/* Likely the call that has just waited, on its way out. */
		if (t->gap.begin_ns && !t->gap.from_tick &&
		    loop_ran_ns(t, now_ns) - t->gap.begin_on_ns < OFFCPU_LOOP_RETURN_NS)
			return;
		loop = loop_note(t, nr);
		if (loop)
			loop->polls++;
		loop_end_gap(t, now_ns, false);
		loop_begin_gap(t, now_ns, true);
	} else if (t->gap.begin_ns && bpf_get_prandom_u32() % ++t->gap.ticks == 0 &&
		   setup.with_stacks) {
		t->gap.tick_stack = stack_of_tick(ctx, w, task, t->pid, t->tid);
	}
}

#endif
