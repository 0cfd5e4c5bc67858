/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Names for the entries of procedure linkage tables. No symbol table lists them: an entry belongs
 * to the relocation of the GOT slot that it jumps through.
 */
#include "elf_struct.h"

#define PLT_BYTES_MAX (64U << 20)
#define PLT_NAME_MAX 4096

struct slot {
	uint64_t got_vaddr;
	uint64_t resolver; /* of an ifunc without a name, else 0 */
	uint32_t symbol;   /* in .dynsym, 0 none */
};

typedef ARRAY(struct slot) slots;

struct plt_reader {
	struct elf_file *f;
	struct elf_symbols *known; /* the symbol table so far: sorted, not touched while reading */
	ARRAY(struct elf_symbol) entries;
	Elf_Data *dynsym, *dynstr; /* NULL when there are none */
	slots lazy;                /* .rela.plt in its order */
	slots by_got;              /* all, sorted by got_vaddr */
};

/* Relocation types, by machine, that fill a GOT slot with a function. */
static const struct machine {
	uint16_t machine;
	uint32_t jump_slot, glob_dat, irelative;
	/* Where code cannot be decoded here: entry i follows the header in the order of .rela.plt.
	 * Sources: the psABIs, elfNN-*.c and elfxx-*.c of binutils. */
	uint32_t header_bytes, entry_bytes;
} machines[] = {
	{EM_X86_64, R_X86_64_JUMP_SLOT, R_X86_64_GLOB_DAT, R_X86_64_IRELATIVE, 16, 16},
	{EM_AARCH64, R_AARCH64_JUMP_SLOT, R_AARCH64_GLOB_DAT, R_AARCH64_IRELATIVE, 32, 16},
	{EM_386, R_386_JMP_SLOT, R_386_GLOB_DAT, R_386_IRELATIVE, 16, 16},
	{EM_ARM, R_ARM_JUMP_SLOT, R_ARM_GLOB_DAT, R_ARM_IRELATIVE, 20, 12},
	{EM_RISCV, R_RISCV_JUMP_SLOT, R_RISCV_NONE, R_RISCV_NONE, 32, 16},
	{EM_S390, R_390_JMP_SLOT, R_390_GLOB_DAT, R_390_IRELATIVE, 32, 32},
};

static const struct machine *machine_of(const struct elf_file *f)
{
	for (size_t i = 0; i < ARRAY_SIZE(machines); i++)
		if (machines[i].machine == f->ehdr.e_machine)
			return &machines[i];
	return NULL;
}

static bool read_relocation(Elf_Data *data, int i, bool rela, GElf_Rela *ret)
{
	GElf_Rel rel;

	if (rela)
		return gelf_getrela(data, i, ret);
	if (!gelf_getrel(data, i, &rel))
		return false;
	*ret = (GElf_Rela){.r_offset = rel.r_offset, .r_info = rel.r_info};
	return true;
}

/* The relocations of one section that fill slots with functions. */
static int read_slots(struct elf_file *f, const struct machine *m, const char *name, slots *out)
{
	GElf_Shdr shdr;
	Elf_Scn *scn = elf_section_find(f, SHT_NULL, name, &shdr);
	Elf_Data *data;
	bool rela = shdr.sh_type == SHT_RELA;
	size_t n;

	if (!scn || (!rela && shdr.sh_type != SHT_REL) ||
	    elf_section_read(scn, &shdr, SECTION_BYTES_MAX, &data))
		return 0;
	n = data->d_size / gelf_fsize(f->elf, rela ? ELF_T_RELA : ELF_T_REL, 1, EV_CURRENT);
	for (size_t i = 0; i < n; i++) {
		GElf_Rela r;
		struct slot s;
		uint32_t type;
		int err;

		if (!read_relocation(data, (int)i, rela, &r))
			continue;
		type = (uint32_t)GELF_R_TYPE(r.r_info);
		s = (struct slot){.got_vaddr = r.r_offset,
				  .symbol = (uint32_t)GELF_R_SYM(r.r_info)};
		if (!type || (type != m->jump_slot && type != m->glob_dat && type != m->irelative))
			continue;
		if (type == m->irelative)
			s.resolver = (uint64_t)r.r_addend;
		err = array_push(out, s);
		if (err)
			return err;
	}
	return 0;
}

