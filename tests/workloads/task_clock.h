/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef WORKLOAD_TASK_CLOCK_H
#define WORKLOAD_TASK_CLOCK_H

#include <linux/perf_event.h>
#include <sys/syscall.h>
#include <unistd.h>

/* A task-clock of a process or thread, with `inherit` also of what it makes: the clock of events, which
 * is another time than CPU time where a host holds a virtual CPU up. */
static inline int task_clock_open(pid_t pid, int inherit)
{
	struct perf_event_attr attr = {
		.size = sizeof(attr),
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_TASK_CLOCK,
		.inherit = inherit != 0,
		.exclude_kernel = 1, /* asks for fewer rights; a clock counts all the same */
	};

	return (int)syscall(SYS_perf_event_open, &attr, pid, -1, -1, PERF_FLAG_FD_CLOEXEC);
}

#endif
