/* SPDX-License-Identifier: BSD-2-Clause */
/* The groups as a table, before their stacks push it off the screen. */
#include "stack_page.h"

#include <inspect/clock.h>
#include <inspect/term.h>

enum { ROWS_SHOWN = 20, WHO_COLUMNS_MAX = 24, WIDTH_DEFAULT = 100 };

/* A row's cells but the last, which gets what is left of the line. */
struct row {
	struct strbuf cells[3]; /* who, state, for how long */
};

static const char *const titles[] = {"who", "state", "for"};

static const char *short_state(const struct task_state *t)
{
	static const struct {
		char letter;
		const char *words;
	} states[] = {
		{'S', "waits"},    {'D', "waits in D"}, {'T', "stopped"}, {'t', "traced"},
		{'Z', "a zombie"}, {'X', "has ended"},  {'I', "idle"},    {'P', "parked"},
	};

	if (t->frozen && strchr("SD", t->state))
		return "frozen";
	for (size_t i = 0; i < ARRAY_SIZE(states); i++)
		if (t->state == states[i].letter)
			return states[i].words;
	return t->on_cpu ? "runs" : "wants a CPU";
}

static void fill(const struct stack_page *p, const struct snapshot_group *g, struct row *row)
{
	CLEANUP(strbuf_release) struct strbuf who = {0};
	const struct snapshot_thread *t = stack_thread_at(p->s, g->first);

	if (g->n == 1)
		stack_put_thread(&who, t);
	else
		strbuf_printf(&who, "%zu threads", g->n);
	term_cut_middle(&row->cells[0], strbuf_str(&who), WHO_COLUMNS_MAX,
			p->page.ascii ? "..." : "…");
	strbuf_puts(&row->cells[1], short_state(&t->task));
	if (!t->task.on_cpu && t->task.state != 'I')
		stack_put_times(&row->cells[2], p->s, g);
}

static void put_cell(struct strbuf *line, const char *text, unsigned columns)
{
	unsigned used = term_columns(text);

	strbuf_printf(line, "%s%*s  ", text, used < columns ? (int)(columns - used) : 0, "");
}

static void put_row(struct stack_page *p, const struct snapshot_group *g, size_t number,
		    const struct row *row, const unsigned *columns)
{
	const struct snapshot_thread *t = stack_thread_at(p->s, g->first);
	unsigned width = p->page.width ? MAX(p->page.width, (unsigned)FRAME_WIDTH_LEAST)
				       : (unsigned)WIDTH_DEFAULT;
	CLEANUP(strbuf_release) struct strbuf wait = {0};
	unsigned used;

	strbuf_printf(&p->page.line, "%3zu  ", number);
	for (size_t i = 0; i < ARRAY_SIZE(row->cells); i++)
		put_cell(&p->page.line, strbuf_str(&row->cells[i]), columns[i]);
	used = term_columns(strbuf_str(&p->page.line));
	stack_put_wait(&wait, p->s, g, true);
	if (used < width)
		term_cut_middle(&p->page.line, strbuf_str(&wait), width - used,
				p->page.ascii ? "..." : "…");
	while (p->page.line.n && p->page.line.v[p->page.line.n - 1] == ' ')
		p->page.line.v[--p->page.line.n] = 0;
	frame_page_flush(&p->page, true, t->cycle ? "31" : NULL);
}

/* One group needs no table. */
void stack_summary(struct stack_page *p)
{
	const struct snapshot *s = p->s;
	size_t shown = p->style->all ? s->groups.n : MIN(s->groups.n, (size_t)ROWS_SHOWN);
	struct row *rows = s->groups.n > 1 ? calloc(shown, sizeof(*rows)) : NULL;
	unsigned columns[ARRAY_SIZE(titles)];

	if (s->groups.n < 2)
		return;
	if (!rows) {
		p->page.failed = true;
		return;
	}
	for (size_t c = 0; c < ARRAY_SIZE(titles); c++)
		columns[c] = term_columns(titles[c]);
	for (size_t i = 0; i < shown; i++) {
		fill(p, &s->groups.v[i], &rows[i]);
		for (size_t c = 0; c < ARRAY_SIZE(titles); c++)
			columns[c] = MAX(columns[c], term_columns(strbuf_str(&rows[i].cells[c])));
	}
	frame_page_flush(&p->page, false, NULL);
	strbuf_puts(&p->page.line, "  #  ");
	for (size_t c = 0; c < ARRAY_SIZE(titles); c++)
		put_cell(&p->page.line, titles[c], columns[c]);
	strbuf_puts(&p->page.line, "in");
	frame_page_flush(&p->page, true, "1");
	for (size_t i = 0; i < shown; i++) {
		put_row(p, &s->groups.v[i], i + 1, &rows[i], columns);
		for (size_t c = 0; c < ARRAY_SIZE(titles); c++)
			strbuf_release(&rows[i].cells[c]);
	}
	if (shown < s->groups.n) {
		strbuf_printf(&p->page.line, "%s %zu more groups: --all",
			      p->page.ascii ? "..." : "…", s->groups.n - shown);
		frame_page_flush(&p->page, false, NULL);
	}
	free(rows);
}
