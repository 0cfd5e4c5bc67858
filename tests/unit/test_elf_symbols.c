/* SPDX-License-Identifier: BSD-2-Clause */
/* Symbol look-up against nm (sizes and aliases) and objdump (PLT entries). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "skip.h"
#include <fcntl.h>
#include <inspect/clock.h>
#include <inspect/elf_file.h>
#include <stdlib.h>

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

struct nm_symbol {
	uint64_t start, size;
	const char *name;
};

struct nm {
	char *text;
	ARRAY(struct nm_symbol) v;
	uint64_t text_start, text_end;
};

static int by_start(const void *a, const void *b)
{
	const struct nm_symbol *x = a, *y = b;

	return x->start < y->start ? -1 : x->start > y->start;
}

/* Functions and labels of .text: "name|value|class|type|size|line|section". */
static void nm_add(struct nm *nm, char *line)
{
	char *field[7] = {0};
	struct nm_symbol s;

	for (int i = 0; i < 7 && line; i++)
		field[i] = strsep(&line, "|");
	if (!field[6])
		return;
	field[3] += strspn(field[3], " ");
	s = (struct nm_symbol){strtoull(field[1], NULL, 16), strtoull(field[4], NULL, 16),
			       field[0]};
	field[0][strcspn(field[0], " ")] = '\0';
	/* STT_GNU_IFUNC is "<OS specific>: 10" to nm. */
	if (strncmp(field[3], "FUNC", 4) != 0 && strncmp(field[3], "NOTYPE", 6) != 0 &&
	    !strstr(field[3], ": 10"))
		return;
	if (strncmp(field[6], ".text", 5) != 0 || (field[6][5] && field[6][5] != ' '))
		return;
	if (s.name[0] == '.')
		return;
	assert_int_equal(array_push(&nm->v, s), 0);
}

static struct nm nm_read(const char *path, const char *options)
{
	struct nm nm = {0};
	char *sections = shell("readelf -SW %s | sed 's/^ *\\[ *[0-9]*\\] *//'", path);
	char *at, *line;
	unsigned long long addr, off, size;

	at = strstr(sections, "\n.text ");
	assert_non_null(at);
	assert_int_equal(sscanf(at, "\n.text %*s %llx %llx %llx", &addr, &off, &size), 3);
	nm.text_start = addr;
	nm.text_end = addr + size;
	free(sections);
	nm.text = shell("nm --format=sysv --defined-only %s %s 2>/dev/null", options, path);
	at = nm.text;
	while ((line = strsep(&at, "\n")))
		nm_add(&nm, line);
	assert_true(nm.v.n > 0);
	qsort(nm.v.v, nm.v.n, sizeof(*nm.v.v), by_start);
	return nm;
}

static void nm_release(struct nm *nm)
{
	array_release(&nm->v);
	free(nm->text);
}

/* Start of the innermost sized symbol over the address, else of the last label before it when no
 * sized one lies between; UINT64_MAX none. */
static uint64_t nm_find(const struct nm *nm, uint64_t address)
{
	uint64_t last = UINT64_MAX;
	bool last_sized = false;

	for (size_t i = 0; i < nm->v.n && nm->v.v[i].start <= address; i++) {
		const struct nm_symbol *s = &nm->v.v[i];

		last_sized = (s->start == last && last_sized) || s->size;
		last = s->start;
	}
	for (size_t i = nm->v.n; i-- > 0;) {
		const struct nm_symbol *s = &nm->v.v[i];

		if (s->start <= address && address - s->start < s->size)
			return s->start;
	}
	return last_sized ? UINT64_MAX : last;
}

static bool nm_has(const struct nm *nm, uint64_t start, const char *name)
{
	for (size_t i = 0; i < nm->v.n; i++) {
		size_t n = strlen(nm->v.v[i].name);

		if (nm->v.v[i].start != start)
			continue;
		/* nm -D adds the version. */
		if (strncmp(name, nm->v.v[i].name, strlen(name)) == 0 &&
		    (n == strlen(name) || nm->v.v[i].name[strlen(name)] == '@'))
			return true;
	}
	return false;
}

