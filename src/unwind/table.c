/* SPDX-License-Identifier: BSD-2-Clause */
#include "table.h"

#include <gelf.h>

/* Between functions lie up to 15 bytes that never run: no reason for two rows more. */
enum { PADDING_BYTES = 16, SEGMENTS_MAX = 64 };

struct segment {
	uint64_t start, end, file_off; /* ELF vaddrs */
};

struct builder {
	struct unwind_table *t;
	const struct cfi *cfi;
	struct segment segments[SEGMENTS_MAX];
	size_t n_segments;
	const struct segment *segment; /* of what is being added */
	const struct cfi_fde *fde;
	struct hashmap rules; /* by contents → index in t->rules */
	uint64_t covered;     /* file offset, less base: the end of what was added last */
};

static int find_arch(struct elf_file *f, enum unwind_arch *ret)
{
	GElf_Ehdr ehdr;

	if (!gelf_getehdr(elf_file_elf(f), &ehdr) || ehdr.e_ident[EI_CLASS] != ELFCLASS64 ||
	    ehdr.e_ident[EI_DATA] != ELFDATA2LSB)
		return -EOPNOTSUPP;
	if (ehdr.e_machine == EM_X86_64)
		*ret = UNWIND_X86_64;
	else if (ehdr.e_machine == EM_AARCH64)
		*ret = UNWIND_ARM64;
	else
		return -EOPNOTSUPP;
	return 0;
}

static int find_segments(struct builder *b, struct elf_file *f)
{
	Elf *elf = elf_file_elf(f);
	GElf_Phdr p;
	size_t n = 0;
	uint64_t first = UINT64_MAX, last = 0;

	if (elf_getphdrnum(elf, &n))
		n = 0;
	for (size_t i = 0; i < n && b->n_segments < SEGMENTS_MAX; i++) {
		if (!gelf_getphdr(elf, (int)i, &p) || p.p_type != PT_LOAD || !(p.p_flags & PF_X) ||
		    !p.p_filesz || p.p_vaddr + p.p_filesz < p.p_vaddr ||
		    p.p_offset + p.p_filesz < p.p_offset)
			continue;
		b->segments[b->n_segments++] =
			(struct segment){p.p_vaddr, p.p_vaddr + p.p_filesz, p.p_offset};
		first = MIN(first, p.p_offset);
		last = MAX(last, p.p_offset + p.p_filesz);
	}
	if (!b->n_segments)
		return 0;
	if (last - first > UINT32_MAX)
		return -EFBIG;
	b->t->base_off = first;
	return 0;
}

static bool find_segment(struct builder *b, uint64_t start, uint64_t end)
{
	if (b->segment && start >= b->segment->start && end <= b->segment->end)
		return true;
	for (size_t i = 0; i < b->n_segments; i++) {
		b->segment = &b->segments[i];
		if (start >= b->segment->start && end <= b->segment->end)
			return true;
	}
	b->segment = NULL;
	return false;
}

static uint64_t row_off(const struct builder *b, uint64_t elf_vaddr)
{
	return elf_vaddr - b->segment->start + b->segment->file_off - b->t->base_off;
}

static int intern_rule(struct builder *b, const struct unwind_rule *rule, uint32_t *ret)
{
	uint64_t hash = hash_bytes(rule, sizeof(*rule));
	uint32_t at, i;
	int err;

	hashmap_each_candidate(&b->rules, hash, at, i) {
		if (memcmp(&b->t->rules.v[i], rule, sizeof(*rule)) == 0) {
			*ret = i;
			return 0;
		}
	}
	err = array_push(&b->t->rules, *rule);
	if (!err)
		err = hashmap_insert(&b->rules, hash, (uint32_t)b->t->rules.n - 1);
	*ret = (uint32_t)b->t->rules.n - 1;
	return err;
}

/* Rows come in rising order, but for entries that overlap: there the later one wins. */
static int add_row(struct builder *b, uint64_t off, const struct unwind_rule *rule)
{
	struct unwind_row row = {.off = (uint32_t)off};
	int err = intern_rule(b, rule, &row.rule);

	if (err)
		return err;
	while (b->t->rows.n && b->t->rows.v[b->t->rows.n - 1].off >= off)
		b->t->rows.n--;
	if (b->t->rows.n && b->t->rows.v[b->t->rows.n - 1].rule == row.rule)
		return 0;
	return array_push(&b->t->rows, row);
}

