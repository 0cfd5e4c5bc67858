/* SPDX-License-Identifier: BSD-2-Clause */
#include "quality_lines.h"

#include <inspect/strbuf.h>
#include <inspect/term.h>

static void add_losses(struct strbuf *line, const struct profile *p)
{
	const struct losses *l = &p->losses;
	const struct {
		const char *label;
		uint64_t n, of;
		bool always;
	} parts[] = {
		{"lost", l->lost, l->samples + l->lost, true},
		{"truncated", l->truncated, l->samples, !p->no_stacks},
		{"without a stack", l->without_stack, l->samples, false},
		{"throttled", l->throttled, 0, false},
		{"late records", l->late, 0, false},
		{"damaged records", l->damaged, 0, false},
		{"left out by filters", l->filtered, l->samples, false},
	};

	for (size_t i = 0; i < ARRAY_SIZE(parts); i++) {
		if (!parts[i].n && !parts[i].always)
			continue;
		strbuf_printf(line, " · %s %llu", parts[i].label, (unsigned long long)parts[i].n);
		if (parts[i].n && parts[i].of)
			strbuf_printf(line, " (%.1f %%)",
				      100.0 * (double)parts[i].n / (double)parts[i].of);
	}
}

static void put_line(const struct strbuf *line, FILE *out)
{
	CLEANUP(strbuf_release) struct strbuf ascii = {0};

	if (!term_is_utf8())
		term_ascii(&ascii, strbuf_str(line));
	fprintf(out, "%s\n", strbuf_str(term_is_utf8() ? line : &ascii));
}

void quality_lines(const char *command, const struct profile *p, FILE *out)
{
	CLEANUP(strbuf_release) struct strbuf line = {0};

	if (p->losses.samples)
		strbuf_printf(&line, "inspect %s: %llu sample%s", command,
			      (unsigned long long)p->losses.samples,
			      p->losses.samples == 1 ? "" : "s");
	else
		strbuf_printf(&line, "inspect %s: no samples: nothing to draw", command);
	add_losses(&line, p);
	if (p->no_stacks && p->losses.samples)
		strbuf_puts(&line, " · no stacks were recorded (record -g)");
	put_line(&line, out);
	for (size_t i = 0; i < p->notes.n; i++) {
		strbuf_clear(&line);
		term_escape(&line, p->notes.v[i], strlen(p->notes.v[i]));
		fputs("note: ", out);
		put_line(&line, out);
	}
}
