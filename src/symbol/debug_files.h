/* SPDX-License-Identifier: BSD-2-Clause */
/* Where the symbols and the DWARF of a file lie when they are not in it. */
#ifndef DEBUG_FILES_H
#define DEBUG_FILES_H

#include "dwarf_index.h"
#include "naming.h"

/* Its debug file: in the target's root where that is another one than ours, in ours, then from a
 * debuginfod server. 0 or -ENOENT. */
int debug_file_open(struct naming *w, const struct dso *d, struct elf_file *f,
		    struct elf_file **ret);

/*
 * The index of f's DWARF, with the file that it shares with others (dwz). What is missing, damaged
 * or too large for it adds a note. *ret_alt (or NULL) must outlive *ret. 0, -ENOENT or -ENOMEM.
 */
int debug_index_open(struct naming *w, const struct dso *d, struct elf_file *f,
		     struct dwarf_index **ret, struct elf_file **ret_alt);

#endif
