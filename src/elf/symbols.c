/* SPDX-License-Identifier: BSD-2-Clause */
#include "elf_struct.h"

/* How many enclosing symbols a search looks at: real ones are nested once or twice. */
#define NESTING_MAX 64
/* Names are compared no further: a hostile table may point all symbols at one huge string. */
#define COMPARE_BYTES_MAX 1024

/* A symbol with what is needed to choose among several at one address. */
struct raw_symbol {
	struct elf_symbol s;
	uint32_t order; /* in the tables: makes the sort stable */
	uint8_t type, bind;
};

typedef ARRAY(struct raw_symbol) raw_symbols;

/* What one table's symbols are read with. */
struct table_reader {
	struct elf_file *f;
	Elf_Data *symbols;
	Elf_Data *sections; /* numbers of sections that do not fit into a symbol; mostly NULL */
	char *strtab;       /* NUL-terminated copy */
	size_t strtab_bytes;
	/* The section of the last symbol: neighbours mostly share it. */
	uint32_t section;
	GElf_Shdr shdr;
};

static bool section_of(struct table_reader *t, const GElf_Sym *sym, uint32_t extended)
{
	uint32_t index = sym->st_shndx == SHN_XINDEX ? extended : sym->st_shndx;

	if (index == SHN_UNDEF || (sym->st_shndx >= SHN_LORESERVE && sym->st_shndx != SHN_XINDEX))
		return false;
	if (index == t->section)
		return true;
	t->section = SHN_UNDEF;
	if (!gelf_getshdr(elf_getscn(t->f->elf, index), &t->shdr))
		return false;
	t->section = index;
	return true;
}

/* Marks that assemblers put into code for disassemblers: "$x", "$d.1", RISC-V "$xrv64i2p1". */
static bool is_mapping_symbol(const char *name, uint16_t machine)
{
	return name[0] == '$' && name[1] && strchr("adtx", name[1]) &&
	       (!name[2] || name[2] == '.' || machine == EM_RISCV);
}

static bool is_code(uint8_t type, const char *name, uint16_t machine)
{
	if (type == STT_FUNC || type == STT_GNU_IFUNC)
		return true;
	/* Local labels and the notes of annobin begin with a dot. */
	return type == STT_NOTYPE && name[0] != '.' && !is_mapping_symbol(name, machine);
}

/* "clock_gettime@@GLIBC_2.17", which only .symtab has, becomes "clock_gettime": a function has the
 * same name with and without a debug file. "f@4" is a name of its own. */
static void cut_version(char *name)
{
	char *at = memchr(name + 1, '@', strnlen(name + 1, COMPARE_BYTES_MAX));
	const char *version = at && at[1] == '@' ? at + 2 : at ? at + 1 : "";

	if (*version && (*version < '0' || *version > '9') && !str_eq(version, "plt"))
		*at = '\0';
}

/* False when symbol i is no function. */
static bool read_symbol(struct table_reader *t, int i, struct raw_symbol *ret)
{
	uint16_t machine = t->f->ehdr.e_machine;
	Elf32_Word section = SHN_UNDEF;
	GElf_Sym sym;

	if (!gelf_getsymshndx(t->symbols, t->sections, i, &sym, &section) || !sym.st_name ||
	    sym.st_name >= t->strtab_bytes)
		return false;
	*ret = (struct raw_symbol){.type = GELF_ST_TYPE(sym.st_info),
				   .bind = GELF_ST_BIND(sym.st_info)};
	ret->s = (struct elf_symbol){.elf_vaddr = sym.st_value,
				     .size_bytes = sym.st_size,
				     .name = t->strtab + sym.st_name};
	if (!*ret->s.name || !is_code(ret->type, ret->s.name, machine) ||
	    !section_of(t, &sym, section) || !(t->shdr.sh_flags & SHF_EXECINSTR))
		return false;
	cut_version(t->strtab + sym.st_name);
	if (machine == EM_ARM && ret->type == STT_FUNC)
		ret->s.elf_vaddr &= ~1ULL; /* bit 0: Thumb code */
	ret->s.limit = t->shdr.sh_addr + t->shdr.sh_size;
	return ret->s.elf_vaddr >= t->shdr.sh_addr && ret->s.elf_vaddr < ret->s.limit;
}

