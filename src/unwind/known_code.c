/* SPDX-License-Identifier: BSD-2-Clause */
#include "table.h"

#include <gelf.h>

/*
 * What has no call frame information, and what is known of it all the same: PLT sections of
 * linkers that describe none (lld), _init and _fini, the return from a signal handler, and the
 * place from which musl calls main and thread functions. Only looked for where there is no FDE, but
 * in Go's programs.
 */

enum { GAP_BYTES_MIN = 16, GAP_BYTES_MAX = 64 << 20, GAPS_MAX = 4096, SYMBOLS_MAX = 1 << 22 };

bool file_keeps_frame_pointers(struct elf_file *f)
{
	return elf_file_has_section(f, ".gopclntab") || elf_file_has_section(f, ".go.buildinfo");
}

static struct unwind_rule simple_rule(enum unwind_rule_kind kind, int32_t off)
{
	struct unwind_rule r = {.off = off, .kind = (uint8_t)kind};

	if (kind != UNWIND_RULE_CFA && kind != UNWIND_RULE_PLT)
		return r;
	r.reg = UNWIND_SLOT_SP;
	r.ra = -1;
	for (unsigned i = 0; i < UNWIND_SAVED; i++)
		r.saved[i] = UNWIND_SAME;
	return r;
}

/* --- sections of a known form ----------------------------------------------------------------- */

/* aarch64: entries keep the stack as it is; entry 0 pushes x16 and lr first. */
static int add_plt_arm64(uint64_t start, uint64_t end, known_codes *ret)
{
	struct known_code entries = {start + 32, end, simple_rule(UNWIND_RULE_CFA, 0)};
	int err;

	if (end - start <= 32)
		return 0;
	entries.rule.flags = UNWIND_RA_IN_REG;
	entries.rule.ra = (int16_t)unwind_slot(UNWIND_ARM64, 30);
	err = array_push(ret, (struct known_code){start + 4, start + 32,
						  simple_rule(UNWIND_RULE_CFA, 16)});
	return err ? err : array_push(ret, entries);
}

/* Entry 0 of .plt pushes and jumps; the others push their index first (from byte 11 on). */
static int add_lazy_plt(uint64_t start, uint64_t end, known_codes *ret)
{
	const struct known_code codes[] = {
		{start, start + 6, simple_rule(UNWIND_RULE_CFA, 16)},
		{start + 6, start + 16, simple_rule(UNWIND_RULE_CFA, 24)},
		{start + 16, end, simple_rule(UNWIND_RULE_PLT, 11)},
	};
	int err = 0;

	for (size_t i = 0; i < ARRAY_SIZE(codes) && !err; i++)
		if (codes[i].end <= end)
			err = array_push(ret, codes[i]);
	return err;
}

/* _init and _fini are sewn together of the pieces of crti.o and crtn.o, without CFI. They keep the
 * stack aligned by a word, from the first instruction to the one before `ret`. Being the first code
 * of a file, _init is where a program waits for its page. */
static int add_init(Elf_Scn *scn, const GElf_Shdr *shdr, known_codes *ret)
{
	static const struct {
		const char *enter, *leave;
		uint8_t n_enter, n_leave;
	} forms[] = {
		{"\x48\x83\xec\x08", "\x48\x83\xc4\x08\xc3", 4, 5}, /* glibc: sub, add */
		{"\x50", "\x58\xc3", 1, 2},                         /* musl: push, pop */
	};
	const Elf_Data *data = elf_rawdata(scn, NULL);
	const uint8_t *code = data ? data->d_buf : NULL;
	uint64_t start = shdr->sh_addr, end = start + shdr->sh_size;
	size_t at = 0;

	if (!code || data->d_size != shdr->sh_size)
		return 0;
	if (data->d_size > 4 && memcmp(code, "\xf3\x0f\x1e\xfa", 4) == 0)
		at = 4; /* endbr64 */
	for (size_t i = 0; i < ARRAY_SIZE(forms); i++) {
		size_t inside = at + forms[i].n_enter;
		const struct known_code codes[] = {
			{start, start + inside, simple_rule(UNWIND_RULE_CFA, 8)},
			{start + inside, end - 1, simple_rule(UNWIND_RULE_CFA, 16)},
			{end - 1, end, simple_rule(UNWIND_RULE_CFA, 8)},
		};
		int err = 0;

		if (data->d_size < inside + forms[i].n_leave ||
		    memcmp(code + at, forms[i].enter, forms[i].n_enter) != 0 ||
		    memcmp(code + data->d_size - forms[i].n_leave, forms[i].leave,
			   forms[i].n_leave) != 0)
			continue;
		for (size_t j = 0; j < ARRAY_SIZE(codes) && !err; j++)
			err = array_push(ret, codes[j]);
		return err;
	}
	return 0;
}

