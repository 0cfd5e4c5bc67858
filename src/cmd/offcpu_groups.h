/* SPDX-License-Identifier: BSD-2-Clause */
/* Sites of waits, ranked, and put together where only what is waited for differs. */
#ifndef CMD_OFFCPU_GROUPS_H
#define CMD_OFFCPU_GROUPS_H

#include <inspect/profile.h>
#include <inspect/waits.h>

struct wait_group {
	struct wait_site sum; /* with the stack and the label of the longest */
	uint64_t label_ns;    /* of that label */
	uint64_t site_ns;     /* of the site whose stack it has */
	size_t n_labels;
	uint64_t woken_ns;    /* of runnable ones, after wake-ups */
	bool idle;            /* waits for work by design, or all through */
	unsigned rank;        /* waits, then idle ones, then what is too short to matter */
	uint32_t first;       /* site; the others by next, UINT32_MAX ends */
	const uint32_t *next; /* by site */
};

struct wait_groups {
	struct wait_group *v; /* in the order of the table */
	size_t n;
	uint32_t *next;
};

/* `together`: by process, reason, system call and the program's functions; else by process, reason,
 * what is waited for, and stack.
 * 0 or -ENOMEM. */
int wait_groups_make(const struct waits *w, const struct profile *p, bool together,
		     struct wait_groups *ret);
void wait_groups_release(struct wait_groups *g);

/* For people: the time between wake-ups and running, which rows of waits are without, is added to
 * the row of what could run. */
void wait_groups_add_queues(struct wait_groups *g, const struct waits *w);

/* Up to the wake-up; what follows until a CPU is free is the time of those that could run alone. */
static inline uint64_t wait_site_ns(const struct wait_site *s)
{
	return s->reason == WAIT_RUNNABLE ? s->queue_ns : s->wait_ns;
}

#endif
