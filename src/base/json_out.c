/* SPDX-License-Identifier: BSD-2-Clause */
#include "utf8.h"
#include <float.h>
#include <inspect/json_out.h>
#include <locale.h>
#include <math.h>

void json_init(struct json_out *j, FILE *file, bool compact)
{
	*j = (struct json_out){.file = file, .compact = compact};
}

static void json_newline(struct json_out *j)
{
	if (j->compact)
		return;
	putc_unlocked('\n', j->file);
	for (int i = 0; i < j->depth; i++)
		fputs("  ", j->file);
}

/* What stands before a value or a key. */
static void json_separate(struct json_out *j)
{
	if (j->after_key) {
		j->after_key = false;
		return;
	}
	if (j->needs_comma)
		putc_unlocked(',', j->file);
	if (j->depth)
		json_newline(j);
}

static void json_open(struct json_out *j, char bracket)
{
	json_separate(j);
	putc_unlocked(bracket, j->file);
	j->depth++;
	j->needs_comma = false;
}

static void json_close(struct json_out *j, char bracket)
{
	bool had_items = j->needs_comma;

	j->depth--;
	if (had_items)
		json_newline(j);
	putc_unlocked(bracket, j->file);
	j->needs_comma = true;
}

void json_object(struct json_out *j)
{
	json_open(j, '{');
}

void json_end_object(struct json_out *j)
{
	json_close(j, '}');
}

void json_array(struct json_out *j)
{
	json_open(j, '[');
}

void json_end_array(struct json_out *j)
{
	json_close(j, ']');
}

void json_key(struct json_out *j, const char *key)
{
	json_separate(j);
	json_write_escaped(j->file, key, strlen(key));
	fputs(j->compact ? ":" : ": ", j->file);
	j->after_key = true;
}

void json_string(struct json_out *j, const char *s)
{
	json_string_n(j, s, strlen(s));
}

void json_string_n(struct json_out *j, const char *s, size_t n)
{
	json_separate(j);
	json_write_escaped(j->file, s, n);
	j->needs_comma = true;
}

static void json_literal(struct json_out *j, const char *text)
{
	json_separate(j);
	fputs(text, j->file);
	j->needs_comma = true;
}

void json_u64(struct json_out *j, uint64_t v)
{
	char buf[24];

	snprintf(buf, sizeof(buf), "%llu", (unsigned long long)v);
	json_literal(j, buf);
}

void json_i64(struct json_out *j, int64_t v)
{
	char buf[24];

	snprintf(buf, sizeof(buf), "%lld", (long long)v);
	json_literal(j, buf);
}

/* Puts '.' where the locale has its decimal point, which may be several bytes. */
static void undo_locale(char *number)
{
	const char *point = localeconv()->decimal_point;
	char *found = strstr(number, point);

	if (!found || str_eq(point, "."))
		return;
	*found = '.';
	memmove(found + 1, found + strlen(point), strlen(found + strlen(point)) + 1);
}

void json_double(struct json_out *j, double v)
{
	char buf[40];
	/* Up to 15 digits always read back as written; subnormal numbers have fewer. */
	int digits = fabs(v) < DBL_MIN ? 1 : DBL_DIG;

	if (!isfinite(v)) {
		json_null(j);
		return;
	}
	do
		snprintf(buf, sizeof(buf), "%.*g", digits, v);
	while (digits++ < DBL_DECIMAL_DIG && strtod(buf, NULL) != v);
	undo_locale(buf);
	json_literal(j, buf);
}

void json_bool(struct json_out *j, bool v)
{
	json_literal(j, v ? "true" : "false");
}

void json_null(struct json_out *j)
{
	json_literal(j, "null");
}

int json_finish(struct json_out *j)
{
	putc_unlocked('\n', j->file);
	j->needs_comma = false;
	return fflush(j->file) || ferror(j->file) ? -EIO : 0;
}

static void write_escape(FILE *file, uint32_t point)
{
	static const char letters[] = "\"\"\\\\\nn\tt\rr";

	for (size_t i = 0; letters[i]; i += 2) {
		if ((uint32_t)letters[i] == point) {
			putc_unlocked('\\', file);
			putc_unlocked(letters[i + 1], file);
			return;
		}
	}
	fprintf(file, "\\u%04x", point);
}

/* What would end a CDATA section, a script or a comment around the text is escaped as well:
 * `]]>`, `</`, `<!`. */
static bool ends_its_container(const char *s, size_t i, size_t n)
{
	if (s[i] == '>')
		return i >= 1 && (s[i - 1] == ']' || s[i - 1] == '-');
	return s[i] == '<' && i + 1 < n && (s[i + 1] == '/' || s[i + 1] == '!');
}

void json_write_escaped(FILE *file, const char *s, size_t n)
{
	size_t start = 0;

	putc_unlocked('"', file);
	for (size_t i = 0; i < n;) {
		uint32_t point = 0xfffd;
		size_t length = utf8_decode(s + i, n - i, &point);
		bool plain = length && point != '"' && point != '\\' && point != 0xfffe &&
			     point != 0xffff && !utf8_is_control(point) &&
			     !ends_its_container(s, i, n);

		if (plain) {
			i += length;
			continue;
		}
		fwrite(s + start, 1, i - start, file);
		if (length)
			write_escape(file, point);
		else
			fputs("\xef\xbf\xbd", file); /* U+FFFD */
		i += MAX(length, (size_t)1);
		start = i;
	}
	fwrite(s + start, 1, n - start, file);
	putc_unlocked('"', file);
}
