/* SPDX-License-Identifier: BSD-2-Clause */
/* A perf event, and the memory that the kernel writes the records of one CPU into
 * (perf_event_mmap_page). */
#ifndef INSPECT_RING_H
#define INSPECT_RING_H

#include <inspect/event.h>
#include <sys/types.h>

/* perf_event_open(2), close-on-exec. A descriptor or -errno. */
int perf_open(const struct perf_event_attr *attr, pid_t pid, int cpu, unsigned long flags);

struct ring {
	struct perf_event_mmap_page *page; /* NULL: not mapped */
	uint8_t *data;
	size_t data_bytes; /* a power of two */
	uint8_t *whole;    /* room for a record that wraps around the end; allocated when needed */
	uint64_t broken;   /* times that what the ring held was not a record */
	uint64_t lost;     /* records that its LOST records told of */
};

/* Maps `pages` (a power of two) of the event and the page before them. 0 or -errno. */
int ring_map(struct ring *r, int fd, unsigned pages);
void ring_unmap(struct ring *r);

/*
 * Hands on what is in the ring now, oldest first, each record whole and aligned, and makes its room
 * free. Bytes that are no record are dropped up to the newest. 0, -ENOMEM, or what emit returned if
 * not 0: that record is then read again.
 */
int ring_read(struct ring *r, record_fn *emit, void *ctx);

#endif
