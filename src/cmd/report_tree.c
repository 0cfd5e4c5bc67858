/* SPDX-License-Identifier: BSD-2-Clause */
#include "input.h"
#include "report_view.h"

#include <inspect/strbuf.h>

/* Lines are indented no further than by so many branches: hostile stacks are deep. */
#define INDENT_BYTES_MAX 400U

enum { MATCHES_SHOWN = 10 };

/* --- the function ----------------------------------------------------------------------------- */

typedef bool name_test(const char *name, const char *function);

static bool is_whole(const char *name, const char *function)
{
	return str_eq(name, function);
}

static bool is_part(const char *name, const char *function)
{
	return strstr(name, function);
}

/* Marks the symbols that pass; the number of different names, of which *ret_name is one. */
static size_t select_names(const struct profile *p, const char *function, name_test *test,
			   bool *selected, uint32_t *ret_name)
{
	uint32_t names[MATCHES_SHOWN + 1];
	size_t n = 0;

	for (size_t i = 0; i < p->symbols.n; i++) {
		uint32_t name = p->symbols.v[i].name;
		size_t k = 0;

		selected[i] = test(intern_str(&p->strings, name), function);
		while (k < n && names[k] != name)
			k++;
		if (selected[i] && k == n && n < ARRAY_SIZE(names))
			names[n++] = name;
	}
	if (n)
		*ret_name = names[0];
	return n;
}

/* A word for the shell; the rest of the command line stays as it was. */
static void suggest(struct diag *d, const char *option, const char *name)
{
	if (strchr(name, '\''))
		diag_fix(d, "%s \"%s\"", option, name);
	else
		diag_fix(d, "%s '%s'", option, name);
}

static int refuse_many(const struct profile *p, const struct report_view *v, size_t n,
		       const bool *selected, struct diag *d)
{
	const char *option = v->direction == CALLS_INTO ? "--callers" : "--callees";
	uint32_t last = 0;
	size_t shown = 0;

	diag_set(d, -EINVAL, "'%s' is part of %s%zu names: give one of them", v->function,
		 n > MATCHES_SHOWN ? "more than " : "", MIN(n, (size_t)MATCHES_SHOWN));
	for (size_t i = 0; i < p->symbols.n && shown < MATCHES_SHOWN; i++) {
		if (!selected[i] || p->symbols.v[i].name == last)
			continue;
		last = p->symbols.v[i].name;
		suggest(d, option, intern_str(&p->strings, last));
		shown++;
	}
	return -EINVAL;
}

/* The whole name, else the one name that holds the text. */
static int select_function(const struct profile *p, const struct report_view *v, bool *selected,
			   uint32_t *ret_name, struct diag *d)
{
	size_t n = select_names(p, v->function, is_whole, selected, ret_name);

	if (n)
		return 0;
	n = select_names(p, v->function, is_part, selected, ret_name);
	if (n > 1)
		return refuse_many(p, v, n, selected, d);
	if (n)
		return 0;
	diag_set(d, -ENOENT, "no function '%s' in this profile", v->function);
	diag_fix(d, "--all instead      (lists them)");
	return -ENOENT;
}

/* --- the rows --------------------------------------------------------------------------------- */

static const struct column tree_columns[] = {
	{"total_percent", "total", CELL_PERCENT, 0},
	{"self_percent", "self", CELL_PERCENT, 0},
	{"samples", "samples", CELL_COUNT, 0},
	{"", "function", CELL_TEXT, COLUMN_TABLE_ONLY | COLUMN_CUT},
	{"depth", "", CELL_COUNT, COLUMN_DATA_ONLY},
	{"function", "", CELL_TEXT, COLUMN_DATA_ONLY},
	{"module", "", CELL_TEXT, COLUMN_DATA_ONLY},
	{"kind", "", CELL_TEXT, COLUMN_DATA_ONLY},
	{"total_weight", "", CELL_COUNT, COLUMN_DATA_ONLY},
	{"self_weight", "", CELL_COUNT, COLUMN_DATA_ONLY},
	{"event", "", CELL_TEXT, COLUMN_DATA_ONLY},
};
enum { TREE_COLUMNS = ARRAY_SIZE(tree_columns) };

/* Upwards a stack ends at its root, which took nothing by itself: no shares of self are shown. */
static const struct column *columns_of(struct result *r, enum call_direction direction)
{
	struct column *columns = arena_alloc(&r->arena, sizeof(tree_columns));

	if (!columns)
		return NULL;
	memcpy(columns, tree_columns, sizeof(tree_columns));
	if (direction != CALLS_INTO)
		return columns;
	for (size_t i = 0; i < TREE_COLUMNS; i++)
		if (str_starts(columns[i].key, "self_"))
			columns[i].flags = COLUMN_DATA_ONLY | COLUMN_TABLE_ONLY;
	return columns;
}

/* A walk through the tree; `indent` grows and shrinks with the depth. */
struct tree_walk {
	struct result *r;
	size_t section;
	const struct profile *p;
	const struct call_tree *tree;
	const char *event;
	struct strbuf indent;
	ARRAY(size_t) indents; /* by depth: length of `indent` */
};

static void tree_walk_release(struct tree_walk *w)
{
	strbuf_release(&w->indent);
	array_release(&w->indents);
}

