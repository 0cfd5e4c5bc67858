/* SPDX-License-Identifier: BSD-2-Clause */
/* The tables of offcpu: how threads spent their time, and the waits that cost most. */
#ifndef CMD_OFFCPU_VIEW_H
#define CMD_OFFCPU_VIEW_H

#include "offcpu_groups.h"

#include <inspect/capture.h>
#include <inspect/render.h>
#include <inspect/result.h>
#include <inspect/waits.h>

struct offcpu_view {
	const struct recording *recording;
	const struct waits *waits;
	const struct wait_groups *groups;
	uint64_t stacks; /* of how many waits */
	bool all;        /* rows */
	bool as_text;    /* stacks are printed apart */
	bool with_loops;
};

/* "target 0.31 of 2 CPUs · 62 % waiting · …" */
void offcpu_headline(struct strbuf *b, const struct offcpu_view *v);
int offcpu_tables(struct result *r, const struct offcpu_view *v); /* 0 or -ENOMEM */

/* Within these tables, and in that of record --wall. 0 or -ENOMEM. */
int offcpu_add_threads(struct result *r, const struct offcpu_view *v, const char *key);
int offcpu_add_waits(struct result *r, const struct offcpu_view *v, uint64_t wall_ns);
int offcpu_add_stacks(struct result *r, const struct offcpu_view *v);

/* A section "stacks": a stack of the profile, leaf first, with the number that a table says;
 * nothing where it is not known. path is room for it. 0 or -ENOMEM. */
int offcpu_put_stack(struct result *r, const struct offcpu_view *v, uint32_t stack, size_t number,
		     const char *title, struct symbol_path *path);

/* --loop: tables, and the stacks of the longest gaps. 0 or -ENOMEM. */
int offcpu_add_loops(struct result *r, const struct offcpu_view *v);
int offcpu_add_gap_stacks(struct result *r, const struct offcpu_view *v);
struct frame_page;
int offcpu_print_gap_stacks(struct frame_page *p, struct result *r, const struct offcpu_view *v);

/* Behind the tables, for people; r gives memory for names. 0 or -ENOMEM. */
int offcpu_print_stacks(struct result *r, const struct offcpu_view *v,
			const struct table_options *o, FILE *out);

/* Names, not escaped, in r's arena. */
const char *offcpu_group_text(struct result *r, const struct waits *w, const struct wait_group *g);
const char *offcpu_top_waker(struct result *r, const struct waits *w, const struct wait_group *g);

double offcpu_percent(uint64_t part, uint64_t whole);

#endif