/* "foo", or for an ifunc without a name that of its resolver, or what objdump shows. */
static void slot_name(const struct plt_reader *r, const struct slot *slot, char *buf, size_t size)
{
	const struct elf_symbol *resolver;
	GElf_Sym sym;
	const char *name = NULL;

	if (slot->symbol && r->dynsym && gelf_getsym(r->dynsym, (int)slot->symbol, &sym))
		name = elf_strtab_at(r->dynstr, sym.st_name);
	if (!name || !*name) {
		resolver = slot->resolver ? elf_symbols_find(r->known, slot->resolver) : NULL;
		name = resolver ? resolver->name : NULL;
	}
	if (name && *name)
		snprintf(buf, size, "%.*s@plt", PLT_NAME_MAX, name);
	else
		snprintf(buf, size, "*ABS*+0x%llx@plt", (unsigned long long)slot->resolver);
}

static int add_entry(struct plt_reader *r, const struct slot *slot, const GElf_Shdr *section,
		     uint64_t off, uint64_t size_bytes)
{
	struct elf_symbol s = {.elf_vaddr = section->sh_addr + off,
			       .size_bytes = size_bytes,
			       .limit = section->sh_addr + section->sh_size};
	char name[PLT_NAME_MAX + 32];

	slot_name(r, slot, name, sizeof(name));
	s.name = arena_strndup(&r->known->names->plt, name, strlen(name));
	return s.name ? array_push(&r->entries, s) : -ENOMEM;
}

static int by_got(const void *a, const void *b)
{
	const struct slot *x = a, *y = b;

	return x->got_vaddr < y->got_vaddr ? -1 : x->got_vaddr > y->got_vaddr;
}

/*
 * The slot that an x86-64 entry uses. Jump: [endbr64] [bnd] jmp *disp32(%rip), that is ff 25.
 * The lazy half of an IBT table pushes the index of its relocation instead:
 * endbr64; push imm32, that is 68.
 */
static const struct slot *x86_entry_slot(const struct plt_reader *r, const uint8_t *code,
					 size_t size, uint64_t vaddr)
{
	static const uint8_t endbr64[] = {0xf3, 0x0f, 0x1e, 0xfa};
	size_t at = 0;
	int32_t operand;

	if (size >= 9 && memcmp(code, endbr64, sizeof(endbr64)) == 0) {
		at = sizeof(endbr64);
		if (code[at] == 0x68) {
			memcpy(&operand, code + at + 1, sizeof(operand));
			return (uint32_t)operand < r->lazy.n ? &r->lazy.v[(uint32_t)operand] : NULL;
		}
	}
	if (at < size && code[at] == 0xf2)
		at++;
	if (at + 6 > size || code[at] != 0xff || code[at + 1] != 0x25)
		return NULL;
	memcpy(&operand, code + at + 2, sizeof(operand));
	return r->by_got.n
		       ? bsearch(&(struct slot){.got_vaddr = vaddr + at + 6 + (uint64_t)operand},
				 r->by_got.v, r->by_got.n, sizeof(*r->by_got.v), by_got)
		       : NULL;
}

static int add_decoded(struct plt_reader *r, const GElf_Shdr *shdr, const Elf_Data *data)
{
	/* Entries are 16 bytes, in .plt.got without IBT 8. */
	size_t step = shdr->sh_entsize == 8 ? 8 : 16;

	for (size_t off = 0; off + step <= data->d_size; off += step) {
		const struct slot *slot =
			x86_entry_slot(r, (uint8_t *)data->d_buf + off, step, shdr->sh_addr + off);
		int err = slot ? add_entry(r, slot, shdr, off, step) : 0;

		if (err)
			return err;
	}
	return 0;
}

