/* SPDX-License-Identifier: BSD-2-Clause */
#include "elf_struct.h"

#define NAME_BYTES_MAX 4096

struct found {
	uint64_t start, size_bytes;
	const char *name; /* borrowed from the string table */
};

/* The smallest variable of one table that covers elf_vaddr, if smaller than what was found. */
static void search_table(struct elf_file *f, uint32_t type, uint64_t elf_vaddr, struct found *best)
{
	GElf_Shdr shdr, names_shdr;
	Elf_Scn *scn = elf_section_find(f, type, NULL, &shdr), *names_scn;
	Elf_Data *symbols, *names;
	size_t n;

	if (!scn || elf_section_read(scn, &shdr, SECTION_BYTES_MAX, &symbols))
		return;
	names_scn = elf_getscn(f->elf, shdr.sh_link);
	if (!names_scn || !gelf_getshdr(names_scn, &names_shdr) ||
	    names_shdr.sh_type != SHT_STRTAB ||
	    elf_section_read(names_scn, &names_shdr, SECTION_BYTES_MAX, &names))
		return;
	n = symbols->d_size / gelf_fsize(f->elf, ELF_T_SYM, 1, EV_CURRENT);
	for (size_t i = 1; i < n; i++) {
		const char *name;
		GElf_Sym sym;

		if (!gelf_getsym(symbols, (int)i, &sym) ||
		    GELF_ST_TYPE(sym.st_info) != STT_OBJECT || sym.st_shndx == SHN_UNDEF ||
		    elf_vaddr < sym.st_value || elf_vaddr - sym.st_value >= sym.st_size)
			continue;
		if (best->name && best->size_bytes <= sym.st_size)
			continue;
		name = elf_strtab_at(names, sym.st_name);
		if (name && *name)
			*best = (struct found){sym.st_value, sym.st_size, name};
	}
}

int elf_variable_find(struct elf_file *f, uint64_t elf_vaddr, struct strbuf *name,
		      uint64_t *ret_offset_bytes, uint64_t *ret_size_bytes)
{
	struct found best = {0};

	search_table(f, SHT_SYMTAB, elf_vaddr, &best);
	search_table(f, SHT_DYNSYM, elf_vaddr, &best);
	if (!best.name)
		return -ENOENT;
	strbuf_add(name, best.name, MIN(strcspn(best.name, "@"), (size_t)NAME_BYTES_MAX));
	*ret_offset_bytes = elf_vaddr - best.start;
	*ret_size_bytes = best.size_bytes;
	return name->failed ? -ENOMEM : 0;
}

int elf_section_at(struct elf_file *f, uint64_t elf_vaddr, struct strbuf *name,
		   uint64_t *ret_offset_bytes)
{
	Elf_Scn *scn = NULL;
	GElf_Shdr shdr;
	size_t strndx;

	if (elf_getshdrstrndx(f->elf, &strndx))
		return -ENOENT;
	while ((scn = elf_nextscn(f->elf, scn))) {
		const char *own;

		/* The initial values of thread-local variables lie over the next section. */
		if (!gelf_getshdr(scn, &shdr) || !(shdr.sh_flags & SHF_ALLOC) ||
		    shdr.sh_flags & SHF_TLS || elf_vaddr < shdr.sh_addr ||
		    elf_vaddr - shdr.sh_addr >= shdr.sh_size)
			continue;
		own = elf_strptr(f->elf, strndx, shdr.sh_name);
		if (!own || !*own)
			return -ENOENT;
		strbuf_add(name, own, strnlen(own, NAME_BYTES_MAX));
		*ret_offset_bytes = elf_vaddr - shdr.sh_addr;
		return name->failed ? -ENOMEM : 0;
	}
	return -ENOENT;
}
