/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which functions an address stands in, inlined ones included, and on which line: an index per
 * compile unit, built when the first address in that unit is asked for, and shared by all. libdw
 * reads the DWARF; nothing here starts another program.
 */
#ifndef DWARF_INDEX_H
#define DWARF_INDEX_H

#include <inspect/array.h>
#include <inspect/elf_file.h>

struct dwarf_index;

/* Reading it takes about as much memory as the debug sections have. */
#define DWARF_BYTES_MAX (2ULL << 30)

/* -ENOENT: the file has no .debug_info; -EBADMSG: none that can be read; -EFBIG: more than
 * DWARF_BYTES_MAX. The file must outlive the index. */
int dwarf_index_open(struct elf_file *f, struct dwarf_index **ret);
void dwarf_index_free(struct dwarf_index *x);

/* The file that several debug files share (.gnu_debugaltlink). Borrowed from the index. */
struct dwarf_alt {
	const char *name;
	const uint8_t *id;
	size_t id_size;
};
/* Whether the index needs one: nothing is described before it is set. */
bool dwarf_index_alt(const struct dwarf_index *x, struct dwarf_alt *ret);
/* That file, which must outlive the index. One that cannot be read leaves the index as it was.
 * 0 or -ENOMEM. */
int dwarf_index_set_alt(struct dwarf_index *x, struct elf_file *alt);

/* Strings are borrowed from the index. */
struct source_frame {
	const char *name;   /* mangled where there is a linkage name; NULL unknown */
	const char *folder; /* where it was compiled, "" unknown: what `file` is relative to */
	const char *file;   /* NULL unknown */
	uint32_t line;      /* 0 unknown */
};

struct source_frames {
	ARRAY(struct source_frame) v; /* outermost first; the last is where the address lies */
};

/* The functions at elf_vaddr into *ret (cleared first; empty: not described). 0 or -ENOMEM. */
int dwarf_index_find(struct dwarf_index *x, uint64_t elf_vaddr, struct source_frames *ret);

/* What was asked for and could not be told. */
struct dwarf_gaps {
	size_t missing; /* units whose description lies in a .dwo file that was not found */
	const char *missing_name; /* one of those files; borrowed from the index; "" none */
	size_t damaged;           /* units that could not be read to their end */
};
void dwarf_index_gaps(const struct dwarf_index *x, struct dwarf_gaps *ret);

#endif