static int add_by_order(struct plt_reader *r, const struct machine *m, const GElf_Shdr *shdr,
			bool has_header)
{
	uint64_t at = has_header ? m->header_bytes : 0, step = m->entry_bytes;

	/* Entries with branch protection are longer: 24 bytes on aarch64. */
	if (r->lazy.n && shdr->sh_size > at && (shdr->sh_size - at) % r->lazy.n == 0 &&
	    (shdr->sh_size - at) / r->lazy.n <= 2 * step)
		step = MAX(step, (shdr->sh_size - at) / r->lazy.n);
	for (size_t i = 0; i < r->lazy.n && at + step <= shdr->sh_size; i++, at += step) {
		int err = add_entry(r, &r->lazy.v[i], shdr, at, step);

		if (err)
			return err;
	}
	return 0;
}

static int read_section(struct plt_reader *r, const struct machine *m, const char *name)
{
	GElf_Shdr shdr;
	Elf_Scn *scn = elf_section_find(r->f, SHT_PROGBITS, name, &shdr);
	Elf_Data *data;

	/* A debug file has the headers alone; hostile sizes end here too. */
	if (!scn || elf_section_read(scn, &shdr, PLT_BYTES_MAX, &data) ||
	    shdr.sh_addr + shdr.sh_size < shdr.sh_addr)
		return 0;
	if (m->machine == EM_X86_64)
		return add_decoded(r, &shdr, data);
	return str_eq(name, ".plt.got") ? 0 : add_by_order(r, m, &shdr, str_eq(name, ".plt"));
}

static void find_dynsym(struct plt_reader *r)
{
	GElf_Shdr shdr, strings;
	Elf_Scn *scn = elf_section_find(r->f, SHT_DYNSYM, NULL, &shdr);
	Elf_Scn *link = scn ? elf_getscn(r->f->elf, shdr.sh_link) : NULL;

	if (!link || !gelf_getshdr(link, &strings) || strings.sh_type != SHT_STRTAB ||
	    elf_section_read(link, &strings, SECTION_BYTES_MAX, &r->dynstr) ||
	    elf_section_read(scn, &shdr, SECTION_BYTES_MAX, &r->dynsym))
		r->dynsym = NULL;
}

/* Relocations first, then the code that uses them. */
static int read_relocations(struct plt_reader *r, const struct machine *m)
{
	static const char *const sections[] = {".rela.plt", ".rel.plt", ".rela.dyn", ".rel.dyn"};
	int err = 0;

	for (size_t i = 0; i < 2 && !err; i++)
		err = read_slots(r->f, m, sections[i], &r->lazy);
	for (size_t i = 0; i < ARRAY_SIZE(sections) && !err; i++)
		err = read_slots(r->f, m, sections[i], &r->by_got);
	if (!err && r->by_got.n)
		qsort(r->by_got.v, r->by_got.n, sizeof(*r->by_got.v), by_got);
	return err;
}

/* What the symbol table names already keeps its name. */
static int append_new(struct plt_reader *r, struct elf_symbols *s)
{
	size_t kept = 0;
	int err;

	for (size_t i = 0; i < r->entries.n; i++)
		if (!elf_symbols_find(s, r->entries.v[i].elf_vaddr))
			r->entries.v[kept++] = r->entries.v[i];
	if (!kept)
		return 0;
	err = array_reserve(&s->v, s->v.n + kept);
	if (err)
		return err;
	memcpy(s->v.v + s->v.n, r->entries.v, kept * sizeof(*s->v.v));
	s->v.n += kept;
	return 0;
}

int elf_plt_read(struct elf_file *f, struct elf_symbols *s)
{
	static const char *const sections[] = {".plt", ".plt.sec", ".plt.got"};
	struct plt_reader r = {.f = f, .known = s};
	const struct machine *m = machine_of(f);
	int err;

	if (!m)
		return 0;
	find_dynsym(&r);
	err = read_relocations(&r, m);
	for (size_t i = 0; i < ARRAY_SIZE(sections) && !err; i++)
		err = read_section(&r, m, sections[i]);
	if (!err)
		err = append_new(&r, s);
	array_release(&r.lazy);
	array_release(&r.by_got);
	array_release(&r.entries);
	return err;
}
