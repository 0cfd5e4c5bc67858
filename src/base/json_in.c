/* SPDX-License-Identifier: BSD-2-Clause */
#include <inspect/json_in.h>
#include <inspect/strbuf.h>
#include <math.h>

#define VALUES_MAX (8U << 20)

struct parser {
	const char *at, *end;
	const char *name;
	struct arena *arena;
	size_t line, values;
	struct diag *d;
};

static int bad(struct parser *p, const char *what)
{
	return diag_set(p->d, -EBADMSG, "%s: line %zu: %s", p->name, p->line, what);
}

static int no_memory(struct parser *p)
{
	return diag_errno(p->d, -ENOMEM, "%s", p->name);
}

static void skip_space(struct parser *p)
{
	for (; p->at < p->end && memchr(" \t\r\n", *p->at, 4); p->at++)
		p->line += *p->at == '\n';
}

static bool take(struct parser *p, char c)
{
	if (p->at == p->end || *p->at != c)
		return false;
	p->at++;
	return true;
}

/* --- strings ---------------------------------------------------------------------------------- */

static int parse_hex4(struct parser *p, uint32_t *ret)
{
	uint32_t v = 0;

	for (int i = 0; i < 4; i++) {
		static const char digits[] = "0123456789abcdef";
		const char *found;

		if (p->at == p->end)
			return bad(p, "the text ends in an escape");
		found = memchr(digits, *p->at >= 'A' && *p->at <= 'F' ? *p->at + 32 : *p->at, 16);
		if (!found)
			return bad(p, "\\u needs four hexadecimal digits");
		v = v << 4 | (uint32_t)(found - digits);
		p->at++;
	}
	*ret = v;
	return 0;
}

static char *put_utf8(char *to, uint32_t point)
{
	if (point < 0x80) {
		*to++ = (char)point;
	} else if (point < 0x800) {
		*to++ = (char)(0xc0 | point >> 6);
		*to++ = (char)(0x80 | (point & 0x3f));
	} else if (point < 0x10000) {
		*to++ = (char)(0xe0 | point >> 12);
		*to++ = (char)(0x80 | (point >> 6 & 0x3f));
		*to++ = (char)(0x80 | (point & 0x3f));
	} else {
		*to++ = (char)(0xf0 | point >> 18);
		*to++ = (char)(0x80 | (point >> 12 & 0x3f));
		*to++ = (char)(0x80 | (point >> 6 & 0x3f));
		*to++ = (char)(0x80 | (point & 0x3f));
	}
	return to;
}

static int parse_unicode(struct parser *p, char **to)
{
	uint32_t high, low;
	int err = parse_hex4(p, &high);

	if (err)
		return err;
	if (!high)
		return bad(p, "a string with \\u0000");
	if (high >= 0xd800 && high < 0xdc00) {
		if (!take(p, '\\') || !take(p, 'u'))
			return bad(p, "half of a surrogate pair");
		err = parse_hex4(p, &low);
		if (err)
			return err;
		if (low < 0xdc00 || low > 0xdfff)
			return bad(p, "half of a surrogate pair");
		high = 0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00);
	} else if (high >= 0xdc00 && high < 0xe000) {
		return bad(p, "half of a surrogate pair");
	}
	*to = put_utf8(*to, high);
	return 0;
}

static int parse_escape(struct parser *p, char **to)
{
	static const char from[] = "\"\\/bfnrt", into[] = "\"\\/\b\f\n\r\t";
	const char *found;

	if (p->at == p->end)
		return bad(p, "the text ends in a string");
	if (*p->at == 'u') {
		p->at++;
		return parse_unicode(p, to);
	}
	found = memchr(from, *p->at, sizeof(from) - 1);
	if (!found)
		return bad(p, "an unknown escape in a string");
	*(*to)++ = into[found - from];
	p->at++;
	return 0;
}

/* Behind the opening quote. An escape is never longer than its text, so the rest bounds it. */
static int parse_string(struct parser *p, const char **ret)
{
	const char *close = p->at;
	char *text, *to;

	while (close < p->end && *close != '"')
		close += 1 + (*close == '\\' && close + 1 < p->end);
	if (close >= p->end)
		return bad(p, "the text ends in a string");
	to = text = arena_alloc(p->arena, (size_t)(close - p->at) + 1);
	if (!text)
		return no_memory(p);
	while (*p->at != '"') {
		int err = 0;

		if ((unsigned char)*p->at < 0x20)
			return bad(p, "a control character in a string");
		if (*p->at != '\\') {
			*to++ = *p->at++;
			continue;
		}
		p->at++;
		err = parse_escape(p, &to);
		if (err)
			return err;
	}
	p->at++;
	*to = '\0';
	*ret = text;
	return 0;
}

/* --- values ----------------------------------------------------------------------------------- */

static size_t digits_at(const struct parser *p, size_t from)
{
	size_t n = 0;

	while (p->at + from + n < p->end && p->at[from + n] >= '0' && p->at[from + n] <= '9')
		n++;
	return n;
}

static bool has_at(const struct parser *p, size_t i, char a, char b)
{
	return p->at + i < p->end && (p->at[i] == a || p->at[i] == b);
}

