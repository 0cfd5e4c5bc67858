/* SPDX-License-Identifier: BSD-2-Clause */
/* The terminal: width, colour, and names made safe for it. */
#ifndef INSPECT_TERM_H
#define INSPECT_TERM_H

#include <inspect/strbuf.h>

enum color_mode { COLOR_AUTO, COLOR_ALWAYS, COLOR_NEVER };

/* --color first, then NO_COLOR (set and not empty), CLICOLOR_FORCE, CLICOLOR=0, then tty and
 * TERM != dumb. */
bool term_use_color(enum color_mode mode, int fd);

/* Columns of the terminal at fd, else $COLUMNS, else 0: into a pipe nothing is cut. */
unsigned term_width(int fd);

/* Rows of the terminal at fd, else 0. */
unsigned term_height(int fd);

/* Appends n bytes with control characters (C0, DEL, C1, bidi overrides) and invalid UTF-8 written
 * as \xNN or \u{NNNN}; newline and tab as \n and \t. What any name passes before it is shown. */
void term_escape(struct strbuf *out, const char *s, size_t n);

/* Columns that valid UTF-8 text takes (wide and combining characters counted as such). */
unsigned term_columns(const char *s);

/* Whether the locale's characters are UTF-8; with "C" or "POSIX" they are ASCII. */
bool term_is_utf8(void);

/* Appends s with the signs that this program draws with ("…", "├─", "→", "µ") spelt in ASCII. Names
 * stay as they are. */
void term_ascii(struct strbuf *out, const char *s);

/* Appends s cut in its middle to `width` columns with `dots` ("…"); whole when it fits or
 * width is 0. A width below that of the dots counts as theirs. */
void term_cut_middle(struct strbuf *out, const char *s, unsigned width, const char *dots);

/* Appends s broken between words into lines of `width` columns. The first has `used` columns
 * already; the others begin with `prefix`, and a space or more of s. A word too wide for any line
 * stays whole, and so does a command behind an arrow, which is to be copied, where it has room;
 * width 0 breaks nothing. The number of lines. */
size_t term_wrap(struct strbuf *out, const char *s, unsigned width, unsigned used,
		 const char *prefix);

#endif
