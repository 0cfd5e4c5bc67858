/* SPDX-License-Identifier: BSD-2-Clause */
/* Inlined functions and lines against addr2line -fi. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "skip.h"
#include <fcntl.h>
#include <inspect/clock.h>

#include "addr2line.h"

static const char program[] =
	"#include <algorithm>\n#include <cstdio>\n#include <map>\n#include <string>\n"
	"#include <vector>\n"
	"namespace shapes {\n"
	"struct Base { virtual ~Base() {} virtual double area() const = 0; };\n"
	"template <typename T> struct Box : Base {\n"
	"	T w, h;\n"
	"	Box(T a, T b) : w(a), h(b) {}\n"
	"	double area() const override { return scale(w) * scale(h); }\n"
	"	static inline double scale(T v) { return v * 1.5 + 1; }\n"
	"};\n"
	"enum class Kind { one, two };\n"
	"inline Kind kind_of(double v) { return v > 10 ? Kind::two : Kind::one; }\n"
	"}\n"
	"static int words(const std::string &text)\n"
	"{\n"
	"	std::map<std::string, int> counts;\n"
	"	std::string word;\n"
	"	for (char c : text) {\n"
	"		if (c != ' ') { word += c; continue; }\n"
	"		counts[word]++;\n"
	"		word.clear();\n"
	"	}\n"
	"	return std::count_if(counts.begin(), counts.end(),\n"
	"			     [](const auto &p) { return p.second > 1; });\n"
	"}\n"
	"int dropped(int x) { return x * 7; }\n"
	"int main(int argc, char **argv)\n"
	"{\n"
	"	std::vector<shapes::Base *> all;\n"
	"	for (int i = 0; i < argc * 10; i++)\n"
	"		all.push_back(i & 1 ? (shapes::Base *)new shapes::Box<int>(i, i + 1)\n"
	"				    : new shapes::Box<float>(i, 2));\n"
	"	std::sort(all.begin(), all.end(),\n"
	"		  [](auto *a, auto *b) { return a->area() < b->area(); });\n"
	"	double sum = 0;\n"
	"	for (auto *b : all) {\n"
	"		sum += b->area();\n"
	"		if (shapes::kind_of(sum) == shapes::Kind::two) sum -= 1;\n"
	"	}\n"
	"	printf(\"%d %f\\n\", words(argv[0]), sum);\n"
	"	for (auto *b : all) delete b;\n"
	"}\n";

static int setup(void **state)
{
	int err = scratch_setup(state);

	if (!err)
		write_text("v.cc", program);
	return err;
}

static struct elf_file *open_elf(const char *path)
{
	struct elf_file *f = NULL;

	assert_int_equal(elf_file_open_fd(open(path, O_RDONLY | O_CLOEXEC), &f), 0);
	return f;
}

/* bfd 2.40 loses functions of clang's DWARF: there the other addr2line is asked. */
static const char *oracle_of(const char *path)
{
	return path[0] == 'c' ? "llvm-addr2line" : "addr2line";
}

static void compare(const char *path, unsigned n)
{
	struct elf_file *f = open_elf(path);
	struct dwarf_index *x = NULL;
	struct elf_symbols symbols = {0};
	struct comparison c;

	assert_int_equal(dwarf_index_open(f, &x), 0);
	assert_int_equal(elf_symbols_read(f, &symbols), 0);
	c = compare_chains(oracle_of(path), path, x, &symbols, n);
	print_message("# %s: %u addresses, %u inlined, %u nameless, %u by the linker\n", path, c.n,
		      c.inlined, c.nameless, c.linker);
	elf_symbols_release(&symbols);
	assert_int_equal(c.different, 0);
	assert_int_equal(c.n, n);
	assert_true(c.inlined > n / 4);
	assert_true(c.nameless < n / 5);
	dwarf_index_free(x);
	elf_file_free(f);
}

static bool have(const char *command)
{
	char text[200];

	snprintf(text, sizeof(text), "command -v %s > /dev/null", command);
	return system(text) == 0;
}

