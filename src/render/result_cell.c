/* SPDX-License-Identifier: BSD-2-Clause */
#include "result_cell.h"
#include <inspect/clock.h>
#include <inspect/term.h>

/* The sign of a difference is split off, so that the formats below see what is unsigned. */
static uint64_t cell_magnitude(struct strbuf *out, const struct cell *c, unsigned column_flags)
{
	int64_t v = (int64_t)c->u;

	if (!(column_flags & COLUMN_SIGNED))
		return c->u;
	if (v)
		strbuf_putc(out, v < 0 ? '-' : '+');
	return v < 0 ? -(uint64_t)v : (uint64_t)v;
}

void cell_show(struct strbuf *out, const struct cell *c, unsigned column_flags)
{
	char buf[64];

	switch (c->type) {
	case CELL_NULL:
		strbuf_putc(out, '-');
		break;
	case CELL_TEXT:
		term_escape(out, c->text, strlen(c->text));
		break;
	case CELL_COUNT:
		strbuf_printf(out, "%llu",
			      (unsigned long long)cell_magnitude(out, c, column_flags));
		break;
	case CELL_NUMBER:
	case CELL_PERCENT:
		strbuf_printf(out, column_flags & COLUMN_SIGNED ? "%+.2f" : "%.2f", c->d);
		if (c->type == CELL_PERCENT)
			strbuf_putc(out, '%');
		break;
	case CELL_NS:
		strbuf_puts(out, duration_format(cell_magnitude(out, c, column_flags), buf,
						 sizeof(buf)));
		break;
	case CELL_BYTES:
		strbuf_puts(out,
			    bytes_format(cell_magnitude(out, c, column_flags), buf, sizeof(buf)));
		break;
	case CELL_BOOL:
		strbuf_puts(out, c->b ? "yes" : "no");
		break;
	}
}

void cell_write_json(struct json_out *j, const struct cell *c, unsigned column_flags)
{
	switch (c->type) {
	case CELL_NULL:
		json_null(j);
		break;
	case CELL_TEXT:
		json_string(j, c->text);
		break;
	case CELL_COUNT:
	case CELL_NS:
	case CELL_BYTES:
		if (column_flags & COLUMN_SIGNED)
			json_i64(j, (int64_t)c->u);
		else
			json_u64(j, c->u);
		break;
	case CELL_NUMBER:
	case CELL_PERCENT:
		json_double(j, c->d);
		break;
	case CELL_BOOL:
		json_bool(j, c->b);
		break;
	}
}

bool section_is_drawn(const struct section *s, unsigned without_flags)
{
	for (size_t i = 0; i < s->n_columns; i++)
		if (!(s->columns[i].flags & without_flags))
			return true;
	return false;
}

bool section_is_continued(const struct result *r, size_t section)
{
	for (size_t i = 0; i < section; i++)
		if (str_eq(r->sections.v[i].key, r->sections.v[section].key))
			return true;
	return false;
}
