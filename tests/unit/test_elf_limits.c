/* SPDX-License-Identifier: BSD-2-Clause */
/* Symbols of unusual files: versions, very many sections, hundreds of MB. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <elf.h>
#include <fcntl.h>
#include <inspect/elf_file.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "scratch.h"

static struct elf_symbols read_symbols(const char *path)
{
	struct elf_symbols s = {0};
	struct elf_file *f = NULL;
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(elf_file_open_fd(fd, &f), 0);
	assert_int_equal(elf_symbols_read(f, &s), 0);
	elf_file_free(f);
	return s;
}

static uint64_t address_of(const char *file, const char *name)
{
	char *text = shell("nm %s | awk '$3 == \"%s\" { print $1 }'", file, name);
	uint64_t address = strtoull(text, NULL, 16);

	free(text);
	assert_true(address != 0);
	return address;
}

static void names_without_versions(void **state)
{
	static const char source[] =
		".text\n"
		".symver old_open,open@V_1\n.globl old_open\n.type old_open,@function\n"
		"old_open: nop\n.size old_open,1\n"
		".symver new_open,open@@V_2\n.globl new_open\n.type new_open,@function\n"
		"new_open: nop\n nop\n.size new_open,2\n"
		".globl f_4\n.type f_4,@function\nf_4: nop\n.size f_4,1\n";
	struct elf_symbols s;
	uint64_t first = UINT64_MAX;

	(void)state;
	write_text("ver.s", source);
	write_text("ver.map", "V_1 { local: old_open; new_open; };\nV_2 { } V_1;\n");
	free(shell("cc -c -o ver.o ver.s && ld -shared --version-script=ver.map -o ver.so ver.o && "
		   "objcopy --redefine-sym f_4=f@4 ver.so"));
	free(shell("nm ver.so | grep -q 'open@@V_2'"));
	s = read_symbols("./ver.so");
	for (size_t i = 0; i < s.v.n; i++)
		first = MIN(first, s.v.v[i].elf_vaddr);
	assert_string_equal(elf_symbols_find(&s, first)->name, "open");
	assert_string_equal(elf_symbols_find(&s, first + 2)->name, "open");
	assert_string_equal(elf_symbols_find(&s, first + 3)->name, "f@4"); /* stdcall */
	assert_false(s.damaged);
	elf_symbols_release(&s);
	/* With and without a debug file it is the same name. */
	free(shell("strip -o ver-stripped.so ver.so"));
	s = read_symbols("./ver-stripped.so");
	assert_string_equal(elf_symbols_find(&s, first + 2)->name, "open");
	elf_symbols_release(&s);
}

enum { SECTIONS = 66000, CODE_AT = 0x10000, BEFORE = 5, NAME_BYTES = 8 };

/* Null, .shstrtab (empty: no section has a name), .strtab, .symtab, its section numbers, then one
 * section of two bytes for each function f0, f1, … Linkers take minutes for that. */
