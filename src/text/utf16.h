/* SPDX-License-Identifier: BSD-2-Clause */
/* Byte-order marks: text that Windows tools have saved. */
#ifndef TEXT_UTF16_H
#define TEXT_UTF16_H

#include <inspect/base.h>

/* True when the text begins with the mark of UTF-16, in either order. */
bool utf16_has_mark(const char *s, size_t n);

/* The text after its mark as UTF-8, malloc'ed; lone surrogates become U+FFFD. 0 or -ENOMEM. */
int utf16_to_utf8(const char *s, size_t n, char **ret, size_t *ret_n);

/* Steps over a UTF-8 mark. */
void utf8_skip_mark(const char **s, size_t *n);

#endif
