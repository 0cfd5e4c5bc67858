/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * jit-PID.dump: what JIT compilers write about each function that they make, with its time.
 * Format: tools/perf/Documentation/jitdump-specification.txt.
 */
#ifndef INSPECT_JITDUMP_H
#define INSPECT_JITDUMP_H

#include <inspect/process.h>
#include <inspect/strbuf.h>

/* Code that lies at [start, end) from a time on, until other code is put over it. */
struct jit_load {
	uint64_t start_va, end_va, from_ns; /* CLOCK_MONOTONIC */
	uint64_t name_off;                  /* in the file */
	uint32_t name_n;                    /* bytes; 0: nothing lies there any more */
};

typedef ARRAY(struct jit_load) jit_loads;

/* Whether a file of that path, mapped executable, marks a process as the writer of a jitdump. */
bool jitdump_is_marker(const char *path);

/*
 * Opens the dump that a process has mapped: the very file while it is mapped, later the one of
 * that path if device and inode agree. Only a regular file of the process's effective user, of
 * ours, or of root, reached without symlinks. A descriptor, -EPERM: another owner, -ESTALE:
 * another file, or -errno.
 */
int jitdump_open(const struct dso *d);

/*
 * Reads all records up to the end, or to the first that is not whole: the process may still be
 * writing. Loads are added to *ret in the order of the file. 0, -ENOMEM, or -EBADMSG with
 * *ret_problem a static text.
 */
int jitdump_read(int fd, jit_loads *ret, const char **ret_problem);

/* The name of a load. 0 or -errno. */
int jitdump_name(int fd, const struct jit_load *l, struct strbuf *out);

#endif
