/* SPDX-License-Identifier: BSD-2-Clause */
#include <inspect/result.h>
#include <stdarg.h>

void result_init(struct result *r, const char *schema)
{
	*r = (struct result){.schema = schema};
}

void result_release(struct result *r)
{
	for (size_t i = 0; i < r->sections.n; i++)
		array_release(&r->sections.v[i].cells);
	array_release(&r->sections);
	array_release(&r->facts);
	array_release(&r->notes);
	arena_release(&r->arena);
}

static const char *result_copy(struct result *r, const char *s, size_t n)
{
	const char *copy = arena_strndup(&r->arena, s, n);

	if (copy)
		return copy;
	r->failed = true;
	return "";
}

static const char *result_vtext(struct result *r, const char *fmt, va_list args)
{
	CLEANUP(freep) char *text = NULL;
	int n = vasprintf(&text, fmt, args);

	if (n < 0) {
		text = NULL; /* undefined after a failure */
		r->failed = true;
		return "";
	}
	return result_copy(r, text, (size_t)n);
}

const char *result_text(struct result *r, const char *fmt, ...)
{
	const char *text;
	va_list args;

	va_start(args, fmt);
	text = result_vtext(r, fmt, args);
	va_end(args);
	return text;
}

void result_note(struct result *r, const char *fmt, ...)
{
	const char *text;
	va_list args;

	va_start(args, fmt);
	text = result_vtext(r, fmt, args);
	va_end(args);
	if (array_push(&r->notes, text))
		r->failed = true;
}

void result_fact(struct result *r, const char *key, const char *label, struct cell value)
{
	if (array_push(&r->facts, (struct fact){.key = key, .label = label, .value = value}))
		r->failed = true;
}

size_t result_section(struct result *r, const char *key, const char *title,
		      const struct column *columns, size_t n_columns)
{
	struct section s = {
		.key = key,
		.title = result_copy(r, title, strlen(title)),
		.columns = columns,
		.n_columns = n_columns,
		.more = "",
	};

	if (array_push(&r->sections, s))
		r->failed = true;
	return r->sections.n ? r->sections.n - 1 : 0;
}

void result_row(struct result *r, size_t section, const struct cell *cells)
{
	struct section *s;

	if (r->failed)
		return; /* the section itself may be missing */
	s = &r->sections.v[section];
	if (array_reserve(&s->cells, s->cells.n + s->n_columns)) {
		r->failed = true;
		return;
	}
	memcpy(s->cells.v + s->cells.n, cells, s->n_columns * sizeof(*cells));
	s->cells.n += s->n_columns;
}

struct cell cell_text(struct result *r, const char *s)
{
	return (struct cell){.type = CELL_TEXT, .text = result_copy(r, s, strlen(s))};
}

struct cell cell_null(struct result *r, const char *reason)
{
	return (struct cell){.type = CELL_NULL, .text = result_copy(r, reason, strlen(reason))};
}