static int parse_number(struct parser *p, double *ret)
{
	char buf[64];
	size_t n = has_at(p, 0, '-', '-'), digits = digits_at(p, n);

	if (!digits || (digits > 1 && p->at[n] == '0'))
		return bad(p, "not a value");
	n += digits;
	if (has_at(p, n, '.', '.')) {
		digits = digits_at(p, n + 1);
		if (!digits)
			return bad(p, "a number ends in its point");
		n += 1 + digits;
	}
	if (has_at(p, n, 'e', 'E')) {
		size_t sign = has_at(p, n + 1, '+', '-');

		digits = digits_at(p, n + 1 + sign);
		if (!digits)
			return bad(p, "a number ends in its exponent");
		n += 1 + sign + digits;
	}
	if (n >= sizeof(buf))
		return bad(p, "a number of more than 63 characters");
	memcpy(buf, p->at, n);
	buf[n] = '\0';
	*ret = strtod(buf, NULL);
	if (!isfinite(*ret))
		return bad(p, "a number that is too large");
	p->at += n;
	return 0;
}

static int parse_word(struct parser *p, struct json *v)
{
	static const struct {
		const char *word;
		struct json value;
	} words[] = {{"null", {.type = JSON_NULL}},
		     {"true", {.type = JSON_BOOL, .b = true}},
		     {"false", {.type = JSON_BOOL}}};

	for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
		size_t n = strlen(words[i].word);

		if ((size_t)(p->end - p->at) < n || memcmp(p->at, words[i].word, n) != 0)
			continue;
		v->type = words[i].value.type;
		v->b = words[i].value.b;
		p->at += n;
		return 0;
	}
	v->type = JSON_NUMBER;
	return parse_number(p, &v->number);
}

static int parse_value(struct parser *p, int depth, struct json *v);

static int parse_key(struct parser *p, struct json *member)
{
	int err;

	skip_space(p);
	if (!take(p, '"'))
		return bad(p, "a member begins with its name in quotes");
	err = parse_string(p, &member->key);
	if (err)
		return err;
	skip_space(p);
	return take(p, ':') ? 0 : bad(p, "':' is missing after the name of a member");
}

/* Behind the opening bracket. */
static int parse_children(struct parser *p, int depth, struct json *v, char close)
{
	const struct json **link = &v->first;

	if (depth >= JSON_DEPTH_MAX)
		return bad(p, "nested too deeply");
	skip_space(p);
	if (take(p, close))
		return 0;
	do {
		struct json *child = arena_alloc(p->arena, sizeof(*child));
		int err;

		if (!child)
			return no_memory(p);
		if (++p->values > VALUES_MAX)
			return diag_set(p->d, -E2BIG, "%s: too many values", p->name);
		*child = (struct json){0};
		err = v->type == JSON_OBJECT ? parse_key(p, child) : 0;
		if (!err)
			err = parse_value(p, depth + 1, child);
		if (err)
			return err;
		*link = child;
		link = &child->next;
		skip_space(p);
	} while (take(p, ','));
	if (take(p, close))
		return 0;
	return bad(p, close == '}' ? "',' or '}' is missing" : "',' or ']' is missing");
}

static int parse_value(struct parser *p, int depth, struct json *v)
{
	skip_space(p);
	if (take(p, '{')) {
		v->type = JSON_OBJECT;
		return parse_children(p, depth, v, '}');
	}
	if (take(p, '[')) {
		v->type = JSON_ARRAY;
		return parse_children(p, depth, v, ']');
	}
	if (take(p, '"')) {
		v->type = JSON_STRING;
		return parse_string(p, &v->string);
	}
	return parse_word(p, v);
}

int json_parse(const char *text, size_t n, const char *name, struct arena *arena,
	       const struct json **ret, struct diag *d)
{
	struct parser p = {
		.at = text, .end = text + n, .name = name, .arena = arena, .line = 1, .d = d};
	struct json *v = arena_alloc(arena, sizeof(*v));
	int err;

	if (!v)
		return no_memory(&p);
	*v = (struct json){0};
	err = parse_value(&p, 0, v);
	skip_space(&p);
	if (!err && p.at != p.end)
		err = bad(&p, "something follows the value");
	if (!err)
		*ret = v;
	return err;
}

/* A pipe is as good as a file: the user named it. */
static int read_all(FILE *file, struct strbuf *ret)
{
	char buf[16384];
	size_t n;

	while ((n = fread(buf, 1, sizeof(buf), file)) > 0) {
		if (n > JSON_BYTES_MAX - ret->n)
			return -EFBIG;
		strbuf_add(ret, buf, n);
	}
	if (ferror(file))
		return errno ? -errno : -EIO;
	return ret->failed ? -ENOMEM : 0;
}

int json_read(const char *path, struct arena *arena, const struct json **ret, struct diag *d)
{
	CLEANUP(strbuf_release) struct strbuf text = {0};
	CLEANUP(fclosep) FILE *file = fopen(path, "re");
	int err = file ? read_all(file, &text) : -errno;

	if (err)
		return diag_errno(d, err, "cannot read %s", path);
	return json_parse(strbuf_str(&text), text.n, path, arena, ret, d);
}

const struct json *json_find(const struct json *object, const char *key)
{
	if (!object || object->type != JSON_OBJECT)
		return NULL;
	for (const struct json *member = object->first; member; member = member->next)
		if (str_eq(member->key, key))
			return member;
	return NULL;
}

const char *json_find_string(const struct json *object, const char *key)
{
	const struct json *member = json_find(object, key);

	return member && member->type == JSON_STRING ? member->string : NULL;
}