static void write_many_sections(const char *path)
{
	static const uint8_t class64[EI_NIDENT] = {0x7f,       'E',         'L',       'F',
						   ELFCLASS64, ELFDATA2LSB, EV_CURRENT};
	enum { N = BEFORE + SECTIONS, SYMBOLS = SECTIONS + 1 };
	Elf64_Ehdr h = {.e_type = ET_EXEC,
			.e_machine = EM_X86_64,
			.e_version = EV_CURRENT,
			.e_ehsize = sizeof(h),
			.e_shentsize = sizeof(Elf64_Shdr),
			.e_shstrndx = 1};
	Elf64_Shdr *shdrs = calloc(N, sizeof(*shdrs));
	Elf64_Sym *symbols = calloc(SYMBOLS, sizeof(*symbols));
	uint32_t *numbers = calloc(SYMBOLS, sizeof(*numbers));
	char *names = calloc(SYMBOLS, NAME_BYTES);
	uint64_t at = sizeof(h);
	const struct {
		uint32_t type, link, entry_bytes;
		uint64_t size;
		const void *v;
	} tables[BEFORE - 1] = {
		{SHT_STRTAB, 0, 0, 1, ""},
		{SHT_STRTAB, 0, 0, (uint64_t)SYMBOLS * NAME_BYTES, names},
		{SHT_SYMTAB, 2, sizeof(*symbols), SYMBOLS * sizeof(*symbols), symbols},
		{SHT_SYMTAB_SHNDX, 3, sizeof(*numbers), SYMBOLS * sizeof(*numbers), numbers},
	};
	FILE *file = fopen(path, "w");

	memcpy(h.e_ident, class64, sizeof(class64));
	shdrs[0].sh_size = N; /* e_shnum is too small for it */
	for (unsigned i = 1; i < SYMBOLS; i++) {
		unsigned section = BEFORE + i - 1;

		snprintf(names + (size_t)i * NAME_BYTES, NAME_BYTES, "f%u", i - 1);
		symbols[i] = (Elf64_Sym){.st_name = i * NAME_BYTES,
					 .st_info = ELF64_ST_INFO(STB_LOCAL, STT_FUNC),
					 .st_shndx = section < SHN_LORESERVE ? (uint16_t)section
									     : SHN_XINDEX,
					 .st_value = CODE_AT + 2 * (i - 1),
					 .st_size = 2};
		numbers[i] = section < SHN_LORESERVE ? 0 : section;
		shdrs[section] = (Elf64_Shdr){.sh_type = SHT_NOBITS,
					      .sh_flags = SHF_ALLOC | SHF_EXECINSTR,
					      .sh_addr = CODE_AT + 2 * (i - 1),
					      .sh_size = 2};
	}
	for (unsigned i = 0; i < BEFORE - 1; i++) {
		shdrs[i + 1] = (Elf64_Shdr){.sh_type = tables[i].type,
					    .sh_offset = at,
					    .sh_size = tables[i].size,
					    .sh_link = tables[i].link,
					    .sh_entsize = tables[i].entry_bytes};
		at += ALIGN_UP(tables[i].size, 8);
	}
	h.e_shoff = at;
	fwrite(&h, sizeof(h), 1, file);
	for (unsigned i = 0; i < BEFORE - 1; i++) {
		fwrite(tables[i].v, 1, tables[i].size, file);
		fseek(file, (long)(shdrs[i + 1].sh_offset + ALIGN_UP(tables[i].size, 8)), SEEK_SET);
	}
	fwrite(shdrs, sizeof(*shdrs), N, file);
	assert_int_equal(fclose(file), 0);
	free(shdrs);
	free(symbols);
	free(numbers);
	free(names);
}

static void more_sections_than_a_symbol_can_tell(void **state)
{
	struct elf_symbols s;
	unsigned wrong = 0;

	(void)state;
	write_many_sections("many");
	free(shell("[ \"$(nm many | grep -c ' t f')\" = %d ]", SECTIONS));
	s = read_symbols("./many");
	assert_int_equal(s.v.n, SECTIONS);
	for (unsigned i = 0; i < SECTIONS; i++) {
		const struct elf_symbol *found = elf_symbols_find(&s, CODE_AT + 2 * i + 1);
		char want[16];

		snprintf(want, sizeof(want), "f%u", i);
		wrong += !found || !str_eq(found->name, want);
	}
	assert_int_equal(wrong, 0);
	assert_false(s.damaged);
	elf_symbols_release(&s);
}

/* Segments hundreds of MB into a sparse file: nothing of the holes is read. */
static void huge_sparse_file(void **state)
{
	struct elf_symbols s;
	struct stat st;

	(void)state;
	write_text("h.c", "int f(int x) { return x + 1; }\nint main(void) { return f(1); }\n");
	free(shell("cc -O1 -Wl,-z,max-page-size=0x10000000 -o huge h.c"));
	assert_int_equal(stat("huge", &st), 0);
	assert_true(st.st_size > 300 << 20);
	s = read_symbols("./huge");
	assert_string_equal(elf_symbols_find(&s, address_of("./huge", "f"))->name, "f");
	assert_string_equal(elf_symbols_find(&s, address_of("./huge", "main") + 1)->name, "main");
	elf_symbols_release(&s);
	free(shell("rm huge"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_without_versions),
		cmocka_unit_test(more_sections_than_a_symbol_can_tell),
		cmocka_unit_test(huge_sparse_file),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, scratch_setup, scratch_teardown);
}
