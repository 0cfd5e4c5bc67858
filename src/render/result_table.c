/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The table for people: `#` lines with facts and notes, then each section in aligned columns. Rows
 * are formatted twice, once to measure and once to print, instead of being kept.
 */
#include "result_cell.h"
#include <inspect/render.h>
#include <inspect/term.h>
#include <limits.h>

enum {
	ROWS_MIN = 5,      /* whatever the terminal */
	LINES_AROUND = 5,  /* a blank line, title, heading, "more", and the prompt */
	REASON_ROWS = 3,   /* that are named with a reason */
	NAME_COLUMNS = 40, /* of each of them */
	BLOCK_WIDTH = 100, /* of paragraphs where no terminal says how wide */
};

#define CUT_COLUMNS_MIN 12U  /* the cut column stays this wide, whatever the terminal */
#define CUT_COLUMNS_GOOD 24U /* before it is narrower spare columns go */

static const char separator[] = "  ";

struct table {
	const struct section *section;
	const struct table_options *options;
	FILE *out;
	struct strbuf text, cut; /* of the cell at hand */
	unsigned *widths;        /* by column */
	bool *drawn;             /* by column */
	size_t rows;             /* shown */
	size_t last;             /* column that ends the line */
};

static void table_release(struct table *t)
{
	strbuf_release(&t->text);
	strbuf_release(&t->cut);
	free(t->widths);
	free(t->drawn);
}

static bool column_is_drawn(const struct column *c)
{
	return !(c->flags & COLUMN_DATA_ONLY);
}

static const struct cell *table_cell(const struct table *t, size_t row, size_t column)
{
	return &t->section->cells.v[row * t->section->n_columns + column];
}

static void spell(struct strbuf *text, const struct table_options *o)
{
	struct strbuf ascii = {0};

	if (!o->ascii)
		return;
	term_ascii(&ascii, strbuf_str(text));
	ascii.failed |= text->failed;
	strbuf_release(text);
	*text = ascii;
}

/* Titles are ours but for what they quote: escaped as any text. */
static const char *table_title(struct table *t, size_t column)
{
	const char *title = t->section->columns[column].title;

	strbuf_clear(&t->text);
	term_escape(&t->text, title, strlen(title));
	spell(&t->text, t->options);
	return strbuf_str(&t->text);
}

static const char *table_text(struct table *t, size_t row, size_t column)
{
	strbuf_clear(&t->text);
	cell_show(&t->text, table_cell(t, row, column), t->section->columns[column].flags);
	spell(&t->text, t->options);
	return strbuf_str(&t->text);
}

static int table_measure(struct table *t)
{
	const struct section *s = t->section;

	t->widths = calloc(s->n_columns, sizeof(*t->widths));
	t->drawn = calloc(s->n_columns, sizeof(*t->drawn));
	if (!t->widths || !t->drawn)
		return -ENOMEM;
	for (size_t i = 0; i < s->n_columns; i++) {
		t->drawn[i] = column_is_drawn(&s->columns[i]);
		if (!t->drawn[i])
			continue;
		t->last = i;
		t->widths[i] = term_columns(table_title(t, i));
		for (size_t row = 0; row < t->rows; row++)
			t->widths[i] = MAX(t->widths[i], term_columns(table_text(t, row, i)));
	}
	return 0;
}

/* Of all columns with what is between them; the one that may be cut has `cut_max` at most. */
static uint64_t table_width(const struct table *t, unsigned cut_max)
{
	uint64_t total = 0;

	for (size_t i = 0; i < t->section->n_columns; i++) {
		bool is_cut = t->section->columns[i].flags & COLUMN_CUT;

		if (t->drawn[i])
			total += (is_cut ? MIN(t->widths[i], cut_max) : t->widths[i]) +
				 (i == t->last ? 0 : sizeof(separator) - 1);
	}
	return total;
}

/* Leaves spare columns out until the others have room. */
static void table_drop(struct table *t)
{
	for (size_t i = t->section->n_columns;
	     i-- > 0 && table_width(t, CUT_COLUMNS_GOOD) > t->options->width;)
		if (t->section->columns[i].flags & COLUMN_SPARE)
			t->drawn[i] = false;
	for (size_t i = 0; i < t->section->n_columns; i++)
		if (t->drawn[i])
			t->last = i;
}

