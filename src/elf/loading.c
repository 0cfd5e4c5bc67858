/* SPDX-License-Identifier: BSD-2-Clause */
/* What the kernel and the dynamic loader map when a file is executed. */
#include "elf_struct.h"

#include <limits.h>

enum { NEEDED_MAX = 256 };

int elf_code_each(struct elf_file *f, elf_code_fn *fn, void *ctx)
{
	uint64_t page_bytes = (uint64_t)sysconf(_SC_PAGESIZE);
	int err = 0;

	for (size_t i = 0; i < f->n_phdrs && !err; i++) {
		const GElf_Phdr *p = &f->phdrs[i];
		uint64_t before_bytes = p->p_offset & (page_bytes - 1);

		if (p->p_type == PT_LOAD && p->p_flags & PF_X && p->p_filesz &&
		    p->p_filesz < INT64_MAX - page_bytes)
			err = fn(ctx, p->p_offset - before_bytes,
				 ALIGN_UP(before_bytes + p->p_filesz, page_bytes));
	}
	return err;
}

static int interpreter(struct elf_file *f, elf_needed_fn *fn, void *ctx)
{
	char path[PATH_MAX];

	for (size_t i = 0; i < f->n_phdrs; i++) {
		const GElf_Phdr *p = &f->phdrs[i];
		size_t n = MIN((size_t)p->p_filesz, sizeof(path));

		if (p->p_type == PT_INTERP)
			return n && elf_file_read_at(f, p->p_offset, path, n) == n && !path[n - 1]
				       ? fn(ctx, ELF_INTERPRETER, path)
				       : 0;
	}
	return 0;
}

struct dynamic {
	Elf_Data *entries, *names;
};

static int each_text(const struct dynamic *d, enum elf_needed what, elf_needed_fn *fn, void *ctx)
{
	int err = 0, n = 0;
	GElf_Dyn e;

	for (int i = 0; gelf_getdyn(d->entries, i, &e) && e.d_tag != DT_NULL && !err; i++) {
		bool folders = e.d_tag == DT_RPATH || e.d_tag == DT_RUNPATH;
		const char *text = NULL;

		if (what == ELF_LIBRARY ? e.d_tag == DT_NEEDED : folders)
			text = n++ < NEEDED_MAX ? elf_strtab_at(d->names, e.d_un.d_val) : NULL;
		err = text ? fn(ctx, what, text) : 0;
	}
	return err;
}

int elf_needed_each(struct elf_file *f, elf_needed_fn *fn, void *ctx)
{
	struct dynamic d;
	GElf_Shdr shdr, names_shdr;
	Elf_Scn *scn = elf_section_find(f, SHT_DYNAMIC, NULL, &shdr);
	Elf_Scn *names_scn = scn ? elf_getscn(f->elf, shdr.sh_link) : NULL;
	int err = interpreter(f, fn, ctx);

	if (err || !names_scn || !gelf_getshdr(names_scn, &names_shdr) ||
	    elf_section_read(scn, &shdr, SECTION_BYTES_MAX, &d.entries) ||
	    elf_section_read(names_scn, &names_shdr, SECTION_BYTES_MAX, &d.names))
		return err;
	err = each_text(&d, ELF_FOLDERS, fn, ctx);
	return err ? err : each_text(&d, ELF_LIBRARY, fn, ctx);
}
