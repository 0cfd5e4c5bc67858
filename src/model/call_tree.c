/* SPDX-License-Identifier: BSD-2-Clause */
#include <inspect/report.h>

struct tree_build {
	const struct profile *p;
	struct call_tree *tree;
	struct hashmap map; /* (parent, symbol) → node */
};

static int child_of(struct tree_build *b, uint32_t parent, uint32_t symbol, uint32_t *ret_node)
{
	uint64_t hash = hash_u64((uint64_t)parent << 32 | symbol);
	uint32_t at, i;
	int err;

	hashmap_each_candidate(&b->map, hash, at, i) {
		const struct call_node *n = &b->tree->nodes.v[i];

		if (n->parent == parent && n->symbol == symbol) {
			*ret_node = i;
			return 0;
		}
	}
	i = (uint32_t)b->tree->nodes.n;
	err = array_push(&b->tree->nodes, (struct call_node){.symbol = symbol, .parent = parent});
	if (!err)
		err = hashmap_insert(&b->map, hash, i);
	if (err)
		return err;
	*ret_node = i;
	return 0;
}

static void add_weight(struct tree_build *b, uint32_t node, const struct profile_row *row)
{
	b->tree->nodes.v[node].total += row->weight;
	b->tree->nodes.v[node].count += row->count;
}

/* n symbols from path[from] on, towards the leaf or upwards; the self is that of path[leaf], or the
 * last's when it is not among them. */
static int add_path(struct tree_build *b, const struct symbol_path *path,
		    const struct profile_row *row, size_t from, size_t n, size_t leaf, bool upwards)
{
	uint32_t node = 0, self = 0;

	add_weight(b, 0, row);
	for (size_t i = 0; i < n; i++) {
		uint32_t symbol = path->at.v[upwards ? from - i : from + i].symbol;
		int err = child_of(b, node, symbol, &node);

		if (err)
			return err;
		add_weight(b, node, row);
		if (!upwards && from + i == leaf)
			self = node;
	}
	b->tree->nodes.v[self ? self : node].self += row->weight;
	return 0;
}

static int add_row(struct tree_build *b, const struct symbol_path *path,
		   const struct profile_row *row, enum call_direction direction,
		   const bool *selected)
{
	size_t at = 0, leaf = path->at.n ? profile_path_leaf(b->p, path) : 0;

	if (direction == CALLS_ALL)
		return add_path(b, path, row, 0, path->at.n, leaf, false);
	while (at < path->at.n && !selected[path->at.v[at].symbol])
		at++;
	if (at == path->at.n)
		return 0;
	if (direction == CALLS_FROM)
		return add_path(b, path, row, at, path->at.n - at, leaf, false);
	return add_path(b, path, row, at, at + 1, leaf, true);
}

struct tree_order {
	const struct profile *p;
	const struct call_tree *tree;
};

/* Within a parent the smallest first: each is then put before the ones that are linked already. */
static int by_parent(const void *a, const void *b, void *context)
{
	const struct tree_order *o = context;
	const struct call_node *x = &o->tree->nodes.v[*(const uint32_t *)a];
	const struct call_node *y = &o->tree->nodes.v[*(const uint32_t *)b];
	int order;

	if (x->parent != y->parent)
		return x->parent < y->parent ? -1 : 1;
	if (x->total != y->total)
		return x->total < y->total ? -1 : 1;
	order = strcmp(report_symbol_name(o->p, y->symbol), report_symbol_name(o->p, x->symbol));
	if (!order)
		order = strcmp(report_symbol_module(o->p, y->symbol),
			       report_symbol_module(o->p, x->symbol));
	return order ? order : y->symbol < x->symbol ? -1 : 1;
}

static int link_children(const struct profile *p, struct call_tree *t, uint64_t min_weight)
{
	CLEANUP(freep) uint32_t *nodes = calloc(t->nodes.n, sizeof(*nodes));
	struct tree_order order = {p, t};
	size_t n = 0;

	if (!nodes)
		return -ENOMEM;
	for (uint32_t i = 1; i < t->nodes.n; i++) {
		const struct call_node *node = &t->nodes.v[i];

		if (node->total >= min_weight)
			nodes[n++] = i;
		else if (!node->parent || t->nodes.v[node->parent].total >= min_weight)
			t->hidden++;
	}
	if (n)
		qsort_r(nodes, n, sizeof(*nodes), by_parent, &order);
	for (size_t i = 0; i < n; i++) {
		struct call_node *node = &t->nodes.v[nodes[i]];

		node->next_sibling = t->nodes.v[node->parent].first_child;
		t->nodes.v[node->parent].first_child = nodes[i];
	}
	return 0;
}

int call_tree_build(const struct profile *p, uint32_t event, enum call_direction direction,
		    const bool *selected, uint64_t min_weight, struct call_tree *ret)
{
	CLEANUP(call_tree_release) struct call_tree tree = {0};
	struct tree_build b = {.p = p, .tree = &tree};
	struct symbol_path path = {0};
	int err = array_push(&tree.nodes, (struct call_node){.symbol = SYMBOL_NONE});

	for (size_t i = 0; i < p->rows.n && !err; i++) {
		if (p->rows.v[i].event != event)
			continue;
		err = profile_row_path(p, &p->rows.v[i], &path);
		if (!err)
			err = add_row(&b, &path, &p->rows.v[i], direction, selected);
	}
	array_release(&path.at);
	hashmap_release(&b.map);
	if (!err)
		err = link_children(p, &tree, min_weight);
	if (err)
		return err;
	profile_totals(p, event, &tree.weight, &tree.count);
	*ret = tree;
	tree = (struct call_tree){0};
	return 0;
}

void call_tree_release(struct call_tree *t)
{
	array_release(&t->nodes);
}
