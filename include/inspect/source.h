/* SPDX-License-Identifier: BSD-2-Clause */
/* Where records come from: the first of the three vtables. */
#ifndef INSPECT_SOURCE_H
#define INSPECT_SOURCE_H

#include <inspect/diag.h>
#include <inspect/event.h>

struct source;
struct pollfd;

struct source_ops {
	const char *name; /* "perf", "perf.data" */
	/* Starts counting. */
	int (*start)(struct source *s, struct diag *d);
	/* Descriptors to poll for POLLIN; at most max are stored. Their number. */
	size_t (*fds)(struct source *s, struct pollfd *v, size_t max);
	/* Hands on every record there is now. 1: more may come; 0: the end; or -errno. */
	int (*read)(struct source *s, record_fn *emit, void *ctx, struct diag *d);
	/* Stops counting; a last read collects the rest. */
	int (*stop)(struct source *s);
	void (*free)(struct source *s);
};

struct source {
	const struct source_ops *ops;
	struct event_table *events; /* owned by the source */
};

static inline void source_freep(struct source **s)
{
	if (*s)
		(*s)->ops->free(*s);
}

#endif
