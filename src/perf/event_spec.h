/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef PERF_EVENT_SPEC_H
#define PERF_EVENT_SPEC_H

#include <inspect/perf_sampler.h>

#define PMU_SYSFS_ROOT "/sys/bus/event_source/devices"

/* event_specs_parse with another folder in the place of PMU_SYSFS_ROOT, for tests. */
int event_specs_parse_at(const char *text, const struct host *host, const char *sysfs_root,
			 event_specs *ret, struct diag *d);

/*
 * `terms` of PMU/terms/ into type, config… and a sampling period or frequency, by the PMU's folder
 * in sysfs. `text` is the whole event, for the diag; *ret_name is set (malloc'ed) by name=. On
 * failure the diag says which term, and what there is.
 */
int pmu_event_parse(const char *sysfs_root, const char *text, const char *pmu, char *terms,
		    struct perf_event_attr *attr, char **ret_name, struct diag *d);

/* A name that can be one path component: letters, digits, `_`, `-`, and `.` but not in front. */
bool event_word_valid(const char *s);

#endif
