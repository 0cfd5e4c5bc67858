/* SPDX-License-Identifier: BSD-2-Clause */
/* An ELF file with debug information: inlined functions and lines of addresses all over its code. */
#include "fuzz.h"

#include "../../src/symbol/dwarf_index.h"

int LLVMFuzzerTestOneInput(const uint8_t *v, size_t n)
{
	enum { ADDRESSES = 64 };
	struct source_frames frames = {0};
	struct dwarf_index *x = NULL;
	struct elf_file *f = NULL;
	struct dwarf_gaps gaps;

	if (elf_file_open_fd(fuzz_file(v, n), &f))
		return 0;
	if (!dwarf_index_open(f, &x)) {
		for (uint64_t i = 0; i < 2 * ADDRESSES; i++) {
			uint64_t elf_vaddr = i * 7; /* object files begin at 0, programs elsewhere */

			if (i >= ADDRESSES &&
			    elf_file_off_to_vaddr(f, (i - ADDRESSES) * n / ADDRESSES, &elf_vaddr))
				continue;
			if (dwarf_index_find(x, elf_vaddr, &frames))
				break;
			for (size_t k = 0; k < frames.v.n; k++) {
				const struct source_frame *s = &frames.v.v[k];

				fuzz_touch(s->name ? s->name : "", s->name ? strlen(s->name) : 0);
				fuzz_touch(s->file ? s->file : "", s->file ? strlen(s->file) : 0);
			}
		}
		dwarf_index_gaps(x, &gaps);
		fuzz_touch(gaps.missing_name, strlen(gaps.missing_name));
		dwarf_index_free(x);
	}
	array_release(&frames.v);
	elf_file_free(f);
	return 0;
}
