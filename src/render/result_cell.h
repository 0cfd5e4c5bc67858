/* SPDX-License-Identifier: BSD-2-Clause */
/* What the four renderers of a result have in common: cells as text for people and as data. */
#ifndef RENDER_RESULT_CELL_H
#define RENDER_RESULT_CELL_H

#include <inspect/json_out.h>
#include <inspect/result.h>
#include <inspect/strbuf.h>

/*
 * The cell as people read it: "12.34%", "1.5 s", "yes", "-" for NULL; names with control
 * characters escaped. Counts are plain digits, so that scripts can take them from a table too.
 */
void cell_show(struct strbuf *out, const struct cell *c, unsigned column_flags);

/* The cell as a JSON number, string, true/false or null; CSV takes its numbers from here. */
void cell_write_json(struct json_out *j, const struct cell *c, unsigned column_flags);

/* Text is set to the left, what can be compared by length to the right. */
static inline bool column_is_text(const struct column *c)
{
	return c->type == CELL_TEXT || c->type == CELL_BOOL;
}

static inline size_t section_rows(const struct section *s)
{
	return s->n_columns ? s->cells.n / s->n_columns : 0;
}

/* False when every column carries one of the flags: there is nothing to draw. */
bool section_is_drawn(const struct section *s, unsigned without_flags);

/* True when an earlier section has the key, whose array then holds these rows too. */
bool section_is_continued(const struct result *r, size_t section);

#endif
