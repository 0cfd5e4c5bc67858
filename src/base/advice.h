/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Lines of advice that several explanations share. Each adds a line to the diag only where that
 * line would work: the wrong advice costs more than none.
 */
#ifndef BASE_ADVICE_H
#define BASE_ADVICE_H

#include <inspect/diag.h>
#include <inspect/host.h>

/* In a container: recognised by its marks, or by its pid namespace. */
bool advice_in_container(const struct host *h);

/* "sudo " or nothing before a command that needs root. */
const char *advice_sudo(const struct host *h);

/* Whether a shell takes the text as one word as it stands. */
bool advice_is_plain_word(const char *s);

/* How this program is called: "inspect", or its path where root's PATH would not find it. */
struct program_name {
	char v[sizeof(((struct host *)0)->exe) + 2];
};
struct program_name advice_program(const struct host *h);

/* "CAP_PERFMON", before Linux 5.8 "CAP_SYS_ADMIN". */
const char *advice_capability_name(const struct host *h);

void advice_sysctl(const struct host *h, const char *name, long long value, struct diag *d);

/* Gives this program, or its container, the capabilities of a profiler. */
void advice_capability(const struct host *h, struct diag *d);

/* The way out of a user namespace, where no capability inside helps. */
void advice_outside(const struct host *h, struct diag *d);

#endif
