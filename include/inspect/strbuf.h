/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Text that grows. A failed allocation sticks: later additions do nothing and `failed`
 * says so, so that only the end of a text needs a check.
 */
#ifndef INSPECT_STRBUF_H
#define INSPECT_STRBUF_H

#include <inspect/base.h>

struct strbuf {
	char *v; /* NUL-terminated once anything was added; NULL before */
	size_t n, cap;
	bool failed;
};

void strbuf_release(struct strbuf *b);
void strbuf_clear(struct strbuf *b); /* empty again, not failed; keeps the storage */

void strbuf_add(struct strbuf *b, const char *s, size_t n);
void strbuf_puts(struct strbuf *b, const char *s);
void strbuf_putc(struct strbuf *b, char c);
void strbuf_printf(struct strbuf *b, const char *fmt, ...) PRINTF(2, 3);

/* The text, "" when empty; never NULL. Borrowed until the next addition. */
const char *strbuf_str(const struct strbuf *b);

/* Hands the text over (malloc'ed, never NULL on 0). 0 or -ENOMEM. */
int strbuf_take(struct strbuf *b, char **ret);

#endif
