/* SPDX-License-Identifier: BSD-2-Clause */
#include "elf_struct.h"

#define NOTE_BYTES_MAX (1U << 20)

int elf_section_read(Elf_Scn *scn, const GElf_Shdr *shdr, uint64_t max_bytes, Elf_Data **ret)
{
	Elf_Data *data;

	if (shdr->sh_type == SHT_NOBITS || !shdr->sh_size || (shdr->sh_flags & SHF_COMPRESSED))
		return -ENOENT;
	if (shdr->sh_size > max_bytes)
		return -EFBIG;
	data = elf_getdata(scn, NULL);
	if (!data || !data->d_buf || !data->d_size)
		return -EBADMSG;
	*ret = data;
	return 0;
}

Elf_Scn *elf_section_find(struct elf_file *f, uint32_t type, const char *name, GElf_Shdr *ret_shdr)
{
	Elf_Scn *scn = NULL;
	size_t strndx;

	if (elf_getshdrstrndx(f->elf, &strndx))
		return NULL;
	while ((scn = elf_nextscn(f->elf, scn))) {
		const char *own;

		if (!gelf_getshdr(scn, ret_shdr) || (type && ret_shdr->sh_type != type))
			continue;
		if (!name)
			return scn;
		own = elf_strptr(f->elf, strndx, ret_shdr->sh_name);
		if (own && str_eq(own, name))
			return scn;
	}
	return NULL;
}

const char *elf_strtab_at(const Elf_Data *strtab, uint64_t offset)
{
	const char *s = strtab->d_buf;

	if (offset >= strtab->d_size || !memchr(s + offset, '\0', strtab->d_size - offset))
		return NULL;
	return s + offset;
}

bool elf_file_has_symtab(struct elf_file *f)
{
	GElf_Shdr shdr;
	Elf_Data *data;
	Elf_Scn *scn = elf_section_find(f, SHT_SYMTAB, NULL, &shdr);

	/* One entry is the null symbol. */
	return scn && !elf_section_read(scn, &shdr, SECTION_BYTES_MAX, &data) &&
	       data->d_size > gelf_fsize(f->elf, ELF_T_SYM, 1, EV_CURRENT);
}

int elf_file_debuglink(struct elf_file *f, const char **ret_name, uint32_t *ret_crc)
{
	GElf_Shdr shdr;
	Elf_Data *data;
	Elf_Scn *scn = elf_section_find(f, SHT_PROGBITS, ".gnu_debuglink", &shdr);
	const char *name;
	const uint8_t *crc;
	size_t at;

	if (!scn || elf_section_read(scn, &shdr, NOTE_BYTES_MAX, &data))
		return -ENOENT;
	name = elf_strtab_at(data, 0);
	/* A path would lead out of the folders that are searched. */
	if (!name || !*name || strchr(name, '/'))
		return -ENOENT;
	at = ALIGN_UP(strlen(name) + 1, 4);
	if (data->d_size < at + sizeof(uint32_t))
		return -ENOENT;
	crc = (const uint8_t *)data->d_buf + at;
	*ret_name = name;
	if (f->ehdr.e_ident[EI_DATA] == ELFDATA2MSB)
		*ret_crc = (uint32_t)crc[0] << 24 | (uint32_t)crc[1] << 16 | (uint32_t)crc[2] << 8 |
			   crc[3];
	else
		*ret_crc = (uint32_t)crc[3] << 24 | (uint32_t)crc[2] << 16 | (uint32_t)crc[1] << 8 |
			   crc[0];
	return 0;
}

static bool note_build_id(Elf_Data *data, uint8_t ret_id[20], size_t *ret_size)
{
	size_t at = 0, name_at, desc_at;
	GElf_Nhdr note;

	while ((at = gelf_getnote(data, at, &note, &name_at, &desc_at)) > 0) {
		if (note.n_type != NT_GNU_BUILD_ID || note.n_namesz != sizeof("GNU") ||
		    memcmp((char *)data->d_buf + name_at, "GNU", sizeof("GNU")) != 0 ||
		    !note.n_descsz)
			continue;
		/* Longer ones are cut as the kernel cuts them (BUILD_ID_SIZE_MAX). */
		*ret_size = MIN(note.n_descsz, (size_t)20);
		memcpy(ret_id, (char *)data->d_buf + desc_at, *ret_size);
		return true;
	}
	return false;
}

