/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A command: one file in src/cmd exports one `const struct command`; commands.c lists it;
 * man/inspect-NAME.1.scd and tests/cmd/NAME.t belong to it.
 */
#ifndef INSPECT_COMMAND_H
#define INSPECT_COMMAND_H

#include <inspect/diag.h>

struct command {
	const char *name;     /* "record" */
	const char *summary;  /* one line in the list of commands */
	const char *question; /* the user's question that it answers: "CPU busy?" */
	const char *usage; /* usage lines after "inspect ", newline-separated: equal the SYNOPSIS */
	/* Prints the option list of --help. */
	void (*help)(FILE *out);
	/* argv[0] is the command's name. Returns the exit code; on failure fills d (main prints
	 * it). Usage errors: diag with err -EINVAL and exit code EXIT_USAGE. *json: errors as
	 * objects. */
	int (*run)(int argc, char **argv, struct diag *d, bool *json);
};

enum {
	EXIT_USAGE = 2,
	EXIT_GATE = 3, /* measured, and above a limit that was given */
	EXIT_OWN_FAILURE = 125,
	EXIT_CANNOT_EXECUTE = 126,
	EXIT_NOT_FOUND = 127,
};

extern const struct command *const commands[]; /* NULL-terminated */
const struct command *command_find(const char *name);

/* The ladder of commands, each under the question that it answers. */
void help_overview(FILE *out);

/* Usage lines, description, options. */
void help_command(const struct command *c, FILE *out);

/* `inspect 0.1`, and when verbose the libraries and abilities of the build. */
void help_version(bool verbose, FILE *out);

/* Says that there is no such command, and what there is instead. Returns -EINVAL. */
int help_unknown_command(const char *name, struct diag *d);

#endif
