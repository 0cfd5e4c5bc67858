/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * User stacks of threads that run on meanwhile. A thread that waits does not change its stack: it
 * is walked, and then looked at again. If it has not run in between, what was read belongs
 * together. If it has, it is walked once more. One that runs has no registers that could be read: a
 * timer samples it.
 */
#include "snapshot_impl.h"
#include "unwinding.h"

enum { ROUNDS_MAX = 3, SAMPLED_MAX = 256 };

static int keep_chain(struct snapshot_work *w, size_t index, size_t n, enum unwind_stop stop,
		      bool guessed)
{
	struct snapshot_chain *c = &w->chains.v[index];
	uint64_t *v = malloc((n + 1) * sizeof(*v));

	if (!v)
		return -ENOMEM;
	memcpy(v, w->buffer, n * sizeof(*v));
	free(c->v);
	*c = (struct snapshot_chain){.v = v, .n = n, .stop = stop, .guessed = guessed};
	return 0;
}

static int walk_from(struct snapshot_work *w, size_t index, struct unwind_state *state)
{
	const struct task_state *t = &w->result->threads.v[index].task;
	enum unwind_stop stop;
	size_t n;

	state->stack_low = state->r[UNWIND_SLOT_SP];
	n = unwind_registers(&w->walk, (uint32_t)t->pid, state, remote_memory_word,
			     &w->session->memory, w->buffer, UNWIND_MAX_STACK, &stop);
	return keep_chain(w, index, n, stop, state->guessed);
}

static int walk_waiting(struct snapshot_work *w, size_t index)
{
	const struct task_state *t = &w->result->threads.v[index].task;
	struct remote_memory *m = &w->session->memory;
	struct unwind_state state = t->user;
	int err;

	remote_memory_begin(m, t->pid);
	m->copy = t->copy;
	m->copy_va = t->copy_va;
	m->copy_bytes = t->copy_bytes;
	if (t->is_32_bit) {
		w->buffer[0] = state.pc;
		return keep_chain(w, index, 1, UNWIND_32_BIT, false);
	}
	err = walk_from(w, index, &state);
	w->session->refused |= m->err == -EPERM || m->err == -EACCES || m->err == -ENOSYS;
	return err;
}

static bool can_be_walked(const struct snapshot_work *w, const struct task_state *t)
{
	return !t->on_cpu && t->user.known && !snapshot_is_locked(w, t->pid);
}

/* --- looking again ---------------------------------------------------------------------------- */

static int by_tid(const void *a, const void *b)
{
	const struct task_state *x = a, *y = b;

	return (x->tid > y->tid) - (x->tid < y->tid);
}

static bool ran_since(const struct task_state *then, const struct task_state *now)
{
	return now->on_cpu || !then->stamp || then->stamp != now->stamp;
}

/* Of those that are still to be walked, registers and stack of one moment. */
static int take_copies(struct snapshot_work *w)
{
	struct snapshot *s = w->result;
	CLEANUP(task_states_release) task_states now = {0};
	int err = snapshot_read_tasks(w->session, true, &now);

	if (!err && now.n)
		qsort(now.v, now.n, sizeof(*now.v), by_tid);
	for (size_t i = 0; i < s->threads.n && !err && now.n; i++) {
		struct task_state *t = &s->threads.v[i].task;
		const struct task_state *again = bsearch(t, now.v, now.n, sizeof(*now.v), by_tid);

		if (again && s->threads.v[i].stack == SNAPSHOT_STACK_MOVED)
			*t = *again;
	}
	return err;
}

/* Walks all of those whose stack is not known to be whole yet; *ret_left: how many ran meanwhile.
 */
static int walk_round(struct snapshot_work *w, size_t *ret_left)
{
	struct snapshot *s = w->result;
	CLEANUP(task_states_release) task_states now = {0};
	int err = w->session->refused && w->session->reader ? take_copies(w) : 0;

	for (size_t i = 0; i < s->threads.n && !err; i++)
		if (s->threads.v[i].stack == SNAPSHOT_STACK_MOVED &&
		    can_be_walked(w, &s->threads.v[i].task))
			err = walk_waiting(w, i);
	if (!err)
		err = snapshot_read_tasks(w->session, false, &now);
	if (err)
		return err;
	if (now.n)
		qsort(now.v, now.n, sizeof(*now.v), by_tid);
	*ret_left = 0;
	for (size_t i = 0; i < s->threads.n; i++) {
		struct snapshot_thread *t = &s->threads.v[i];
		const struct task_state *again;

		if (t->stack != SNAPSHOT_STACK_MOVED)
			continue;
		again = now.n ? bsearch(&t->task, now.v, now.n, sizeof(*now.v), by_tid) : NULL;
		if (!again) /* it has ended */
			continue;
		if (can_be_walked(w, &t->task) && !ran_since(&t->task, again)) {
			t->stack = SNAPSHOT_STACK_STILL;
			continue;
		}
		t->task = *again;
		++*ret_left;
	}
	return 0;
}

