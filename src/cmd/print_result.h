/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef INSPECT_CMD_PRINT_RESULT_H
#define INSPECT_CMD_PRINT_RESULT_H

#include <inspect/options.h>
#include <inspect/result.h>

/*
 * Writes the result to stdout as --json, --csv or a table. A CSV has no place for facts and notes:
 * they go to stderr, unless --quiet. With --markdown FILE also to that file;
 * when that is stdout, then as Markdown alone. `all`: no row limit.
 */
int print_result(const struct result *r, const struct common_options *o, bool all, struct diag *d);

#endif
