/* SPDX-License-Identifier: BSD-2-Clause */
/* What report and diff compute from a symbolized profile: groups, call trees, differences. */
#ifndef INSPECT_REPORT_H
#define INSPECT_REPORT_H

#include <inspect/profile.h>

#define SYMBOL_NONE UINT32_MAX /* samples without any frame */

enum report_key {
	REPORT_COMM = 1,
	REPORT_PID = 2,
	REPORT_TID = 4,
	REPORT_DSO = 8,
	REPORT_SYMBOL = 16,
	REPORT_UNKNOWN_AS_DSO = 32, /* stand-ins for names are one symbol for each module */
	REPORT_SRCLINE = 64,        /* the line of the source file */
};

/*
 * A group of samples with equal keys. Self is what its leaf frames took; total what was taken while
 * it was anywhere on the stack, a recursive function counted once. Groups by thread alone have
 * total = self.
 */
struct report_row {
	uint32_t thread;     /* any of the group: those parts of it that are keys are the group's */
	uint32_t symbol;     /* the same, or SYMBOL_NONE */
	uint32_t file, line; /* with REPORT_SRCLINE: string id and line, 0 unknown */
	uint64_t self, total;
	uint64_t self_count, total_count;
};

struct report {
	ARRAY(struct report_row) rows; /* by self, then total, largest first; then by name */
	uint64_t weight, count;        /* of the event */
};

/* Groups the rows of one event by the keys (OR of enum report_key). 0 or -ENOMEM. */
int report_build(const struct profile *p, uint32_t event, unsigned keys, struct report *ret);
void report_release(struct report *r);

/* A function's name, and its module ("" unknown), as they are shown. */
const char *report_symbol_name(const struct profile *p, uint32_t symbol);
const char *report_symbol_module(const struct profile *p, uint32_t symbol);

enum call_direction {
	CALLS_ALL,  /* from the root */
	CALLS_FROM, /* a function, and what it calls */
	CALLS_INTO, /* a function, and its callers upwards */
};

struct call_node {
	uint32_t symbol; /* root: SYMBOL_NONE */
	uint32_t parent;
	uint32_t first_child, next_sibling; /* 0: none; largest total first, then by name */
	uint64_t total, self, count;        /* weights; samples of the total */
};

struct call_tree {
	ARRAY(struct call_node) nodes; /* root first */
	size_t hidden;                 /* branches below min_weight: not linked as children */
	uint64_t weight, count;        /* of the event */
};

/*
 * The merged stacks of one event. With a direction other than ALL, of each stack that holds a
 * symbol with selected[symbol] the part from its outermost occurrence on; each sample counts once.
 * 0 or -ENOMEM.
 */
int call_tree_build(const struct profile *p, uint32_t event, enum call_direction direction,
		    const bool *selected, uint64_t min_weight, struct call_tree *ret);
void call_tree_release(struct call_tree *t);

/* A function in two profiles. Shares are percents of the event's weight. */
struct diff_row {
	uint32_t before_symbol, after_symbol; /* SYMBOL_NONE: not in that profile */
	double before_percent, after_percent;
	double difference; /* after - before, in points */
	double noise;      /* what chance alone would exceed in about 5 of 100 cases, in points */
	uint64_t before_count, after_count; /* samples */
	bool significant;                   /* the difference is larger than the noise */
};

struct diff_input {
	const struct profile *profile;
	uint32_t event;
};

/*
 * Functions of both, matched by name and module, or by a name that is in one module of each (a
 * renamed library or program); unnamed code by module. `total`: shares of total instead of self.
 * Ordered by the size of the difference. The caller frees ret->v. 0 or -ENOMEM.
 */
struct profile_diff {
	ARRAY(struct diff_row) rows;
	uint64_t before_count, after_count; /* samples of the events */
};
int profile_diff(const struct diff_input *before, const struct diff_input *after, bool total,
		 struct profile_diff *ret);
void profile_diff_release(struct profile_diff *d);

#endif
