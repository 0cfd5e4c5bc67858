/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef INSPECT_CMD_INPUT_H
#define INSPECT_CMD_INPUT_H

#include <inspect/profile.h>
#include <inspect/result.h>

/*
 * The file to read when none was given: what is piped in (stderr says so, unless quiet), else
 * inspect.data, or perf.data where only that exists. `command` is the command's name.
 */
const char *default_input(const char *command, bool quiet);

/* The file, what was recorded where and when: facts with keys that begin with `prefix`. A label
 * for those of them that are known. */
void input_facts(struct result *r, const struct profile *p, const char *path, const char *prefix);

/* "4.95 s", "123456 cycles": a weight in the event's unit. */
const char *weight_text(struct result *r, const struct profile_event *e, uint64_t weight);

/* A cell that borrows text which lives as long as the result. */
static inline struct cell cell_borrowed(const char *s)
{
	return (struct cell){.type = CELL_TEXT, .text = s};
}

#endif
