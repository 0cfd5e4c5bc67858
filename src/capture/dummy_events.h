/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef CAPTURE_DUMMY_EVENTS_H
#define CAPTURE_DUMMY_EVENTS_H

#include <inspect/decode.h>
#include <inspect/profile.h>

/*
 * Takes events out that perf opens for their records of processes alone (dummy:HG), after the
 * pipeline has finished: events have equal numbers in both tables. Nothing can be added to the
 * profile's rows afterwards.
 */
void dummy_events_drop(struct profile *p, const struct event_table *table);

#endif
