/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Records on their way to the file, without what all of them would say alike: the id of the only
 * event there is, and the period of one whose period never changes. The attr says it once.
 */
#ifndef CAPTURE_COMPACT_H
#define CAPTURE_COMPACT_H

#include <inspect/event.h>

struct compact;

/* For records of these events. ret_events: the events as the file states them. 0 or -ENOMEM. */
int compact_new(const struct event_table *events, struct event_table *ret_events,
		struct compact **ret);
void compact_free(struct compact *c);

/* A whole record as the file has it: itself, or a copy that is valid until the next call. */
const struct perf_event_header *compact_record(struct compact *c,
					       const struct perf_event_header *record);

#endif
