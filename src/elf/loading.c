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
				       ? fn(ctx, path)
				       : 0;
	}
	return 0;
}

int elf_needed_each(struct elf_file *f, elf_needed_fn *fn, void *ctx)
{
	Elf_Data *entries, *names;
	GElf_Shdr shdr, names_shdr;
	Elf_Scn *scn = elf_section_find(f, SHT_DYNAMIC, NULL, &shdr);
	Elf_Scn *names_scn = scn ? elf_getscn(f->elf, shdr.sh_link) : NULL;
	int err = interpreter(f, fn, ctx), n = 0;
	GElf_Dyn d;

	if (err || !names_scn || !gelf_getshdr(names_scn, &names_shdr) ||
	    elf_section_read(scn, &shdr, SECTION_BYTES_MAX, &entries) ||
	    elf_section_read(names_scn, &names_shdr, SECTION_BYTES_MAX, &names))
		return err;
	for (int i = 0; gelf_getdyn(entries, i, &d) && d.d_tag != DT_NULL && !err; i++) {
		const char *name = d.d_tag == DT_NEEDED && n++ < NEEDED_MAX
					   ? elf_strtab_at(names, d.d_un.d_val)
					   : NULL;

		err = name ? fn(ctx, name) : 0;
	}
	return err;
}
