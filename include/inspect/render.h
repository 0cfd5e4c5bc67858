/* SPDX-License-Identifier: BSD-2-Clause */
/* Drawing: the third vtable. A renderer draws a profile or a result, into the FILE it is given. */
#ifndef INSPECT_RENDER_H
#define INSPECT_RENDER_H

#include <inspect/profile.h>
#include <inspect/result.h>

struct flame_options {
	const char *title;   /* NULL: made from the profile */
	bool icicle;         /* root at the top */
	bool reverse;        /* merge from the leaf: who calls what burns */
	int event;           /* index, or -1: the first (all are embedded if several) */
	double min_width_px; /* static rectangles narrower are left to the script; 0: default */
};

#define FLAME_COMM 0x80000000U /* symbol of a node that is a thread's name: this | string id */

/*
 * The merged tree of a profile's stacks, laid out in weight units. Children are in order of name,
 * then kind: the same input gives the same tree. Knows no SVG.
 */
struct flame_node {
	uint32_t symbol; /* in the profile, or FLAME_COMM; root: UINT32_MAX */
	uint32_t parent;
	uint32_t depth;                     /* root 0 */
	uint32_t first_child, next_sibling; /* UINT32_MAX none */
	uint64_t start;                     /* offset from the left, weight */
	uint64_t total, self;               /* weight */
	uint64_t count;                     /* samples in total */
};

struct flame_tree {
	ARRAY(struct flame_node) nodes; /* root first; parents before children */
	uint32_t depth;                 /* deepest */
};

/*
 * The comm of the row's thread (unless unknown) stands before the first frame of its stacks when
 * `by_comm`; reversed, it is the last one. Sums that exceed 64 bits stay at the maximum.
 * 0 or -ENOMEM.
 */
int flame_layout(const struct profile *p, uint32_t event, bool reverse, bool by_comm,
		 struct flame_tree *ret);
void flame_tree_release(struct flame_tree *t);

/* One self-contained SVG: a static first view, and the whole tree with the script that draws it.
 * The same profile and options give the same bytes. 0, -ENOMEM, or -EIO when a write failed. */
int flame_svg(const struct profile *p, const struct flame_options *o, FILE *out);

/*
 * `comm;root;…;leaf WEIGHT`, one line a stack, ordered by bytes; equal stacks are one line.
 * Kernel, JIT and inlined frames end in _[k], _[j], _[i]. `;` and newlines in names are written as
 * `:`, other control characters escaped, spaces in the comm as `_`, like stackcollapse-perf.
 * event -1: all, added up. 0, -ENOMEM, or -EIO.
 */
int folded_write(const struct profile *p, int event, FILE *out);

/* Output of a result. width 0: nothing is cut; height 0: as many rows as the sections say. */
struct table_options {
	unsigned width, height;
	bool color;
	bool ascii; /* without the signs that only UTF-8 has */
	bool all;   /* no row limit */
};
int result_table(const struct result *r, const struct table_options *o, FILE *out);
int result_json(const struct result *r, FILE *out);
int result_json_line(const struct result *r, FILE *out); /* on one line, for a stream of them */
int result_csv(const struct result *r, FILE *out);
/* The same as a part of several tables, of which others are already written. */
int result_csv_more(const struct result *r, FILE *out);
int result_markdown(const struct result *r, FILE *out);

#endif
