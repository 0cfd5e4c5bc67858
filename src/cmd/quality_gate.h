/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef INSPECT_CMD_QUALITY_GATE_H
#define INSPECT_CMD_QUALITY_GATE_H

#include <inspect/options.h>
#include <inspect/profile.h>

/* --fail-if 'lost>1%,truncated>5%': what a script takes for too poor a profile. */
struct quality_gate {
	struct {
		unsigned metric;
		double limit;
		bool percent; /* of all samples, those lost included; else a number of samples */
	} v[8];
	size_t n;
};

extern const struct option_group quality_option_group;

/* 0, or EXIT_GATE with the first limit that the profile is above in the diag. */
int quality_gate_check(const struct quality_gate *g, const struct profile *p, struct diag *d);

#endif
