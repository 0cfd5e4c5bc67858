/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Words that every file uses: cleanup, ownership hand-over, sizes and units.
 *
 * Ownership: `CLEANUP(S_freep) struct S *s = NULL;` frees at the end of the scope; hand over with
 * `*ret = TAKE_PTR(s)`. Functions return 0 or a negative errno; `ret_` outputs are untouched on
 * failure.
 */
#ifndef INSPECT_BASE_H
#define INSPECT_BASE_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CLEANUP(f) __attribute__((cleanup(f)))
#define PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))
#define UNUSED __attribute__((unused))

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))
#define MIN(a, b) ((a) < (b) ? (a) : (b))
#define MAX(a, b) ((a) > (b) ? (a) : (b))
#define ALIGN_UP(n, to) (((n) + (to)-1) / (to) * (to))

#define NSEC_PER_SEC 1000000000ULL
#define NSEC_PER_MSEC 1000000ULL
#define NSEC_PER_USEC 1000ULL

/* Takes the value out of an owning variable, which is left empty. */
#define TAKE_PTR(p)                                                                                \
	({                                                                                         \
		__typeof__(p) taken_ = (p);                                                        \
		(p) = NULL;                                                                        \
		taken_;                                                                            \
	})
#define TAKE_FD(fd)                                                                                \
	({                                                                                         \
		int taken_ = (fd);                                                                 \
		(fd) = -1;                                                                         \
		taken_;                                                                            \
	})

static inline void freep(void *p)
{
	free(*(void **)p);
}

static inline void closep(int *fd)
{
	if (*fd >= 0)
		close(*fd);
}

static inline void fclosep(FILE **file)
{
	if (*file)
		fclose(*file);
}

static inline bool str_eq(const char *a, const char *b)
{
	return strcmp(a, b) == 0;
}

static inline bool str_starts(const char *s, const char *prefix)
{
	return strncmp(s, prefix, strlen(prefix)) == 0;
}

static inline bool str_ends(const char *s, const char *suffix)
{
	size_t n = strlen(s), m = strlen(suffix);

	return n >= m && memcmp(s + n - m, suffix, m) == 0;
}

#endif
