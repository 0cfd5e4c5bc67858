/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef CAPTURE_CGROUP_H
#define CAPTURE_CGROUP_H

#include <inspect/capture.h>

/*
 * --cgroup: a path, or a name as in /proc/PID/cgroup. Opens the group where perf counts by it; else
 * lists the processes of it and the groups below, with a note, if `lists`.
 */
int target_open_cgroup(const char *text, bool lists, struct target *t, note_list *notes,
		       struct diag *d);

#endif
