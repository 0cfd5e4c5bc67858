/* SPDX-License-Identifier: BSD-2-Clause */
#include "utf8.h"
#include <inspect/term.h>
#include <sys/ioctl.h>

#define WIDTH_MAX 10000

static bool env_is_set(const char *name)
{
	const char *v = getenv(name);

	return v && *v;
}

bool term_use_color(enum color_mode mode, int fd)
{
	const char *clicolor = getenv("CLICOLOR"), *force = getenv("CLICOLOR_FORCE");
	const char *term = getenv("TERM");

	if (mode != COLOR_AUTO)
		return mode == COLOR_ALWAYS;
	if (env_is_set("NO_COLOR"))
		return false;
	if (force && *force && !str_eq(force, "0"))
		return true;
	if (clicolor && str_eq(clicolor, "0"))
		return false;
	return isatty(fd) && term && *term && !str_eq(term, "dumb");
}

unsigned term_width(int fd)
{
	const char *columns = getenv("COLUMNS");
	struct winsize size = {0};
	char *end;
	long n;

	if (ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col)
		return MIN(size.ws_col, WIDTH_MAX);
	if (!columns || !*columns)
		return 0;
	n = strtol(columns, &end, 10);
	return *end || n <= 0 || n > WIDTH_MAX ? 0 : (unsigned)n;
}

unsigned term_height(int fd)
{
	struct winsize size = {0};

	return ioctl(fd, TIOCGWINSZ, &size) == 0 ? size.ws_row : 0;
}

static void escape_point(struct strbuf *out, uint32_t point)
{
	if (point == '\n')
		strbuf_puts(out, "\\n");
	else if (point == '\t')
		strbuf_puts(out, "\\t");
	else if (point < 0x80)
		strbuf_printf(out, "\\x%02x", point);
	else
		strbuf_printf(out, "\\u{%04x}", point);
}

void term_escape(struct strbuf *out, const char *s, size_t n)
{
	size_t start = 0;

	for (size_t i = 0; i < n;) {
		uint32_t point = 0;
		size_t length = utf8_decode(s + i, n - i, &point);

		if (length && !utf8_is_control(point)) {
			i += length;
			continue;
		}
		strbuf_add(out, s + start, i - start);
		if (length)
			escape_point(out, point);
		else
			strbuf_printf(out, "\\x%02x", (unsigned char)s[i]);
		i += MAX(length, (size_t)1);
		start = i;
	}
	strbuf_add(out, s + start, n - start);
}

struct range {
	uint32_t first, last;
};

/* Blocks of characters that add no column: combining marks, joiners, variation selectors. */
static const struct range zero_width[] = {
	{0x0300, 0x036f}, {0x0483, 0x0489}, {0x0591, 0x05bd}, {0x0610, 0x061a},   {0x064b, 0x065f},
	{0x0670, 0x0670}, {0x06d6, 0x06dc}, {0x0900, 0x0902}, {0x093c, 0x093c},   {0x0941, 0x0948},
	{0x094d, 0x094d}, {0x0e31, 0x0e31}, {0x0e34, 0x0e3a}, {0x0e47, 0x0e4e},   {0x1ab0, 0x1ace},
	{0x1dc0, 0x1dff}, {0x200b, 0x200f}, {0x20d0, 0x20f0}, {0x302a, 0x302d},   {0x3099, 0x309a},
	{0xfe00, 0xfe0f}, {0xfe20, 0xfe2f}, {0xfeff, 0xfeff}, {0xe0100, 0xe01ef},
};

/* Blocks that Unicode's East Asian Width calls W or F, and the emoji. */
static const struct range double_width[] = {
	{0x1100, 0x115f},   {0x231a, 0x231b},   {0x2329, 0x232a},   {0x23e9, 0x23ec},
	{0x2e80, 0x303e},   {0x3041, 0x3247},   {0x3250, 0x4dbf},   {0x4e00, 0xa4c6},
	{0xa960, 0xa97c},   {0xac00, 0xd7a3},   {0xf900, 0xfaff},   {0xfe10, 0xfe19},
	{0xfe30, 0xfe6b},   {0xff01, 0xff60},   {0xffe0, 0xffe6},   {0x1b000, 0x1b122},
	{0x1f300, 0x1f320}, {0x1f32d, 0x1f335}, {0x1f337, 0x1f37c}, {0x1f37e, 0x1f393},
	{0x1f3a0, 0x1f3ca}, {0x1f3e0, 0x1f3f0}, {0x1f3f8, 0x1f43e}, {0x1f440, 0x1f440},
	{0x1f442, 0x1f4fc}, {0x1f4ff, 0x1f53d}, {0x1f5fb, 0x1f64f}, {0x1f680, 0x1f6c5},
	{0x1f90c, 0x1f9ff}, {0x1fa70, 0x1faff}, {0x20000, 0x3fffd},
};