/* Takes what is too wide from the column that may be cut. */
static void table_fit(struct table *t)
{
	uint64_t others;

	if (!t->options->width)
		return;
	table_drop(t);
	if (table_width(t, UINT_MAX) <= t->options->width)
		return;
	others = table_width(t, 0);
	for (size_t i = 0; i < t->section->n_columns; i++)
		if (t->section->columns[i].flags & COLUMN_CUT)
			t->widths[i] = others + CUT_COLUMNS_MIN > t->options->width
					       ? MIN(t->widths[i], CUT_COLUMNS_MIN)
					       : t->options->width - (unsigned)others;
}

static void table_pad(const struct table *t, unsigned used, size_t column)
{
	for (; used < t->widths[column]; used++)
		putc(' ', t->out);
}

/* The text at hand in its column, with what separates it from the next. */
static void table_put(struct table *t, size_t column)
{
	const struct column *c = &t->section->columns[column];
	const char *text;
	unsigned used;

	strbuf_clear(&t->cut);
	term_cut_middle(&t->cut, strbuf_str(&t->text),
			c->flags & COLUMN_CUT ? t->widths[column] : 0,
			t->options->ascii ? "..." : "…");
	text = strbuf_str(&t->cut);
	used = term_columns(text);
	if (!column_is_text(c))
		table_pad(t, used, column);
	fputs(text, t->out);
	if (column == t->last)
		return;
	if (column_is_text(c))
		table_pad(t, used, column);
	fputs(separator, t->out);
}

static int table_print(struct table *t)
{
	const struct section *s = t->section;

	if (t->options->color)
		fputs("\033[1m", t->out);
	for (size_t i = 0; i < s->n_columns; i++) {
		if (!t->drawn[i])
			continue;
		table_title(t, i);
		table_put(t, i);
	}
	fputs(t->options->color ? "\033[0m\n" : "\n", t->out);
	for (size_t row = 0; row < t->rows; row++) {
		for (size_t i = 0; i < s->n_columns; i++) {
			if (!t->drawn[i])
				continue;
			table_text(t, row, i);
			table_put(t, i);
		}
		putc('\n', t->out);
	}
	return t->text.failed || t->cut.failed ? -ENOMEM : 0;
}

/* How a line that is broken between words begins, and those that it goes on in. */
struct margin {
	const char *first, *next;
};

/* The line, which is safe for a terminal, broken when it is wider than `width` (0: never). The
 * number of lines. */
static size_t put_lines(FILE *out, struct strbuf *line, unsigned width, struct margin margin,
			const struct table_options *o)
{
	CLEANUP(strbuf_release) struct strbuf wrapped = {0};
	size_t lines;

	spell(line, o);
	lines = term_wrap(&wrapped, strbuf_str(line), width, term_columns(margin.first),
			  margin.next);
	fprintf(out, "%s%s\n", margin.first, strbuf_str(&wrapped));
	line->failed |= wrapped.failed;
	return lines;
}

static size_t put_wrapped(FILE *out, struct strbuf *line, const struct table_options *o)
{
	return put_lines(out, line, o->width, (struct margin){"# ", "#  "}, o);
}

static size_t put_line(FILE *out, struct strbuf *text, const struct table_options *o, const char *s)
{
	strbuf_clear(text);
	term_escape(text, s, strlen(s));
	return put_wrapped(out, text, o);
}

/* What a wider terminal would show. */
static void table_left_out(struct table *t)
{
	CLEANUP(strbuf_release) struct strbuf line = {0};

	for (size_t i = 0; i < t->section->n_columns; i++) {
		const struct column *c = &t->section->columns[i];

		if (!(c->flags & COLUMN_SPARE) || t->drawn[i] || !column_is_drawn(c))
			continue;
		strbuf_printf(&line, "%s%s",
			      line.n ? ", " : "note: columns left out for the width: ", c->title);
		if (t->section->sum_first && c->type == CELL_PERCENT) {
			strbuf_putc(&line, ' ');
			cell_show(&line, table_cell(t, 0, i), c->flags);
		}
	}
	if (!line.n)
		return;
	strbuf_puts(&line, " (--json has all)");
	put_line(t->out, &t->text, t->options, strbuf_str(&line));
}

