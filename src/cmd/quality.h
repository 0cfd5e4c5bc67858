/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef INSPECT_CMD_QUALITY_H
#define INSPECT_CMD_QUALITY_H

#include <inspect/profile.h>
#include <inspect/result.h>

/* The quality block of every measuring command: samples, lost (by CPU), throttled, truncated,
 * without a stack, unknown frames by module, late and damaged records, the tool's own cost. */
void quality_facts(struct result *r, const struct profile *p);

#endif
