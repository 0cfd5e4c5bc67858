/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Waits at futexes by lock. A private futex is an address in a process; a shared one that lies in a
 * file is a place in it, so that processes which map it elsewhere mean the same lock.
 *
 * FUTEX_REQUEUE moves those who wait to another lock while they sleep. The kernel tells nobody; but
 * who is woken by a call at another lock than its own must have been moved there. Of those who are
 * not woken by such a call (they wait on, or their time is up) it is known when all were moved.
 */
#ifndef BPF_SYSCALLS_LOCKS_BPF_H
#define BPF_SYSCALLS_LOCKS_BPF_H

#include "syscalls_details.bpf.h"
#include "syscalls_rows.bpf.h"

enum { ETIMEDOUT = 110 };

/* --- which lock ------------------------------------------------------------------------------- */

/* The key of the lock at an address, in key->stack mixed to one number. */
static __noinline int lock_key(struct task_struct *task, __u64 user_va, bool is_private,
			       struct syscalls_key *key)
{
	struct vma_place at = {};

	*key = (struct syscalls_key){.fd = -1, .pid = target_pid(task), .inode = user_va};
	if (!is_private)
		vma_find_place(task, user_va, &at);
	if (at.file_va) {
		struct syscalls_file_key name = {at.inode, at.device, at.generation};

		keep_file_name(&name, (struct file___file *)at.file_va);
		key->pid = 0;
		key->inode = at.file_off;
		key->cgroup = at.inode;
		key->device = at.device;
		key->code = at.generation;
	}
	key->stack = (key->inode + key->cgroup * 0x9e3779b97f4a7c15ULL) ^
		     ((__u64)key->pid + key->device) * 0xbf58476d1ce4e5b9ULL;
	return 0;
}

/* Of the key of a private lock, whatever is not known of a futex_waitv. */
static __always_inline void mark_several(struct syscalls_key *key, __u32 n, __u32 unread)
{
	if (!key->pid)
		return;
	key->code = (n & SYSCALLS_LOCKS) | unread;
	key->stack ^= key->code * 0x9e3779b97f4a7c15ULL;
}

/* --- moved from lock to lock ------------------------------------------------------------------ */

enum { MOVES_KEPT = 8, MOVES_MAX = 4096 };

struct move {
	__u64 from, to; /* ids of locks */
};

/* When waiters were moved, the last few times. */
struct move_times {
	__u64 n;
	__u64 ns[MOVES_KEPT];
};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, MOVES_MAX);
	__type(key, struct move);
	__type(value, struct move_times);
} moves SEC(".maps");

/* By lock: where all that waited at it were moved, the last time. */
struct all_moved {
	struct syscalls_key to;
	__u64 ns;
};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, MOVES_MAX);
	__type(key, __u64);
	__type(value, struct all_moved);
} all_moves SEC(".maps");

/* At the beginning of the call: who is woken at the other lock may be quicker than its end. */
static __noinline int note_move(struct call_state *st)
{
	struct move move = {st->lock.stack, st->moved_to.stack};
	struct move_times first = {.n = 1}, *times = bpf_map_lookup_elem(&moves, &move);
	__u64 now_ns = bpf_ktime_get_ns(), at;

	if (!times) {
		first.ns[0] = now_ns;
		return bpf_map_update_elem(&moves, &move, &first, BPF_ANY);
	}
	at = times->n; /* of two at once one time may stand for both */
	__sync_fetch_and_add(&times->n, 1);
	barrier_var(at);
	times->ns[at & (MOVES_KEPT - 1)] = now_ns;
	return 0;
}

/* Those who wait longest are moved first: a waiter by the first move since it waits. 0: by none
 * that is known. */
static __noinline __u64 moved_ns(__u64 from, __u64 to, __u64 since_ns)
{
	struct move move = {from, to};
	const struct move_times *times = bpf_map_lookup_elem(&moves, &move);
	__u64 first_ns = 0;

	for (__u32 i = 0; times && i < MOVES_KEPT; i++)
		if (times->ns[i] >= since_ns && (!first_ns || times->ns[i] < first_ns))
			first_ns = times->ns[i];
	return first_ns;
}

/* Whether it began to wait before all were moved: then it was. */
static __noinline bool moved_with_all(struct call_state *st, __u64 since_ns)
{
	__u64 lock = st->lock.stack;
	const struct all_moved *all = bpf_map_lookup_elem(&all_moves, &lock);

	if (!all || all->ns < since_ns)
		return false;
	st->moved_to = all->to;
	return true;
}

/* --- a call ----------------------------------------------------------------------------------- */

static __noinline int begin_futex(struct call_state *st, struct task_struct *task)
{
	struct futex_call *c = &st->futex;

	st->stack = st->moved_to.stack = 0;
	st->stack_is_cut = 0;
	if (futex_call_read(task, st->code, c))
		return 0;
	lock_key(task, c->user_va, c->is_private, &st->lock);
	if (c->several)
		mark_several(&st->lock, c->n, 0);
	if (c->to_va)
		lock_key(task, c->to_va, c->to_is_private, &st->moved_to);
	if (futex_waits(c->op)) {
		c->holder = futex_holder(c);
		st->stack = stack_of_call(task);
		st->stack_is_cut = stack_was_cut();
		st->moved_to.stack = 0;
	} else if (futex_moves(c->op)) {
		note_move(st);
	}
	return 0;
}

/* A wake-up of a task that waits, by the current one. */
static __always_inline void note_wake(void *ctx, struct task_struct *task)
{
	struct task_struct *by = this_task();
	struct call_state *st = states_of(task), *waker;

	if (!st || !st->enter_ns || !futex_waits(st->futex.op) || st->futex.several ||
	    is_in_interrupt(ctx, by))
		return;
	waker = states_of(by);
	if (!waker || !waker->enter_ns || futex_waits(waker->futex.op) ||
	    waker->lock.stack == st->lock.stack || waker->moved_to.stack == st->lock.stack)
		return;
	st->moved_to = waker->lock;
}

