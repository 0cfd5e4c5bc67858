/* SPDX-License-Identifier: BSD-2-Clause */
#include "offcpu_groups.h"

enum { NO_PLACE = UINT32_MAX };
enum { SHORT_PART = 1000 }; /* of all waiting */

struct place {
	const struct wait_site *site;
	uint32_t node; /* the innermost user frame's, or NO_PLACE */
	const char *text;
	size_t call_n; /* of text, that counts */
};

/* A stack grows from its root: what is below the kernel's first frame is the user's part. */
static uint32_t user_part(const struct profile *p, uint32_t stack)
{
	uint32_t found = stack;

	if (stack == UINT32_MAX)
		return NO_PLACE;
	for (uint32_t i = stack; i != STACK_ROOT; i = p->stacks.v[i].parent)
		if (p->frames.v[p->stacks.v[i].frame].kind == FRAME_KERNEL)
			found = p->stacks.v[i].parent;
	return found == STACK_ROOT ? NO_PLACE : found;
}

static struct place place_of(const struct waits *w, const struct profile *p,
			     const struct wait_site *s)
{
	struct place e = {s, user_part(p, s->stack), w->labels.v[s->label].text, 0};

	/* Without a place in the program, what is waited for tells more than the call. */
	e.call_n = e.node == NO_PLACE ? strlen(e.text) : strcspn(e.text, " ");
	return e;
}

static int compare_places(const struct place *x, const struct place *y)
{
	int order;

	if (x->site->pid != y->site->pid)
		return x->site->pid < y->site->pid ? -1 : 1;
	if (x->node != y->node)
		return x->node < y->node ? -1 : 1;
	if (x->site->reason != y->site->reason)
		return x->site->reason < y->site->reason ? -1 : 1;
	order = x->call_n == y->call_n  ? memcmp(x->text, y->text, x->call_n)
		: x->call_n < y->call_n ? -1
					: 1;
	return order;
}

/* What is told of a site alone. */
static int compare_sites(const struct wait_site *x, const struct wait_site *y)
{
	if (x->pid != y->pid)
		return x->pid < y->pid ? -1 : 1;
	if (x->stack != y->stack)
		return x->stack < y->stack ? -1 : 1;
	if (x->reason != y->reason)
		return x->reason < y->reason ? -1 : 1;
	return (x->label > y->label) - (x->label < y->label);
}

/* Alike next to each other, and of them those with the same label. */
static int by_place(const void *a, const void *b)
{
	const struct place *x = a, *y = b;
	int order = compare_places(x, y);

	if (order)
		return order;
	if (x->site->label != y->site->label)
		return x->site->label < y->site->label ? -1 : 1;
	return x->site < y->site ? -1 : x->site > y->site;
}

static int by_site(const void *a, const void *b)
{
	const struct place *x = a, *y = b;
	int order = compare_sites(x->site, y->site);

	return order ? order : x->site < y->site ? -1 : x->site > y->site;
}

static int by_time(const void *a, const void *b)
{
	const struct wait_group *x = a, *y = b;

	if (x->rank != y->rank)
		return x->rank < y->rank ? -1 : 1;
	if (wait_site_ns(&x->sum) != wait_site_ns(&y->sum))
		return wait_site_ns(&x->sum) < wait_site_ns(&y->sum) ? 1 : -1;
	return (x->first > y->first) - (x->first < y->first);
}

static void add_site(struct wait_site *sum, const struct wait_site *s)
{
	sum->wait_ns += s->wait_ns;
	sum->queue_ns += s->queue_ns;
	sum->count += s->count;
	sum->max_ns = MAX(sum->max_ns, s->max_ns);
	sum->open_ns += s->open_ns;
	sum->before_ns += s->before_ns;
	sum->n_open += s->n_open;
	sum->n_before += s->n_before;
	sum->n_threads = MAX(sum->n_threads, s->n_threads);
	for (size_t b = 0; b < OFFCPU_BUCKETS; b++)
		sum->buckets[b] += s->buckets[b];
}

/* Where a thread is when it loses its CPU says nothing of the wait: one row for all such places. */
static void add_without_place(struct wait_group *g, const struct wait_site *s)
{
	struct wait_site *sum = &g->sum;

	if (!sum->count) {
		*sum = (struct wait_site){.stack = UINT32_MAX, .reason = s->reason};
		g->n_labels = 1;
		g->first = UINT32_MAX;
	}
	sum->label = s->label;
	add_site(sum, s);
}

static void begin_group(struct wait_group *g, const struct wait_site *s, uint32_t index)
{
	*g = (struct wait_group){
		.sum = *s, .n_labels = 1, .site_ns = wait_site_ns(s), .first = index};
}

static void join_group(struct wait_group *g, const struct wait_site *s, uint32_t index,
		       uint32_t *next)
{
	uint64_t ns = wait_site_ns(s);

	add_site(&g->sum, s);
	next[index] = g->first;
	g->first = index;
	if (ns > g->site_ns) {
		g->site_ns = ns;
		g->sum.stack = s->stack;
	}
}

