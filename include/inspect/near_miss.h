/* SPDX-License-Identifier: BSD-2-Clause */
/* The few known names that are closest to a mistyped one. */
#ifndef INSPECT_NEAR_MISS_H
#define INSPECT_NEAR_MISS_H

#include <inspect/diag.h>

#define NEAR_MISS_BEST 3
#define NEAR_MISS_NAME_MAX 96

struct near_misses {
	const char *word;
	struct {
		char name[NEAR_MISS_NAME_MAX];
		unsigned distance;
	} best[NEAR_MISS_BEST]; /* closest first */
	size_t n;
};

/* Changes (a letter more, less, other, or two swapped) from a to b, not regarding case; lengths
 * are cut at NEAR_MISS_NAME_MAX. */
unsigned edit_distance(const char *a, const char *b);

/* Keeps the candidate if it is close enough to m->word to have been meant, and among the best. */
void near_misses_add(struct near_misses *m, const char *candidate);

/* "did you mean X, Y?" as a line of advice; nothing when nothing was close. `prefix` goes before
 * each name. */
void near_misses_advise(const struct near_misses *m, const char *prefix, struct diag *d);

#endif
