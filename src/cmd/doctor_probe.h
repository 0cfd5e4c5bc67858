/* SPDX-License-Identifier: BSD-2-Clause */
/* What works here, found by trying. */
#ifndef CMD_DOCTOR_PROBE_H
#define CMD_DOCTOR_PROBE_H

#include <inspect/diag.h>
#include <inspect/host.h>

enum ability_state {
	ABILITY_YES,
	ABILITY_LIMITED, /* less than asked, by itself: the diag says what */
	ABILITY_NO,      /* the diag says why, and what helps */
};

struct ability {
	const char *commands; /* "record, flame" */
	const char *name;     /* "own processes" */
	const char *options;  /* "-p PID, -- CMD" */
	enum ability_state (*probe)(const struct host *h, struct diag *d);
};

extern const struct ability abilities[]; /* ends with a NULL name */

#endif
