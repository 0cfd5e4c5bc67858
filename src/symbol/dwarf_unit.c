/* SPDX-License-Identifier: BSD-2-Clause */
#include "dwarf_unit.h"
#include <dwarf.h>

enum { DEPTH_MAX = 128, RANGES_MAX = 1 << 16, NODES_MAX = 1 << 24 };

struct interval {
	uint64_t low, high;
	uint32_t node;
	uint32_t depth;
};

struct builder {
	struct dwarf_unit *unit;
	enum { TYPES_NONE, TYPES_IN_FUNCTIONS, TYPES_ALL } types; /* what types have code below */
	unsigned functions; /* how many of them are around this entry */
	ARRAY(struct interval) intervals;
};

static int add_intervals(struct builder *b, Dwarf_Die *die, uint32_t node, uint32_t depth)
{
	Dwarf_Addr base, low, high;
	ptrdiff_t at = 0;

	for (int n = 0; n < RANGES_MAX; n++) {
		int err;

		at = dwarf_ranges(die, at, &base, &low, &high);
		if (at <= 0)
			return 0;
		/* The linker leaves 0 where it dropped a function. */
		if (!low || low >= high)
			continue;
		err = array_push(&b->intervals, (struct interval){low, high, node, depth});
		if (err)
			return err;
	}
	return 0;
}

static bool may_hold_functions(const struct builder *b, int tag)
{
	switch (tag) {
	case DW_TAG_subprogram:
	case DW_TAG_inlined_subroutine:
	case DW_TAG_lexical_block:
	case DW_TAG_namespace:
	case DW_TAG_module:
	case DW_TAG_entry_point:
	case DW_TAG_try_block:
	case DW_TAG_catch_block:
		return true;
	case DW_TAG_structure_type:
	case DW_TAG_class_type:
	case DW_TAG_union_type:
	case DW_TAG_enumeration_type:
		return b->types == TYPES_ALL || (b->types == TYPES_IN_FUNCTIONS && b->functions);
	default:
		return false;
	}
}

/* C and C++ are most of all debug information, and most of theirs is types: compilers put the code
 * of methods beside them, except of lambdas and other types local to a function (g++). rustc puts
 * all of it below them. */
static void read_language(struct builder *b)
{
	static const int c[] = {DW_LANG_C89, DW_LANG_C, DW_LANG_C99, DW_LANG_C11, DW_LANG_ObjC};
	static const int cxx[] = {DW_LANG_C_plus_plus, DW_LANG_C_plus_plus_03,
				  DW_LANG_C_plus_plus_11, DW_LANG_C_plus_plus_14,
				  DW_LANG_ObjC_plus_plus};
	int language = dwarf_srclang(&b->unit->die);
	bool is_c = false, is_cxx = false;

	for (size_t i = 0; i < ARRAY_SIZE(c); i++)
		is_c |= language == c[i];
	for (size_t i = 0; i < ARRAY_SIZE(cxx); i++)
		is_cxx |= language == cxx[i];
	b->types = is_c ? TYPES_NONE : is_cxx ? TYPES_IN_FUNCTIONS : TYPES_ALL;
}

static int walk(struct builder *b, Dwarf_Die *parent, uint32_t node, uint32_t depth);

/* *node: the function around it, and then the one around what is in it. */
static int add_function(struct builder *b, Dwarf_Die *die, uint32_t *node, uint32_t depth)
{
	bool is_inlined = dwarf_tag(die) == DW_TAG_inlined_subroutine;
	struct function_node own = {*die, is_inlined ? *node : NODE_NONE};
	size_t before = b->intervals.n;
	int err = add_intervals(b, die, (uint32_t)b->unit->nodes.n, depth);

	*node = NODE_NONE;
	/* An abstract function has no code: only copies of it have. */
	if (err || b->intervals.n == before)
		return err;
	*node = (uint32_t)b->unit->nodes.n;
	return array_push(&b->unit->nodes, own);
}

static int visit(struct builder *b, Dwarf_Die *die, uint32_t node, uint32_t depth)
{
	int tag = dwarf_tag(die);
	bool is_function = tag == DW_TAG_subprogram || tag == DW_TAG_inlined_subroutine;
	int err = 0;

	if (!may_hold_functions(b, tag))
		return 0;
	if (is_function) {
		if (b->unit->nodes.n >= NODES_MAX)
			return 0;
		err = add_function(b, die, &node, depth);
		if (err || (tag == DW_TAG_inlined_subroutine && node == NODE_NONE))
			return err;
	}
	b->functions += is_function;
	err = walk(b, die, node, depth + 1);
	b->functions -= is_function;
	return err;
}

static int walk(struct builder *b, Dwarf_Die *parent, uint32_t node, uint32_t depth)
{
	Dwarf_Die child;
	int more = depth > DEPTH_MAX ? 1 : dwarf_child(parent, &child);
	int err = 0;

	while (!more && !err) {
		err = visit(b, &child, node, depth);
		if (!err)
			more = dwarf_siblingof(&child, &child);
	}
	b->unit->damaged |= more < 0;
	return err;
}

static int by_start(const void *a, const void *b)
{
	const struct interval *x = a, *y = b;

	if (x->low != y->low)
		return x->low < y->low ? -1 : 1;
	if (x->depth != y->depth)
		return x->depth < y->depth ? -1 : 1;
	return x->node < y->node ? -1 : x->node > y->node;
}

static int add_segment(struct dwarf_unit *u, uint64_t start, uint32_t node)
{
	if (u->segments.n && u->segments.v[u->segments.n - 1].start_vaddr == start) {
		u->segments.v[u->segments.n - 1].node = node;
		return 0;
	}
	return array_push(&u->segments, (struct function_segment){start, node});
}

/* Nested intervals become segments in a row: the innermost wins. */
static int flatten(struct builder *b)
{
	const struct interval *open[DEPTH_MAX + 2];
	size_t n = 0;
	int err = 0;

	if (b->intervals.n)
		qsort(b->intervals.v, b->intervals.n, sizeof(*b->intervals.v), by_start);
	for (size_t i = 0; i <= b->intervals.n && !err; i++) {
		struct interval *next = i < b->intervals.n ? &b->intervals.v[i] : NULL;

		while (n && !err && (!next || open[n - 1]->high <= next->low)) {
			uint64_t end = open[--n]->high;

			err = add_segment(b->unit, end, n ? open[n - 1]->node : NODE_NONE);
		}
		if (!next || err)
			break;
		if (n && next->high > open[n - 1]->high)
			next->high = open[n - 1]->high;
		err = add_segment(b->unit, next->low, next->node);
		if (n < ARRAY_SIZE(open))
			open[n++] = next;
	}
	return err;
}

int dwarf_unit_build(struct dwarf_unit *u)
{
	struct builder b = {.unit = u};
	int err;

	read_language(&b);
	err = walk(&b, &u->die, NODE_NONE, 0);
	if (!err)
		err = flatten(&b);
	array_release(&b.intervals);
	u->built = true;
	return err;
}

void dwarf_unit_release(struct dwarf_unit *u)
{
	array_release(&u->nodes);
	array_release(&u->segments);
}

uint32_t dwarf_unit_find(const struct dwarf_unit *u, uint64_t elf_vaddr)
{
	size_t low = 0, high = u->segments.n;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (u->segments.v[mid].start_vaddr <= elf_vaddr)
			low = mid + 1;
		else
			high = mid;
	}
	return low ? u->segments.v[low - 1].node : NODE_NONE;
}
