/* SPDX-License-Identifier: BSD-2-Clause */
/* The names that perf has for generic hardware, software and cache events. */
#ifndef PERF_EVENT_NAMES_H
#define PERF_EVENT_NAMES_H

#include <inspect/near_miss.h>

#include <linux/perf_event.h>

/* Fills type and config for a name without modifiers ("cycles", "faults", "LLC-load-misses",
 * "r01c2"). 0 or -ENOENT. */
int event_name_find(const char *name, struct perf_event_attr *attr);

/* The name that a PMU's sysfs folder has for a generic hardware event ("cycles" → "cpu-cycles"),
 * or the name itself. */
const char *event_name_canonical(const char *name);

/* Adds every generic name. */
void event_names_near(struct near_misses *m);

#endif
