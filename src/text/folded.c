/* SPDX-License-Identifier: BSD-2-Clause */
/* Folded stacks: `root;…;leaf N`, as stackcollapse-*.pl, inferno and `flame --folded` write. */
#include "text.h"

/* Fractions of a count are kept to this many digits. */
#define FRACTION_DIGITS_MAX 6U

static const uint64_t powers_of_ten[FRACTION_DIGITS_MAX + 1] = {1,     10,     100,    1000,
								10000, 100000, 1000000};

/* Takes `number` off the end of *text, and the blanks before it, which must be there. */
static bool take_number(struct span *text, struct span *ret_number)
{
	size_t n = text->n, end, points = 0, digits = 0;

	while (n && is_blank(text->s[n - 1]))
		n--;
	for (end = n; n && (is_digit(text->s[n - 1]) || text->s[n - 1] == '.'); n--) {
		points += text->s[n - 1] == '.';
		digits += text->s[n - 1] != '.';
	}
	if (!digits || points > 1 || text->s[n] == '.' || !n || !is_blank(text->s[n - 1]))
		return false;
	*ret_number = (struct span){text->s + n, end - n};
	while (n && is_blank(text->s[n - 1]))
		n--;
	text->n = n;
	return true;
}

bool folded_line_parse(struct span line, struct folded_line *ret)
{
	struct span stack = line, count, first;

	if (!take_number(&stack, &count) || !stack.n)
		return false;
	*ret = (struct folded_line){.stack = stack, .count = count};
	if (take_number(&stack, &first) && stack.n) {
		ret->is_differential = true;
		ret->stack = stack;
	}
	return true;
}

static bool is_comment(struct span line, const struct folded_line *parsed)
{
	return line.s[0] == '#' && (!parsed || !memchr(parsed->stack.s, ';', parsed->stack.n));
}

static struct span fraction_of(struct span count)
{
	const char *point = memchr(count.s, '.', count.n);
	struct span f = {count.s + count.n, 0};

	if (!point)
		return f;
	f.s = point + 1;
	f.n = (size_t)(count.s + count.n - f.s);
	while (f.n && f.s[f.n - 1] == '0')
		f.n--;
	return f;
}

/* The digits of fractions that the counts of this text need. */
static unsigned fraction_digits(const struct text_reader *r)
{
	struct text_reader ahead = {.at = r->at, .end = r->end};
	struct folded_line f;
	struct span line;
	size_t digits = 0;

	while (text_next_line(&ahead, &line))
		if (line.n && folded_line_parse(line, &f) && !is_comment(line, &f))
			digits = MAX(digits, fraction_of(f.count).n);
	return (unsigned)MIN(digits, (size_t)FRACTION_DIGITS_MAX);
}

/* The count in units of 10^-digits; false when it is too large. */
static bool count_value(struct span count, unsigned digits, uint64_t *ret)
{
	struct span fraction = fraction_of(count);
	uint64_t v = 0;
	size_t i;

	for (i = 0; i < count.n && is_digit(count.s[i]); i++) {
		v = v * 10 + (uint64_t)(count.s[i] - '0');
		if (v > TEXT_WEIGHT_MAX / powers_of_ten[FRACTION_DIGITS_MAX])
			return false;
	}
	for (i = 0; i < digits; i++)
		v = v * 10 + (i < fraction.n ? (uint64_t)(fraction.s[i] - '0') : 0);
	*ret = v;
	return true;
}

/* What stands behind a name, and names that are no functions. */
static const struct {
	const char *text;
	bool whole;
	enum frame_kind kind;
} frame_marks[] = {
	{"_[k]", false, FRAME_KERNEL},          {"_[j]", false, FRAME_JIT},
	{"_[i]", false, FRAME_INLINED},         {"_[w]", false, FRAME_SYNTHETIC},
	{"[truncated]", true, FRAME_SYNTHETIC}, {"--", true, FRAME_SYNTHETIC},
	{"-", true, FRAME_SYNTHETIC},
};

