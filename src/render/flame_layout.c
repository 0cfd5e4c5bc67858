/* SPDX-License-Identifier: BSD-2-Clause */
#include "paths.h"
#include <inspect/render.h>

#define NONE UINT32_MAX

/* Every symbol, and behind them every comm, in the order in which children are shown. */
struct ranking {
	uint32_t *node_symbol; /* by rank: what flame_node.symbol holds */
	uint32_t *of_symbol;   /* rank by symbol */
	uint32_t *of_comm;     /* rank by string id; only set where a thread has it */
};

static void ranking_release(struct ranking *r)
{
	free(r->node_symbol);
	free(r->of_symbol);
	free(r->of_comm);
}

static int compare_strings(const struct profile *p, uint32_t a, uint32_t b)
{
	const struct intern_string *x = &p->strings.strings.v[a], *y = &p->strings.strings.v[b];
	int order = a == b ? 0 : memcmp(x->s, y->s, MIN(x->n, y->n));

	return order ? order : (x->n > y->n) - (x->n < y->n);
}

static int by_name(const void *a, const void *b, void *context)
{
	const struct profile *p = context;
	uint32_t i = *(const uint32_t *)a, j = *(const uint32_t *)b;
	const struct symbol *x = &p->symbols.v[i], *y = &p->symbols.v[j];
	int order = compare_strings(p, x->name, y->name);

	if (!order)
		order = (x->kind > y->kind) - (x->kind < y->kind);
	if (!order)
		order = compare_strings(p, x->module, y->module);
	return order ? order : (i > j) - (i < j);
}

static int by_comm_name(const void *a, const void *b, void *context)
{
	uint32_t x = *(const uint32_t *)a & ~FLAME_COMM, y = *(const uint32_t *)b & ~FLAME_COMM;

	return compare_strings(context, x, y);
}

/* Each comm that a thread has, once, behind the n symbols. Returns how many. */
static size_t collect_comms(const struct profile *p, struct ranking *r, size_t n)
{
	size_t comms = 0;

	for (size_t i = 0; i < p->threads.n; i++) {
		uint32_t comm = p->threads.v[i].comm;

		if (!comm || r->of_comm[comm])
			continue;
		r->of_comm[comm] = 1;
		r->node_symbol[n + comms++] = FLAME_COMM | comm;
	}
	return comms;
}

static int ranking_init(const struct profile *p, struct ranking *r)
{
	size_t n = p->symbols.n, comms;

	r->node_symbol = calloc(n + p->threads.n + 1, sizeof(*r->node_symbol));
	r->of_symbol = calloc(n + 1, sizeof(*r->of_symbol));
	r->of_comm = calloc(p->strings.strings.n + 1, sizeof(*r->of_comm));
	if (!r->node_symbol || !r->of_symbol || !r->of_comm)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		r->node_symbol[i] = (uint32_t)i;
	comms = collect_comms(p, r, n);
	qsort_r(r->node_symbol, n, sizeof(uint32_t), by_name, (void *)p);
	qsort_r(r->node_symbol + n, comms, sizeof(uint32_t), by_comm_name, (void *)p);
	for (size_t i = 0; i < n; i++)
		r->of_symbol[r->node_symbol[i]] = (uint32_t)i;
	for (size_t i = n; i < n + comms; i++)
		r->of_comm[r->node_symbol[i] & ~FLAME_COMM] = (uint32_t)i;
	return 0;
}

struct direction {
	bool reverse, by_comm;
};

static int add_row(const struct profile *p, const struct profile_row *row, const struct ranking *r,
		   struct direction to, struct symbol_path *symbols, struct paths *ps)
{
	uint32_t comm =
		to.by_comm && row->thread < p->threads.n ? p->threads.v[row->thread].comm : 0;
	struct path path = {.first = ps->keys.n, .weight = row->weight, .count = row->count};
	int err = profile_row_path(p, row, symbols);
	size_t n = symbols->at.n;

	if (!err)
		err = array_reserve(&ps->keys, ps->keys.n + n + 1);
	if (err)
		return err;
	if (comm && !to.reverse)
		ps->keys.v[ps->keys.n++] = r->of_comm[comm];
	for (size_t i = 0; i < n; i++) {
		size_t from = to.reverse ? n - 1 - i : i;

		ps->keys.v[ps->keys.n++] = r->of_symbol[symbols->at.v[from].symbol];
	}
	if (comm && to.reverse)
		ps->keys.v[ps->keys.n++] = r->of_comm[comm];
	path.n = (uint32_t)(ps->keys.n - path.first);
	return array_push(&ps->rows, path);
}

