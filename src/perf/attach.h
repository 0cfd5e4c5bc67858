/* SPDX-License-Identifier: BSD-2-Clause */
/* The state while everything is being opened: attach_prepare.c says what, attach.c opens it. */
#ifndef PERF_ATTACH_H
#define PERF_ATTACH_H

#include "sampler.h"

#include <inspect/cpu_list.h>

struct opening {
	struct sampler *s;
	const struct sampler_config *config;
	struct host host; /* with the limit on descriptors as raised */
	note_list *notes;
	struct diag *d;
	uint64_t freq_hz;
	unsigned ring_pages;
	int ring_err;        /* why the last ring of that size could not be mapped */
	size_t whom_wanted;  /* threads, or 1 for CPU-wide events */
	size_t threads_gone; /* before they could be opened */
	ARRAY(struct perf_event_attr) attrs;
	ARRAY(char *) names;
	ARRAY(bool) negotiated;
	ARRAY(pid_t) tids; /* already dealt with */
	struct hashmap tids_seen;
};

static inline bool config_is_cpu_wide(const struct sampler_config *c)
{
	return c->all || c->cgroup_fd >= 0;
}

/* Raises the limit on descriptors, checks the config, and fills slots, attrs, names and the ring's
 * size. 0, or an error with its diag. */
int opening_prepare(struct opening *o);

int opening_note_offline(struct opening *o, int cpu);

#endif