static int add_gap(struct builder *b, uint64_t off)
{
	return add_row(b, off, &b->t->rules.v[0]);
}

static int add_state(void *ctx, uint64_t elf_vaddr, const struct cfi_state *s)
{
	struct builder *b = ctx;
	const struct cfi_cie *cie = &b->cfi->cies.v[b->fde->cie];
	struct unwind_rule rule;

	/* A program may end with an address that is the next function's. */
	if (elf_vaddr >= b->fde->end)
		return 0;
	cfi_rule(b->t->arch, s, cie->cie.return_address_register, cie->signal, &rule);
	return add_row(b, row_off(b, elf_vaddr), &rule);
}

/* Makes room for [start, end); false when better information is there already. */
static bool begin_range(struct builder *b, uint64_t start, uint64_t end, bool better, int *ret_err)
{
	uint64_t off;

	if (!find_segment(b, start, end))
		return false;
	off = row_off(b, start);
	if (!better && off < b->covered)
		return false;
	*ret_err = off >= b->covered + PADDING_BYTES ? add_gap(b, b->covered) : 0;
	b->covered = off + (end - start);
	return true;
}

static int add_fde(struct builder *b, const struct cfi_fde *fde)
{
	int err = 0;

	if (!begin_range(b, fde->start, fde->end, !fde->debug_frame, &err) || err)
		return err;
	b->fde = fde;
	err = cfi_run(&b->cfi->cies.v[fde->cie], fde, add_state, b);
	return err == -EBADMSG ? add_gap(b, row_off(b, fde->start)) : err;
}

static int add_known(struct builder *b, const struct known_code *k)
{
	int err = 0;

	if (!begin_range(b, k->start, k->end, false, &err) || err)
		return err;
	return add_row(b, row_off(b, k->start), &k->rule);
}

static int add_all(struct builder *b, const known_codes *known)
{
	size_t k = 0;
	int err = add_gap(b, 0);

	for (size_t i = 0; i <= b->cfi->fdes.n && !err; i++) {
		uint64_t start = i < b->cfi->fdes.n ? b->cfi->fdes.v[i].start : UINT64_MAX;

		for (; k < known->n && known->v[k].start < start && !err; k++)
			err = add_known(b, &known->v[k]);
		if (i < b->cfi->fdes.n && !err)
			err = add_fde(b, &b->cfi->fdes.v[i]);
	}
	return err ? err : add_gap(b, b->covered);
}

static int build(struct builder *b, struct elf_file *f)
{
	struct cfi cfi = {0};
	known_codes known = {0};
	uint32_t none;
	int err = find_segments(b, f);

	if (!err)
		err = intern_rule(b,
				  &(struct unwind_rule){.kind = file_keeps_frame_pointers(f)
									? UNWIND_RULE_FP
									: UNWIND_RULE_NONE},
				  &none);
	if (!err)
		err = cfi_read(f, b->t->arch, &cfi);
	b->cfi = &cfi;
	if (!err)
		err = known_code_find(f, &cfi, &known);
	if (!err)
		err = add_all(b, &known);
	array_release(&known);
	cfi_release(&cfi);
	hashmap_release(&b->rules);
	return err;
}

int unwind_table_build(struct elf_file *f, struct unwind_table **ret)
{
	CLEANUP(unwind_table_freep) struct unwind_table *t = NULL;
	enum unwind_arch arch;
	int err = find_arch(f, &arch);

	if (err)
		return err;
	t = calloc(1, sizeof(*t));
	if (!t)
		return -ENOMEM;
	t->arch = arch;
	err = build(&(struct builder){.t = t}, f);
	if (err)
		return err;
	*ret = TAKE_PTR(t);
	return 0;
}

void unwind_table_free(struct unwind_table *t)
{
	if (!t)
		return;
	array_release(&t->rows);
	array_release(&t->rules);
	free(t);
}

const struct unwind_rule *unwind_table_find(const struct unwind_table *t, uint64_t file_off)
{
	uint64_t off = file_off - t->base_off;
	size_t lo = 0, hi = t->rows.n;

	if (off > UINT32_MAX)
		return &t->rules.v[0];
	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (t->rows.v[mid].off <= off)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo ? &t->rules.v[t->rows.v[lo - 1].rule] : &t->rules.v[0];
}