static int copy_strtab(struct elf_file *f, uint32_t section, char **ret, size_t *ret_bytes)
{
	Elf_Scn *scn = elf_getscn(f->elf, section);
	GElf_Shdr shdr;
	Elf_Data *data;
	char *copy;
	int err;

	if (!scn || !gelf_getshdr(scn, &shdr) || shdr.sh_type != SHT_STRTAB)
		return -EBADMSG;
	err = elf_section_read(scn, &shdr, SECTION_BYTES_MAX, &data);
	if (err)
		return err;
	copy = malloc(data->d_size + 1);
	if (!copy)
		return -ENOMEM;
	memcpy(copy, data->d_buf, data->d_size);
	copy[data->d_size] = '\0';
	*ret = copy;
	*ret_bytes = data->d_size;
	return 0;
}

/* Files with more than 65,279 sections have a table of their numbers beside the symbols. */
static Elf_Data *read_section_numbers(struct elf_file *f, uint32_t symtab)
{
	Elf_Scn *scn = NULL;
	GElf_Shdr shdr;
	Elf_Data *data;
	size_t n;

	if (elf_getshdrnum(f->elf, &n) || n < SHN_LORESERVE)
		return NULL;
	while ((scn = elf_nextscn(f->elf, scn)))
		if (gelf_getshdr(scn, &shdr) && shdr.sh_type == SHT_SYMTAB_SHNDX &&
		    shdr.sh_link == symtab)
			return elf_section_read(scn, &shdr, SECTION_BYTES_MAX, &data) ? NULL : data;
	return NULL;
}

/* A table that is missing or damaged adds nothing. */
static int read_table(struct elf_file *f, uint32_t type, char **strtab, raw_symbols *out,
		      bool *damaged)
{
	struct table_reader t = {.f = f};
	GElf_Shdr shdr;
	Elf_Scn *scn = elf_section_find(f, type, NULL, &shdr);
	size_t n;
	int err;

	if (!scn)
		return 0;
	err = elf_section_read(scn, &shdr, SECTION_BYTES_MAX, &t.symbols);
	if (err == -ENOENT)
		return 0;
	if (!err)
		err = copy_strtab(f, shdr.sh_link, strtab, &t.strtab_bytes);
	*damaged |= err && err != -ENOENT;
	if (err)
		return err == -ENOMEM ? err : 0;
	t.strtab = *strtab;
	t.sections = read_section_numbers(f, (uint32_t)elf_ndxscn(scn));
	n = t.symbols->d_size / gelf_fsize(f->elf, ELF_T_SYM, 1, EV_CURRENT);
	for (size_t i = 1; i < n; i++) {
		struct raw_symbol s;

		if (!read_symbol(&t, (int)i, &s))
			continue;
		s.order = (uint32_t)out->n;
		err = array_push(out, s);
		if (err)
			return err;
	}
	return 0;
}

static int by_address(const void *a, const void *b)
{
	const struct raw_symbol *x = a, *y = b;

	if (x->s.elf_vaddr != y->s.elf_vaddr)
		return x->s.elf_vaddr < y->s.elf_vaddr ? -1 : 1;
	return x->order < y->order ? -1 : x->order > y->order;
}

/* Positive: a is the better name for their address. Source: choose_best_symbol of perf. */
static int prefer(const struct raw_symbol *a, const struct raw_symbol *b)
{
	size_t a_dashes, b_dashes;

	if (!a->s.size_bytes != !b->s.size_bytes)
		return a->s.size_bytes ? 1 : -1;
	if ((a->type == STT_NOTYPE) != (b->type == STT_NOTYPE))
		return a->type == STT_NOTYPE ? -1 : 1;
	if ((a->bind == STB_WEAK) != (b->bind == STB_WEAK))
		return a->bind == STB_WEAK ? -1 : 1;
	if ((a->bind == STB_GLOBAL) != (b->bind == STB_GLOBAL))
		return a->bind == STB_GLOBAL ? 1 : -1;
	for (a_dashes = 0; a_dashes < COMPARE_BYTES_MAX && a->s.name[a_dashes] == '_';)
		a_dashes++;
	for (b_dashes = 0; b_dashes < COMPARE_BYTES_MAX && b->s.name[b_dashes] == '_';)
		b_dashes++;
	if (a_dashes != b_dashes)
		return a_dashes < b_dashes ? 1 : -1;
	return (int)strnlen(a->s.name, COMPARE_BYTES_MAX) -
	       (int)strnlen(b->s.name, COMPARE_BYTES_MAX);
}

