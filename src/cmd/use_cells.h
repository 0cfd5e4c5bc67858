/* SPDX-License-Identifier: BSD-2-Clause */
/* What a cell of the report says of a row's values. Texts are of the result's arena. */
#ifndef INSPECT_CMD_USE_CELLS_H
#define INSPECT_CMD_USE_CELLS_H

#include "use.h"

/* "run delay 9 %" */
const char *use_value_text(struct result *r, const struct use_value *v);

/* What would be shown as 0 is not worth its place; utilisation is, and what is not well. */
bool use_is_shown(const struct use_value *v, enum use_kind kind);

/* The worst `most` of them; "…" behind them when there are more. */
const char *use_values_text(struct result *r, const struct use_row *row, enum use_kind kind,
			    unsigned most);

/* The same, 0, or that there is no data: with `reasons` why. */
struct cell use_kind_cell(struct result *r, const struct use_row *row, enum use_kind kind,
			  unsigned most, bool reasons);

/* The value that makes the row as bad as it is, or the first that is shown; NULL. */
const struct use_value *use_telling_value(const struct use_row *row);

#endif
