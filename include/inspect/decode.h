/* SPDX-License-Identifier: BSD-2-Clause */
/* From record bytes to events, and into the order of time. Records may come from any file. */
#ifndef INSPECT_DECODE_H
#define INSPECT_DECODE_H

#include <inspect/arena.h>
#include <inspect/event.h>

/* Decodes one record, which must be 8-byte aligned (rings, the reader and reorder give no other);
 * the event borrows from it. 0, or -EBADMSG when its sizes do not fit, it is not aligned, or a
 * sample belongs to no event of the table. */
int decode_record(const struct event_table *events, const struct perf_event_header *record,
		  size_t size_bytes, struct event *ret);

/* Only the time of a record (0 when it carries none). 0 or -EBADMSG. */
int decode_time(const struct event_table *events, const struct perf_event_header *record,
		size_t size_bytes, uint64_t *ret_time_ns);

/*
 * Puts records into time order. A record is released once every ring has been read past it: at
 * the end of round N everything up to the newest time seen in round N-1 goes out (perf's
 * FINISHED_ROUND rule). Owns copies, bounded by max_bytes: above it the oldest half is released
 * early, and what then comes before the released time is still delivered, and counted as late.
 */
struct reorder;
int reorder_new(size_t max_bytes, record_fn *out, void *ctx, struct reorder **ret);
void reorder_free(struct reorder *r);
/* stable = the bytes outlive the reorder (a mapped file): they are not copied. */
int reorder_add(struct reorder *r, uint64_t time_ns, const struct perf_event_header *record,
		size_t size_bytes, bool stable);
int reorder_round(struct reorder *r); /* end of a round */
int reorder_flush(struct reorder *r); /* end of the stream: everything goes out */
uint64_t reorder_late(const struct reorder *r);

#endif
