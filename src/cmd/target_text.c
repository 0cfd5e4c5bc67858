/* SPDX-License-Identifier: BSD-2-Clause */
#include "target_text.h"

#include <inspect/clock.h>
#include <inspect/shell_words.h>

enum { DURATION_S = 10 };

static void put_word(struct strbuf *out, const char *word)
{
	strbuf_printf(out, "%s%s", out->n ? " " : "", word);
}

static void put_option(struct strbuf *out, const char *option, const char *value)
{
	put_word(out, option);
	strbuf_putc(out, ' ');
	shell_word_put(out, value);
}

/* ends_ns: 0 for none. */
static void put(const struct target_options *o, uint64_t ends_ns, const struct operands *operands,
		const struct target *t, struct strbuf *out)
{
	bool has_cmd = operands->n && !t->cmd_times_only;

	if (o->cpus)
		put_option(out, "-C", o->cpus);
	else if (t->all)
		put_word(out, "-a");
	if (o->pids)
		put_option(out, "-p", o->pids);
	else if (o->tids)
		put_option(out, "-t", o->tids);
	else if (o->cgroup)
		put_option(out, "--cgroup", o->cgroup);
	if (o->pids && o->children)
		put_word(out, "--children");
	if (ends_ns) {
		put_word(out, "-d ");
		strbuf_printf(out, "%g", (double)ends_ns / NSEC_PER_SEC);
	}
	if (has_cmd) {
		put_word(out, "--");
		shell_words_put(out, operands->v, operands->n);
	}
}

void target_text_given(const struct target_options *o, uint64_t duration_ns,
		       const struct operands *operands, const struct target *t, struct strbuf *out)
{
	put(o, duration_ns, operands, t, out);
}

void target_text_put(const struct target_options *o, uint64_t duration_ns,
		     const struct operands *operands, const struct target *t, struct strbuf *out)
{
	if (!duration_ns && (!operands->n || t->cmd_times_only))
		duration_ns = (uint64_t)DURATION_S * NSEC_PER_SEC;
	put(o, duration_ns, operands, t, out);
}
