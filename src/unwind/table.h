/* SPDX-License-Identifier: BSD-2-Clause */
/* Building tables (table.c), what has no call frame information (gaps.c), and keeping tables on
 * disk (cache.c). */
#ifndef UNWIND_TABLE_H
#define UNWIND_TABLE_H

#include "cfi.h"

/* Code whose rule is known without call frame information; in use where no entry says better. */
struct known_code {
	uint64_t start, end; /* ELF vaddrs */
	struct unwind_rule rule;
};
typedef ARRAY(struct known_code) known_codes;

/* PLT sections, returns from signal handlers, entry points. c is sorted. 0 or -ENOMEM. */
int known_code_find(struct elf_file *f, const struct cfi *c, known_codes *ret);

/* Whether the code keeps frame pointers and has a stack of its own (Go). */
bool file_keeps_frame_pointers(struct elf_file *f);

/* dir_fd is the cache's directory. The stored table of a build-id: 0, -ENOENT, -EBADMSG, … */
int unwind_cache_load(int dir_fd, const uint8_t *build_id, size_t size, struct unwind_table **ret);
/* Adds a table, and removes the oldest above the limit. What fails is not worth a word. */
void unwind_cache_store(int dir_fd, const uint8_t *build_id, size_t size,
			const struct unwind_table *t);
/* A descriptor of the directory, created when missing, or -errno. */
int unwind_cache_open(void);

#endif
