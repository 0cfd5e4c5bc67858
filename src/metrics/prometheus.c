/* SPDX-License-Identifier: BSD-2-Clause */
#include <inspect/prometheus.h>
#include <inspect/strbuf.h>
#include <math.h>

static bool is_name_char(char c, bool first)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == ':' ||
	       (!first && c >= '0' && c <= '9');
}

static const char *skip_spaces(const char *s, const char *end)
{
	while (s < end && (*s == ' ' || *s == '\t' || *s == '\r'))
		s++;
	return s;
}

static const char *skip_name(const char *s, const char *end)
{
	const char *begin = s;

	while (s < end && is_name_char(*s, s == begin))
		s++;
	return s;
}

/* Behind the closing brace, quotes respected; NULL when there is none on the line. */
static const char *skip_labels(const char *s, const char *end)
{
	bool quoted = false;

	for (; s < end; s++) {
		if (quoted && *s == '\\')
			s++;
		else if (*s == '"')
			quoted = !quoted;
		else if (!quoted && *s == '}')
			return s + 1;
	}
	return NULL;
}

/* A number, +Inf, -Inf or NaN; the line is not terminated. */
static bool parse_value(const char *s, const char *end, double *ret)
{
	char word[64], *rest;
	size_t n = 0;

	while (s + n < end && n < sizeof(word) - 1 && !strchr(" \t\r", s[n]))
		n++;
	if (!n || n == sizeof(word) - 1)
		return false;
	memcpy(word, s, n);
	word[n] = '\0';
	*ret = strtod(word, &rest);
	return !*rest;
}

static bool parse_line(const char *s, const char *end, struct prometheus_sample *ret)
{
	const char *at = skip_name(s, end);

	*ret = (struct prometheus_sample){.name = s, .name_bytes = (size_t)(at - s)};
	if (at == s)
		return false;
	at = skip_spaces(at, end);
	if (at < end && *at == '{') {
		ret->labels = at + 1;
		at = skip_labels(at + 1, end);
		if (!at)
			return false;
		ret->labels_bytes = (size_t)(at - 1 - ret->labels);
	}
	at = skip_spaces(at, end);
	return at < end && parse_value(at, end, &ret->v);
}

static int parse_text(const char *text, size_t n, prometheus_fn *fn, void *ctx)
{
	const char *end = text + n;
	int bad = 0, lines = 0;

	while (text < end) {
		const char *stop = memchr(text, '\n', (size_t)(end - text));
		const char *line = skip_spaces(text, stop ? stop : end);
		struct prometheus_sample s;

		if (++lines > PROMETHEUS_LINES_MAX)
			return -E2BIG;
		stop = stop ? stop : end;
		if (line < stop && *line != '#') {
			if (parse_line(line, stop, &s))
				fn(ctx, &s);
			else
				bad++;
		}
		text = stop + 1;
	}
	return bad;
}

/* What a JSON string holds, as far as metrics need it: \uXXXX becomes a question mark. */
static void unquote(const char *s, const char *end, struct strbuf *out)
{
	for (; s < end && *s != '"'; s++) {
		if (*s != '\\' || s + 1 == end) {
			strbuf_putc(out, *s);
			continue;
		}
		s++;
		strbuf_putc(out, *s == 'n' ? '\n' : *s == 't' ? '\t' : *s == 'u' ? '?' : *s);
	}
}

int prometheus_parse(const char *text, size_t n, prometheus_fn *fn, void *ctx)
{
	CLEANUP(strbuf_release) struct strbuf plain = {0};
	const char *begin = skip_spaces(text, text + n);

	if (begin == text + n || *begin != '"')
		return parse_text(text, n, fn, ctx);
	unquote(begin + 1, text + n, &plain);
	if (plain.failed)
		return -ENOMEM;
	return parse_text(strbuf_str(&plain), plain.n, fn, ctx);
}

bool prometheus_is_name(const struct prometheus_sample *s, const char *name)
{
	return strlen(name) == s->name_bytes && memcmp(name, s->name, s->name_bytes) == 0;
}

/* A value between its quotes; behind the closing one, or NULL. */
static const char *take_value(const char *s, const char *end, char *buf, size_t size)
{
	size_t n = 0;

	for (; s < end && *s != '"'; s++) {
		char c = *s;

		if (c == '\\' && s + 1 < end)
			c = *++s == 'n' ? '\n' : *s;
		if (n < size - 1)
			buf[n++] = c;
	}
	buf[n] = '\0';
	return s < end ? s + 1 : NULL;
}

bool prometheus_label(const struct prometheus_sample *s, const char *name, char *buf, size_t size)
{
	const char *at = s->labels, *end = at ? at + s->labels_bytes : NULL;

	while (at && at < end) {
		const char *key, *after;

		while (at < end && (*at == ',' || *at == ' '))
			at++;
		key = at;
		after = skip_name(at, end);
		at = skip_spaces(after, end);
		if (at == end || *at != '=')
			return false;
		at = skip_spaces(at + 1, end);
		if (at == end || *at != '"')
			return false;
		at = take_value(at + 1, end, buf, size);
		if (at && (size_t)(after - key) == strlen(name) &&
		    memcmp(key, name, strlen(name)) == 0)
			return true;
	}
	return false;
}