/* n places that are alike: one group. */
static void fill_group(const struct waits *w, const struct place *e, size_t n, uint32_t *next,
		       struct wait_group *g)
{
	uint64_t ns = 0;

	begin_group(g, e[0].site, (uint32_t)(e[0].site - w->sites.v));
	for (size_t i = 0; i < n; i++) {
		bool is_new = !i || e[i - 1].site->label != e[i].site->label;

		if (i)
			join_group(g, e[i].site, (uint32_t)(e[i].site - w->sites.v), next);
		g->n_labels += i && is_new;
		ns = (is_new ? 0 : ns) + wait_site_ns(e[i].site);
		if (ns > g->label_ns) {
			g->label_ns = ns;
			g->sum.label = e[i].site->label;
		}
	}
	g->idle = w->labels.v[g->sum.label].idle ||
		  (g->sum.n_before == g->sum.count && g->sum.n_open == g->sum.count);
	g->next = next;
}

/* Ranks, and the order by them. */
static void rank_groups(struct wait_groups *g)
{
	uint64_t all_ns = 0;

	for (size_t i = 0; i < g->n; i++)
		all_ns += wait_site_ns(&g->v[i].sum);
	for (size_t i = 0; i < g->n; i++)
		g->v[i].rank = wait_site_ns(&g->v[i].sum) < all_ns / SHORT_PART ? 2
			       : g->v[i].idle                                   ? 1
										: 0;
	if (g->n)
		qsort(g->v, g->n, sizeof(*g->v), by_time);
}

/* The row of what could run; where nothing but wake-ups made any, a new one. NULL: nothing did. */
static struct wait_group *runnable_group(struct wait_groups *g, const struct waits *w)
{
	struct wait_site none = {.stack = UINT32_MAX, .reason = WAIT_RUNNABLE};

	for (size_t i = 0; i < g->n; i++)
		if (g->v[i].sum.reason == WAIT_RUNNABLE)
			return &g->v[i];
	while (none.label < w->labels.n && w->labels.v[none.label].reason != WAIT_RUNNABLE)
		none.label++;
	if (none.label == w->labels.n || !w->delays.count)
		return NULL;
	add_without_place(&g->v[g->n], &none);
	return &g->v[g->n++];
}

void wait_groups_add_queues(struct wait_groups *g, const struct waits *w)
{
	struct wait_group *runnable = runnable_group(g, w);
	struct wait_site *sum;

	if (!runnable)
		return;
	sum = &runnable->sum;
	for (size_t k = 0; k < w->sites.n; k++)
		if (w->sites.v[k].reason != WAIT_RUNNABLE)
			runnable->woken_ns += w->sites.v[k].queue_ns;
	sum->queue_ns += runnable->woken_ns;
	sum->count += w->delays.count;
	sum->max_ns = MAX(sum->max_ns, w->delays.max_ns);
	for (size_t b = 0; b < OFFCPU_BUCKETS; b++)
		sum->buckets[b] += (uint32_t)w->delays.buckets[b];
	rank_groups(g);
}

void wait_groups_release(struct wait_groups *g)
{
	free(g->v);
	free(g->next);
}

int wait_groups_make(const struct waits *w, const struct profile *p, bool together,
		     struct wait_groups *ret)
{
	CLEANUP(freep) struct place *places = calloc(w->sites.n + 1, sizeof(*places));
	struct wait_group runnable = {0}, throttled = {0};
	size_t n = 0, end;

	*ret = (struct wait_groups){.v = calloc(w->sites.n + 1, sizeof(*ret->v)),
				    .next = malloc((w->sites.n + 1) * sizeof(*ret->next))};
	if (!places || !ret->v || !ret->next)
		return -ENOMEM;
	memset(ret->next, 0xff, (w->sites.n + 1) * sizeof(*ret->next));
	for (size_t i = 0; i < w->sites.n; i++) {
		const struct wait_site *s = &w->sites.v[i];

		if (w->labels.v[s->label].reason == WAIT_RUNNABLE)
			add_without_place(&runnable, s);
		else if (w->labels.v[s->label].reason == WAIT_THROTTLED)
			add_without_place(&throttled, s);
		else
			places[n++] = place_of(w, p, s);
	}
	if (n)
		qsort(places, n, sizeof(*places), together ? by_place : by_site);
	for (size_t i = 0; i < n; i = end) {
		for (end = i + 1; end < n; end++)
			if (together ? compare_places(&places[i], &places[end])
				     : compare_sites(places[i].site, places[end].site))
				break;
		fill_group(w, places + i, end - i, ret->next, &ret->v[ret->n++]);
	}
	if (runnable.sum.count)
		ret->v[ret->n++] = runnable;
	if (throttled.sum.count)
		ret->v[ret->n++] = throttled;
	rank_groups(ret);
	return 0;
}