static void compare(const char *path, const char *options, unsigned addresses)
{
	struct elf_symbols s = read_symbols(path);
	struct nm nm = nm_read(path, options);
	unsigned wrong = 0, named = 0;
	uint64_t random = 88172645463325252ULL;

	for (unsigned i = 0; i < addresses; i++) {
		uint64_t address, want;
		const struct elf_symbol *got;

		random ^= random << 13;
		random ^= random >> 7;
		random ^= random << 17;
		address = nm.text_start + random % (nm.text_end - nm.text_start);
		want = nm_find(&nm, address);
		got = elf_symbols_find(&s, address);
		named += want != UINT64_MAX;
		if (want == UINT64_MAX
			    ? !got
			    : got && got->elf_vaddr == want && nm_has(&nm, want, got->name))
			continue;
		if (!wrong++)
			print_message("# %s: %llx is %s, not of the one at %llx\n", path,
				      (unsigned long long)address, got ? got->name : "nameless",
				      (unsigned long long)want);
	}
	assert_int_equal(wrong, 0);
	assert_true(named > addresses / 4);
	nm_release(&nm);
	elf_symbols_release(&s);
}

static void library_names_equal_nm(void **state)
{
	char *libc = shell("cc -print-file-name=libc.so.6");
	char *cxx = shell("c++ -print-file-name=libstdc++.so.6");

	(void)state;
	libc[strcspn(libc, "\n")] = cxx[strcspn(cxx, "\n")] = '\0';
	compare(libc, "-D", 10000);
	compare(cxx, "-D", 10000);
	free(libc);
	free(cxx);
}

static void program_names_equal_nm(void **state)
{
	(void)state;
	write_text("p.c",
		   "#include <stdio.h>\n"
		   "static int __attribute__((noinline)) one(int x) { return x * 3; }\n"
		   "int two(int x) { return one(x) + 1; }\n"
		   "int alias_of_two(int) __attribute__((alias(\"two\")));\n"
		   "int weak_two(int) __attribute__((weak, alias(\"two\")));\n"
		   "asm(\".text\\n.globl label\\nlabel:\\n nop\\n nop\\n\"\n"
		   "    \".type bare, @function\\nbare:\\n nop\\n ret\\n\");\n"
		   "int main(int c, char **v) { (void)v; return printf(\"%d\", two(c)); }\n");
	free(shell("cc -O1 -g -o p p.c && cc -O1 -static -o p-static p.c && "
		   "cc -O1 -static-pie -o p-static-pie p.c && cc -O1 -no-pie -o p-exec p.c"));
	compare("./p", "", 5000);
	compare("./p-exec", "", 5000);
	compare("./p-static", "", 10000);
	compare("./p-static-pie", "", 2000);
}

static uint64_t address_of(const char *file, const char *name)
{
	char *text = shell("nm %s | awk '$3 == \"%s\" { print $1 }'", file, name);
	uint64_t address = strtoull(text, NULL, 16);

	free(text);
	assert_true(address != 0);
	return address;
}