/* Sections first: in debug files the segments' offsets are not those of their contents. */
static bool section_build_id(struct elf_file *f, uint8_t ret_id[20], size_t *ret_size)
{
	Elf_Scn *scn = NULL;
	GElf_Shdr shdr;
	Elf_Data *data;

	while ((scn = elf_nextscn(f->elf, scn))) {
		if (!gelf_getshdr(scn, &shdr) || shdr.sh_type != SHT_NOTE)
			continue;
		if (!elf_section_read(scn, &shdr, NOTE_BYTES_MAX, &data) &&
		    note_build_id(data, ret_id, ret_size))
			return true;
	}
	return false;
}

int elf_file_build_id(struct elf_file *f, uint8_t ret_id[20], size_t *ret_size)
{
	if (section_build_id(f, ret_id, ret_size))
		return 0;
	for (size_t i = 0; i < f->n_phdrs; i++) {
		const GElf_Phdr *p = &f->phdrs[i];
		Elf_Data *data;

		if (p->p_type != PT_NOTE || !p->p_filesz || p->p_filesz > NOTE_BYTES_MAX)
			continue;
		data = elf_getdata_rawchunk(f->elf, (int64_t)p->p_offset, p->p_filesz,
					    p->p_align == 8 ? ELF_T_NHDR8 : ELF_T_NHDR);
		if (data && note_build_id(data, ret_id, ret_size))
			return 0;
	}
	*ret_size = 0;
	return 0;
}

struct Elf *elf_file_elf(struct elf_file *f)
{
	return f->elf;
}

bool elf_file_has_section(struct elf_file *f, const char *name)
{
	GElf_Shdr shdr;

	return elf_section_find(f, SHT_NULL, name, &shdr) != NULL;
}

bool elf_file_has_dwarf(struct elf_file *f)
{
	return elf_file_has_section(f, ".debug_info") || elf_file_has_section(f, ".zdebug_info");
}

/* Before SHF_COMPRESSED: "ZLIB" and eight bytes, highest first. */
static uint64_t zdebug_bytes(Elf_Scn *scn, uint64_t file_bytes)
{
	Elf_Data *data = elf_rawdata(scn, NULL);
	uint64_t size = 0;

	if (!data || !data->d_buf || data->d_size < 12 || memcmp(data->d_buf, "ZLIB", 4) != 0)
		return file_bytes;
	for (size_t i = 4; i < 12; i++)
		size = size << 8 | ((const uint8_t *)data->d_buf)[i];
	return size;
}

uint64_t elf_file_debug_bytes(struct elf_file *f)
{
	uint64_t total = 0;
	Elf_Scn *scn = NULL;
	size_t strndx;

	if (elf_getshdrstrndx(f->elf, &strndx))
		return 0;
	while ((scn = elf_nextscn(f->elf, scn))) {
		GElf_Shdr shdr;
		GElf_Chdr chdr;
		const char *name;
		uint64_t bytes;

		if (!gelf_getshdr(scn, &shdr) || shdr.sh_type == SHT_NOBITS)
			continue;
		name = elf_strptr(f->elf, strndx, shdr.sh_name);
		if (!name || (!str_starts(name, ".debug_") && !str_starts(name, ".zdebug_")))
			continue;
		bytes = shdr.sh_size;
		if (shdr.sh_flags & SHF_COMPRESSED)
			bytes = gelf_getchdr(scn, &chdr) ? chdr.ch_size : UINT64_MAX;
		else if (name[1] == 'z')
			bytes = zdebug_bytes(scn, bytes);
		total = bytes > UINT64_MAX - total ? UINT64_MAX : total + bytes;
	}
	return total;
}
