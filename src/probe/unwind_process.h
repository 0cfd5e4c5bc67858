/* SPDX-License-Identifier: BSD-2-Clause */
/* From /proc/PID/maps to the ranges that programs search. Used by one thread at a time. */
#ifndef PROBE_UNWIND_PROCESS_H
#define PROBE_UNWIND_PROCESS_H

#include "range_store.h"
#include "row_store.h"

#include <inspect/procfs.h>
#include <time.h>

/* What of a file changes when it is written anew. */
struct file_version {
	bool known; /* false: it could not be looked at, and is taken for what it was */
	uint64_t size_bytes;
	struct timespec ctime;
};

/* A file and what its code is unwound by. */
struct known_file {
	uint64_t ino;
	uint32_t maj, min;
	char *path;
	struct file_version version;
	uint64_t seen; /* the refresh that looked last */
	uint64_t base_off;
	uint32_t first_row, n_rows;
	uint8_t kind, stop;
};

struct known_process {
	pid_t pid;
	struct range_place place;
	bool placed;
	uint64_t pause_ns; /* grows while there is nothing new */
	ARRAY(struct unwind_range) ranges;
};

struct unwind_processes {
	int processes_fd, known_fd;
	unwind_rows_fn *rows;
	void *rows_ctx;
	struct row_store row_store;
	struct range_store range_store;
	ARRAY(struct known_file) files;
	struct hashmap by_file;
	ARRAY(struct known_process *) known; /* sorted by pid */
	ARRAY(struct unwind_range) fresh;
	uint32_t generation;
	uint64_t refreshes;
	uint64_t rows_ns; /* of this refresh, spent on new files */
	bool put_off;     /* this refresh leaves large new files for another time … */
	bool was_put_off; /* … and has met some */
	bool quick;       /* files whose rows take long to make are left out */
	size_t refused;   /* files without room */
};

void unwind_processes_release(struct unwind_processes *u);

/*
 * Reads the mappings and puts what changed into the maps. With put_off the large files that are new
 * are left out: 1 when there were some. 0, 1 or -errno.
 */
int unwind_process_refresh(struct unwind_processes *u, pid_t pid, bool put_off);
/* Makes the rows of a file that this process could map, and tells programs of it; nothing of one
 * whose rows take long to make. 0 or -errno. */
int unwind_process_learn(struct unwind_processes *u, const struct proc_map *m);
/* Whether a program may have ranges of it. */
bool unwind_process_is_used(const struct unwind_processes *u, pid_t pid);
/* Gives up what belongs to processes that have ended. */
int unwind_processes_sweep(struct unwind_processes *u);

#endif
