/* SPDX-License-Identifier: BSD-2-Clause */
#include "blocked_stacks.h"

#include "remote_memory.h"
#include "unwinding.h"

#include <time.h>

struct blocked_stacks {
	struct task_reader *reader;
	struct unwind_tables *tables; /* not those of the program, which another thread fills */
	struct remote_memory memory;
	uint64_t chain[UNWIND_MAX_STACK];
};

void blocked_stacks_release(blocked_stack_list *l)
{
	for (size_t i = 0; i < l->n; i++)
		free(l->v[i].record);
	array_release(l);
}

int blocked_stacks_new(const struct host *h, bool no_cache, struct blocked_stacks **ret,
		       struct diag *d)
{
	struct blocked_stacks *b = calloc(1, sizeof(*b));
	int err = b ? task_reader_new(h, &b->reader, d) : diag_errno(d, -ENOMEM, "reading threads");

	if (b)
		remote_memory_init(&b->memory);
	if (!err && (err = unwind_tables_new(!no_cache, &b->tables)))
		diag_errno(d, err, "preparing to unwind");
	if (err) {
		blocked_stacks_free(b);
		return err;
	}
	*ret = b;
	return 0;
}

void blocked_stacks_free(struct blocked_stacks *b)
{
	if (!b)
		return;
	task_reader_free(b->reader);
	unwind_tables_free(b->tables);
	remote_memory_release(&b->memory);
	free(b);
}

/* --- what their processes have mapped --------------------------------------------------------- */

/* A profile of its own: that of the recording is at another time. */
struct mappings {
	struct event_table events;
	struct profile *profile;
	struct pipeline *pipeline;
};

static void mappings_release(struct mappings *m)
{
	pipeline_free(m->pipeline);
	profile_free(m->profile);
	event_table_release(&m->events);
}

static int take_record(void *ctx, const struct perf_event_header *record, size_t size_bytes)
{
	return pipeline_record(ctx, record, size_bytes, false);
}

static int read_mappings(struct mappings *m, const task_states *tasks)
{
	const struct perf_event_attr attr = {.type = PERF_TYPE_SOFTWARE,
					     .config = PERF_COUNT_SW_DUMMY,
					     .size = sizeof(attr),
					     .sample_id_all = 1,
					     .sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_TIME,
					     .use_clockid = 1,
					     .clockid = CLOCK_MONOTONIC};
	ARRAY(pid_t) pids = {0};
	int err = event_table_add(&m->events, &attr, NULL);

	if (!err)
		err = profile_new(&m->profile);
	if (!err)
		err = pipeline_new(&m->events, m->profile, NULL, true, &m->pipeline);
	for (size_t i = 0; i < tasks->n && !err; i++)
		if (!pids.n || pids.v[pids.n - 1] != tasks->v[i].pid)
			err = array_push(&pids, tasks->v[i].pid);
	if (!err && pids.n)
		err = synthesize_processes(pids.v, pids.n, &m->events, take_record, m->pipeline);
	if (!err)
		err = pipeline_finish(m->pipeline);
	array_release(&pids);
	return err;
}

/* --- stacks ----------------------------------------------------------------------------------- */

static int keep_stack(struct blocked_stacks *b, const struct task_state *t, size_t n,
		      enum unwind_stop stop, bool guessed, blocked_stack_list *ret)
{
	size_t n_kernel = MIN(t->n_kernel, (size_t)STACK_KERNEL_FRAMES);
	struct blocked_stack s = {.tid = t->tid, .waited_ns = t->since_ns};
	struct stack_record *r = malloc(STACK_HEAD_BYTES + 8 * (n_kernel + n));
	int err;

	if (!r)
		return -ENOMEM;
	memset(r, 0, STACK_HEAD_BYTES); /* of the chain there is the used part alone */
	r->mark = STACK_MARK;
	r->pid = (uint32_t)t->pid;
	r->tid = (uint32_t)t->tid;
	r->n_kernel = (uint16_t)n_kernel;
	r->n_user = (uint16_t)n;
	r->stop = (uint8_t)stop;
	r->guessed = guessed;
	memcpy(r->chain, t->kernel, n_kernel * 8);
	memcpy(r->chain + n_kernel, b->chain, n * 8);
	r->id = hash_bytes(r->chain, (n_kernel + n) * 8) ^ hash_u64(r->pid);
	s.record = r;
	err = array_push(ret, s);
	if (err)
		free(r);
	return err;
}

static int walk(struct blocked_stacks *b, const struct unwind_walk *w, const struct task_state *t,
		blocked_stack_list *ret)
{
	struct unwind_state state = t->user;
	enum unwind_stop stop = UNWIND_NO_REGISTERS;
	size_t n = 0;

	remote_memory_begin(&b->memory, t->pid);
	state.stack_low = state.r[UNWIND_SLOT_SP];
	if (t->is_kernel) {
		stop = UNWIND_END;
	} else if (t->is_32_bit) {
		b->chain[n++] = state.pc;
		stop = UNWIND_32_BIT;
	} else if (state.known) {
		n = unwind_registers(w, (uint32_t)t->pid, &state, remote_memory_word, &b->memory,
				     b->chain, UNWIND_MAX_STACK, &stop);
	}
	return keep_stack(b, t, n, stop, state.guessed, ret);
}

static int by_tid(const void *a, const void *b)
{
	const struct blocked_stack *x = a, *y = b;

	return (x->tid > y->tid) - (x->tid < y->tid);
}

int blocked_stacks_read(struct blocked_stacks *b, const struct task_selection *which,
			blocked_stack_list *ret)
{
	CLEANUP(task_states_release) task_states tasks = {0};
	CLEANUP(mappings_release) struct mappings m = {0};
	int err = task_reader_read(b->reader, which, &tasks);
	struct unwind_walk w = {
		.tables = b->tables, .arch = unwinding_host_arch(), .local_host = true};

	if (!err && tasks.n)
		err = read_mappings(&m, &tasks);
	if (err || !tasks.n)
		return err;
	w.processes = &m.profile->processes;
	for (size_t i = 0; i < tasks.n && !err; i++)
		if (!tasks.v[i].on_cpu)
			err = walk(b, &w, &tasks.v[i], ret);
	if (ret->n)
		qsort(ret->v, ret->n, sizeof(*ret->v), by_tid);
	return err;
}

const struct blocked_stack *blocked_stacks_find(const blocked_stack_list *l, pid_t tid)
{
	struct blocked_stack key = {.tid = tid};

	return l->n ? bsearch(&key, l->v, l->n, sizeof(key), by_tid) : NULL;
}