static uint64_t sized_end(const struct elf_symbol *s)
{
	uint64_t room = s->limit - s->elf_vaddr;

	return s->elf_vaddr + MIN(s->size_bytes, room);
}

/* Sorted raw symbols: one an address, and no label inside a function. */
static int keep_best(const raw_symbols *raw, struct elf_symbols *s)
{
	uint64_t covered_to = 0;
	int err;

	for (size_t i = 0, j; i < raw->n; i = j) {
		const struct raw_symbol *best = &raw->v[i];

		for (j = i + 1; j < raw->n; j++) {
			if (raw->v[j].s.elf_vaddr != best->s.elf_vaddr)
				break;
			if (prefer(&raw->v[j], best) > 0)
				best = &raw->v[j];
		}
		if (!best->s.size_bytes && best->s.elf_vaddr < covered_to)
			continue;
		if (best->s.size_bytes)
			covered_to = MAX(covered_to, sized_end(&best->s));
		err = array_push(&s->v, best->s);
		if (err)
			return err;
	}
	return 0;
}

static int symbol_by_address(const void *a, const void *b)
{
	const struct elf_symbol *x = a, *y = b;

	return x->elf_vaddr < y->elf_vaddr ? -1 : x->elf_vaddr > y->elf_vaddr;
}

/* Which symbol encloses the start of which: a stack of those still open. */
static int link_outer(struct elf_symbols *s)
{
	uint32_t *outer = calloc(s->v.n ? s->v.n : 1, sizeof(*outer));
	uint32_t top = 0; /* index + 1 */

	if (!outer)
		return -ENOMEM;
	for (size_t i = 0; i < s->v.n; i++) {
		const struct elf_symbol *own = &s->v.v[i];

		while (top && sized_end(&s->v.v[top - 1]) <= own->elf_vaddr)
			top = outer[top - 1];
		outer[i] = top;
		if (own->size_bytes)
			top = (uint32_t)i + 1;
	}
	free(s->names->outer);
	s->names->outer = outer;
	return 0;
}

static int add_plt(struct elf_file *f, struct elf_symbols *s)
{
	size_t n = s->v.n;
	int err = elf_plt_read(f, s);

	if (err || s->v.n == n)
		return err;
	qsort(s->v.v, s->v.n, sizeof(*s->v.v), symbol_by_address);
	return link_outer(s);
}

int elf_symbols_read(struct elf_file *f, struct elf_symbols *ret)
{
	CLEANUP(elf_symbols_release) struct elf_symbols s = {0};
	raw_symbols raw = {0};
	int err;

	s.names = calloc(1, sizeof(*s.names));
	if (!s.names)
		return -ENOMEM;
	err = read_table(f, SHT_SYMTAB, &s.names->strtabs[0], &raw, &s.damaged);
	if (!err)
		err = read_table(f, SHT_DYNSYM, &s.names->strtabs[1], &raw, &s.damaged);
	if (!err && raw.n)
		qsort(raw.v, raw.n, sizeof(*raw.v), by_address);
	if (!err)
		err = keep_best(&raw, &s);
	array_release(&raw);
	if (!err)
		err = link_outer(&s);
	if (!err)
		err = add_plt(f, &s);
	if (err)
		return err;
	*ret = s;
	s = (struct elf_symbols){0};
	return 0;
}

void elf_symbols_release(struct elf_symbols *s)
{
	array_release(&s->v);
	if (s->names) {
		free(s->names->strtabs[0]);
		free(s->names->strtabs[1]);
		free(s->names->outer);
		arena_release(&s->names->plt);
	}
	free(s->names);
	s->names = NULL;
}

/* Index + 1 of the last symbol that starts at or below elf_vaddr, 0 none. */
static size_t last_start(const struct elf_symbols *s, uint64_t elf_vaddr)
{
	size_t low = 0, high = s->v.n;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (s->v.v[middle].elf_vaddr <= elf_vaddr)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

const struct elf_symbol *elf_symbols_find(const struct elf_symbols *s, uint64_t elf_vaddr)
{
	size_t i = last_start(s, elf_vaddr);

	for (int depth = 0; i && depth < NESTING_MAX; depth++) {
		const struct elf_symbol *own = &s->v.v[i - 1];

		/* Without a size it reaches to the next one, which starts above elf_vaddr. */
		if (elf_vaddr < (own->size_bytes ? sized_end(own) : own->limit))
			return own;
		i = s->names->outer[i - 1];
	}
	return NULL;
}