static void best_of_several_names(void **state)
{
	static const struct {
		const char *source, *at, *want;
	} cases[] = {
		/* global before local before weak */
		{".globl g\n.type g,@function\n.type l,@function\n.weak w\n.type w,@function\n"
		 "w:\nl:\ng: nop\n.size g,1\n.size l,1\n.size w,1\n",
		 "g", "g"},
		{".type l,@function\n.weak w\n.type w,@function\n"
		 "w:\nl: nop\n.size l,1\n.size w,1\n",
		 "l", "l"},
		/* fewer underscores, then the longest */
		{".globl __f, f_, f_long\n.type __f,@function\n.type f_,@function\n"
		 ".type f_long,@function\n__f:\nf_:\nf_long: nop\n"
		 ".size __f,1\n.size f_,1\n.size f_long,1\n",
		 "f_", "f_long"},
		/* a size before none, a type before none */
		{".globl label\nlabel:\n.type l,@function\nl: nop\n.size l,1\n", "l", "l"},
		{".globl label\n.type l,@function\nlabel:\nl: nop\n nop\n", "l", "l"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct elf_symbols s;
		const struct elf_symbol *found;
		FILE *file = fopen("b.s", "w");

		assert_non_null(file);
		fprintf(file, ".text\n nop\n%s\n.globl end\n.type end,@function\nend: nop\n",
			cases[i].source);
		fclose(file);
		free(shell("cc -nostdlib -shared -o b.so b.s"));
		s = read_symbols("./b.so");
		found = elf_symbols_find(&s, address_of("./b.so", cases[i].at));
		assert_non_null(found);
		assert_string_equal(found->name, cases[i].want);
		elf_symbols_release(&s);
	}
}

static void gaps_nesting_and_marks(void **state)
{
	static const char source[] =
		".text\n"
		".globl outer\n.type outer,@function\nouter:\n nop\n nop\n"
		".globl inside\ninside:\n nop\n"
		".type inner,@function\ninner: nop\n.size inner,1\n"
		" nop\n.size outer,5\n"
		".fill 11,1,0x90\n"
		".type sizeless,@function\nsizeless: nop\n nop\n"
		"$x:\n nop\n$d.7:\n nop\n"
		".type next,@function\nnext: nop\n.size next,1\n"
		".section .rodata\n.type data,@function\ndata: .long 7\n.size data,4\n"
		".section .other,\"ax\"\n.globl last\n.type last,@function\nlast: nop\n nop\n";
	struct elf_symbols s;
	uint64_t outer, last;
	static const char *const want[] = {"outer",    "outer",    "outer",     "inner",
					   "outer",    NULL,       [15] = NULL, "sizeless",
					   "sizeless", "sizeless", "sizeless",  "next"};

	(void)state;
	write_text("g.s", source);
	free(shell("cc -nostdlib -shared -o g.so g.s"));
	s = read_symbols("./g.so");
	outer = address_of("./g.so", "outer");
	for (size_t i = 0; i < ARRAY_SIZE(want); i++) {
		const struct elf_symbol *found = elf_symbols_find(&s, outer + i);

		if (!want[i])
			assert_null(found);
		else
			assert_string_equal(found ? found->name : "none", want[i]);
	}
	last = address_of("./g.so", "last");
	assert_string_equal(elf_symbols_find(&s, last + 1)->name, "last");
	assert_null(elf_symbols_find(&s, last + 2)); /* the section ends */
	assert_null(elf_symbols_find(&s, address_of("./g.so", "data")));
	assert_null(elf_symbols_find(&s, 0));
	assert_null(elf_symbols_find(&s, UINT64_MAX));
	elf_symbols_release(&s);
}

/* objdump names the same entries; of ifuncs without a name it prints the resolver's address. */
static void compare_plt(const char *path, size_t at_least, size_t unseen)
{
	struct elf_symbols s = read_symbols(path);
	char *text = shell("objdump -d -j .plt -j .plt.sec -j .plt.got %s 2>/dev/null | "
			   "sed -n 's/^0*\\([0-9a-f]*\\) <\\(.*@plt\\)>:$/\\1 \\2/p'",
			   path);
	char *at = text, *line;
	size_t n = 0, entries = 0;

	while ((line = strsep(&at, "\n")) && *line) {
		char *name;
		uint64_t address = strtoull(line, &name, 16);
		const struct elf_symbol *found = elf_symbols_find(&s, address);

		name++;
		assert_non_null(found);
		assert_true(found->elf_vaddr == address && str_ends(found->name, "@plt"));
		if (name[0] == '*') { /* *ABS*+0xRESOLVER@plt */
			const struct elf_symbol *resolver =
				elf_symbols_find(&s, strtoull(name + 6, NULL, 16));

			if (resolver)
				assert_memory_equal(found->name, resolver->name,
						    strlen(resolver->name));
		} else {
			assert_string_equal(found->name, name);
		}
		assert_ptr_equal(elf_symbols_find(&s, address + found->size_bytes - 1), found);
		n++;
	}
	assert_true(n >= at_least);
	for (size_t i = 0; i < s.v.n; i++)
		entries += str_ends(s.v.v[i].name, "@plt");
	assert_int_equal(entries, n + unseen);
	free(text);
	elf_symbols_release(&s);
}

static void plt_entries_equal_objdump(void **state)
{
	char *libc = shell("cc -print-file-name=libc.so.6");

	(void)state;
	libc[strcspn(libc, "\n")] = '\0';
	write_text("plt.c", "#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n"
			    "int main(int c, char **v) { void *(*m)(size_t) = malloc;\n"
			    "puts(v[0]); printf(\"%p%d\", malloc(c), abs(c));\n"
			    "return m(3) == strdup(v[0]) ? getpid() : rand(); }\n");
	free(shell("cc -w -O1 -Wl,-z,lazy -o plt-lazy plt.c && "
		   "cc -w -O1 -fcf-protection=full -Wl,-z,lazy,-z,ibtplt -o plt-ibt plt.c && "
		   "cc -w -O1 -no-pie -Wl,-z,now -o plt-now plt.c && "
		   "strip -o plt-stripped plt-lazy"));
	compare_plt("./plt-lazy", 6, 0);
	compare_plt("./plt-ibt", 6, 6); /* objdump does not name the lazy halves */
	compare_plt("./plt-now", 6, 0);
	compare_plt("./plt-stripped", 6, 0);
	compare_plt(libc, 20, 0);
	free(libc);
}

static void thirty_two_bit_and_other_byte_order(void **state)
{
	/* A big-endian 32-bit ELF with one function at 0x1000, made by hand: no compiler for one
	 * is needed. */
	static const char image[] =
		/* header: EM_PPC, entry 0x1000, segments at 52, sections at 144 */
		"\177\105\114\106\001\002\001\000\000\000\000\000\000\000\000\000"
		"\000\002\000\024\000\000\000\001\000\000\020\000\000\000\000\064"
		"\000\000\000\220\000\000\000\000\000\064\000\040\000\001\000\050"
		"\000\004\000\003"
		/* PT_LOAD: offset 0, vaddr 0x1000, 0x130 bytes, R E */
		"\000\000\000\001\000\000\000\000\000\000\020\000\000\000\020\000"
		"\000\000\001\060\000\000\001\060\000\000\000\005\000\000\000\004"
		/* two symbols */
		"\000\000\000\000\000\000\000\000\000\000\000\000\000\000\000\000"
		"\000\000\000\001\000\000\020\000\000\000\000\010\022\000\000\001"
		/* strings */
		"\000\142\151\147\000\000\000\000\000\000\000\000\000\000\000\000"
		"\000\000\000\000\000\000\000\000\000\000\000\000"
		/* null section */
		"\000\000\000\000\000\000\000\000\000\000\000\000\000\000\000\000"
		"\000\000\000\000\000\000\000\000\000\000\000\000\000\000\000\000"
		"\000\000\000\000\000\000\000\000"
		/* .text */
		"\000\000\000\000\000\000\000\001\000\000\000\006\000\000\020\000"
		"\000\000\000\000\000\000\000\020\000\000\000\000\000\000\000\000"
		"\000\000\000\004\000\000\000\000"
		/* .symtab */
		"\000\000\000\000\000\000\000\002\000\000\000\000\000\000\000\000"
		"\000\000\000\124\000\000\000\040\000\000\000\003\000\000\000\001"
		"\000\000\000\004\000\000\000\020"
		/* .strtab */
		"\000\000\000\000\000\000\000\003\000\000\000\000\000\000\000\000"
		"\000\000\000\164\000\000\000\005\000\000\000\000\000\000\000\000"
		"\000\000\000\001\000\000\000\000";
	struct elf_file *f = NULL;
	struct elf_symbols s = {0};
	uint64_t elf_vaddr = 0;

	(void)state;
	assert_int_equal(elf_file_open_memory(image, sizeof(image) - 1, &f), 0);
	assert_int_equal(elf_file_entry(f), 0x1000);
	assert_int_equal(elf_file_off_to_vaddr(f, 4, &elf_vaddr), 0);
	assert_int_equal(elf_vaddr, 0x1004);
	assert_int_equal(elf_symbols_read(f, &s), 0);
	assert_int_equal(s.v.n, 1);
	assert_string_equal(elf_symbols_find(&s, 0x1007)->name, "big");
	assert_null(elf_symbols_find(&s, 0x1008));
	elf_symbols_release(&s);
	elf_file_free(f);
}

/* Any bytes changed: an answer or a refusal, no crash (the sanitizers watch). */
static void damaged_files_are_survived(void **state)
{
	struct strbuf original = {0};
	char buf[4096];
	size_t n;
	FILE *file;
	uint64_t random = 1234567;
	unsigned opened = 0;

	(void)state;
	write_text("h.c", "#include <stdio.h>\nint f(int x) { return x; }\n"
			  "int main(int c, char **v) { return puts(v[0]) + f(c); }\n");
	free(shell("cc -O1 -Wl,-z,lazy -o h h.c"));
	file = fopen("h", "r");
	assert_non_null(file);
	while ((n = fread(buf, 1, sizeof(buf), file)) > 0)
		strbuf_add(&original, buf, n);
	fclose(file);
	for (int round = 0; round < 600; round++) {
		struct elf_file *f = NULL;
		struct elf_symbols s = {0};
		char *image = malloc(original.n);
		size_t size = original.n, changes = 1 + (size_t)round % 12;
		uint64_t off;
		uint8_t id[20];
		uint32_t crc;
		const char *link;

		assert_non_null(image);
		memcpy(image, original.v, original.n);
		for (size_t i = 0; i < changes; i++) {
			size_t at;

			random = random * 6364136223846793005ULL + 1442695040888963407ULL;
			/* Half of them where the headers are. */
			at = (random >> 33) % (random & 1 << 20 ? size : 64);
			if (random & 1 << 21)
				at = size - 1 - (random >> 33) % 2048;
			image[at] = (char)(random & 1 << 22 ? 0xff : random >> 13);
		}
		if (round % 5 == 0)
			size = (random >> 30) % size;
		if (!elf_file_open_memory(image, size, &f)) {
			opened++;
			elf_file_build_id(f, id, &n);
			elf_file_off_to_vaddr(f, 0x1000, &off);
			elf_file_vaddr_to_off(f, 0x1000, &off);
			elf_file_debuglink(f, &link, &crc);
			elf_file_has_symtab(f);
			if (!elf_symbols_read(f, &s))
				for (uint64_t a = 0x1000; a < 0x1400; a += 7)
					elf_symbols_find(&s, a);
			elf_symbols_release(&s);
		}
		elf_file_free(f);
		free(image);
	}
	assert_true(opened > 100);
	strbuf_release(&original);
}

static void large_library_is_fast(void **state)
{
	char *path =
		shell("ls /usr/lib/*/libLLVM-*.so.1 /usr/lib/*/libclang-cpp*.so.1* 2>/dev/null |"
		      " head -1");
	uint64_t before;
	struct elf_symbols s;
	unsigned found = 0;

	(void)state;
	path[strcspn(path, "\n")] = '\0';
	if (!*path) {
		free(path);
		skip_because("no libLLVM here");
	}
	compare(path, "-D", 300);
	before = clock_own_cpu_ns();
	s = read_symbols(path);
	for (unsigned i = 0; i < 20000; i++)
		found += elf_symbols_find(&s, s.v.v[i % s.v.n].elf_vaddr + i % 3) != NULL;
	assert_true(clock_own_cpu_ns() - before < 2 * NSEC_PER_SEC);
	assert_true(found > 15000);
	elf_symbols_release(&s);
	free(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(library_names_equal_nm),
		cmocka_unit_test(program_names_equal_nm),
		cmocka_unit_test(best_of_several_names),
		cmocka_unit_test(gaps_nesting_and_marks),
		cmocka_unit_test(plt_entries_equal_objdump),
		cmocka_unit_test(thirty_two_bit_and_other_byte_order),
		cmocka_unit_test(damaged_files_are_survived),
		cmocka_unit_test(large_library_is_fast),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, scratch_setup, scratch_teardown);
}
