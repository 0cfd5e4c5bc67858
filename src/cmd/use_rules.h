/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The rules of `use`: of the machine, and of GPUs and inference engines. Each value that has a
 * limit has a rule of that one test, so that whatever is judged has a meaning and a command.
 *
 * Marks in `next`: {target} the options that name who is looked at, or the cgroup of the row, or
 * -a; {owner} and {thread} the process and the thread of the row, or else {target}; {pid} its
 * number, without which the line is next_else; {self} and {gpu} what this run was given;
 * {nsenter} a command that enters the target's network, if that is another one; {device}.
 */
#ifndef INSPECT_CMD_USE_RULES_H
#define INSPECT_CMD_USE_RULES_H

#include <inspect/finding.h>
#include <inspect/use.h>
#include <math.h>

#define LIMIT NAN /* in a test: the value's own limit, as in its table or by --limit */

struct use_rules {
	const struct finding_rule *v;
	size_t n;
};
extern const struct use_rules use_host_rules, use_serving_rules;

#endif
