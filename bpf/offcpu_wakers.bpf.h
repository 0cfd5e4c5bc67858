/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Who ended a wait, who had ended his last one, and so on. A chain is sent once through the ring
 * and then meant by its id, as stacks are.
 */
#ifndef OFFCPU_WAKERS_BPF_H
#define OFFCPU_WAKERS_BPF_H

/* Ids that the tool has. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, STACKS_MAX);
	__type(key, __u64);
	__type(value, __u8);
} chains_sent SEC(".maps");

static __always_inline __u64 chain_send(void *ctx, const struct thread *t)
{
	struct offcpu_chain chain = {.mark = OFFCPU_CHAIN_MARK, .n = t->n_links};
	struct offcpu_losses *l;
	__u64 hash = t->n_links;
	__u8 value = 1;

	for (__u32 i = 0; i < OFFCPU_LINKS; i++) {
		chain.links[i].stack = t->links[i].stack;
		chain.links[i].waker = t->links[i].waker;
		hash = unwind_mix(unwind_mix(hash, t->links[i].stack), t->links[i].waker);
	}
	chain.id = hash ? hash : 1;
	if (bpf_map_lookup_elem(&chains_sent, &chain.id))
		return chain.id;
	if (!bpf_map_update_elem(&chains_sent, &chain.id, &value, BPF_ANY)) {
		if (output_send(ctx, &chain, sizeof(chain), sizeof(chain)))
			return chain.id;
		bpf_map_delete_elem(&chains_sent, &chain.id);
	}
	l = losses();
	if (l)
		l->chains_lost++;
	return 0;
}

/* Behind t's waker `me` goes his chain, up to a link that is t itself. */
static __always_inline void chain_go_on(struct thread *t, const struct thread *me)
{
	bool goes_on = t->links[0].waker != t->wait.thread;

	for (__u32 i = 0; i < OFFCPU_LINKS - 1; i++) {
		goes_on &= i < me->n_links;
		t->links[i + 1].stack = goes_on ? me->links[i].stack : 0;
		t->links[i + 1].waker = goes_on ? me->links[i].waker : OFFCPU_WAKER_NONE;
		t->n_links += goes_on;
		goes_on &= me->links[i].waker != t->wait.thread;
	}
}

/* Who ends the wait of t, and where it is, into the key. */
static __always_inline void note_waker(void *ctx, struct thread *t)
{
	struct task_struct *task = this_task();
	bool in_interrupt = is_in_interrupt(ctx, task);
	struct offcpu_key *wait = &t->wait;
	struct unwind_walk *w;
	struct thread *me = NULL;
	__u32 zero = 0;
	int stop;

	if (!in_interrupt)
		me = threads_of(task);
	wait->waker = in_interrupt ? OFFCPU_WAKER_IRQ
		      : me         ? me->wait.thread
				   : OFFCPU_WAKER_OTHER | target_tid(task);
	if (!setup.with_chains)
		return;
	t->n_links = 1;
	__builtin_memset(t->links, 0, sizeof(t->links));
	t->links[0].waker = wait->waker;
	w = bpf_map_lookup_elem(&unwind_walks, &zero);
	if (me && w) {
		/* Interrupts are off (try_to_wake_up): nothing else uses the walk of this CPU. */
		stop = stack_registers(w, task);
		t->links[0].stack = stack_take(ctx, w, task, me->pid, me->tid, stop, false);
		chain_go_on(t, me);
	}
	wait->chain = chain_send(ctx, t);
}

#endif