/* The first text of the rows; n_columns: they have none. */
static size_t name_column(const struct table *t)
{
	size_t i = 0;

	while (i < t->section->n_columns &&
	       (!t->drawn[i] || !column_is_text(&t->section->columns[i])))
		i++;
	return i;
}

static bool lacks_for(const struct table *t, size_t row, const char *reason)
{
	for (size_t i = 0; i < t->section->n_columns; i++) {
		const struct cell *c = table_cell(t, row, i);

		if (t->drawn[i] && c->type == CELL_NULL && str_eq(c->text, reason))
			return true;
	}
	return false;
}

/* `note: "-" of GPU, engine: REASON`, the rows from the first one on that has it. */
static void put_reason(struct table *t, size_t first, const char *reason)
{
	CLEANUP(strbuf_release) struct strbuf line = {0};
	size_t n = 0, name = name_column(t);

	strbuf_puts(&line, "note: \"-\"");
	for (size_t row = first; row < t->rows && name < t->section->n_columns; row++) {
		if (!lacks_for(t, row, reason) || n++ >= REASON_ROWS)
			continue;
		strbuf_puts(&line, n > 1 ? ", " : " of ");
		strbuf_clear(&t->text);
		cell_show(&t->text, table_cell(t, row, name), 0);
		term_cut_middle(&line, strbuf_str(&t->text), NAME_COLUMNS, "…");
	}
	if (n > REASON_ROWS)
		strbuf_printf(&line, " and %zu more", n - REASON_ROWS);
	strbuf_puts(&line, ": ");
	term_escape(&line, reason, strlen(reason));
	t->text.failed |= line.failed;
	put_wrapped(t->out, &line, t->options);
}

/* What the "-" in the rows shown stand for, each reason once. */
static int table_reasons(struct table *t)
{
	CLEANUP(strbuf_release) struct strbuf said = {0}; /* "\nREASON\n…": none holds a newline */
	size_t n_cells = t->rows * t->section->n_columns;

	strbuf_putc(&said, '\n');
	for (size_t i = 0; i < n_cells; i++) {
		const struct cell *c = &t->section->cells.v[i];

		if (c->type != CELL_NULL || !c->text[0] || !t->drawn[i % t->section->n_columns])
			continue;
		strbuf_clear(&t->text);
		strbuf_putc(&t->text, '\n');
		term_escape(&t->text, c->text, strlen(c->text));
		strbuf_putc(&t->text, '\n');
		if (t->text.failed || said.failed)
			return -ENOMEM;
		if (strstr(strbuf_str(&said), strbuf_str(&t->text)))
			continue;
		strbuf_puts(&said, strbuf_str(&t->text) + 1);
		put_reason(t, i / t->section->n_columns, c->text);
	}
	return 0;
}

/* --- paragraphs ------------------------------------------------------------------------------- */

/* The name with what is short. */
static void put_block_name(struct table *t, size_t row, unsigned width)
{
	CLEANUP(strbuf_release) struct strbuf line = {0};
	const struct column *columns = t->section->columns;

	strbuf_puts(&line, table_text(t, row, 0));
	for (size_t i = 1; i < t->section->n_columns; i++)
		if (!column_is_text(&columns[i]) && table_cell(t, row, i)->type != CELL_NULL)
			strbuf_printf(&line, "  %s %s", columns[i].title, table_text(t, row, i));
	fputs(t->options->color ? "\033[1m" : "", t->out);
	put_lines(t->out, &line, width, (struct margin){"", "   "}, t->options);
	fputs(t->options->color ? "\033[0m" : "", t->out);
	t->text.failed |= line.failed;
}

/* Then a line for each text, behind its column's title. A column without one is the title of the
 * next; rows of one name are one paragraph then. */
static void put_block(struct table *t, size_t row)
{
	CLEANUP(strbuf_release) struct strbuf line = {0};
	const struct column *columns = t->section->columns;
	unsigned width = t->options->width ? t->options->width : BLOCK_WIDTH;
	bool has_own_titles = !columns[1].title[0];

	if (!has_own_titles || !row ||
	    !str_eq(table_cell(t, row, 0)->text, table_cell(t, row - 1, 0)->text))
		put_block_name(t, row, width);
	for (size_t i = 1; i < t->section->n_columns; i++) {
		if (!column_is_text(&columns[i]) || !*table_text(t, row, i))
			continue;
		if (!columns[i].title[0]) {
			strbuf_printf(&line, "%s: ", table_text(t, row, i));
			continue;
		}
		if (!line.n)
			strbuf_printf(&line, "%s: ", columns[i].title);
		strbuf_puts(&line, table_text(t, row, i));
		put_lines(t->out, &line, width, (struct margin){"    ", "     "}, t->options);
		t->text.failed |= line.failed;
		strbuf_clear(&line);
	}
	t->text.failed |= line.failed;
}

