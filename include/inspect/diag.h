/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A failure as a user sees it: what failed, why, and the command that fixes it.
 * The first failure wins: a set diag is not changed by what fails after it. `main` prints it once.
 * All functions accept a NULL diag.
 */
#ifndef INSPECT_DIAG_H
#define INSPECT_DIAG_H

#include <inspect/base.h>

struct diag {
	int err;     /* negative errno; 0: nothing failed */
	char *what;  /* "cannot sample all CPUs with 'cycles': Permission denied" */
	char *why;   /* NULL when there is nothing to add to what */
	char *fix;   /* one suggestion a line; NULL when none is known */
	bool closed; /* a later failure was ignored, and so are its why and fix */
};

void diag_release(struct diag *d);

/* Records the failure unless there is one; returns err, so that `return diag_set(...)` reads well.
 * `fmt` is the "what" and does not repeat strerror. */
int diag_set(struct diag *d, int err, const char *fmt, ...) PRINTF(3, 4);

/* The same with ": strerror(-err)" appended. */
int diag_errno(struct diag *d, int err, const char *fmt, ...) PRINTF(3, 4);

/* Adds the reason, or one more line of advice, to the failure just set. Does nothing when that
 * one was ignored because an earlier failure is recorded. */
void diag_why(struct diag *d, const char *fmt, ...) PRINTF(2, 3);
void diag_fix(struct diag *d, const char *fmt, ...) PRINTF(2, 3);

/* `inspect CMD: what` / `  why: …` / `  fix: …` / `   or: …`, control characters escaped. */
void diag_print(const struct diag *d, const char *command, FILE *file);

/* {"schema":"inspect.error/1","command":…,"error":…,"why":…,"fix":[…],"errno":…} */
void diag_print_json(const struct diag *d, const char *command, FILE *file);

#endif
