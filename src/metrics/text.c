/* SPDX-License-Identifier: BSD-2-Clause */
/* Files of /proc and /sys as text: names, numbers, columns. */
#include "readings.h"

#include <inspect/procfs.h>
#include <stdarg.h>

static bool path_format(char *path, const char *root, const char *fmt, va_list args)
{
	int n = snprintf(path, PATH_SIZE, "%s", root);

	if (n < 0 || n >= PATH_SIZE)
		return false;
	n += vsnprintf(path + n, (size_t)(PATH_SIZE - n), fmt, args);
	return n < PATH_SIZE;
}

bool root_read(const char *root, struct strbuf *text, size_t max_bytes, const char *fmt, ...)
{
	char path[PATH_SIZE];
	va_list args;
	bool fits;

	va_start(args, fmt);
	fits = path_format(path, root, fmt, args);
	va_end(args);
	strbuf_clear(text);
	return fits && file_read(path, max_bytes, text) == 0;
}

double root_number(const char *root, const char *fmt, ...)
{
	CLEANUP(strbuf_release) struct strbuf text = {0};
	char path[PATH_SIZE];
	va_list args;
	bool fits;

	va_start(args, fmt);
	fits = path_format(path, root, fmt, args);
	va_end(args);
	if (!fits || file_read(path, 256, &text))
		return NAN;
	if (str_starts(strbuf_str(&text), "max"))
		return INFINITY;
	return line_number(strbuf_str(&text), 0);
}

double text_field(const char *text, const char *name)
{
	size_t n = strlen(name);

	for (const char *line = text; line && *line;) {
		if (strncmp(line, name, n) == 0 && strchr(" \t:", line[n]))
			return line_number(line + n + strspn(line + n, " \t:"), 0);
		line = strchr(line, '\n');
		line += line != NULL;
	}
	return NAN;
}

bool next_line(const char **at, char *buf, size_t size)
{
	size_t n = strcspn(*at, "\n");

	if (!**at)
		return false;
	snprintf(buf, size, "%.*s", (int)MIN(n, size - 1), *at);
	*at += n + ((*at)[n] == '\n');
	return true;
}

double line_number(const char *line, unsigned index)
{
	char *end;
	double v;

	line += strspn(line, " \t");
	for (; index; index--) {
		line += strcspn(line, " \t\n");
		line += strspn(line, " \t");
	}
	/* strtod alone would take "nan", "inf" and hexadecimal numbers. */
	if (!strchr("0123456789.-", *line) || !*line)
		return NAN;
	v = strtod(line, &end);
	return end == line || !isfinite(v) ? NAN : v;
}

double rate_of(double now, double before, double seconds)
{
	if (isnan(now) || isnan(before) || seconds <= 0)
		return NAN;
	return now > before ? (now - before) / seconds : 0;
}

double percent_of(double part, double whole)
{
	return whole > 0 ? 100 * part / whole : NAN;
}
