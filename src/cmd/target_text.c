/* SPDX-License-Identifier: BSD-2-Clause */
#include "target_text.h"

#include <inspect/clock.h>
#include <inspect/shell_words.h>

enum { DURATION_S = 10 };

static void put_option(struct strbuf *out, const char *option, const char *value)
{
	strbuf_printf(out, "%s ", option);
	shell_word_put(out, value);
	strbuf_putc(out, ' ');
}

void target_text_put(const struct target_options *o, uint64_t duration_ns,
		     const struct operands *operands, const struct target *t, struct strbuf *out)
{
	bool has_cmd = operands->n && !t->cmd_times_only;

	if (o->cpus)
		put_option(out, "-C", o->cpus);
	else if (t->all)
		strbuf_puts(out, "-a ");
	if (o->pids)
		put_option(out, "-p", o->pids);
	else if (o->tids)
		put_option(out, "-t", o->tids);
	else if (o->cgroup)
		put_option(out, "--cgroup", o->cgroup);
	if (o->pids && o->children)
		strbuf_puts(out, "--children ");
	if (duration_ns || !has_cmd)
		strbuf_printf(out, "-d %g%s",
			      duration_ns ? (double)duration_ns / NSEC_PER_SEC : DURATION_S,
			      has_cmd ? " " : "");
	if (has_cmd) {
		strbuf_puts(out, "--");
		shell_words_put(out, operands->v, operands->n);
	}
}