static int folded_frame_make(struct profile *p, struct span text, uint32_t *ret_frame)
{
	static const char cut[] = "[truncated: ";
	enum frame_kind kind = FRAME_NATIVE;

	for (size_t i = 0; i < ARRAY_SIZE(frame_marks); i++) {
		size_t n = strlen(frame_marks[i].text);
		bool fits = frame_marks[i].whole ? text.n == n : text.n > n;

		if (!fits || memcmp(text.s + text.n - n, frame_marks[i].text, n))
			continue;
		kind = frame_marks[i].kind;
		text.n -= frame_marks[i].whole ? 0 : n;
		break;
	}
	if (text.n > strlen(cut) && memcmp(text.s, cut, strlen(cut)) == 0)
		kind = FRAME_SYNTHETIC;
	return profile_named_frame(p, kind, text.s, text.n, "", 0, ret_frame);
}

/* Where the last frames begin, one more than are kept (so that the cut is seen). */
static const char *last_frames(struct span stack)
{
	size_t n = stack.n;

	for (unsigned i = 0; i <= TEXT_FRAMES_MAX && n; i++) {
		const char *semicolon = memrchr(stack.s, ';', n);

		n = semicolon ? (size_t)(semicolon - stack.s) : 0;
	}
	return stack.s + n;
}

/* Frames root first; what is empty between two `;` is no frame. */
static int push_frames(struct text_reader *r, struct span stack)
{
	const char *at = stack.n > TEXT_FRAMES_MAX ? last_frames(stack) : stack.s;
	const char *end = stack.s + stack.n;

	r->frames.n = 0;
	while (at < end) {
		const char *semicolon = memchr(at, ';', (size_t)(end - at));
		const char *stop = semicolon ? semicolon : end;
		struct span frame = {at, (size_t)(stop - at)};
		int err = frame.n ? text_push_frame(r, frame) : 0;

		if (err)
			return err;
		at = stop + 1;
	}
	return 0;
}

struct folded {
	uint32_t event, thread;
	unsigned digits;
	uint64_t differential_line; /* the first; 0 none */
};

static int read_line(struct text_reader *r, struct folded *f, struct span line)
{
	struct folded_line parsed;
	uint64_t weight;
	uint32_t stack;
	int err;

	if (!folded_line_parse(line, &parsed)) {
		if (!is_comment(line, NULL))
			text_bad_line(r);
		return 0;
	}
	if (is_comment(line, &parsed))
		return 0;
	if (!count_value(parsed.count, f->digits, &weight)) {
		text_bad_line(r);
		return 0;
	}
	err = push_frames(r, parsed.stack);
	if (err)
		return err;
	if (!r->frames.n) {
		text_bad_line(r);
		return 0;
	}
	if (parsed.is_differential && !f->differential_line)
		f->differential_line = r->line;
	err = text_take_stack(r, false, &stack);
	if (err || !weight)
		return err;
	err = text_add(r, stack, f->thread, f->event, weight, f->digits ? 1 : weight);
	if (err == -EOVERFLOW)
		text_bad_line(r);
	return err == -EOVERFLOW ? 0 : err;
}

static int add_notes(struct text_reader *r, const struct folded *f)
{
	int err = 0;

	if (f->digits)
		err = profile_note(r->p, "counts have fractions: weights are in units of 1/%llu",
				   (unsigned long long)powers_of_ten[f->digits]);
	if (!err && f->differential_line)
		err = profile_note(r->p,
				   "two counts on a line (first: line %llu): the second is used",
				   (unsigned long long)f->differential_line);
	return err;
}

int folded_read(struct text_reader *r)
{
	struct folded f = {.digits = fraction_digits(r)};
	struct span line;
	char unit[32] = "samples";
	int err;

	if (f.digits)
		snprintf(unit, sizeof(unit), "1/%llu", (unsigned long long)powers_of_ten[f.digits]);
	r->make_frame = folded_frame_make;
	err = profile_add_event(r->p, "samples", unit, &f.event);
	if (!err)
		err = profile_thread(r->p, 0, 0, "", 0, &f.thread);
	while (!err && text_next_line(r, &line)) {
		while (line.n && is_blank(line.s[line.n - 1]))
			line.n--;
		if (line.n)
			err = read_line(r, &f, line);
	}
	return err ? err : add_notes(r, &f);
}