static int add_sections(struct elf_file *f, enum unwind_arch arch, known_codes *ret)
{
	static const char *const direct[] = {".plt.sec", ".plt.got", ".iplt"};
	Elf *elf = elf_file_elf(f);
	Elf_Scn *scn = NULL;
	GElf_Shdr shdr;
	size_t strndx;
	int err = 0;

	if (elf_getshdrstrndx(elf, &strndx))
		return 0;
	while (!err && (scn = elf_nextscn(elf, scn))) {
		const char *name;
		uint64_t end;

		if (!gelf_getshdr(scn, &shdr) || !(shdr.sh_flags & SHF_EXECINSTR) ||
		    __builtin_add_overflow(shdr.sh_addr, shdr.sh_size, &end))
			continue;
		name = elf_strptr(elf, strndx, shdr.sh_name);
		if (name && str_eq(name, ".plt"))
			err = arch == UNWIND_ARM64 ? add_plt_arm64(shdr.sh_addr, end, ret)
						   : add_lazy_plt(shdr.sh_addr, end, ret);
		if (name && arch == UNWIND_X86_64 &&
		    (str_eq(name, ".init") || str_eq(name, ".fini")))
			err = add_init(scn, &shdr, ret);
		for (size_t i = 0; name && arch == UNWIND_X86_64 && i < ARRAY_SIZE(direct) && !err;
		     i++)
			if (str_eq(name, direct[i]))
				err = array_push(
					ret, (struct known_code){shdr.sh_addr, end,
								 simple_rule(UNWIND_RULE_CFA, 8)});
	}
	return err;
}

/* --- the entry point -------------------------------------------------------------------------- */

/* The loader and musl do not describe theirs: what it calls has no caller beyond. Their code up to
 * the jump into the program is shorter than this. */
enum { ENTRY_BYTES = 64 };

static int add_entry(struct elf_file *f, const struct cfi *c, known_codes *ret)
{
	uint64_t entry = elf_file_entry(f), end = entry + ENTRY_BYTES;

	if (!entry || end < entry || cfi_covers(c, entry))
		return 0;
	for (size_t i = 0; i < c->fdes.n; i++)
		if (c->fdes.v[i].start > entry)
			end = MIN(end, c->fdes.v[i].start);
	return array_push(ret, (struct known_code){entry, end, simple_rule(UNWIND_RULE_END, 0)});
}

/* --- code in gaps ----------------------------------------------------------------------------- */

/* Gaps are read in pieces that overlap by more than is looked for at once. Chromium has 200 MB. */
enum { PIECE_BYTES = 256 << 10, OVERLAP_BYTES = 32 };

struct gap {
	uint64_t start; /* ELF vaddr */
	const uint8_t *code;
	size_t n;
};

/* The libc that ends programs: calls of these from a gap follow the return of main or a thread. */
struct enders {
	uint64_t exit_vaddr, pthread_exit_vaddr; /* 0: none */
};

struct search {
	struct elf_file *file;
	const struct cfi *cfi;
	struct enders enders;
	uint8_t piece[PIECE_BYTES];
};

