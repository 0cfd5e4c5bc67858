/* SPDX-License-Identifier: BSD-2-Clause */
#include <inspect/options.h>
#include <inspect/strbuf.h>
#include <inspect/term.h>

/* Where the help texts begin; an option too wide for it has its text on the next line. */
#define HELP_COLUMN 26

static void option_spelling(const struct option *o, struct strbuf *out)
{
	strbuf_puts(out, "  ");
	if (o->letter)
		strbuf_printf(out, "-%c", o->letter);
	else
		strbuf_puts(out, "  ");
	if (*o->name)
		strbuf_printf(out, "%s --%s", o->letter ? "," : " ", o->name);
	if (o->arg)
		strbuf_printf(out, " %s", o->arg);
}

static void option_help(const struct option *o, unsigned columns, FILE *out)
{
	/* One space less than HELP_COLUMN: each word brings the one before it. */
	static const char margin[HELP_COLUMN] = {[0 ... HELP_COLUMN - 2] = ' '};
	CLEANUP(strbuf_release) struct strbuf left = {0}, text = {0};
	unsigned width;

	option_spelling(o, &left);
	width = term_columns(strbuf_str(&left));
	fputs(strbuf_str(&left), out);
	if (width + 2 > HELP_COLUMN) {
		fputc('\n', out);
		width = 0;
	}
	term_wrap(&text, o->help, columns, HELP_COLUMN, margin);
	fprintf(out, "%*s%s\n", (int)(HELP_COLUMN - width), "", strbuf_str(&text));
}

static bool is_listed(const struct option *o)
{
	return o->help && o->type != OPTION_REJECTED && o->type != OPTION_IGNORED;
}

void options_help(const struct option_binding *bindings, size_t n_bindings, FILE *out)
{
	unsigned columns = term_width(fileno(out));

	for (size_t i = 0; i < n_bindings; i++) {
		const struct option_group *group = bindings[i].group;
		bool titled = false;

		for (const struct option *o = group->options; o->name; o++) {
			if (!is_listed(o))
				continue;
			if (!titled)
				fprintf(out, "\n%s:\n", group->title);
			titled = true;
			option_help(o, columns, out);
		}
	}
}
