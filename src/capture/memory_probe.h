/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Whether the memory of processes can be looked at. When a thread hangs in mmap, munmap or a page
 * fault with the lock of its memory map, whoever reads /proc/PID/maps or the memory hangs too,
 * until it is killed. So a thread of ours, which is left behind if need be, tries it first.
 */
#ifndef CAPTURE_MEMORY_PROBE_H
#define CAPTURE_MEMORY_PROBE_H

#include <inspect/base.h>
#include <sys/types.h>

/* Tries one process, on a thread of its own; may never return. */
typedef void memory_try_fn(pid_t pid);
void memory_try(pid_t pid);

/* ret_stuck[i]: pids[i] gave no answer in time: in patience_ns, and of the next ones in a tenth of
 * that. 0 or -errno. */
int memory_probe(const pid_t *pids, size_t n, memory_try_fn *fn, uint64_t patience_ns,
		 bool *ret_stuck);

#endif