static void compilers_and_versions(void **state)
{
	static const struct {
		const char *name, *command;
	} builds[] = {
		{"g5", "g++ -O2 -g -gdwarf-5"},
		{"g4", "g++ -O2 -g -gdwarf-4"},
		{"g-gc", "g++ -O2 -g -ffunction-sections -Wl,--gc-sections"},
		{"g-fixed", "g++ -O2 -g -no-pie -gz=zlib-gnu -gdwarf-4"},
		{"c5", "clang++ -O2 -g -gdwarf-5"},
		{"c4", "clang++ -O2 -g -gdwarf-4 -fuse-ld=lld"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(builds); i++) {
		if (!have(oracle_of(builds[i].name)))
			continue;
		free(shell("%s -o %s v.cc", builds[i].command, builds[i].name));
		compare(builds[i].name, 3000);
	}
}

/* g++ leaves the code of lambdas and of other local types below the function, abstract ones too. */
static void code_in_local_types(void **state)
{
	static const char *const levels[] = {"-O0", "-O1", "-O2", "-O2 -gdwarf-4"};

	(void)state;
	write_text(
		"l.cc",
		"#include <cstdio>\n"
		"#define OUT __attribute__((noinline, noclone))\n"
		"static inline __attribute__((always_inline)) long deep(long n, long x)\n"
		"{\n"
		"	long s = 0;\n"
		"	for (long i = 0; i < n; i++) { s += x; asm volatile(\"\" : \"+r\"(s)); }\n"
		"	return s;\n"
		"}\n"
		"static inline long wrapper(long n)\n"
		"{\n"
		"	struct local { static OUT long go(long n) { return deep(n, 3); } };\n"
		"	return local::go(n);\n"
		"}\n"
		"template <class T> struct box {\n"
		"	long run(T t)\n"
		"	{\n"
		"		struct in {\n"
		"			T t;\n"
		"			OUT long r()\n"
		"			{ return [this]() OUT { return deep(t, 4); }(); }\n"
		"		};\n"
		"		return in{t}.r() + deep(t, 5);\n"
		"	}\n"
		"};\n"
		"int main(int n, char **)\n"
		"{\n"
		"	auto f = [n](long k) OUT { return deep(n, k) + deep(k, n); };\n"
		"	printf(\"%ld\", wrapper(n) + box<int>().run(n) + f(n));\n"
		"}\n");
	for (size_t i = 0; i < ARRAY_SIZE(levels); i++) {
		struct dwarf_index *x = NULL;
		struct elf_symbols symbols = {0};
		struct comparison c;
		struct elf_file *f;

		free(shell("g++ %s -g -o local l.cc", levels[i]));
		f = open_elf("local");
		assert_int_equal(dwarf_index_open(f, &x), 0);
		assert_int_equal(elf_symbols_read(f, &symbols), 0);
		c = compare_chains("addr2line", "local", x, &symbols, 2000);
		print_message("# %s: %u inlined, %u by the linker\n", levels[i], c.inlined,
			      c.linker);
		assert_int_equal(c.different, 0);
		assert_true(c.inlined > 200);
		elf_symbols_release(&symbols);
		dwarf_index_free(x);
		elf_file_free(f);
	}
}

static void rust_programs(void **state)
{
	(void)state;
	if (!have("rustc") || !have("llvm-addr2line")) {
		skip_because("no rustc, or no llvm-addr2line, here");
	}
	write_text(
		"r.rs",
		"use std::collections::BTreeMap;\n"
		"struct Meter { total: u64 }\n"
		"impl Meter {\n"
		"    #[inline(always)]\n"
		"    fn add(&mut self, v: u64) { self.total = self.total.wrapping_mul(3) ^ v; }\n"
		"}\n"
		"#[inline(never)]\n"
		"fn run<T: Iterator<Item = u64>>(values: T, m: &mut Meter) {\n"
		"    for v in values { m.add(v); }\n"
		"}\n"
		"fn main() {\n"
		"    let mut m = Meter { total: 1 };\n"
		"    let words: BTreeMap<String, u64> = std::env::args().map(|a| (a.clone(), "
		"a.len() as u64)).collect();\n"
		"    run(words.values().map(|v| v * 2), &mut m);\n"
		"    println!(\"{}\", m.total);\n"
		"}\n");
	free(shell(
		"rustc -O -g -o c-rust r.rs && rustc -O -g -C symbol-mangling-version=v0 -o c-v0 "
		"r.rs"));
	compare("c-rust", 3000);
	compare("c-v0", 3000);
}

static struct dwarf_gaps gaps_of(const char *path, const char *function, size_t *ret_n)
{
	struct elf_file *f = open_elf(path);
	struct dwarf_index *x = NULL;
	struct source_frames frames = {0};
	struct dwarf_gaps gaps;
	char *text = shell("nm %s | awk '$3 == \"%s\" { print $1 }'", path, function);

	assert_int_equal(dwarf_index_open(f, &x), 0);
	dwarf_index_gaps(x, &gaps);
	assert_int_equal(gaps.missing, 0); /* nothing was asked for */
	assert_int_equal(dwarf_index_find(x, strtoull(text, NULL, 16), &frames), 0);
	*ret_n = frames.v.n;
	dwarf_index_gaps(x, &gaps);
	if (gaps.missing)
		assert_non_null(strstr(gaps.missing_name, ".dwo"));
	gaps.missing_name = NULL;
	array_release(&frames.v);
	dwarf_index_free(x);
	elf_file_free(f);
	free(text);
	return gaps;
}

static void split_files(void **state)
{
	size_t n = 0;

	(void)state;
	free(shell("g++ -O2 -g -gsplit-dwarf -o cs5 v.cc && g++ -O2 -g -gdwarf-4 -gsplit-dwarf "
		   "-c v.cc -o s4.o && g++ -o cs4 s4.o"));
	compare("cs5", 2000);
	compare("cs4", 2000);
	free(shell("rm -f *.dwo && echo 'int other(int x) { return x; }' > o.c && "
		   "gcc -g -c o.c && g++ -O2 -g -gsplit-dwarf -o lost v.cc o.o && rm *.dwo"));
	assert_int_equal(gaps_of("lost", "_Z7droppedi", &n).missing, 1);
	assert_int_equal(n, 1); /* the line table is in the program itself */
	assert_int_equal(gaps_of("lost", "other", &n).missing, 0);
	/* In its place what must not be opened: this would wait for a writer. */
	free(shell("mkfifo lost-v.dwo v.dwo"));
	assert_int_equal(gaps_of("lost", "_Z7droppedi", &n).missing, 1);
	free(shell("rm *.dwo"));
}

static void shared_debug_files(void **state)
{
	struct elf_file *f, *alt_file = NULL;
	struct dwarf_index *x = NULL;
	struct elf_symbols symbols = {0};
	struct source_frames frames = {0};
	struct dwarf_alt alt;
	struct comparison c;
	uint64_t main_at;

	(void)state;
	if (!have("dwz")) {
		skip_because("no dwz here");
	}
	free(shell("mkdir -p z/.dwz && sed 's/ \\* 7/ * 9/' v.cc > w.cc && "
		   "g++ -O2 -g -gdwarf-4 -o z/a v.cc && g++ -O2 -g -gdwarf-4 -o z/b w.cc && "
		   "dwz -m z/.dwz/both -M .dwz/both z/a z/b"));
	f = open_elf("z/a");
	assert_int_equal(dwarf_index_open(f, &x), 0);
	assert_true(dwarf_index_alt(x, &alt));
	assert_string_equal(alt.name, ".dwz/both");
	assert_int_equal(elf_symbols_read(f, &symbols), 0);
	main_at = 0;
	for (size_t i = 0; i < symbols.v.n; i++)
		if (str_eq(symbols.v.v[i].name, "main"))
			main_at = symbols.v.v[i].elf_vaddr;
	/* Without it nothing is told: libdw would open any path that the file gives. */
	assert_int_equal(dwarf_index_find(x, main_at, &frames), 0);
	assert_int_equal(frames.v.n, 0);
	assert_int_equal(elf_alt_file_find(f, alt.name, alt.id, alt.id_size, -1, &alt_file), 0);
	assert_int_equal(dwarf_index_set_alt(x, alt_file), 0);
	c = compare_chains("addr2line", "z/a", x, &symbols, 3000);
	assert_int_equal(c.different, 0);
	assert_true(c.inlined > 750);
	/* Another file of that name is not used. */
	free(shell("cp v.cc z/.dwz/both"));
	elf_file_free(alt_file);
	alt_file = NULL;
	assert_int_equal(elf_alt_file_find(f, alt.name, alt.id, alt.id_size, -1, &alt_file),
			 -ENOENT);
	free(shell("cp z/b z/.dwz/both"));
	assert_int_equal(elf_alt_file_find(f, alt.name, alt.id, alt.id_size, -1, &alt_file),
			 -ENOENT);
	array_release(&frames.v);
	elf_symbols_release(&symbols);
	dwarf_index_free(x);
	elf_file_free(f);
}

/* Offset of a section in its file. */
static void section_range(const char *path, const char *name, size_t *ret_off, size_t *ret_size)
{
	char *text = shell("readelf -SW %s | sed -n 's/^ *\\[ *[0-9]*\\] \\%s  *PROGBITS //p'",
			   path, name);
	unsigned long long off, size;

	assert_int_equal(sscanf(text, "%*x %llx %llx", &off, &size), 2);
	*ret_off = off;
	*ret_size = size;
	free(text);
}

/* Bytes of the debug sections overwritten: fewer names, no crash, the symbols stay. */
static void damaged_debug_information(void **state)
{
	static const char *const sections[] = {".debug_info", ".debug_abbrev", ".debug_line",
					       ".debug_rnglists", ".debug_str"};
	uint64_t random = 2463534242;
	size_t damaged = 0, described = 0;

	(void)state;
	free(shell("g++ -O2 -g -o whole v.cc"));
	for (unsigned round = 0; round < 40; round++) {
		struct elf_file *f;
		struct dwarf_index *x = NULL;
		struct source_frames frames = {0};
		size_t off, size;
		int fd, err;

		section_range("whole", sections[round % ARRAY_SIZE(sections)], &off, &size);
		free(shell("cp whole hurt"));
		fd = open("hurt", O_WRONLY);
		for (unsigned i = 0; i < 1 + round * 3; i++) {
			uint8_t byte = (uint8_t)next_random(&random);
			off_t at = (off_t)(off + next_random(&random) % size);

			assert_int_equal(pwrite(fd, &byte, 1, at), 1);
		}
		close(fd);
		f = open_elf("hurt");
		err = dwarf_index_open(f, &x);
		assert_true(err == 0 || err == -EBADMSG);
		for (uint64_t at = 0x1000; !err && at < 0x3000; at += 7) {
			assert_int_equal(dwarf_index_find(x, at, &frames), 0);
			described += frames.v.n;
		}
		if (!err) {
			struct dwarf_gaps gaps;

			dwarf_index_gaps(x, &gaps);
			damaged += gaps.damaged != 0;
		}
		damaged += err != 0;
		array_release(&frames.v);
		dwarf_index_free(x);
		elf_file_free(f);
	}
	print_message("# %zu of 40 told to be damaged\n", damaged);
	assert_true(damaged > 5);
	assert_true(described > 10000);
}

/* A name that begins where .debug_info ends, with a NUL: what follows is no name. */
static void name_at_the_end(void **state)
{
	struct elf_file *f;
	struct dwarf_index *x = NULL;
	struct source_frames frames = {0};
	char *at;

	(void)state;
	write_text("e.s", ".text\n.globl f\nf: .skip 16\nf_end:\n"
			  ".section .debug_abbrev,\"\",%progbits\n"
			  /* a unit with low_pc and high_pc; a function with these and a name */
			  ".uleb128 1, 0x11\n.byte 1\n.uleb128 0x11, 1, 0x12, 1, 0, 0\n"
			  ".uleb128 2, 0x2e\n.byte 0\n.uleb128 0x11, 1, 0x12, 1, 3, 8, 0, 0, 0\n"
			  ".section .debug_info,\"\",%progbits\n"
			  ".4byte end - start\nstart: .2byte 4\n.4byte 0\n.byte 8\n"
			  ".uleb128 1\n.8byte f, f_end\n.uleb128 2\n.8byte f, f_end\nend:\n");
	free(shell("gcc -shared -nostdlib -o end.so e.s"));
	at = shell("nm end.so | awk '$3 == \"f\" { print $1 }'");
	f = open_elf("end.so");
	assert_int_equal(dwarf_index_open(f, &x), 0);
	assert_int_equal(dwarf_index_find(x, strtoull(at, NULL, 16), &frames), 0);
	assert_int_equal(frames.v.n, 1);
	assert_null(frames.v.v[0].name);
	array_release(&frames.v);
	dwarf_index_free(x);
	elf_file_free(f);
	free(at);
}

static void too_much_is_refused(void **state)
{
	struct elf_file *f;
	struct dwarf_index *x = NULL;
	size_t off, size;
	uint64_t claimed = DWARF_BYTES_MAX + 1;
	int fd;

	(void)state;
	free(shell("echo 'int f(void) { return 1; }' > t.c && gcc -g -gz -c t.c -o t.o && "
		   "gcc -nostdlib -shared -g -gz -o t.so t.o"));
	section_range("t.so", ".debug_info", &off, &size);
	fd = open("t.so", O_WRONLY);
	/* Elf64_Chdr: ch_type, ch_reserved, ch_size */
	assert_int_equal(pwrite(fd, &claimed, sizeof(claimed), (off_t)off + 8), sizeof(claimed));
	close(fd);
	f = open_elf("t.so");
	assert_int_equal(dwarf_index_open(f, &x), -EFBIG);
	elf_file_free(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(compilers_and_versions),
		cmocka_unit_test(code_in_local_types),
		cmocka_unit_test(rust_programs),
		cmocka_unit_test(split_files),
		cmocka_unit_test(shared_debug_files),
		cmocka_unit_test(damaged_debug_information),
		cmocka_unit_test(name_at_the_end),
		cmocka_unit_test(too_much_is_refused),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, setup, scratch_teardown);
}
