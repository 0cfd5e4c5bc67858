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
	bool idle;            /* waits for work by design, or all through: comes last */
	uint32_t first;       /* site; the others by next, UINT32_MAX ends */
	const uint32_t *next; /* by site */
};

struct wait_groups {
	struct wait_group *v; /* in the order of the table */
	size_t n;
	uint32_t *next;
};

/* `together`: by process, reason, system call and the program's functions; else each site alone.
 * 0 or -ENOMEM. */
int wait_groups_make(const struct waits *w, const struct profile *p, bool together,
		     struct wait_groups *ret);
void wait_groups_release(struct wait_groups *g);

static inline uint64_t wait_group_ns(const struct wait_group *g)
{
	return g->sum.wait_ns + g->sum.queue_ns;
}

#endif