static int add_match(const struct gap *g, size_t from, size_t to, enum unwind_rule_kind kind,
		     known_codes *ret)
{
	return array_push(ret, (struct known_code){g->start + from, g->start + to,
						   simple_rule(kind, 0)});
}

/* All that may stand before an end that they have in common, which is searched for once. */
static const struct {
	uint8_t end[8], n_end;
	struct {
		uint8_t code[3], n;
	} begins[2];
} sigreturns[] = {
	/* mov $15,%rax or mov $15,%eax; syscall */
	[UNWIND_X86_64] = {{0x0f, 0, 0, 0, 0x0f, 0x05}, 6, {{{0x48, 0xc7, 0xc0}, 3}, {{0xb8}, 1}}},
	/* mov x8,#139; svc #0 */
	[UNWIND_ARM64] = {{0x68, 0x11, 0x80, 0xd2, 0x01, 0, 0, 0xd4}, 8, {{{0}, 0}}},
};

/* How long the code before an end at `at` is, or -1: it is none. */
static int sigreturn_begins(enum unwind_arch arch, const struct gap *g, size_t at)
{
	for (size_t i = 0; i < ARRAY_SIZE(sigreturns[arch].begins); i++) {
		uint8_t n = sigreturns[arch].begins[i].n;

		if (n <= at && memcmp(g->code + at - n, sigreturns[arch].begins[i].code, n) == 0)
			return n;
	}
	return -1;
}

/* The address before the first instruction belongs to it: it is what a handler returns to, less
 * one. */
static int find_sigreturns(enum unwind_arch arch, const struct gap *g, known_codes *ret)
{
	const uint8_t *p = g->code, *end = g->code + g->n;
	size_t n_end = sigreturns[arch].n_end;
	int err = 0;

	while (!err && (p = memmem(p, (size_t)(end - p), sigreturns[arch].end, n_end))) {
		size_t at = (size_t)(p - g->code);
		int before = sigreturn_begins(arch, g, at);

		if (before >= 0) {
			size_t first = at - (size_t)before;

			err = add_match(g, first ? first - 1 : 0, at + n_end, UNWIND_RULE_SIGNAL,
					ret);
		}
		p += n_end;
	}
	return err;
}

/* `call …; mov %eax,%edi; call exit` and `call …; mov %rax,%rdi; call pthread_exit`, or with
 * cltq between (C11 threads). */
static int find_ends(const struct enders *e, const struct gap *g, known_codes *ret)
{
	int err = 0;

	for (size_t i = 12; i + 5 <= g->n && !err; i++) {
		const uint8_t *p = g->code + i;
		size_t move = p[-2] == 0x89 && p[-1] == 0xc7 ? (p[-3] == 0x48 ? 3 : 2) : 0;
		uint64_t callee;
		int32_t rel;

		if (p[0] != 0xe8 || !move)
			continue;
		if (p[-(int)move - 2] == 0x48 && p[-(int)move - 1] == 0x98)
			move += 2;
		memcpy(&rel, p + 1, sizeof(rel));
		callee = g->start + i + 5 + (uint64_t)(int64_t)rel;
		if (callee && (callee == e->exit_vaddr || callee == e->pthread_exit_vaddr))
			err = add_match(g, i - move - 2, i + 5, UNWIND_RULE_END, ret);
	}
	return err;
}

static void find_enders(Elf *elf, uint32_t type, struct enders *ret)
{
	Elf_Scn *scn = NULL;
	GElf_Shdr shdr;
	GElf_Sym sym;

	while ((scn = elf_nextscn(elf, scn))) {
		Elf_Data *data;

		if (!gelf_getshdr(scn, &shdr) || shdr.sh_type != type)
			continue;
		data = elf_getdata(scn, NULL);
		for (int i = 0; data && i < SYMBOLS_MAX && gelf_getsym(data, i, &sym); i++) {
			const char *name = elf_strptr(elf, shdr.sh_link, sym.st_name);

			if (!name || sym.st_shndx == SHN_UNDEF)
				continue;
			if (str_eq(name, "exit"))
				ret->exit_vaddr = sym.st_value;
			else if (str_eq(name, "pthread_exit"))
				ret->pthread_exit_vaddr = sym.st_value;
		}
	}
}

