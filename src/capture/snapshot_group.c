/* SPDX-License-Identifier: BSD-2-Clause */
/* Threads that are at the same place are one group; those that wait for each other are a circle. */
#include "snapshot_impl.h"

/* --- circles ---------------------------------------------------------------------------------- */

enum { NO_THREAD = -1 };

/* Threads by their ids. */
struct tid_at {
	pid_t tid;
	uint32_t index;
};

static int by_tid(const void *a, const void *b)
{
	const struct tid_at *x = a, *y = b;

	return (x->tid > y->tid) - (x->tid < y->tid);
}

static int64_t holder_of(const struct snapshot *s, const struct tid_at *list, uint32_t i)
{
	const struct tid_at key = {.tid = s->threads.v[i].wait.owner}, *found;

	if (!key.tid)
		return NO_THREAD;
	found = bsearch(&key, list, s->threads.n, sizeof(*list), by_tid);
	return found ? (int64_t)found->index : NO_THREAD;
}

/* Each thread waits for one holder at most: a walk from it either ends or comes to a circle. */
int snapshot_find_cycles(struct snapshot *s)
{
	CLEANUP(freep) struct tid_at *list = calloc(s->threads.n + 1, sizeof(*list));
	CLEANUP(freep) uint32_t *walk = calloc(s->threads.n + 1, sizeof(*walk)); /* that met it */

	if (!list || !walk)
		return -ENOMEM;
	for (size_t i = 0; i < s->threads.n; i++)
		list[i] = (struct tid_at){s->threads.v[i].task.tid, (uint32_t)i};
	qsort(list, s->threads.n, sizeof(*list), by_tid);
	s->n_cycles = 0;
	for (uint32_t i = 0; i < s->threads.n; i++) {
		int64_t at = i;

		while (at != NO_THREAD && !walk[at]) {
			walk[at] = i + 1;
			at = holder_of(s, list, (uint32_t)at);
		}
		if (at == NO_THREAD || walk[at] != i + 1)
			continue;
		s->n_cycles++;
		for (; !s->threads.v[at].cycle; at = holder_of(s, list, (uint32_t)at))
			s->threads.v[at].cycle = s->n_cycles;
	}
	return 0;
}

/* --- groups ----------------------------------------------------------------------------------- */

static int compare(uint64_t a, uint64_t b)
{
	return (a > b) - (a < b);
}

static int compare_paths(const struct symbol_path *a, const struct symbol_path *b)
{
	int order = compare(a->at.n, b->at.n);

	for (size_t i = a->at.n; i > 0 && !order; i--)
		order = compare(a->at.v[i - 1].symbol, b->at.v[i - 1].symbol);
	return order;
}

/* 0: the same place. */
static int compare_places(const struct snapshot_thread *a, const struct snapshot_thread *b)
{
	int order = compare((unsigned char)a->task.state, (unsigned char)b->task.state);

	if (!order)
		order = compare(a->task.on_cpu, b->task.on_cpu);
	if (!order)
		order = compare(a->task.frozen, b->task.frozen);
	if (!order)
		order = strcmp(a->wait.call ? a->wait.call : "", b->wait.call ? b->wait.call : "");
	return order ? order : compare_paths(&a->path, &b->path);
}

static int by_place(const void *a, const void *b, void *ctx)
{
	const struct snapshot *s = ctx;
	const struct snapshot_thread *x = &s->threads.v[*(const uint32_t *)a];
	const struct snapshot_thread *y = &s->threads.v[*(const uint32_t *)b];
	int order = compare_places(x, y);

	return order ? order : compare((uint64_t)x->task.tid, (uint64_t)y->task.tid);
}

/* What is told first of groups of one size. */
static unsigned urgency(const struct snapshot_thread *t)
{
	static const char order[] = "DtTRSZXPI";
	const char *at = strchr(order, t->task.state);

	if (t->wait.by_design)
		return sizeof(order) + 1;
	return at ? (unsigned)(at - order) : sizeof(order);
}

static uint64_t longest(const struct snapshot *s, const struct snapshot_group *g)
{
	uint64_t longest_ns = 0;

	for (size_t i = g->first; i < g->first + g->n; i++) {
		const struct task_state *t = &s->threads.v[s->order.v[i]].task;

		if (t->since_ns != TASK_STATE_TIME_UNKNOWN)
			longest_ns = MAX(longest_ns, t->since_ns);
	}
	return longest_ns;
}

static bool has_cycle(const struct snapshot *s, const struct snapshot_group *g)
{
	for (size_t i = g->first; i < g->first + g->n; i++)
		if (s->threads.v[s->order.v[i]].cycle)
			return true;
	return false;
}

static int by_oddity(const void *a, const void *b, void *ctx)
{
	const struct snapshot *s = ctx;
	const struct snapshot_group *x = a, *y = b;
	int order = compare(has_cycle(s, y), has_cycle(s, x));

	if (!order)
		order = compare(x->n, y->n);
	if (!order)
		order = compare(urgency(&s->threads.v[s->order.v[x->first]]),
				urgency(&s->threads.v[s->order.v[y->first]]));
	if (!order)
		order = compare(longest(s, y), longest(s, x));
	return order ? order : compare(x->first, y->first);
}

int snapshot_group(struct snapshot *s)
{
	int err = 0;

	for (uint32_t i = 0; i < s->threads.n && !err; i++)
		err = array_push(&s->order, i);
	if (err || !s->order.n)
		return err;
	qsort_r(s->order.v, s->order.n, sizeof(*s->order.v), by_place, s);
	for (size_t i = 0; i < s->order.n && !err; i++) {
		const struct snapshot_thread *t = &s->threads.v[s->order.v[i]];

		if (!i || compare_places(&s->threads.v[s->order.v[i - 1]], t))
			err = array_push(&s->groups, (struct snapshot_group){.first = i});
		if (!err)
			s->groups.v[s->groups.n - 1].n++;
	}
	if (err)
		return err;
	qsort_r(s->groups.v, s->groups.n, sizeof(*s->groups.v), by_oddity, s);
	for (uint32_t g = 0; g < s->groups.n; g++)
		for (size_t i = 0; i < s->groups.v[g].n; i++)
			s->threads.v[s->order.v[s->groups.v[g].first + i]].group = g;
	return 0;
}
