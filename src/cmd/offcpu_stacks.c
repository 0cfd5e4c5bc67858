/* SPDX-License-Identifier: BSD-2-Clause */
/* The stacks of the longest waits, as data, and for people. */
#include "frame_page.h"
#include "offcpu_view.h"

#include <inspect/term.h>

enum { FRAMES_SHOWN = 12 };

static const struct column frame_columns[] = {
	{"wait", "#", CELL_COUNT, COLUMN_DATA_ONLY},
	{"frame", "frame", CELL_COUNT, COLUMN_DATA_ONLY},
	{"kind", "kind", CELL_TEXT, COLUMN_DATA_ONLY},
	{"function", "function", CELL_TEXT, COLUMN_CUT},
	{"module", "module", CELL_TEXT, 0},
	{"file", "file", CELL_TEXT, COLUMN_DATA_ONLY},
	{"line", "line", CELL_COUNT, COLUMN_DATA_ONLY},
};

static const char *name_at(const struct profile *p, const struct symbol_path *path, size_t i)
{
	return intern_str(&p->strings, p->symbols.v[path->at.v[i].symbol].name);
}

static bool is_waker(const struct profile *p, const struct symbol_path *path, size_t i)
{
	return str_starts(name_at(p, path, i), "[woken by ");
}

/* Of a path, root first, without the wakers' part behind what is waited for (--wakers). */
static size_t own_frames(const struct profile *p, const struct symbol_path *path)
{
	for (size_t i = 0; i < path->at.n; i++)
		if (is_waker(p, path, i))
			return i;
	return path->at.n;
}

int offcpu_put_stack(struct result *r, const struct offcpu_view *v, uint32_t stack, size_t number,
		     const char *title, struct symbol_path *path)
{
	const struct profile *p = v->recording->profile;
	const struct profile_row row = {.stack = stack};
	size_t section, n;
	int err;

	if (stack == UINT32_MAX)
		return 0;
	err = profile_row_path(p, &row, path);
	if (err)
		return err;
	section = result_section(r, "stacks", result_text(r, "#%zu %s", number, title),
				 frame_columns, ARRAY_SIZE(frame_columns));
	n = own_frames(p, path);
	for (size_t i = n; i > 0; i--) {
		const struct symbol_at *at = &path->at.v[i - 1];
		const struct symbol *symbol = &p->symbols.v[at->symbol];
		const struct cell cells[] = {
			cell_u64(CELL_COUNT, number),
			cell_u64(CELL_COUNT, n - i),
			cell_text(r, frame_kind_name(symbol->kind)),
			cell_text(r, intern_str(&p->strings, symbol->name)),
			cell_text(r, symbol->module ? intern_str(&p->strings, symbol->module) : ""),
			at->file ? cell_text(r, intern_str(&p->strings, at->file))
				 : cell_null(r, "no line information"),
			at->line ? cell_u64(CELL_COUNT, at->line)
				 : cell_null(r, "no line information"),
		};

		result_row(r, section, cells);
	}
	if (!r->failed)
		r->sections.v[section].limit = v->all ? 0 : FRAMES_SHOWN;
	return 0;
}

int offcpu_add_stacks(struct result *r, const struct offcpu_view *v)
{
	struct symbol_path path = {0};
	size_t shown = 0;
	int err = 0;

	for (size_t i = 0; i < v->groups->n && shown < v->stacks && !err; i++) {
		const struct wait_site *s = &v->groups->v[i].sum;

		shown += s->stack != UINT32_MAX;
		err = offcpu_put_stack(r, v, s->stack, i + 1, v->waits->labels.v[s->label].text,
				       &path);
	}
	array_release(&path.at);
	return err;
}

/* --- for people ------------------------------------------------------------------------------- */

/* "woken by feeder: write < feed < main", one line for each link of the chain behind the first n
 * frames. One chain of several: who woke whom differs from wait to wait. */
static void print_wakers(struct frame_page *p, const struct profile *profile,
			 const struct symbol_path *path, size_t n)
{
	bool any = false;

	for (size_t i = n; i < path->at.n; i++) {
		const struct symbol *symbol = &profile->symbols.v[path->at.v[i].symbol];
		const char *name = name_at(profile, path, i);

		if (is_waker(profile, path, i)) {
			if (i > n)
				frame_page_flush(p, true, "36");
			strbuf_printf(&p->line, "%*s", FRAME_INDENT, "");
			term_escape(&p->line, name + 1, strlen(name) - 2); /* without brackets */
			any = false;
		} else if (symbol->kind != FRAME_KERNEL) {
			strbuf_puts(&p->line, any ? " < " : ": ");
			frame_page_escape(&p->line, name);
			any = true;
		}
	}
	if (path->at.n > n)
		frame_page_flush(p, true, "36");
}

static int print_stack(struct frame_page *p, struct result *r, const struct offcpu_view *v,
		       const struct wait_group *g, size_t number, struct symbol_path *path)
{
	const struct profile *profile = v->recording->profile;
	const struct profile_row row = {.stack = g->sum.stack};
	const char *waker = offcpu_top_waker(r, v->waits, g);
	int err = profile_row_path(profile, &row, path);
	size_t n;

	if (err)
		return err;
	n = own_frames(profile, path);
	frame_page_flush(p, false, NULL);
	strbuf_printf(&p->line, "#%zu ", number);
	frame_page_escape(&p->line, offcpu_group_text(r, v->waits, g));
	frame_page_flush(p, true, "1");
	if (*waker) {
		strbuf_printf(&p->line, "%*swoken by ", FRAME_INDENT, "");
		frame_page_escape(&p->line, waker);
		frame_page_flush(p, true, "36");
	}
	frame_page_kernel(p, profile, path, n);
	frame_page_user(p, profile, path, n, v->all ? SIZE_MAX : FRAMES_SHOWN);
	print_wakers(p, profile, path, n);
	return p->failed ? -ENOMEM : 0;
}

int offcpu_print_stacks(struct result *r, const struct offcpu_view *v,
			const struct table_options *o, FILE *out)
{
	struct frame_page p = {.out = out, .width = o->width, .color = o->color, .ascii = o->ascii};
	struct symbol_path path = {0};
	size_t shown = 0;
	int err = 0;

	for (size_t i = 0; i < v->groups->n && shown < v->stacks && !err; i++) {
		if (v->groups->v[i].sum.stack == UINT32_MAX)
			continue;
		shown++;
		err = print_stack(&p, r, v, &v->groups->v[i], i + 1, &path);
	}
	if (!err && v->with_loops)
		err = offcpu_print_gap_stacks(&p, r, v);
	array_release(&path.at);
	strbuf_release(&p.line);
	return err;
}
