/* SPDX-License-Identifier: BSD-2-Clause */
#include "text.h"
#include "utf16.h"

/* How many lines may be neither before one decides. */
#define GUESS_LINES 200U

static bool is_frame_line(struct span line)
{
	struct span tail;

	return line.n && is_blank(line.s[0]) && frame_line_split(line, &tail);
}

/* `next` is the line after it: "java 123" is a sample's header if frames follow. */
static enum text_format guess_line(struct span line, struct span next)
{
	struct sample_header header;
	struct folded_line folded;
	bool is_header = sample_header_parse(line, &header);

	if (is_header && header.is_sure)
		return TEXT_PERF_SCRIPT;
	if (line.s[0] == '#' || is_blank(line.s[0]))
		return TEXT_UNKNOWN;
	if (is_header && is_frame_line(next))
		return TEXT_PERF_SCRIPT;
	return folded_line_parse(line, &folded) ? TEXT_FOLDED : TEXT_UNKNOWN;
}

static enum text_format guess_utf8(const char *s, size_t n)
{
	struct text_reader r = {.at = s, .end = s + n};
	struct span line = {s, 0}, next;
	enum text_format format = TEXT_UNKNOWN;
	bool more = text_next_line(&r, &line);

	while (more && format == TEXT_UNKNOWN && r.line <= GUESS_LINES) {
		next = (struct span){r.end, 0};
		more = text_next_line(&r, &next);
		if (line.n)
			format = guess_line(line, next);
		line = next;
	}
	/* One line longer than what was given: only a folded stack is so long. */
	if (format == TEXT_UNKNOWN && n >= 1024 && !memchr(s, '\n', n) && memchr(s, ';', n) &&
	    !memchr(s, '\0', n))
		return TEXT_FOLDED;
	return format;
}

enum text_format text_format_guess(const char *s, size_t n)
{
	CLEANUP(freep) char *converted = NULL;

	if (utf16_has_mark(s, n)) {
		if (utf16_to_utf8(s, MIN(n, (size_t)65536), &converted, &n))
			return TEXT_UNKNOWN;
		s = converted;
	}
	utf8_skip_mark(&s, &n);
	return guess_utf8(s, n);
}

static int add_notes(const struct text_reader *r)
{
	char numbers[TEXT_BAD_LINES_NAMED * 24] = "";
	size_t used = 0;
	int err = 0;

	for (uint64_t i = 0; i < MIN(r->bad_lines, (uint64_t)TEXT_BAD_LINES_NAMED); i++)
		used += (size_t)snprintf(numbers + used, sizeof(numbers) - used, "%s%llu",
					 i ? ", " : "", (unsigned long long)r->bad_line[i]);
	if (r->bad_lines)
		err = profile_note(r->p, "%llu line%s could not be read and %s skipped: line %s%s",
				   (unsigned long long)r->bad_lines, r->bad_lines == 1 ? "" : "s",
				   r->bad_lines == 1 ? "was" : "were", numbers,
				   r->bad_lines > TEXT_BAD_LINES_NAMED ? ", …" : "");
	if (!err && r->cut_stacks)
		err = profile_note(r->p, "%llu stacks of more than %u frames were cut",
				   (unsigned long long)r->cut_stacks, TEXT_FRAMES_MAX);
	return err;
}

/* What files that are no text begin with, as far as people mistake them for stacks. */
static const struct {
	const char *magic;
	size_t n;
	const char *what, *fix;
} binaries[] = {
	{"\177ELF", 4, "a program or library", "inspect record -- CMD      (records it)"},
	{"\x1f\x8b", 2, "compressed (gzip)", "gzip -dc FILE | inspect report -"},
	{"\x28\xb5\x2f\xfd", 4, "compressed (zstd)", "zstd -dc FILE | inspect report -"},
	{"\xfd"
	 "7zXZ",
	 5, "compressed (xz)", "xz -dc FILE | inspect report -"},
	{"PK\003\004", 4, "a zip archive", "unzip it first"},
};

/* Text holds no NUL; a few lines of a binary may look like stacks all the same. */
static int refuse_binary(const char *s, size_t n, const char *name, struct diag *d)
{
	const char *what = "binary data", *fix = NULL;

	if (!memchr(s, '\0', MIN(n, (size_t)65536)))
		return 0;
	for (size_t i = 0; i < ARRAY_SIZE(binaries); i++) {
		if (n < binaries[i].n || memcmp(s, binaries[i].magic, binaries[i].n))
			continue;
		what = binaries[i].what;
		fix = binaries[i].fix;
	}
	diag_set(d, -ENODATA, "%s is %s, and neither a recording (perf.data) nor stacks as text",
		 name, what);
	if (fix)
		diag_fix(d, "%s", fix);
	return -ENODATA;
}

static int refuse(const struct text_reader *r, size_t n, const char *name, struct diag *d)
{
	if (!n)
		diag_set(d, -ENODATA, "%s is empty", name);
	else if (r->samples)
		diag_set(d, -ENODATA,
			 "%s is no text of stacks: %llu of its lines are neither folded nor perf "
			 "script (the first: line %llu)",
			 name, (unsigned long long)r->bad_lines,
			 (unsigned long long)r->bad_line[0]);
	else if (r->bad_lines)
		diag_set(d, -ENODATA,
			 "%s: no stack found (line %llu is neither folded nor perf script)", name,
			 (unsigned long long)r->bad_line[0]);
	else
		diag_set(d, -ENODATA, "%s: no stack found", name);
	diag_why(d, "text must be folded stacks (`main;work 12`) or what `perf script` prints");
	return -ENODATA;
}

static int read_utf8(const char *s, size_t n, const char *name, struct profile *p, struct diag *d)
{
	CLEANUP(text_reader_release) struct text_reader r = {0};
	bool is_script = text_format_guess(s, n) == TEXT_PERF_SCRIPT;
	int err = is_script ? 0 : refuse_binary(s, n, name, d);

	if (!err)
		err = text_reader_init(&r, p, s, n);
	if (!err)
		err = is_script ? perf_script_read(&r) : folded_read(&r);
	/* Any text has some lines that end in a number. */
	if (!err && (!r.samples || (!is_script && r.bad_lines > r.samples)))
		return refuse(&r, n, name, d);
	if (!err)
		err = add_notes(&r);
	return err ? diag_errno(d, err, "cannot read %s", name) : 0;
}

int text_read(const char *s, size_t n, const char *name, struct profile *p, struct diag *d)
{
	CLEANUP(freep) char *converted = NULL;
	int err;

	if (utf16_has_mark(s, n)) {
		err = utf16_to_utf8(s, n, &converted, &n);
		if (err)
			return diag_errno(d, err, "cannot read %s", name);
		s = converted;
	}
	utf8_skip_mark(&s, &n);
	return read_utf8(s, n, name, p, d);
}
