/* SPDX-License-Identifier: BSD-2-Clause */
/* A profile read from text, as text again: what the tests of the readers compare. */
#ifndef TEST_TEXT_DUMP_H
#define TEST_TEXT_DUMP_H

#include <inspect/strbuf.h>
#include <inspect/text_input.h>

/* "root;leaf" with "_[kind]" behind what is not native and "@module" where one is known. */
static inline void dump_stack(struct strbuf *out, const struct profile *p, uint32_t stack)
{
	const struct frame *f;
	uint32_t parent, module;

	if (stack == STACK_ROOT)
		return;
	parent = p->stacks.v[stack].parent;
	dump_stack(out, p, parent);
	f = &p->frames.v[p->stacks.v[stack].frame];
	module = (uint32_t)(f->loc >> 32);
	strbuf_printf(out, "%s%s", parent == STACK_ROOT ? "" : ";",
		      intern_str(&p->strings, (uint32_t)f->loc));
	if (f->kind != FRAME_NATIVE)
		strbuf_printf(out, "_[%s]", frame_kind_name((enum frame_kind)f->kind));
	if (module)
		strbuf_printf(out, "@%s", intern_str(&p->strings, module));
}

/* Lines "EVENT/UNIT COMM PID/TID STACK WEIGHT COUNT" in order of arrival, then "note: …". */
static inline char *dump_profile(const struct profile *p)
{
	struct strbuf out = {0};
	char *text = NULL;

	for (size_t i = 0; i < p->rows.n; i++) {
		const struct profile_row *row = &p->rows.v[i];
		const struct profile_event *e = &p->events.v[row->event];
		const struct profile_thread *t = &p->threads.v[row->thread];

		strbuf_printf(&out, "%s/%s %s %u/%u ", e->name, e->unit,
			      intern_str(&p->strings, t->comm), t->pid, t->tid);
		dump_stack(&out, p, row->stack);
		strbuf_printf(&out, " %llu %llu\n", (unsigned long long)row->weight,
			      (unsigned long long)row->count);
	}
	for (size_t i = 0; i < p->notes.n; i++)
		strbuf_printf(&out, "note: %s\n", p->notes.v[i]);
	strbuf_take(&out, &text);
	return text;
}

/* Reads n bytes of text, which must succeed, and gives them back dumped. */
static inline char *read_and_dump(const char *s, size_t n)
{
	CLEANUP(profile_freep) struct profile *p = NULL;
	struct diag d = {0};

	assert_int_equal(profile_new(&p), 0);
	assert_int_equal(text_read(s, n, "test", p, &d), 0);
	assert_int_equal(d.err, 0);
	return dump_profile(p);
}

static inline void assert_reads_n(const char *s, size_t n, const char *expected)
{
	char *dump = read_and_dump(s, n);

	assert_string_equal(dump, expected);
	free(dump);
}

static inline void assert_reads(const char *text, const char *expected)
{
	assert_reads_n(text, strlen(text), expected);
}

/* Reading fails with exactly this message. */
static inline void assert_refused(const char *s, size_t n, const char *what)
{
	CLEANUP(profile_freep) struct profile *p = NULL;
	struct diag d = {0};

	assert_int_equal(profile_new(&p), 0);
	assert_int_equal(text_read(s, n, "in.txt", p, &d), -ENODATA);
	assert_int_equal(d.err, -ENODATA);
	assert_string_equal(d.what, what);
	diag_release(&d);
}

#endif
