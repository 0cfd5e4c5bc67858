/* SPDX-License-Identifier: BSD-2-Clause */
/* What the parts of a snapshot's text share. Names are escaped. */
#ifndef INSPECT_CMD_STACK_PAGE_H
#define INSPECT_CMD_STACK_PAGE_H

#include "frame_page.h"
#include "stack.h"

struct stack_page {
	const struct snapshot *s;
	const struct stack_style *style;
	struct frame_page page;
};

/* The i-th in the order of groups. */
const struct snapshot_thread *stack_thread_at(const struct snapshot *s, size_t i);

/* "4711 worker" */
void stack_put_thread(struct strbuf *b, const struct snapshot_thread *t);
/* "3.2 s", or "3.2 s … 14 s" of several that differ; nothing where it is not known. */
void stack_put_times(struct strbuf *b, const struct snapshot *s, const struct snapshot_group *g);
/* What the group waits in, and who holds that: "futex(lock_b, FUTEX_WAIT_PRIVATE, 2, NULL), held by
 * 4711 hold_b"; short: "futex lock_b, held by 4711 hold_b". */
void stack_put_wait(struct strbuf *b, const struct snapshot *s, const struct snapshot_group *g,
		    bool is_short);

/* The table of groups, if there are several. */
void stack_summary(struct stack_page *p);

#endif
