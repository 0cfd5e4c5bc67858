/* SPDX-License-Identifier: BSD-2-Clause */
/* What the files of src/elf share. */
#ifndef ELF_STRUCT_H
#define ELF_STRUCT_H

#include <gelf.h>
#include <inspect/arena.h>
#include <inspect/elf_file.h>

/* No section that is read whole is larger: a string table of Chromium with debug symbols has about
 * 300 MiB. Keeps a sparse file from claiming all memory. */
#define SECTION_BYTES_MAX (1ULL << 31)

struct elf_file {
	int fd;      /* -1: an image in memory */
	void *image; /* owned; outlives elf */
	size_t image_bytes;
	Elf *elf;
	GElf_Ehdr ehdr;
	GElf_Phdr *phdrs;
	size_t n_phdrs;
};

/* Contents of a section of at least one and at most max_bytes; not for NOBITS or compressed ones.
 * Borrowed from f. 0, -ENOENT (nothing there), -EFBIG, or -EBADMSG. */
int elf_section_read(Elf_Scn *scn, const GElf_Shdr *shdr, uint64_t max_bytes, Elf_Data **ret);

/* The first section of that type (SHT_NULL: any) and name (NULL: any), or NULL. */
Elf_Scn *elf_section_find(struct elf_file *f, uint32_t type, const char *name, GElf_Shdr *ret_shdr);

/* The text at `offset` of a string table, or NULL unless it is NUL-terminated inside. */
const char *elf_strtab_at(const Elf_Data *strtab, uint64_t offset);

/* Owns what the names of a symbol table point into. */
struct elf_symbols_names {
	char *strtabs[2]; /* copies of .strtab and .dynstr */
	struct arena plt;
	uint32_t *outer; /* by symbol: index + 1 of the one that encloses its start, 0 none */
};

/* Adds "foo@plt" for each entry of the procedure linkage tables, in no order. 0 or -ENOMEM. */
int elf_plt_read(struct elf_file *f, struct elf_symbols *s);

#endif
