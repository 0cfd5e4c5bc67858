/* SPDX-License-Identifier: BSD-2-Clause */
/* The CPU's own events, by the names that libpfm4 has for them. */
#ifndef PERF_PFM_H
#define PERF_PFM_H

#include <inspect/diag.h>
#include <linux/perf_event.h>

/*
 * "INST_RETIRED:ANY_P", "skl::BR_INST_RETIRED:CONDITIONAL:u" into type, config… and exclude_*, for
 * the CPU that this is (or LIBPFM_FORCE_PMU). The library is loaded here, when a name is none of
 * perf's: it is large, and few runs need it. 0; -ENOENT: no such event; -ENOSYS: the library is
 * not installed or does not know this CPU.
 */
int pfm_event_find(const char *text, struct perf_event_attr *attr);

#endif