static int table_blocks(struct table *t)
{
	for (size_t row = 0; row < t->rows; row++)
		put_block(t, row);
	return t->text.failed ? -ENOMEM : 0;
}

/* Rows that are shown: `lines` are left on the terminal, 0 none known. */
static size_t rows_shown(const struct section *s, const struct table_options *o, size_t lines)
{
	size_t rows = section_rows(s), limit = s->limit;

	if (!limit || o->all)
		return rows;
	if (s->fits && lines)
		limit = MIN(limit, lines > ROWS_MIN + LINES_AROUND ? lines - LINES_AROUND
								   : (size_t)ROWS_MIN);
	return MIN(rows, limit);
}

static int table_section(const struct section *s, const struct table_options *o, size_t lines,
			 FILE *out)
{
	CLEANUP(table_release) struct table t = {.section = s, .options = o, .out = out};
	size_t rows = section_rows(s);

	t.rows = rows_shown(s, o, lines);
	if (s->title[0])
		put_line(out, &t.text, o, s->title);
	if (!rows) {
		fputs("# (nothing to show)\n", out);
		return t.text.failed ? -ENOMEM : 0;
	}
	if (table_measure(&t))
		return -ENOMEM;
	if (s->blocks)
		return table_blocks(&t);
	table_fit(&t);
	if (table_print(&t))
		return -ENOMEM;
	strbuf_clear(&t.text);
	term_escape(&t.text, s->more, strlen(s->more)); /* may quote a file's name */
	if (t.rows < rows)
		fprintf(out, "%s %zu more rows%s%s\n", o->ascii ? "..." : "…", rows - t.rows,
			s->more[0] ? ": " : "", strbuf_str(&t.text));
	table_left_out(&t);
	return table_reasons(&t);
}

static int table_facts(const struct result *r, const struct table_options *o, size_t *lines,
		       FILE *out)
{
	CLEANUP(strbuf_release) struct strbuf text = {0}, line = {0};

	for (size_t i = 0; i < r->facts.n; i++) {
		const struct fact *f = &r->facts.v[i];

		if (!f->label[0])
			continue;
		strbuf_clear(&text);
		cell_show(&text, &f->value, 0);
		if (f->value.type == CELL_NULL && f->value.text[0]) {
			strbuf_puts(&text, " (");
			term_escape(&text, f->value.text, strlen(f->value.text));
			strbuf_putc(&text, ')');
		}
		strbuf_clear(&line);
		strbuf_printf(&line, "%s: %s", f->label, strbuf_str(&text));
		*lines += put_wrapped(out, &line, o);
	}
	for (size_t i = 0; i < r->notes.n; i++) {
		strbuf_clear(&line);
		strbuf_printf(&line, "note: %s", r->notes.v[i]);
		*lines += put_line(out, &text, o, strbuf_str(&line));
	}
	return text.failed || line.failed ? -ENOMEM : 0;
}

int result_table(const struct result *r, const struct table_options *o, FILE *out)
{
	bool blank = r->facts.n || r->notes.n;
	size_t lines = 0, drawn = 0, left = 0;

	if (r->failed || table_facts(r, o, &lines, out))
		return -ENOMEM;
	for (size_t i = 0; i < r->sections.n; i++)
		drawn += section_is_drawn(&r->sections.v[i], COLUMN_DATA_ONLY);
	if (o->height)
		left = o->height > lines
			       ? MAX((o->height - lines) / MAX(drawn, (size_t)1), (size_t)1)
			       : 1;
	for (size_t i = 0; i < r->sections.n; i++) {
		if (!section_is_drawn(&r->sections.v[i], COLUMN_DATA_ONLY))
			continue;
		if (blank)
			putc('\n', out);
		blank = true;
		if (table_section(&r->sections.v[i], o, left, out))
			return -ENOMEM;
	}
	return fflush(out) || ferror(out) ? -EIO : 0;
}
