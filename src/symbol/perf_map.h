/* SPDX-License-Identifier: BSD-2-Clause */
/* /tmp/perf-PID.map: "START SIZE name" lines that JIT compilers write. */
#ifndef PERF_MAP_H
#define PERF_MAP_H

#include <inspect/process.h>
#include <sys/types.h>

#define PERF_MAP_BYTES_MAX (512U << 20)

struct perf_map_query {
	uint64_t address;
	const char
		*name; /* set when an entry covers the address; within the text, not terminated */
	size_t name_n;
};

/*
 * Names the addresses, which are sorted, from n bytes of a map. Code memory is used again: of
 * several entries over an address the one written last counts. 0 or -ENOMEM.
 */
int perf_map_find(const char *text, size_t n, struct perf_map_query *queries, size_t n_queries);

/*
 * Opens the map of a process: in its own mount namespace, by its pid in its own pid namespace; for
 * one that is gone /tmp/perf-PID.map here. Only a regular file of the process's effective user (of
 * ours when it is gone) or of root, reached without symlinks. A descriptor, -EPERM: another
 * owner, or -errno.
 */
int perf_map_open(pid_t pid);

/* The same for a process that was held while it lived (symbolize_hold_process). */
int perf_map_open_held(const struct dso *d);

#endif
