/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * CSV after RFC 4180, with lines that end in LF. Cells hold no control characters (escaped as in a
 * table), so a record is always one line; NULL is an empty field. Several different tables in one
 * output have the section's key as their first column, and a blank line between them.
 */
#include "result_cell.h"
#include <inspect/render.h>
#include <inspect/term.h>

static void csv_text(FILE *out, const char *s)
{
	if (!strpbrk(s, "\",") && s[0] != ' ' && !str_ends(s, " ")) {
		fputs(s, out);
		return;
	}
	putc('"', out);
	for (; *s; s++) {
		if (*s == '"')
			putc('"', out);
		putc(*s, out);
	}
	putc('"', out);
}

static int csv_cell(FILE *out, const struct cell *c, unsigned flags, struct strbuf *text)
{
	struct json_out number;

	if (c->type == CELL_NULL)
		return 0;
	if (c->type != CELL_TEXT) {
		json_init(&number, out, true);
		cell_write_json(&number, c, flags);
		return 0;
	}
	strbuf_clear(text);
	term_escape(text, c->text, strlen(c->text));
	if (text->failed)
		return -ENOMEM;
	csv_text(out, strbuf_str(text));
	return 0;
}

static void csv_head(FILE *out, const struct section *s, bool with_key)
{
	const char *separator = "";

	if (with_key) {
		fputs("section", out);
		separator = ",";
	}
	for (size_t i = 0; i < s->n_columns; i++) {
		if (s->columns[i].flags & COLUMN_TABLE_ONLY)
			continue;
		fputs(separator, out);
		csv_text(out, s->columns[i].key);
		separator = ",";
	}
	putc('\n', out);
}

static int csv_rows(FILE *out, const struct section *s, bool with_key, struct strbuf *text)
{
	for (size_t row = 0; row < section_rows(s); row++) {
		const struct cell *cells = s->cells.v + row * s->n_columns;
		const char *separator = "";

		if (with_key) {
			csv_text(out, s->key);
			separator = ",";
		}
		for (size_t i = 0; i < s->n_columns; i++) {
			if (s->columns[i].flags & COLUMN_TABLE_ONLY)
				continue;
			fputs(separator, out);
			if (csv_cell(out, &cells[i], s->columns[i].flags, text))
				return -ENOMEM;
			separator = ",";
		}
		putc('\n', out);
	}
	return 0;
}

/* All sections of one key under one head. */
static int csv_table(FILE *out, const struct result *r, size_t first, bool with_key,
		     struct strbuf *text)
{
	int err = 0;

	csv_head(out, &r->sections.v[first], with_key);
	for (size_t i = first; i < r->sections.n && !err; i++)
		if (str_eq(r->sections.v[i].key, r->sections.v[first].key))
			err = csv_rows(out, &r->sections.v[i], with_key, text);
	return err;
}

static bool csv_starts_table(const struct result *r, size_t section)
{
	return section_is_drawn(&r->sections.v[section], COLUMN_DATA_ONLY) &&
	       !section_is_continued(r, section);
}

static int write_tables(const struct result *r, size_t before, FILE *out)
{
	CLEANUP(strbuf_release) struct strbuf text = {0};
	size_t tables = before, done = before;

	if (r->failed)
		return -ENOMEM;
	for (size_t i = 0; i < r->sections.n; i++)
		tables += csv_starts_table(r, i);
	for (size_t i = 0; i < r->sections.n; i++) {
		if (!csv_starts_table(r, i))
			continue;
		if (done++)
			putc('\n', out);
		if (csv_table(out, r, i, tables > 1, &text))
			return -ENOMEM;
	}
	return fflush(out) || ferror(out) ? -EIO : 0;
}

int result_csv(const struct result *r, FILE *out)
{
	return write_tables(r, 0, out);
}

int result_csv_more(const struct result *r, FILE *out)
{
	return write_tables(r, 1, out);
}
