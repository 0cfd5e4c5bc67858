/* SPDX-License-Identifier: BSD-2-Clause */
#include "cfi.h"

#include <dwarf.h>
#include <gelf.h>

/* A call frame section larger than this belongs to no program (Chromium has 20 MiB). */
#define CFI_BYTES_MAX (1ULL << 30)

struct section {
	const unsigned char *ident;
	Elf_Data *data;
	uint64_t vaddr; /* of its first byte */
	bool debug_frame;
	struct hashmap cie_at; /* section offset → index in cies */
};

static const char *section_name(Elf *elf, size_t strndx, const GElf_Shdr *shdr)
{
	const char *name = elf_strptr(elf, strndx, shdr->sh_name);

	return name ? name : "";
}

static bool read_section(Elf *elf, const char *name, struct section *ret)
{
	Elf_Scn *scn = NULL;
	GElf_Shdr shdr;
	size_t strndx;

	if (elf_getshdrstrndx(elf, &strndx))
		return false;
	while ((scn = elf_nextscn(elf, scn))) {
		if (!gelf_getshdr(scn, &shdr) || shdr.sh_type == SHT_NOBITS ||
		    shdr.sh_size > CFI_BYTES_MAX || !str_eq(section_name(elf, strndx, &shdr), name))
			continue;
		if (shdr.sh_flags & SHF_COMPRESSED &&
		    (elf_compress(scn, 0, 0) < 0 || !gelf_getshdr(scn, &shdr)))
			return false;
		ret->data = elf_rawdata(scn, NULL);
		ret->vaddr = shdr.sh_addr;
		return ret->data && ret->data->d_buf && ret->data->d_size;
	}
	return false;
}

/* Files without section headers: PT_GNU_EH_FRAME points at .eh_frame_hdr, which points on. */
static bool read_eh_frame_hdr(struct elf_file *f, Elf *elf, struct section *ret)
{
	GElf_Phdr phdr;
	Elf_Data *hdr;
	struct cfi_cursor c;
	size_t n = 0;
	uint64_t off, vaddr;
	uint8_t encoding;

	if (elf_getphdrnum(elf, &n))
		return false;
	for (size_t i = 0;; i++) {
		if (i == n || !gelf_getphdr(elf, (int)i, &phdr))
			return false;
		if (phdr.p_type == PT_GNU_EH_FRAME)
			break;
	}
	hdr = elf_getdata_rawchunk(elf, (int64_t)phdr.p_offset, 12, ELF_T_BYTE);
	if (!hdr || hdr->d_size < 12)
		return false;
	c = (struct cfi_cursor){hdr->d_buf, (uint8_t *)hdr->d_buf + hdr->d_size, false};
	if (cfi_fixed(&c, 1) != 1)
		return false;
	encoding = (uint8_t)cfi_fixed(&c, 1);
	cfi_fixed(&c, 2);
	vaddr = cfi_pointer(&c, encoding, 8, phdr.p_vaddr + 4);
	if (c.bad || elf_file_vaddr_to_off(f, vaddr, &off))
		return false;
	for (size_t i = 0; i < n; i++) {
		if (!gelf_getphdr(elf, (int)i, &phdr) || phdr.p_type != PT_LOAD ||
		    vaddr < phdr.p_vaddr || vaddr - phdr.p_vaddr >= phdr.p_filesz)
			continue;
		ret->data = elf_getdata_rawchunk(
			elf, (int64_t)off,
			MIN(phdr.p_filesz - (vaddr - phdr.p_vaddr), CFI_BYTES_MAX), ELF_T_BYTE);
		ret->vaddr = vaddr;
		return ret->data && ret->data->d_buf;
	}
	return false;
}

/* --- entries ---------------------------------------------------------------------------------- */

/* "zPLR…": the data that follows the string has one item per letter. */
static bool read_augmentation(struct cfi_cie *e, uint64_t data_vaddr)
{
	const char *letter = e->cie.augmentation;
	struct cfi_cursor c = {e->cie.augmentation_data,
			       e->cie.augmentation_data + e->cie.augmentation_data_size, false};

	if (!*letter)
		return true;
	if (*letter != 'z' || !e->cie.augmentation_data)
		return false;
	for (letter++; *letter; letter++) {
		switch (*letter) {
		case 'R':
			e->encoding = (uint8_t)cfi_fixed(&c, 1);
			break;
		case 'P': {
			uint8_t encoding = (uint8_t)cfi_fixed(&c, 1);

			/* Only its length matters. */
			cfi_pointer(&c, encoding & 0x0f, e->address_bytes, data_vaddr);
			break;
		}
		case 'L':
			cfi_fixed(&c, 1);
			break;
		case 'S':
			e->signal = true;
			break;
		case 'B': /* aarch64: signed with key B */
		case 'G': /* aarch64: memory tagging of the stack */
			break;
		default: /* unknown, but 'z' says where it ends */
			return !c.bad;
		}
	}
	return !c.bad;
}

