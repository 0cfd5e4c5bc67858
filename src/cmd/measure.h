/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef INSPECT_CMD_MEASURE_H
#define INSPECT_CMD_MEASURE_H

#include <inspect/capture.h>

/* What record and flame share: from options and operands to a recording_config. */
struct measure_options {
	struct target_options target;
	struct sampling_options sampling;
	struct duration_options duration;
	struct naming_options naming;
};

struct measure {
	struct host host;
	struct target target;
	event_specs events;
	note_list notes;
	struct waits_config waits;      /* --wall */
	struct recording_config config; /* borrows from the rest */
};

/* Resolves target, events and rate; when there is no hardware PMU, cpu-clock stands in for cycles
 * and a note says so. `command` is the command's name, for advice. */
int measure_prepare(struct measure *m, const char *command, const struct measure_options *o,
		    const struct operands *operands, struct diag *d);
void measure_release(struct measure *m);

/* argv as one line for the file's header; malloc'ed, NULL without memory. */
char *command_line_of(int argc, char **argv);

#endif
