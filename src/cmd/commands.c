/* SPDX-License-Identifier: BSD-2-Clause */
#include <inspect/command.h>

extern const struct command command_use, command_record, command_report, command_flame,
	command_diff, command_offcpu, command_stack, command_trace, command_stat, command_doctor;

/* In the order in which a user needs them. */
const struct command *const commands[] = {
	&command_use,
	&command_record,
	&command_report,
	&command_flame,
	&command_diff,
	&command_offcpu,
	&command_stack,
	&command_trace,
	&command_stat,
	&command_doctor,
	NULL,
};

const struct command *command_find(const char *name)
{
	for (size_t i = 0; commands[i]; i++)
		if (str_eq(commands[i]->name, name))
			return commands[i];
	return NULL;
}