/* --- those that run --------------------------------------------------------------------------- */

struct sampling_of {
	struct snapshot_work *w;
	const size_t *threads;
};

static int take_sample(void *ctx, size_t index, const struct sample *sample)
{
	struct sampling_of *of = ctx;
	struct snapshot_work *w = of->w;
	size_t i = of->threads[index];
	struct snapshot_thread *t = &w->result->threads.v[i];
	struct remote_memory *m = &w->session->memory;
	struct unwind_state state = {0};
	size_t kernel = 0;
	int stop = unwind_state_from_perf(w->walk.arch, &sample->regs, &state);
	int err;

	remote_memory_begin(m, t->task.pid);
	m->copy = sample->stack;
	m->copy_va = state.r[UNWIND_SLOT_SP];
	m->copy_bytes = sample->stack_bytes;
	for (size_t k = 0; k < sample->n_chain && kernel < TASK_STATE_KERNEL_FRAMES; k++)
		if (sample->chain[k] < (uint64_t)-4095)
			t->task.kernel[kernel++] = sample->chain[k];
	t->task.n_kernel = kernel;
	t->task.on_cpu = true;
	t->task.state = 'R';
	t->task.since_ns = 0;
	t->task.syscall_nr = -1; /* it may be in one, but does not wait */
	t->stack = SNAPSHOT_STACK_SAMPLED;
	t->missing = NULL;
	if (!stop)
		return walk_from(w, i, &state);
	w->buffer[0] = state.pc;
	err = keep_chain(w, i, stop == UNWIND_32_BIT, (enum unwind_stop)stop, false);
	return err;
}

static int sample_running(struct snapshot_work *w)
{
	struct snapshot *s = w->result;
	size_t threads[SAMPLED_MAX];
	pid_t tids[SAMPLED_MAX];
	size_t n = 0;

	for (size_t i = 0; i < s->threads.n && n < SAMPLED_MAX; i++) {
		const struct snapshot_thread *t = &s->threads.v[i];

		if (t->stack != SNAPSHOT_STACK_MOVED || t->task.is_kernel ||
		    strchr("ZX", t->task.state) || snapshot_is_locked(w, t->task.pid))
			continue;
		threads[n] = i;
		tids[n++] = t->task.tid;
	}
	if (!n)
		return 0;
	return snapshot_sample(tids, n, take_sample, &(struct sampling_of){w, threads});
}

/* --- all of them ------------------------------------------------------------------------------ */

static void say_what_is_missing(const struct snapshot_work *w, struct snapshot_thread *t,
				const struct snapshot_chain *c)
{
	if (t->task.is_kernel || strchr("ZX", t->task.state)) {
		t->stack = SNAPSHOT_STACK_NONE;
	} else if (snapshot_is_locked(w, t->task.pid)) {
		t->stack = SNAPSHOT_STACK_NONE;
		t->missing = "the process's memory map is locked";
	} else if (!c->n) {
		t->stack = SNAPSHOT_STACK_NONE;
		t->missing = t->task.on_cpu || t->task.state == 'R'
				     ? "it runs, and no timer hit it in time"
				     : "its registers could not be read";
	}
}

/* From here on the kernel copies the stacks where it can; what that leaves out is noted. */
static int note_refusal(const struct snapshot_session *s)
{
	bool copies = s->reader && task_reader_copies(s->reader);

	return note_add_once(
		s->config->notes,
		copies ? "the memory of the target may not be read (CAP_SYS_PTRACE, or "
			 "kernel.yama.ptrace_scope): stacks end after 16 KiB, and holders of locks "
			 "are not known"
		       : "the memory of the target may not be read (CAP_SYS_PTRACE, or "
			 "kernel.yama.ptrace_scope): of each stack only the first function is "
			 "known");
}

int snapshot_walk(struct snapshot_work *w)
{
	struct snapshot *s = w->result;
	size_t left = s->threads.n;
	int err = array_reserve(&w->chains, s->threads.n);

	if (err)
		return err;
	w->chains.n = s->threads.n;
	if (w->chains.n)
		memset(w->chains.v, 0, w->chains.n * sizeof(*w->chains.v));
	for (size_t i = 0; i < s->threads.n; i++)
		s->threads.v[i].stack = SNAPSHOT_STACK_MOVED; /* until it is known to be still */
	for (int round = 0; round < ROUNDS_MAX && left && !err; round++) {
		bool known = w->session->refused;

		err = walk_round(w, &left);
		if (err || known || !w->session->refused)
			continue;
		for (size_t i = 0; i < s->threads.n; i++)
			s->threads.v[i].stack = SNAPSHOT_STACK_MOVED;
		left = s->threads.n;
		err = note_refusal(w->session);
	}
	if (!err && left)
		err = sample_running(w);
	for (size_t i = 0; i < s->threads.n; i++)
		say_what_is_missing(w, &s->threads.v[i], &w->chains.v[i]);
	return err;
}