static double percent(uint64_t part, uint64_t whole)
{
	return whole ? 100.0 * (double)part / (double)whole : 0;
}

static bool is_only_child(const struct tree_walk *w, const struct call_node *n)
{
	const struct call_node *parent = &w->tree->nodes.v[n->parent];

	return !w->tree->nodes.v[parent->first_child].next_sibling;
}

static void add_line(struct tree_walk *w, const struct call_node *n)
{
	const char *name = report_symbol_name(w->p, n->symbol), *branch = "";
	bool inlined = w->p->symbols.v[n->symbol].kind == FRAME_INLINED;
	uint64_t whole = w->tree->weight;

	if (!is_only_child(w, n))
		branch = n->next_sibling ? "├─ " : "└─ ";
	result_row(w->r, w->section,
		   (const struct cell[]){
			   cell_double(CELL_PERCENT, percent(n->total, whole)),
			   cell_double(CELL_PERCENT, percent(n->self, whole)),
			   cell_u64(CELL_COUNT, n->count),
			   cell_borrowed(result_text(w->r, "%s%s%s%s", strbuf_str(&w->indent),
						     branch, name, inlined ? " (inlined)" : "")),
			   cell_u64(CELL_COUNT, w->indents.n - 1),
			   cell_borrowed(name),
			   cell_borrowed(report_symbol_module(w->p, n->symbol)),
			   cell_borrowed(frame_kind_name(
				   (enum frame_kind)w->p->symbols.v[n->symbol].kind)),
			   cell_u64(CELL_COUNT, n->total),
			   cell_u64(CELL_COUNT, n->self),
			   cell_borrowed(w->event),
		   });
}

/* A chain of only children stays in its column: stacks are deeper than terminals are wide. */
static int go_down(struct tree_walk *w, const struct call_node *n)
{
	if (!is_only_child(w, n) && w->indent.n < INDENT_BYTES_MAX)
		strbuf_puts(&w->indent, n->next_sibling ? "│  " : "   ");
	return array_push(&w->indents, w->indent.n);
}

static void go_up(struct tree_walk *w)
{
	w->indents.n--;
	w->indent.n = w->indents.v[w->indents.n - 1];
	if (w->indent.v)
		w->indent.v[w->indent.n] = '\0';
}

/* Depth first, without recursion. */
static int add_lines(struct tree_walk *w)
{
	uint32_t at = w->tree->nodes.v[0].first_child;
	int err = array_push(&w->indents, 0);

	while (at && !err) {
		const struct call_node *n = &w->tree->nodes.v[at];

		add_line(w, n);
		if (n->first_child) {
			err = go_down(w, n);
			at = n->first_child;
			continue;
		}
		while (at && !w->tree->nodes.v[at].next_sibling) {
			at = w->tree->nodes.v[at].parent;
			if (at)
				go_up(w);
		}
		at = at ? w->tree->nodes.v[at].next_sibling : 0;
	}
	return err || w->indent.failed || w->r->failed ? -ENOMEM : 0;
}

static const struct {
	const char *key, *words;
} directions[] = {
	[CALLS_ALL] = {"tree", ""},
	[CALLS_FROM] = {"callees", "what it calls: "},
	[CALLS_INTO] = {"callers", "who calls it: "},
};

static int add_tree(struct result *r, const struct profile *p, uint32_t event, const char *title,
		    const struct report_view *v, const bool *selected)
{
	CLEANUP(call_tree_release) struct call_tree tree = {0};
	CLEANUP(tree_walk_release) struct tree_walk w = {.r = r, .p = p, .tree = &tree};
	const struct column *columns = columns_of(r, v->direction);
	uint64_t weight, count;
	int err;

	if (!columns)
		return -ENOMEM;
	profile_totals(p, event, &weight, &count);
	err = call_tree_build(p, event, v->direction, selected,
			      (uint64_t)((double)weight * v->min_percent / 100), &tree);
	if (err)
		return err;
	w.event = p->events.v[event].name;
	w.section = result_section(r, directions[v->direction].key, title, columns, TREE_COLUMNS);
	err = add_lines(&w);
	if (err)
		return err;
	if (tree.hidden)
		result_note(r, "%s: %zu branches below %g %% are not shown: --min-percent 0",
			    w.event, tree.hidden, v->min_percent);
	if (v->limit_data && v->limit)
		r->sections.v[w.section].cells.n =
			MIN(r->sections.v[w.section].cells.n, v->limit * TREE_COLUMNS);
	r->sections.v[w.section].limit = v->top_given ? v->limit : 0;
	r->sections.v[w.section].more = "--all";
	return 0;
}

int report_tree_add(struct result *r, const struct profile *p, uint32_t event, const char *title,
		    const struct report_view *v, struct diag *d)
{
	CLEANUP(freep) bool *selected = calloc(p->symbols.n + 1, sizeof(*selected));
	uint32_t name = 0;
	int err = 0;

	if (!selected)
		return -ENOMEM;
	if (v->direction == CALLS_ALL)
		return add_tree(r, p, event, title, v, NULL);
	err = select_function(p, v, selected, &name, d);
	if (err)
		return err;
	title = result_text(r, "%s, %s%s", title, directions[v->direction].words,
			    intern_str(&p->strings, name));
	return add_tree(r, p, event, title, v, selected);
}