static bool in_ranges(const struct range *ranges, size_t n, uint32_t point)
{
	for (size_t i = 0; i < n && ranges[i].first <= point; i++)
		if (point <= ranges[i].last)
			return true;
	return false;
}

static unsigned point_columns(uint32_t point)
{
	if (point < 0x300)
		return 1;
	if (in_ranges(zero_width, ARRAY_SIZE(zero_width), point))
		return 0;
	return in_ranges(double_width, ARRAY_SIZE(double_width), point) ? 2 : 1;
}

/* Steps over one character (an invalid byte is one), giving its columns. */
static size_t step(const char *s, size_t n, unsigned *ret_columns)
{
	uint32_t point = '?';
	size_t length = utf8_decode(s, n, &point);

	*ret_columns = point_columns(point);
	return MAX(length, (size_t)1);
}

unsigned term_columns(const char *s)
{
	size_t n = strlen(s);
	unsigned columns, total = 0;

	for (size_t i = 0; i < n; total += columns)
		i += step(s + i, n - i, &columns);
	return total;
}

bool term_is_utf8(void)
{
	static const char *const names[] = {"LC_ALL", "LC_CTYPE", "LANG"};

	/* setlocale would know installed locales alone, of which containers have none. */
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		const char *v = getenv(names[i]);

		if (v && *v)
			return strcasestr(v, "UTF-8") || strcasestr(v, "UTF8");
	}
	return false;
}

static const struct {
	const char *sign, *ascii;
} signs[] = {
	{"…", "..."}, {"├─", "|-"}, {"└─", "`-"}, {"│", "|"},  {"→", "->"},
	{"·", "|"},   {"±", "+/-"}, {"µ", "u"},   {"≤", "<="}, {"≥", ">="},
};

void term_ascii(struct strbuf *out, const char *s)
{
	while (*s) {
		size_t n = strcspn(s, "\xc2\xe2"), i = 0; /* what the signs begin with */

		strbuf_add(out, s, n);
		s += n;
		while (*s && i < ARRAY_SIZE(signs) && !str_starts(s, signs[i].sign))
			i++;
		if (*s && i < ARRAY_SIZE(signs)) {
			strbuf_puts(out, signs[i].ascii);
			s += strlen(signs[i].sign);
		} else if (*s) {
			strbuf_putc(out, *s++);
		}
	}
}

void term_cut_middle(struct strbuf *out, const char *s, unsigned width, const char *dots)
{
	unsigned dots_width = term_columns(dots), total = term_columns(s), columns, done = 0, left;
	size_t n = strlen(s), i = 0, next;

	if (!width || total <= width) {
		strbuf_add(out, s, n);
		return;
	}
	width = MAX(width, dots_width);
	left = (width - dots_width) / 2;
	for (; i < n; i = next, done += columns) {
		next = i + step(s + i, n - i, &columns);
		if (done + columns > left)
			break;
	}
	strbuf_add(out, s, i);
	strbuf_puts(out, dots);
	/* The end gets what is left: it is the part of a name that tells most. Marks without a
	 * column belong to the character before, which is cut with them. */
	width -= done + dots_width;
	while (i < n) {
		next = i + step(s + i, n - i, &columns);
		if (columns && total - done <= width)
			break;
		i = next;
		done += columns;
	}
	strbuf_add(out, s + i, n - i);
}

/* Bytes of the next word with the spaces before it. A command behind an arrow is one word where it
 * fits into a line of its own, so that it can be copied. */
static size_t word_size(const char *at, unsigned columns)
{
	size_t n = strspn(at, " ");
	bool arrow = str_starts(at + n, "→ ") || str_starts(at + n, "-> ");

	return arrow && term_columns(at + n) <= columns ? strlen(at) : n + strcspn(at + n, " ");
}

size_t term_wrap(struct strbuf *out, const char *s, unsigned width, unsigned used,
		 const char *prefix)
{
	CLEANUP(strbuf_release) struct strbuf word = {0}; /* with the spaces before it */
	unsigned columns, margin = term_columns(prefix);
	size_t lines = 1;

	for (const char *at = s; *at; at += word.n) {
		strbuf_clear(&word);
		strbuf_add(&word, at, word_size(at, width > margin + 1 ? width - margin - 1 : 0));
		if (word.failed) {
			out->failed = true;
			break;
		}
		columns = term_columns(strbuf_str(&word));
		if (width && at > s && used > margin && used + columns > width) {
			strbuf_printf(out, "\n%s", prefix);
			used = margin;
			lines++;
		}
		strbuf_puts(out, strbuf_str(&word));
		used += columns;
	}
	return lines;
}
