/* SPDX-License-Identifier: BSD-2-Clause */
/* What opening (counters_open.c) and reading (counters.c) share. */
#ifndef PERF_COUNTERS_IMPL_H
#define PERF_COUNTERS_IMPL_H

#include <inspect/counters.h>

struct counters {
	const struct pmu_ops *ops;
	void *ops_ctx;
	ARRAY(struct counter_event) events;
	ARRAY(unsigned) groups; /* by event */
	ARRAY(struct counter_place) places;
	ARRAY(int) fds;             /* places × events, -1: not open there */
	ARRAY(struct count) counts; /* the same, as last read */
	bool on_exec;               /* the kernel enables the events */
};

/* Closes what is open at the last place and takes the place away. */
void counters_drop_place(struct counters *c);

/* A new place with nothing open. 0 or -ENOMEM. */
int counters_add_place(struct counters *c, const struct counter_place *place);

static inline int *counters_fd(const struct counters *c, size_t place, size_t event)
{
	return &c->fds.v[place * c->events.n + event];
}

#endif
