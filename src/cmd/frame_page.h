/* SPDX-License-Identifier: BSD-2-Clause */
/* Stacks for people: the kernel's part on a line or two, then a line for each user frame. */
#ifndef CMD_FRAME_PAGE_H
#define CMD_FRAME_PAGE_H

#include <inspect/profile.h>
#include <inspect/strbuf.h>
#include <stdio.h>

enum { FRAME_INDENT = 4, FRAME_WIDTH_LEAST = 40 };

struct frame_page {
	FILE *out;
	unsigned width; /* columns; 0: nothing is cut */
	bool color, ascii;
	struct strbuf line; /* the one that is being made; the caller releases it */
	bool failed;        /* out of memory */
};

/* Prints the line and empties it. `cut`: what does not fit is left out in the middle. */
void frame_page_flush(struct frame_page *p, bool cut, const char *color);
void frame_page_escape(struct strbuf *b, const char *text);

/* Of the first n of a path (root first), leaf first. Without how every system call begins and how
 * every wait ends, and without labels. */
void frame_page_kernel(struct frame_page *p, const struct profile *profile,
		       const struct symbol_path *path, size_t n);
/* At most `limit` lines, then how many more there are. */
void frame_page_user(struct frame_page *p, const struct profile *profile,
		     const struct symbol_path *path, size_t n, size_t limit);

#endif