static int collect(const struct profile *p, uint32_t event, const struct ranking *r,
		   struct direction to, struct paths *ps)
{
	struct symbol_path symbols = {0};
	int err = 0;

	for (size_t i = 0; i < p->rows.n && !err; i++)
		if (p->rows.v[i].event == event)
			err = add_row(p, &p->rows.v[i], r, to, &symbols, ps);
	array_release(&symbols.at);
	return err;
}

/* The nodes from the root to the one last added, by depth. */
typedef ARRAY(uint32_t) open_nodes;

static int add_child(struct flame_tree *t, open_nodes *open, uint32_t depth, uint32_t symbol)
{
	uint32_t parent = open->v[depth - 1], node = (uint32_t)t->nodes.n;
	int err;

	if (t->nodes.n >= NONE)
		return -ENOMEM;
	err = array_push(&t->nodes, (struct flame_node){.symbol = symbol,
							.parent = parent,
							.depth = depth,
							.first_child = NONE,
							.next_sibling = NONE});
	if (!err)
		err = array_reserve(open, (size_t)depth + 1);
	if (err)
		return err;
	if (t->nodes.v[parent].first_child == NONE)
		t->nodes.v[parent].first_child = node;
	else /* sorted: what stood here last is the child before this one */
		t->nodes.v[open->v[depth]].next_sibling = node;
	open->v[depth] = node;
	t->depth = MAX(t->depth, depth);
	return 0;
}

/* Makes the nodes of sorted paths, in preorder; only `self` is known afterwards (in `total`,
 * `count` for the node itself). */
static int add_nodes(const struct paths *ps, const struct ranking *r, struct flame_tree *t,
		     open_nodes *open)
{
	static const struct path empty;
	const struct path *last = &empty;
	int err = array_push(&t->nodes, (struct flame_node){.symbol = NONE,
							    .parent = NONE,
							    .first_child = NONE,
							    .next_sibling = NONE});

	if (!err)
		err = array_push(open, 0);
	for (size_t i = 0; i < ps->rows.n && !err; i++) {
		const struct path *row = &ps->rows.v[i];
		struct flame_node *leaf;

		for (uint32_t d = paths_common(ps, last, row); d < row->n && !err; d++)
			err = add_child(t, open, d + 1, r->node_symbol[ps->keys.v[row->first + d]]);
		if (err)
			break;
		leaf = &t->nodes.v[open->v[row->n]];
		leaf->self = sum_u64(leaf->self, row->weight);
		leaf->count = sum_u64(leaf->count, row->count);
		last = row;
	}
	return err;
}

/* Parents stand before their children, so one pass backwards adds up and one forwards places. */
static void place_nodes(struct flame_tree *t)
{
	struct flame_node *v = t->nodes.v;

	for (size_t i = t->nodes.n; i-- > 0;) {
		v[i].total = sum_u64(v[i].total, v[i].self);
		if (i) {
			v[v[i].parent].total = sum_u64(v[v[i].parent].total, v[i].total);
			v[v[i].parent].count = sum_u64(v[v[i].parent].count, v[i].count);
		}
	}
	for (size_t i = 0; i < t->nodes.n; i++) {
		uint64_t start = v[i].start;

		for (uint32_t c = v[i].first_child; c != NONE; c = v[c].next_sibling) {
			v[c].start = start;
			start = sum_u64(start, v[c].total);
		}
	}
}

int flame_layout(const struct profile *p, uint32_t event, bool reverse, bool by_comm,
		 struct flame_tree *ret)
{
	struct direction to = {reverse, by_comm};
	struct ranking ranking = {0};
	struct flame_tree tree = {0};
	struct paths ps = {0};
	open_nodes open = {0};
	int err = ranking_init(p, &ranking);

	if (!err)
		err = collect(p, event, &ranking, to, &ps);
	if (!err)
		err = paths_sort(&ps);
	if (!err)
		err = add_nodes(&ps, &ranking, &tree, &open);
	ranking_release(&ranking);
	paths_release(&ps);
	array_release(&open);
	if (err) {
		flame_tree_release(&tree);
		return err;
	}
	place_nodes(&tree);
	ret->nodes.v = tree.nodes.v;
	ret->nodes.n = tree.nodes.n;
	ret->nodes.cap = tree.nodes.cap;
	ret->depth = tree.depth;
	return 0;
}

void flame_tree_release(struct flame_tree *t)
{
	array_release(&t->nodes);
}
