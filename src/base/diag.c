/* SPDX-License-Identifier: BSD-2-Clause */
#include <inspect/diag.h>
#include <inspect/json_out.h>
#include <inspect/term.h>
#include <stdarg.h>

void diag_release(struct diag *d)
{
	free(d->what);
	free(d->why);
	free(d->fix);
	*d = (struct diag){0};
}

/* Whether the failure is the first, and so is to be recorded. */
static bool diag_begin(struct diag *d, int err)
{
	if (!d || !err)
		return false;
	if (d->err) {
		d->closed = true;
		return false;
	}
	d->err = err;
	return true;
}

int diag_set(struct diag *d, int err, const char *fmt, ...)
{
	va_list args;

	if (!diag_begin(d, err))
		return err;
	va_start(args, fmt);
	if (vasprintf(&d->what, fmt, args) < 0)
		d->what = NULL;
	va_end(args);
	return err;
}

int diag_errno(struct diag *d, int err, const char *fmt, ...)
{
	CLEANUP(freep) char *what = NULL;
	va_list args;
	int n;

	if (!diag_begin(d, err))
		return err;
	va_start(args, fmt);
	n = vasprintf(&what, fmt, args);
	va_end(args);
	if (n < 0)
		what = NULL;
	else if (asprintf(&d->what, "%s: %s", what, strerror(-err)) < 0)
		d->what = NULL;
	return err;
}

/* Appends to *text after the separator; *text is unchanged when memory is out. */
static void append(char **text, const char *separator, const char *more)
{
	char *joined;

	if (asprintf(&joined, "%s%s%s", *text ? *text : "", *text ? separator : "", more) < 0)
		return;
	free(*text);
	*text = joined;
}

void diag_why(struct diag *d, const char *fmt, ...)
{
	CLEANUP(freep) char *why = NULL;
	va_list args;
	int n;

	if (!d || !d->err || d->closed)
		return;
	va_start(args, fmt);
	n = vasprintf(&why, fmt, args);
	va_end(args);
	if (n < 0)
		why = NULL;
	else
		append(&d->why, "; ", why);
}

void diag_fix(struct diag *d, const char *fmt, ...)
{
	CLEANUP(strbuf_release) struct strbuf line = {0};
	CLEANUP(freep) char *fix = NULL;
	va_list args;
	int n;

	if (!d || !d->err || d->closed)
		return;
	va_start(args, fmt);
	n = vasprintf(&fix, fmt, args);
	va_end(args);
	if (n < 0) {
		fix = NULL;
		return;
	}
	/* One call, one line: a name with a newline in it must not begin another suggestion. */
	term_escape(&line, fix, strlen(fix));
	if (!line.failed)
		append(&d->fix, "\n", strbuf_str(&line));
}

static const char *diag_what(const struct diag *d)
{
	return d->what ? d->what : strerror(-d->err);
}

static void print_line(FILE *file, const char *prefix, const char *s, size_t n)
{
	CLEANUP(strbuf_release) struct strbuf line = {0}, ascii = {0};

	term_escape(&line, s, n);
	if (!term_is_utf8())
		term_ascii(&ascii, strbuf_str(&line));
	fprintf(file, "%s%s\n", prefix, strbuf_str(term_is_utf8() ? &line : &ascii));
}

void diag_print(const struct diag *d, const char *command, FILE *file)
{
	const char *prefix = "  fix: ";

	if (!d || !d->err)
		return;
	fprintf(file, "inspect%s%s", command ? " " : "", command ? command : "");
	print_line(file, ": ", diag_what(d), strlen(diag_what(d)));
	if (d->why)
		print_line(file, "  why: ", d->why, strlen(d->why));
	for (const char *s = d->fix; s && *s;) {
		size_t n = strcspn(s, "\n");

		print_line(file, prefix, s, n);
		prefix = "   or: ";
		s += n + (s[n] == '\n');
	}
}

void diag_print_json(const struct diag *d, const char *command, FILE *file)
{
	struct json_out j;

	if (!d || !d->err)
		return;
	json_init(&j, file, true);
	json_object(&j);
	json_key(&j, "schema");
	json_string(&j, "inspect.error/1");
	json_key(&j, "command");
	if (command)
		json_string(&j, command);
	else
		json_null(&j);
	json_key(&j, "error");
	json_string(&j, diag_what(d));
	json_key(&j, "why");
	if (d->why)
		json_string(&j, d->why);
	else
		json_null(&j);
	json_key(&j, "fix");
	json_array(&j);
	for (const char *s = d->fix; s && *s;) {
		size_t n = strcspn(s, "\n");

		json_string_n(&j, s, n);
		s += n + (s[n] == '\n');
	}
	json_end_array(&j);
	json_key(&j, "errno");
	json_i64(&j, -(int64_t)d->err);
	json_end_object(&j);
	json_finish(&j);
}
