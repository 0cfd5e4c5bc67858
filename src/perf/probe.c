/* SPDX-License-Identifier: BSD-2-Clause */
#include "open.h"

int perf_event_probe(const struct perf_event_attr *attr, pid_t pid, int cpu)
{
	struct perf_event_attr probe = *attr;
	CLEANUP(closep) int fd = -1;

	probe.size = sizeof(probe);
	probe.disabled = 1;
	fd = perf_open(&probe, pid, cpu, 0);
	return fd < 0 ? fd : 0;
}
