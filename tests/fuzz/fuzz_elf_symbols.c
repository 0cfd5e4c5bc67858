/* SPDX-License-Identifier: BSD-2-Clause */
/* An ELF file: its build-id, symbol tables, PLT entries and the addresses of all of them. */
#include "fuzz.h"

#include <inspect/elf_file.h>

static void look_up(struct elf_file *f, const struct elf_symbols *s)
{
	for (size_t i = 0; i < s->v.n; i++) {
		const struct elf_symbol *found;
		uint64_t off;

		fuzz_touch(s->v.v[i].name, strlen(s->v.v[i].name));
		found = elf_symbols_find(s, s->v.v[i].elf_vaddr);
		if (found)
			fuzz_touch(found->name, strlen(found->name));
		if (!elf_file_vaddr_to_off(f, s->v.v[i].elf_vaddr, &off))
			elf_file_off_to_vaddr(f, off, &off);
	}
	elf_symbols_find(s, 0);
	elf_symbols_find(s, UINT64_MAX);
}

int LLVMFuzzerTestOneInput(const uint8_t *v, size_t n)
{
	struct elf_symbols s = {0};
	struct elf_file *f = NULL;
	const char *link;
	uint8_t id[20];
	uint32_t crc;
	size_t size;

	if (elf_file_open_fd(fuzz_file(v, n), &f))
		return 0;
	elf_file_build_id(f, id, &size);
	elf_file_has_symtab(f);
	if (!elf_file_debuglink(f, &link, &crc))
		fuzz_touch(link, strlen(link));
	if (!elf_symbols_read(f, &s)) {
		look_up(f, &s);
		elf_symbols_release(&s);
	}
	elf_file_free(f);
	return 0;
}
