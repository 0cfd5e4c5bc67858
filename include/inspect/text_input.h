/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Stacks as text: folded lines (`root;…;leaf N`) and the output of `perf script`, recognised by
 * their first lines. Read into a profile whose frames have their names already.
 */
#ifndef INSPECT_TEXT_INPUT_H
#define INSPECT_TEXT_INPUT_H

#include <inspect/diag.h>
#include <inspect/profile.h>

enum text_format { TEXT_UNKNOWN, TEXT_FOLDED, TEXT_PERF_SCRIPT };

/* What the first bytes (up to a few KiB) look like. */
enum text_format text_format_guess(const char *s, size_t n);

/*
 * Parses a whole text (mapped or in memory) into p. `name` is used in messages ("stdin").
 * Lines that cannot be read are skipped, counted, and named by number in one note; a text without
 * any stack fails with one clear line.
 * Folded: BOMs (UTF-8, UTF-16), CRLF, spaces in names, fractional counts, comment lines, two
 * trailing numbers (the second is used, with a note); suffixes _[k] _[j] _[i] _[w]: frame kinds.
 * perf script: a sample ends at a blank line or the end; weight = the period when the header has
 * one; several events become several profile events; [unknown] in a module is [module]; +0x…
 * offsets are stripped; comm may hold spaces.
 */
int text_read(const char *s, size_t n, const char *name, struct profile *p, struct diag *d);

#endif
