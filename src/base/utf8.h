/* SPDX-License-Identifier: BSD-2-Clause */
/* Decoding of UTF-8 that may be anything, for what is escaped or measured. */
#ifndef BASE_UTF8_H
#define BASE_UTF8_H

#include <inspect/base.h>

/* The length in bytes of the valid character at s (n bytes are left), or 0 when there is none:
 * overlong forms, surrogates and values above U+10FFFF are invalid (RFC 3629). */
size_t utf8_decode(const char *s, size_t n, uint32_t *ret_point);

/* Characters that act instead of being seen: controls, line separators, bidi overrides. */
bool utf8_is_control(uint32_t point);

#endif
