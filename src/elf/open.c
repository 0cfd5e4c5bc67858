/* SPDX-License-Identifier: BSD-2-Clause */
#include "elf_struct.h"
#include <sys/stat.h>

/* More than any linker makes; PN_XNUM files could claim four billion. */
#define PHDRS_MAX 65536

static int read_phdrs(struct elf_file *f)
{
	size_t n;

	if (elf_getphdrnum(f->elf, &n) || n > PHDRS_MAX)
		return -ENOEXEC;
	f->phdrs = calloc(n ? n : 1, sizeof(*f->phdrs));
	if (!f->phdrs)
		return -ENOMEM;
	for (; f->n_phdrs < n; f->n_phdrs++)
		if (!gelf_getphdr(f->elf, (int)f->n_phdrs, &f->phdrs[f->n_phdrs]))
			break;
	return 0;
}

/* Takes over f with fd or image set. */
static int finish_open(struct elf_file *file, struct elf_file **ret)
{
	CLEANUP(elf_file_freep) struct elf_file *f = file;
	int err;

	if (!f->elf || elf_kind(f->elf) != ELF_K_ELF || !gelf_getehdr(f->elf, &f->ehdr))
		return -ENOEXEC;
	err = read_phdrs(f);
	if (err)
		return err;
	*ret = TAKE_PTR(f);
	return 0;
}

int elf_file_open_fd(int fd, struct elf_file **ret)
{
	struct elf_file *f = calloc(1, sizeof(*f));
	struct stat st;

	if (!f) {
		close(fd);
		return -ENOMEM;
	}
	f->fd = fd;
	elf_version(EV_CURRENT);
	/* Read, not mapped: the file may be cut while it is in use, which would be a SIGBUS. */
	if (!fstat(fd, &st) && S_ISREG(st.st_mode))
		f->elf = elf_begin(fd, ELF_C_READ, NULL);
	return finish_open(f, ret);
}

int elf_file_open_memory(const void *image, size_t size_bytes, struct elf_file **ret)
{
	struct elf_file *f = calloc(1, sizeof(*f));

	if (!f)
		return -ENOMEM;
	f->fd = -1;
	f->image = malloc(size_bytes ? size_bytes : 1);
	if (!f->image) {
		free(f);
		return -ENOMEM;
	}
	memcpy(f->image, image, size_bytes);
	f->image_bytes = size_bytes;
	elf_version(EV_CURRENT);
	f->elf = elf_memory(f->image, size_bytes);
	return finish_open(f, ret);
}

void elf_file_free(struct elf_file *f)
{
	if (!f)
		return;
	elf_end(f->elf);
	closep(&f->fd);
	free(f->image);
	free(f->phdrs);
	free(f);
}

uint64_t elf_file_entry(struct elf_file *f)
{
	return f->ehdr.e_entry;
}

size_t elf_file_read_at(struct elf_file *f, uint64_t file_off, void *buf, size_t max_bytes)
{
	size_t n = 0;

	if (f->image) {
		if (file_off >= f->image_bytes)
			return 0;
		n = MIN(max_bytes, f->image_bytes - (size_t)file_off);
		memcpy(buf, (const uint8_t *)f->image + file_off, n);
		return n;
	}
	while (n < max_bytes && file_off + n <= INT64_MAX) {
		ssize_t got =
			pread(f->fd, (uint8_t *)buf + n, max_bytes - n, (off_t)(file_off + n));

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			break;
		n += (size_t)got;
	}
	return n;
}

static bool segment_has_off(const GElf_Phdr *p, uint64_t off)
{
	return p->p_type == PT_LOAD && off >= p->p_offset && off - p->p_offset < p->p_filesz;
}

int elf_file_off_to_vaddr(struct elf_file *f, uint64_t file_off, uint64_t *ret_elf_vaddr)
{
	const GElf_Phdr *found = NULL;

	/* lld packs segments so that one page of the file is mapped by two of them: code is in the
	 * executable one. */
	for (size_t i = 0; i < f->n_phdrs; i++) {
		const GElf_Phdr *p = &f->phdrs[i];

		if (!segment_has_off(p, file_off))
			continue;
		if (!found || (!(found->p_flags & PF_X) && (p->p_flags & PF_X)))
			found = p;
	}
	if (!found)
		return -ENOENT;
	*ret_elf_vaddr = file_off - found->p_offset + found->p_vaddr;
	return 0;
}

int elf_file_vaddr_to_off(struct elf_file *f, uint64_t elf_vaddr, uint64_t *ret_file_off)
{
	for (size_t i = 0; i < f->n_phdrs; i++) {
		const GElf_Phdr *p = &f->phdrs[i];

		if (p->p_type != PT_LOAD || elf_vaddr < p->p_vaddr ||
		    elf_vaddr - p->p_vaddr >= p->p_filesz)
			continue;
		*ret_file_off = elf_vaddr - p->p_vaddr + p->p_offset;
		return 0;
	}
	return -ENOENT;
}