SEC("tp_btf/sched_waking")
int BPF_PROG(on_futex_wake, struct task_struct *task)
{
	if (target_shared.active)
		note_wake(ctx, task);
	return 0;
}

static __noinline void add_lock_detail(__u32 kind, __u32 id, __u64 lock, __u64 stack, __u64 sum)
{
	struct syscalls_detail_key key = {.kind = kind, .id = id, .value = lock, .stack = stack};

	add_detail_key(&key, sum);
}

static __noinline int note_all_moved(struct call_state *st, __u64 ns)
{
	struct all_moved all = {.to = st->moved_to, .ns = ns};
	__u64 lock = st->lock.stack;

	return bpf_map_update_elem(&all_moves, &lock, &all, BPF_ANY);
}

static __noinline int end_wake(struct finished *f)
{
	struct call_state *st = f->st;
	__u64 lock = st->lock.stack;

	if (f->result < 0)
		return 0;
	if (st->futex.moves_all)
		note_all_moved(st, bpf_ktime_get_ns() - f->latency_ns);
	if (!f->result && st->futex.op != FUTEX_UNLOCK_PI)
		return 0;
	add_lock_detail(SYSCALLS_LOCK_WAKER, target_tid(f->task), lock, stack_of_call(f->task),
			f->result);
	return 0;
}

/* `latency_ns` of the wait were at this lock. */
static __noinline int add_lock_wait(struct finished *f, const struct syscalls_key *key)
{
	struct syscalls_row *row = row_of_key(key, f->task, -1);

	add_lock_detail(SYSCALLS_LOCK_WAITER, target_tid(f->task), key->stack, f->st->stack,
			f->latency_ns);
	return row ? add_to_row(f, row, f->latency_ns, true) : 0;
}

/* The part of a wait at the lock where it began; what is left is at the other. */
static __noinline int add_before_move(struct finished *f, __u64 now_ns)
{
	__u64 whole_ns = f->latency_ns, begin_ns = now_ns - whole_ns;
	__u64 at_ns = moved_ns(f->st->lock.stack, f->st->moved_to.stack, begin_ns);

	add_lock_detail(SYSCALLS_LOCK_MOVED, 0, f->st->moved_to.stack, 0, 0);
	if (at_ns <= begin_ns || at_ns >= now_ns)
		return 0;
	f->latency_ns = at_ns - begin_ns;
	add_lock_wait(f, &f->st->lock);
	f->latency_ns = whole_ns - f->latency_ns;
	return 0;
}

static __noinline int end_futex(struct finished *f, __u64 now_ns)
{
	struct call_state *st = f->st;
	struct futex_call *c = &st->futex;
	struct syscalls_key *at = &st->lock;
	__u64 lock;

	if (st->stack_is_cut) /* the tool may have what was missing by now */
		st->stack = stack_of_call(f->task);
	if (c->several) {
		futex_several_read(f->task, f->result > 0 ? f->result : 0, c);
		lock_key(f->task, c->user_va, c->is_private, &st->lock);
		if (f->result < 0 && c->n > 1)
			mark_several(&st->lock, c->n, 0);
	}
	if (!futex_waits(c->op))
		return end_wake(f);
	if (f->result == -EAGAIN) {
		add_lock_detail(SYSCALLS_LOCK_EAGAIN, 0, st->lock.stack, 0, 0);
		row_of_key(&st->lock, f->task, -1); /* it has a row, even if nobody waits */
		return 0;
	}
	if (c->holder)
		add_lock_detail(SYSCALLS_LOCK_HOLDER, c->holder, st->lock.stack, 0, f->latency_ns);
	if (f->result && !st->moved_to.stack)
		moved_with_all(st, now_ns - f->latency_ns);
	if (st->moved_to.stack) {
		add_before_move(f, now_ns);
		at = &st->moved_to;
	}
	lock = at->stack;
	if (f->result == -ETIMEDOUT)
		add_lock_detail(SYSCALLS_LOCK_TIMEOUT, 0, lock, 0, f->latency_ns);
	if (futex_is_pi(c->op))
		add_lock_detail(SYSCALLS_LOCK_PI, 0, lock, 0, f->latency_ns);
	return add_lock_wait(f, at);
}

/* A thread that was asleep in a call at the start. What its memory says is not known. */
static __noinline int begin_futex_before(struct call_state *st, struct task_struct *task)
{
	if (futex_call_read(task, st->code, &st->futex))
		return 0;
	lock_key(task, st->futex.user_va, st->futex.is_private, &st->lock);
	if (st->futex.several)
		mark_several(&st->lock, st->futex.n, SYSCALLS_LOCKS_UNREAD);
	return 0;
}

/* A wait that goes on, for the iterator. Waits alone: a wake is over at once. */
static __noinline int collect_futex(struct call_state *st, __u64 now_ns,
				    struct syscalls_thread *out)
{
	__u64 at_ns;

	if (!out->in_call || !futex_waits(st->futex.op)) {
		out->in_call = 0;
		return 0;
	}
	out->stack = st->stack;
	out->key = st->lock;
	if (!moved_with_all(st, st->enter_ns))
		return 0;
	out->key = st->moved_to;
	at_ns = moved_ns(st->lock.stack, st->moved_to.stack, st->enter_ns);
	if (at_ns && at_ns < now_ns)
		out->in_call_ns = now_ns - at_ns;
	st->moved_to.stack = 0; /* it may be woken at the first all the same */
	return 0;
}

#endif
