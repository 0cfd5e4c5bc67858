/* SPDX-License-Identifier: BSD-2-Clause */
/* From a profile to the sections of `inspect report`. */
#ifndef INSPECT_CMD_REPORT_VIEW_H
#define INSPECT_CMD_REPORT_VIEW_H

#include <inspect/diag.h>
#include <inspect/report.h>
#include <inspect/result.h>

enum { SORT_KEYS = 6 };

/* --sort: keys in the order given. */
struct sort_order {
	enum report_key keys[SORT_KEYS];
	size_t n;
};
int sort_order_parse(void *value, const char *arg, struct diag *d);

struct report_view {
	struct sort_order sort;
	enum call_direction direction;
	const char *function; /* of --callers and --callees */
	bool tree;            /* a call tree instead of groups */
	double min_percent;   /* of the tree's branches */
	size_t limit;         /* rows of a table; 0 all; of a tree only when top_given */
	bool top_given;
	bool limit_data; /* --top with JSON or CSV: what is over the limit is left out */
};

/* Adds a section for each event, and the details of the events for JSON. */
int report_view_add(struct result *r, const struct profile *p, const struct report_view *v,
		    struct diag *d);

/* Adds one tree; `title` is the event's line. */
int report_tree_add(struct result *r, const struct profile *p, uint32_t event, const char *title,
		    const struct report_view *v, struct diag *d);

#endif
