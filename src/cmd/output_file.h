/* SPDX-License-Identifier: BSD-2-Clause */
/* Files that a command writes by the name that was given: whole, or not there. */
#ifndef INSPECT_CMD_OUTPUT_FILE_H
#define INSPECT_CMD_OUTPUT_FILE_H

#include <inspect/diag.h>

/* An output that is written beside its place and renamed when it is complete. "-", and a name of
 * what stdout is already (/dev/stdout), are stdout; devices and FIFOs are written in place. */
struct output_file {
	const char *path;
	char *part; /* NULL: written in place */
	FILE *out;  /* stdout is not closed */
};

/*
 * Refuses what must not be overwritten: a recording, one of the n inputs (NULLs and "-", which is
 * stdin, allowed), a directory. NULL and stdout pass. Called before anything is read or measured.
 */
int output_file_check(const char *path, const char *const *inputs, size_t n, struct diag *d);

/* Whether the file could be made, before something long is done for it. Leaves nothing behind. */
int output_file_try(const char *path, struct diag *d);

int output_file_open(struct output_file *f, const char *path, struct diag *d);

/* Ends the file: with err 0 it takes its place, else it is removed. Returns err, or what now
 * failed. */
int output_file_close(struct output_file *f, int err, struct diag *d);

/* Whether the file begins as a perf.data file does. */
bool output_is_recording(const char *path);

bool output_is_stdout(const char *path);

#endif
