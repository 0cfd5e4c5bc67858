/* SPDX-License-Identifier: BSD-2-Clause */
#include "frame_page.h"

#include <inspect/term.h>

enum { NAME_COLUMNS_MAX = 50 };

void frame_page_escape(struct strbuf *b, const char *text)
{
	term_escape(b, text, strlen(text));
}

void frame_page_flush(struct frame_page *p, bool cut, const char *color)
{
	CLEANUP(strbuf_release) struct strbuf fit = {0}, ascii = {0};
	const char *text = strbuf_str(&p->line);

	p->failed |= p->line.failed;
	if (p->ascii) {
		term_ascii(&ascii, text);
		text = strbuf_str(&ascii);
	}
	if (cut && p->width) {
		term_cut_middle(&fit, text, p->width, p->ascii ? "..." : "…");
		text = strbuf_str(&fit);
	}
	p->failed |= fit.failed | ascii.failed;
	if (p->color && color)
		fprintf(p->out, "\033[%sm%s\033[0m\n", color, text);
	else
		fprintf(p->out, "%s\n", text);
	strbuf_clear(&p->line);
}

static const char *name_of(const struct profile *profile, const struct symbol_at *at)
{
	return intern_str(&profile->strings, profile->symbols.v[at->symbol].name);
}

static bool is_kernel(const struct profile *profile, const struct symbol_at *at)
{
	return profile->symbols.v[at->symbol].kind == FRAME_KERNEL;
}

/* How every system call begins, and every wait ends. */
static bool says_nothing(const char *name)
{
	static const char *const names[] = {"entry_SYSCALL_64_after_hwframe",
					    "do_syscall_64",
					    "el0t_64_sync",
					    "el0t_64_sync_handler",
					    "el0_svc",
					    "do_el0_svc",
					    "el0_svc_common.constprop.0",
					    "invoke_syscall",
					    "invoke_syscall.constprop.0",
					    "__schedule",
					    "schedule"};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (str_eq(name, names[i]))
			return true;
	return name[0] == '[';
}

void frame_page_kernel(struct frame_page *p, const struct profile *profile,
		       const struct symbol_path *path, size_t n)
{
	unsigned width = p->width ? MAX(p->width, (unsigned)FRAME_WIDTH_LEAST) : 100;
	bool any = false;

	for (size_t i = n; i > 0; i--) {
		const struct symbol_at *at = &path->at.v[i - 1];
		CLEANUP(strbuf_release) struct strbuf name = {0};

		if (!is_kernel(profile, at) || says_nothing(name_of(profile, at)))
			continue;
		frame_page_escape(&name, name_of(profile, at));
		if (!any)
			strbuf_printf(&p->line, "%*skernel ", FRAME_INDENT, "");
		else if (term_columns(strbuf_str(&p->line)) + name.n + 3 > width) {
			frame_page_flush(p, false, "2");
			strbuf_printf(&p->line, "%*s       ", FRAME_INDENT, "");
		}
		strbuf_printf(&p->line, "%s%s", any ? " < " : " ", strbuf_str(&name));
		any = true;
	}
	if (any)
		frame_page_flush(p, true, "2");
}

static void add_place(struct strbuf *b, const struct profile *profile, const struct symbol_at *at)
{
	const struct intern *strings = &profile->strings;
	const struct symbol *symbol = &profile->symbols.v[at->symbol];
	const char *file = intern_str(strings, at->file);
	const char *slash = strrchr(file, '/');

	if (at->file && at->line) {
		frame_page_escape(b, slash ? slash + 1 : file);
		strbuf_printf(b, ":%u", at->line);
	} else {
		frame_page_escape(b, intern_str(strings, symbol->module));
	}
	if (symbol->kind == FRAME_INLINED)
		strbuf_puts(b, " (inlined)");
}

static unsigned name_columns(const struct frame_page *p, const struct profile *profile,
			     const struct symbol_path *path, size_t n)
{
	unsigned most = 0, limit = NAME_COLUMNS_MAX;

	for (size_t i = 0; i < n; i++)
		if (!is_kernel(profile, &path->at.v[i]))
			most = MAX(most, term_columns(name_of(profile, &path->at.v[i])));
	if (p->width)
		limit = MAX(p->width, (unsigned)FRAME_WIDTH_LEAST) / 2;
	return MIN(most, limit);
}

static void print_frame(struct frame_page *p, const struct profile *profile,
			const struct symbol_at *at, unsigned columns)
{
	CLEANUP(strbuf_release) struct strbuf name = {0}, place = {0};
	unsigned used;

	frame_page_escape(&name, name_of(profile, at));
	add_place(&place, profile, at);
	strbuf_printf(&p->line, "%*s", FRAME_INDENT, "");
	/* Long names take the place of what stands beside them. */
	if (place.n && p->width)
		term_cut_middle(&p->line, strbuf_str(&name),
				MAX(p->width, (unsigned)FRAME_WIDTH_LEAST) - FRAME_INDENT - 3 -
					MIN(term_columns(strbuf_str(&place)), 24u),
				p->ascii ? "..." : "…");
	else
		strbuf_puts(&p->line, strbuf_str(&name));
	used = term_columns(strbuf_str(&p->line)) - FRAME_INDENT;
	if (place.n)
		strbuf_printf(&p->line, "%*s  %s", used < columns ? (int)(columns - used) : 0, "",
			      strbuf_str(&place));
	frame_page_flush(p, true, NULL);
}

void frame_page_user(struct frame_page *p, const struct profile *profile,
		     const struct symbol_path *path, size_t n, size_t limit)
{
	unsigned columns = name_columns(p, profile, path, n);
	size_t shown = 0, more = 0;

	for (size_t i = n; i > 0; i--) {
		if (is_kernel(profile, &path->at.v[i - 1]))
			continue;
		if (shown++ < limit)
			print_frame(p, profile, &path->at.v[i - 1], columns);
		else
			more++;
	}
	if (!more)
		return;
	strbuf_printf(&p->line, "%*s%s %zu more: --all", FRAME_INDENT, "", p->ascii ? "..." : "…",
		      more);
	frame_page_flush(p, false, NULL);
}