static int add_cie(struct cfi *c, struct section *s, uint64_t off, const Dwarf_CIE *cie)
{
	struct cfi_cie e = {.cie = *cie, .section_off = off, .address_bytes = 8};
	int err;

	e.usable = read_augmentation(&e, 0) && cie->code_alignment_factor;
	err = array_push(&c->cies, e);
	return err ? err : hashmap_insert(&s->cie_at, hash_u64(off), (uint32_t)c->cies.n - 1);
}

static bool find_cie(const struct cfi *c, const struct section *s, uint64_t off, uint32_t *ret)
{
	uint32_t at, i;

	hashmap_each_candidate(&s->cie_at, hash_u64(off), at, i) {
		if (c->cies.v[i].section_off == off) {
			*ret = i;
			return true;
		}
	}
	return false;
}

/* An FDE may come before its CIE in .debug_frame. */
static int need_cie(struct cfi *c, struct section *s, uint64_t off, uint32_t *ret)
{
	Dwarf_CFI_Entry entry;
	Dwarf_Off next;
	int err;

	if (find_cie(c, s, off, ret))
		return 0;
	if (off >= s->data->d_size ||
	    dwarf_next_cfi(s->ident, s->data, !s->debug_frame, off, &next, &entry) ||
	    !dwarf_cfi_cie_p(&entry))
		return -ENOENT;
	err = add_cie(c, s, off, &entry.cie);
	*ret = (uint32_t)c->cies.n - 1;
	return err;
}

static int add_fde(struct cfi *c, struct section *s, const Dwarf_FDE *fde)
{
	struct cfi_fde e = {.debug_frame = s->debug_frame};
	struct cfi_cursor cur = {fde->start, fde->end, false};
	const struct cfi_cie *cie;
	uint64_t at, length;
	int err = need_cie(c, s, fde->CIE_pointer, &e.cie);

	if (err)
		return err == -ENOENT ? 0 : err;
	cie = &c->cies.v[e.cie];
	at = s->vaddr + (uint64_t)(fde->start - (const uint8_t *)s->data->d_buf);
	e.start = cfi_pointer(&cur, cie->encoding, cie->address_bytes, at);
	length = cfi_pointer(&cur, cie->encoding & 0x0f, cie->address_bytes, 0);
	if (cie->cie.augmentation[0] == 'z')
		cfi_block(&cur);
	/* Start 0: a function that the linker threw away. */
	if (cur.bad || !cie->usable || !e.start || !length || e.start + length < e.start)
		return 0;
	e.end = e.start + length;
	e.program = cur.p;
	e.program_end = cur.end;
	return array_push(&c->fdes, e);
}

static int read_entries(struct cfi *c, struct section *s)
{
	Dwarf_Off off = 0, next = 0;
	int err = 0;

	while (!err && off < s->data->d_size) {
		Dwarf_CFI_Entry entry;
		uint32_t cie;
		int res = dwarf_next_cfi(s->ident, s->data, !s->debug_frame, off, &next, &entry);

		if (res > 0 || next <= off)
			break;
		if (!res && !dwarf_cfi_cie_p(&entry))
			err = add_fde(c, s, &entry.fde);
		else if (!res && !find_cie(c, s, off, &cie))
			err = add_cie(c, s, off, &entry.cie);
		off = next;
	}
	hashmap_release(&s->cie_at);
	return err;
}

static int by_start(const void *pa, const void *pb)
{
	const struct cfi_fde *a = pa, *b = pb;

	if (a->start != b->start)
		return a->start < b->start ? -1 : 1;
	return (int)a->debug_frame - (int)b->debug_frame;
}

int cfi_read(struct elf_file *f, enum unwind_arch arch, struct cfi *ret)
{
	Elf *elf = elf_file_elf(f);
	struct section eh_frame = {0}, debug_frame = {.debug_frame = true};
	struct cfi c = {.arch = arch};
	int err = 0;

	eh_frame.ident = debug_frame.ident = (const unsigned char *)elf_getident(elf, NULL);
	if (read_section(elf, ".eh_frame", &eh_frame) || read_eh_frame_hdr(f, elf, &eh_frame))
		err = read_entries(&c, &eh_frame);
	if (!err && read_section(elf, ".debug_frame", &debug_frame))
		err = read_entries(&c, &debug_frame);
	if (err) {
		cfi_release(&c);
		return err;
	}
	if (c.fdes.n)
		qsort(c.fdes.v, c.fdes.n, sizeof(*c.fdes.v), by_start);
	*ret = c;
	return 0;
}

bool cfi_covers(const struct cfi *c, uint64_t elf_vaddr)
{
	size_t lo = 0, hi = c->fdes.n;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (c->fdes.v[mid].start <= elf_vaddr)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo && elf_vaddr < c->fdes.v[lo - 1].end;
}

void cfi_release(struct cfi *c)
{
	array_release(&c->cies);
	array_release(&c->fdes);
}
