/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef CAPTURE_BUILD_IDS_H
#define CAPTURE_BUILD_IDS_H

#include <inspect/event.h>

/*
 * The kernel's MMAP2 records name a file by device and inode: what a reader elsewhere, or after an
 * upgrade, needs is its build-id. It is read while the file is mapped, and takes the inode's place.
 */
struct build_ids;

int build_ids_new(struct build_ids **ret);
void build_ids_free(struct build_ids *b);

/*
 * The record with its build-id, in storage of b until the next call; the record itself when it is
 * no mapping of code, has one already, or the file has none or cannot be read. A file that was
 * changed after the record's time (CLOCK_MONOTONIC) gets INODE_UNKNOWN: what it held then is not
 * known.
 */
const struct perf_event_header *build_ids_stamp(struct build_ids *b,
						const struct event_table *events,
						const struct perf_event_header *record,
						size_t size_bytes);

/* A file of that build-id as it was when its mapping was read, though it may be gone since: a
 * descriptor of the caller's, or -1. */
int build_ids_open(const struct build_ids *b, const uint8_t *id, size_t size);

#endif
