/* SPDX-License-Identifier: BSD-2-Clause */
/* Words as a shell takes them, for command lines that a user pastes. */
#ifndef INSPECT_SHELL_WORDS_H
#define INSPECT_SHELL_WORDS_H

#include <inspect/strbuf.h>

/* The word itself where no shell changes it, else in single quotes; with control characters as
 * $'…', which keeps it on one line. */
void shell_word_put(struct strbuf *b, const char *word);

/* All of them, a space before each. */
void shell_words_put(struct strbuf *b, char *const *words, size_t n);

#endif