static int search_gap(struct search *s, uint64_t start, uint64_t end, known_codes *ret)
{
	const struct enders *e = &s->enders;
	struct gap g = {.start = start, .code = s->piece};
	uint64_t off;
	int err = 0;

	if (elf_file_vaddr_to_off(s->file, start, &off))
		return 0;
	for (bool more = true; more && !err;) {
		size_t left = (size_t)(end - g.start);

		g.n = elf_file_read_at(s->file, off + (g.start - start), s->piece,
				       MIN(left, sizeof(s->piece)));
		more = g.n == sizeof(s->piece) && left > g.n;
		err = find_sigreturns(s->cfi->arch, &g, ret);
		if (!err && s->cfi->arch == UNWIND_X86_64 &&
		    (e->exit_vaddr || e->pthread_exit_vaddr))
			err = find_ends(e, &g, ret);
		g.start += g.n - OVERLAP_BYTES;
	}
	return err;
}

static int search_segment(struct search *s, const GElf_Phdr *p, known_codes *ret)
{
	const struct cfi *c = s->cfi;
	uint64_t at = p->p_vaddr, end = p->p_vaddr + p->p_filesz, bytes = 0;
	size_t gaps = 0;
	int err = 0;

	/* Go describes its return from a signal as a function like others. */
	if (file_keeps_frame_pointers(s->file))
		return search_gap(s, at, MIN(end, at + GAP_BYTES_MAX), ret);
	for (size_t i = 0; i <= c->fdes.n && !err && gaps < GAPS_MAX; i++) {
		uint64_t next = i < c->fdes.n ? c->fdes.v[i].start : end;

		if (next > end)
			next = end;
		if (next > at && next - at >= GAP_BYTES_MIN &&
		    (bytes += next - at) <= GAP_BYTES_MAX) {
			err = search_gap(s, at, next, ret);
			gaps++;
		}
		if (i < c->fdes.n)
			at = MAX(at, c->fdes.v[i].end);
	}
	return err;
}

static int search_gaps(struct elf_file *f, const struct cfi *c, known_codes *ret)
{
	CLEANUP(freep) struct search *s = calloc(1, sizeof(*s));
	Elf *elf = elf_file_elf(f);
	GElf_Phdr p;
	size_t n = 0;
	int err = 0;

	if (!s)
		return -ENOMEM;
	s->file = f;
	s->cfi = c;
	/* glibc describes its entry point; whose entry point is not described may be musl. */
	if (elf_file_entry(f) && !cfi_covers(c, elf_file_entry(f))) {
		find_enders(elf, SHT_DYNSYM, &s->enders);
		find_enders(elf, SHT_SYMTAB, &s->enders);
	}
	if (elf_getphdrnum(elf, &n))
		return 0;
	for (size_t i = 0; i < n && !err; i++)
		if (gelf_getphdr(elf, (int)i, &p) && p.p_type == PT_LOAD && p.p_flags & PF_X &&
		    p.p_vaddr + p.p_filesz >= p.p_vaddr)
			err = search_segment(s, &p, ret);
	return err;
}

static int by_start(const void *pa, const void *pb)
{
	const struct known_code *a = pa, *b = pb;

	return a->start < b->start ? -1 : a->start > b->start;
}

int known_code_find(struct elf_file *f, const struct cfi *c, known_codes *ret)
{
	known_codes found = {0};
	int err = add_sections(f, c->arch, &found);

	if (!err)
		err = add_entry(f, c, &found);
	if (!err)
		err = search_gaps(f, c, &found);
	if (err) {
		array_release(&found);
		return err;
	}
	if (found.n)
		qsort(found.v, found.n, sizeof(*found.v), by_start);
	*ret = found;
	return 0;
}
