/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The maps of rows, rules and processes that programs unwind by, and the thread that fills them
 * while programs run: making the rows of a large file takes a second, in which rings must be read.
 */
#ifndef PROBE_UNWIND_MAPS_H
#define PROBE_UNWIND_MAPS_H

#include <inspect/probe_target.h>

/* Descriptors of the maps in bpf/lib/unwind.bpf.h; the caller's. */
struct unwind_map_fds {
	int rows, ranges, rules, processes, known, requests;
};

/* Bytes that the memory limit of this program's cgroup still allows; UINT64_MAX: no limit. */
uint64_t unwind_maps_memory_left(void);

struct unwind_maps;
int unwind_maps_new(const struct unwind_map_fds *fds, unwind_rows_fn *rows, void *rows_ctx,
		    struct unwind_maps **ret);
void unwind_maps_free(struct unwind_maps *m); /* ends the thread */

/* Takes in a process as it is mapped now; with put_off without large files that are new, which a
 * second call takes. Before unwind_maps_start only. 0, -ENOMEM, or -ESRCH and the like when there
 * is nothing to read. */
int unwind_maps_take(struct unwind_maps *m, pid_t pid, bool put_off);

/* The same of what a command will map (unwind_preload). 0 or -ENOMEM. */
int unwind_maps_preload(struct unwind_maps *m, const char *command);

/* From now on a thread answers what programs ask for. 0 or -errno. */
int unwind_maps_start(struct unwind_maps *m);
void unwind_maps_stop(struct unwind_maps *m);

/* A process has mapped code since: noted until unwind_maps_wake. 0 or -ENOMEM. */
int unwind_maps_changed(struct unwind_maps *m, pid_t pid);
void unwind_maps_wake(struct unwind_maps *m);

/* After the stop: files that had no room within the memory that this cgroup allows. */
size_t unwind_maps_refused(const struct unwind_maps *m);
uint64_t unwind_maps_budget_bytes(const struct unwind_maps *m);

#endif
