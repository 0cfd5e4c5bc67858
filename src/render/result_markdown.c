/* SPDX-License-Identifier: BSD-2-Clause */
/* GitHub-flavoured Markdown. Everything that is not ours is escaped: names may hold markup. */
#include "result_cell.h"
#include <inspect/render.h>
#include <inspect/term.h>

static int markdown_text(FILE *out, const char *s)
{
	CLEANUP(strbuf_release) struct strbuf text = {0};

	term_escape(&text, s, strlen(s));
	if (text.failed)
		return -ENOMEM;
	for (s = strbuf_str(&text); *s; s++) {
		if (strchr("\\`*_[]<>|&~#", *s))
			putc('\\', out);
		putc(*s, out);
	}
	return 0;
}

static int markdown_cell(FILE *out, const struct cell *c, unsigned flags)
{
	CLEANUP(strbuf_release) struct strbuf text = {0};

	if (c->type == CELL_TEXT)
		return markdown_text(out, c->text);
	cell_show(&text, c, flags);
	if (text.failed)
		return -ENOMEM;
	fputs(strbuf_str(&text), out);
	return 0;
}

static int markdown_facts(FILE *out, const struct result *r)
{
	for (size_t i = 0; i < r->facts.n; i++) {
		const struct fact *f = &r->facts.v[i];

		if (!f->label[0])
			continue;
		fprintf(out, "- **%s:** ", f->label);
		if (markdown_cell(out, &f->value, 0))
			return -ENOMEM;
		if (f->value.type == CELL_NULL && f->value.text[0]) {
			fputs(" (", out);
			if (markdown_text(out, f->value.text))
				return -ENOMEM;
			putc(')', out);
		}
		putc('\n', out);
	}
	for (size_t i = 0; i < r->notes.n; i++) {
		fputs("- note: ", out);
		if (markdown_text(out, r->notes.v[i]))
			return -ENOMEM;
		putc('\n', out);
	}
	return 0;
}

static int markdown_head(FILE *out, const struct section *s)
{
	putc('\n', out);
	if (s->title[0]) {
		fputs("### ", out);
		if (markdown_text(out, s->title))
			return -ENOMEM;
		fputs("\n\n", out);
	}
	for (size_t i = 0; i < s->n_columns; i++)
		if (!(s->columns[i].flags & COLUMN_DATA_ONLY)) {
			fputs("| ", out);
			if (markdown_text(out, s->columns[i].title))
				return -ENOMEM;
			putc(' ', out);
		}
	fputs("|\n", out);
	for (size_t i = 0; i < s->n_columns; i++)
		if (!(s->columns[i].flags & COLUMN_DATA_ONLY))
			fputs(column_is_text(&s->columns[i]) ? "| --- " : "| ---: ", out);
	fputs("|\n", out);
	return 0;
}

static int markdown_rows(FILE *out, const struct section *s)
{
	size_t rows = section_rows(s), shown = s->limit ? MIN(rows, s->limit) : rows;

	for (size_t row = 0; row < shown; row++) {
		const struct cell *cells = s->cells.v + row * s->n_columns;

		for (size_t i = 0; i < s->n_columns; i++) {
			if (s->columns[i].flags & COLUMN_DATA_ONLY)
				continue;
			fputs("| ", out);
			if (markdown_cell(out, &cells[i], s->columns[i].flags))
				return -ENOMEM;
			putc(' ', out);
		}
		fputs("|\n", out);
	}
	if (shown < rows)
		fprintf(out, "\n… %zu more rows\n", rows - shown);
	return 0;
}

/* What the "-" in the rows stand for, each reason once. */
static int markdown_reasons(FILE *out, const struct section *s)
{
	size_t rows = section_rows(s), shown = s->limit ? MIN(rows, s->limit) : rows;
	CLEANUP(strbuf_release) struct strbuf said = {0}, line = {0}; /* none holds a newline */
	const char *before = "\n";

	strbuf_putc(&said, '\n');
	for (size_t i = 0; i < shown * s->n_columns; i++) {
		const struct cell *c = &s->cells.v[i];

		if (c->type != CELL_NULL || !c->text[0] ||
		    s->columns[i % s->n_columns].flags & COLUMN_DATA_ONLY)
			continue;
		strbuf_clear(&line);
		strbuf_printf(&line, "\n%s\n", c->text);
		if (line.failed || said.failed)
			return -ENOMEM;
		if (strstr(strbuf_str(&said), strbuf_str(&line)))
			continue;
		strbuf_puts(&said, strbuf_str(&line) + 1);
		fprintf(out, "%s- \"-\": ", before);
		if (markdown_text(out, c->text))
			return -ENOMEM;
		putc('\n', out);
		before = "";
	}
	return 0;
}

int result_markdown(const struct result *r, FILE *out)
{
	if (r->failed || markdown_facts(out, r))
		return -ENOMEM;
	for (size_t i = 0; i < r->sections.n; i++) {
		const struct section *s = &r->sections.v[i];

		if (!section_is_drawn(s, COLUMN_DATA_ONLY))
			continue;
		if (markdown_head(out, s) || markdown_rows(out, s) || markdown_reasons(out, s))
			return -ENOMEM;
	}
	return fflush(out) || ferror(out) ? -EIO : 0;
}
