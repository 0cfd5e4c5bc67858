/* SPDX-License-Identifier: BSD-2-Clause */
/* The function at an offset of a file, for code that is named while the target runs. */
#ifndef INSPECT_CODE_NAMES_H
#define INSPECT_CODE_NAMES_H

#include <inspect/base.h>
#include <sys/types.h>

struct code_names;

/* Files are opened when they are first asked for and kept, the last 256. 0 or -ENOMEM. */
int code_names_new(struct code_names **ret);
void code_names_free(struct code_names *n);
static inline void code_names_freep(struct code_names **n)
{
	code_names_free(*n);
}

struct code_name {
	const char *symbol; /* mangled; NULL: none. Borrowed until the next call */
	uint64_t offset_bytes;
	uint64_t elf_vaddr; /* as addr2line takes it; 0: the file could not be read */
};

/*
 * The file is that of `path` in pid's root, or else in ours, when device and inode are its. before:
 * the function is looked up one byte earlier, as a return address wants it.
 */
void code_names_find(struct code_names *n, pid_t pid, const char *path, uint32_t maj, uint32_t min,
		     uint64_t ino, uint64_t file_off, bool before, struct code_name *ret);

#endif
