/* SPDX-License-Identifier: BSD-2-Clause */
/* Debug sections that are compressed with zstd: libelf 0.188 reads those of zlib only. */
#include "elf_struct.h"
#include <sys/mman.h>
#include <zstd.h>

#ifndef ELFCOMPRESS_ZSTD
#define ELFCOMPRESS_ZSTD 2
#endif

/* Of no section, and of the section with the names. */
static const char first_names[] = "\0.shstrtab";

/* The copy while it is made. */
struct unpacked {
	struct elf_file *f; /* what is copied from */
	int fd;
	Elf *elf;
	struct strbuf names; /* .shstrtab */
	ARRAY(void *) buffers;
};

static void unpacked_release(struct unpacked *u)
{
	elf_end(u->elf);
	closep(&u->fd);
	for (size_t i = 0; i < u->buffers.n; i++)
		free(u->buffers.v[i]);
	array_release(&u->buffers);
	strbuf_release(&u->names);
}

static bool is_zstd(Elf_Scn *scn, const GElf_Shdr *shdr, GElf_Chdr *ret)
{
	return shdr->sh_type != SHT_NOBITS && (shdr->sh_flags & SHF_COMPRESSED) &&
	       gelf_getchdr(scn, ret) && ret->ch_type == ELFCOMPRESS_ZSTD;
}

static const char *section_name(struct elf_file *f, const GElf_Shdr *shdr)
{
	size_t strndx;
	const char *name = elf_getshdrstrndx(f->elf, &strndx)
				   ? NULL
				   : elf_strptr(f->elf, strndx, shdr->sh_name);

	return name ? name : "";
}

static bool is_debug(const char *name)
{
	return str_starts(name, ".debug_") || str_eq(name, ".gnu_debugaltlink");
}

static bool has_zstd(struct elf_file *f)
{
	GElf_Shdr shdr;
	GElf_Chdr chdr;

	for (Elf_Scn *scn = NULL; (scn = elf_nextscn(f->elf, scn));)
		if (gelf_getshdr(scn, &shdr) && is_debug(section_name(f, &shdr)) &&
		    is_zstd(scn, &shdr, &chdr))
			return true;
	return false;
}

/* Puts the contents in the place of the compressed bytes in *raw. */
static int unpack(struct unpacked *u, const GElf_Chdr *chdr, Elf_Data *raw)
{
	size_t head = gelf_fsize(u->f->elf, ELF_T_CHDR, 1, EV_CURRENT);
	void *out;

	if (raw->d_size < head || !chdr->ch_size || chdr->ch_size > SECTION_BYTES_MAX)
		return -EBADMSG;
	out = malloc(chdr->ch_size);
	if (!out)
		return -ENOMEM;
	if (array_push(&u->buffers, out)) {
		free(out);
		return -ENOMEM;
	}
	if (ZSTD_decompress(out, chdr->ch_size, (const char *)raw->d_buf + head,
			    raw->d_size - head) != chdr->ch_size)
		return -EBADMSG;
	raw->d_buf = out;
	raw->d_size = chdr->ch_size;
	return 0;
}

static int add_section(struct unpacked *u, size_t name_at, const GElf_Shdr *shdr,
		       const void *contents, size_t size_bytes)
{
	GElf_Shdr own = {.sh_name = (GElf_Word)name_at,
			 .sh_type = shdr->sh_type,
			 .sh_flags = shdr->sh_flags,
			 .sh_entsize = shdr->sh_entsize,
			 .sh_addralign = 1};
	Elf_Scn *scn = elf_newscn(u->elf);
	Elf_Data *data = scn ? elf_newdata(scn) : NULL;

	if (!data)
		return -ENOMEM;
	data->d_type = ELF_T_BYTE;
	data->d_buf = (void *)contents; /* only read: it is written to the file */
	data->d_size = size_bytes;
	data->d_align = 1;
	return gelf_update_shdr(scn, &own) ? 0 : -ENOMEM;
}

static int copy_section(struct unpacked *u, Elf_Scn *scn)
{
	const char *name;
	GElf_Shdr shdr;
	GElf_Chdr chdr;
	Elf_Data *raw, data;
	size_t name_at = u->names.n;
	int err = 0;

	if (!gelf_getshdr(scn, &shdr))
		return 0;
	name = section_name(u->f, &shdr);
	if (!is_debug(name) || shdr.sh_type == SHT_NOBITS || !shdr.sh_size)
		return 0;
	raw = elf_rawdata(scn, NULL);
	if (!raw || !raw->d_buf)
		return -EBADMSG;
	data = *raw;
	if (is_zstd(scn, &shdr, &chdr)) {
		err = unpack(u, &chdr, &data);
		shdr.sh_flags &= ~(GElf_Xword)SHF_COMPRESSED;
	}
	strbuf_add(&u->names, name, strlen(name) + 1);
	if (!err && u->names.failed)
		err = -ENOMEM;
	return err ? err : add_section(u, name_at, &shdr, data.d_buf, data.d_size);
}

static int begin(struct unpacked *u)
{
	GElf_Ehdr ehdr;

	u->fd = memfd_create("debug sections", MFD_CLOEXEC);
	if (u->fd < 0)
		return -errno;
	u->elf = elf_begin(u->fd, ELF_C_WRITE, NULL);
	if (!u->elf || !gelf_newehdr(u->elf, gelf_getclass(u->f->elf)) ||
	    !gelf_getehdr(u->elf, &ehdr))
		return -ENOMEM;
	ehdr.e_ident[EI_DATA] = u->f->ehdr.e_ident[EI_DATA];
	ehdr.e_type = u->f->ehdr.e_type;
	ehdr.e_machine = u->f->ehdr.e_machine;
	ehdr.e_version = EV_CURRENT;
	strbuf_add(&u->names, first_names, sizeof(first_names));
	return gelf_update_ehdr(u->elf, &ehdr) ? 0 : -ENOMEM;
}

static int finish(struct unpacked *u)
{
	static const GElf_Shdr shdr = {.sh_type = SHT_STRTAB};
	GElf_Ehdr ehdr;
	size_t n_sections;
	int err = u->names.failed ? -ENOMEM : add_section(u, 1, &shdr, u->names.v, u->names.n);

	if (err)
		return err;
	if (!gelf_getehdr(u->elf, &ehdr) || elf_getshdrnum(u->elf, &n_sections))
		return -ENOMEM;
	ehdr.e_shstrndx = (GElf_Half)(n_sections - 1);
	return gelf_update_ehdr(u->elf, &ehdr) && elf_update(u->elf, ELF_C_WRITE) > 0 ? 0 : -ENOMEM;
}

int elf_zstd_debug_open(struct elf_file *f, struct elf_file **ret)
{
	CLEANUP(unpacked_release) struct unpacked u = {.f = f, .fd = -1};
	int err;

	if (!has_zstd(f))
		return -ENOENT;
	err = begin(&u);
	for (Elf_Scn *scn = NULL; !err && (scn = elf_nextscn(f->elf, scn));)
		err = copy_section(&u, scn);
	if (!err)
		err = finish(&u);
	if (err)
		return err;
	return elf_file_open_fd(TAKE_FD(u.fd), ret);
}
