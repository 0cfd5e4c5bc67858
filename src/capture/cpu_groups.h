/* SPDX-License-Identifier: BSD-2-Clause */
/* The cgroups that limit the CPU time of processes: of both versions, with those above them. */
#ifndef CAPTURE_CPU_GROUPS_H
#define CAPTURE_CPU_GROUPS_H

#include <inspect/capture.h>

/* Adds the groups of a process that are not in the list yet; nothing when it has ended or no group
 * says how often it was throttled. 0 or -ENOMEM. */
int cpu_groups_add(cpu_group_list *l, pid_t pid);
void cpu_groups_release(cpu_group_list *l);

/* In how many periods they have used their quotas up since they were added; < 0: not known. */
int64_t cpu_groups_throttled(const cpu_group_list *l);

/* The CPUs that the process may use by its group and those above; < 0: no limit. */
double cpu_groups_quota(pid_t pid);

#endif
