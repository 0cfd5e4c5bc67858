/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef INSPECT_CMD_QUALITY_LINES_H
#define INSPECT_CMD_QUALITY_LINES_H

#include <inspect/profile.h>

/*
 * For commands whose output is no table: samples and what is missing in one line, then the
 * profile's notes. "inspect flame: 363 samples · lost 0 · truncated 12 (3.3 %)"
 */
void quality_lines(const char *command, const struct profile *p, FILE *out);

#endif
