/* SPDX-License-Identifier: BSD-2-Clause */
#include "elf_struct.h"

#define NAME_BYTES_MAX 4096

static int walk_table(struct elf_file *f, uint32_t type, elf_function_fn *fn, void *ctx)
{
	GElf_Shdr shdr, names_shdr;
	Elf_Scn *scn = elf_section_find(f, type, NULL, &shdr), *names_scn;
	Elf_Data *symbols, *names;
	size_t n;
	int err = 0;

	if (!scn || elf_section_read(scn, &shdr, SECTION_BYTES_MAX, &symbols))
		return 0;
	names_scn = elf_getscn(f->elf, shdr.sh_link);
	if (!names_scn || !gelf_getshdr(names_scn, &names_shdr) ||
	    names_shdr.sh_type != SHT_STRTAB ||
	    elf_section_read(names_scn, &names_shdr, SECTION_BYTES_MAX, &names))
		return 0;
	n = symbols->d_size / gelf_fsize(f->elf, ELF_T_SYM, 1, EV_CURRENT);
	for (size_t i = 1; i < n && !err; i++) {
		char name[NAME_BYTES_MAX];
		const char *text;
		GElf_Sym sym;

		if (!gelf_getsym(symbols, (int)i, &sym) || sym.st_shndx == SHN_UNDEF ||
		    GELF_ST_TYPE(sym.st_info) != STT_FUNC)
			continue;
		text = elf_strtab_at(names, sym.st_name);
		if (!text || !*text)
			continue;
		snprintf(name, sizeof(name), "%.*s", (int)strcspn(text, "@"), text);
		err = fn(ctx, name, sym.st_value);
	}
	return err;
}

int elf_functions_each(struct elf_file *f, elf_function_fn *fn, void *ctx)
{
	int err = walk_table(f, SHT_SYMTAB, fn, ctx);

	return err ? err : walk_table(f, SHT_DYNSYM, fn, ctx);
}
