/* SPDX-License-Identifier: BSD-2-Clause */
/* Tables by build-id, their cache on disk, files without call frame information, damaged files. */
#include <inspect/code_file.h>
#include <inspect/unwind.h>

/* cmocka.h needs these first. */
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "scratch.h"

#define BIG_FILE "/usr/lib/x86_64-linux-gnu/libstdc++.so.6"

static struct elf_file *open_elf(const char *path)
{
	struct elf_file *f = NULL;
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(elf_file_open_fd(fd, &f), 0);
	return f;
}

static void describe_dso(const char *path, uint32_t id, struct dso *ret)
{
	struct elf_file *f = open_elf(path);
	size_t size = 0;

	*ret = (struct dso){.id = id, .kind = DSO_ELF, .path = (char *)path, .fd = -1};
	assert_int_equal(elf_file_build_id(f, ret->build_id, &size), 0);
	ret->build_id_size = (uint8_t)size;
	elf_file_free(f);
}

static size_t files_in(const char *path)
{
	struct dirent *e;
	DIR *dir = opendir(path);
	size_t n = 0;

	while (dir && (e = readdir(dir)))
		n += e->d_name[0] != '.';
	if (dir)
		closedir(dir);
	return n;
}

static void same_tables(const struct unwind_table *a, const struct unwind_table *b)
{
	assert_int_equal(a->rows.n, b->rows.n);
	assert_int_equal(a->rules.n, b->rules.n);
	assert_int_equal(a->base_off, b->base_off);
	assert_memory_equal(a->rows.v, b->rows.v, a->rows.n * sizeof(*a->rows.v));
	assert_memory_equal(a->rules.v, b->rules.v, a->rules.n * sizeof(*a->rules.v));
}

static void build_ids_share_tables(void **state UNUSED)
{
	struct unwind_tables *tables;
	const struct unwind_table *a, *b;
	struct dso d;

	assert_int_equal(unwind_tables_new(false, &tables), 0);
	describe_dso(BIG_FILE, 7, &d);
	assert_int_equal(unwind_tables_get(tables, &d, false, &a), 0);
	d.id = 9;
	d.path = (char *)"/nowhere";
	assert_int_equal(unwind_tables_get(tables, &d, false, &b), 0);
	assert_ptr_equal(a, b);
	d.id = 10;
	d.build_id[0] ^= 1;
	assert_int_equal(unwind_tables_get(tables, &d, false, &b), -ENOENT);
	assert_int_equal(unwind_tables_get(tables, &d, false, &b), -ENOENT);
	d = (struct dso){.id = 11, .kind = DSO_JIT, .path = (char *)"[jit]", .fd = -1};
	assert_int_equal(unwind_tables_get(tables, &d, true, &b), -ENOENT);
	unwind_tables_free(tables);
}

static void our_vdso_has_rows(void **state UNUSED)
{
	struct unwind_tables *tables;
	const struct unwind_table *t;
	struct dso d = {.id = 5, .kind = DSO_VDSO, .path = (char *)"[vdso]", .fd = -1};

	assert_int_equal(unwind_tables_new(false, &tables), 0);
	assert_int_equal(unwind_tables_get(tables, &d, true, &t), 0);
	assert_true(t->rows.n > 10);
	d.id = 6;
	assert_int_equal(unwind_tables_get(tables, &d, false, &t), -ENOENT);
	unwind_tables_free(tables);
}

static const struct unwind_table *load(struct unwind_tables **ret)
{
	const struct unwind_table *t = NULL;
	struct dso d;

	describe_dso(BIG_FILE, 1, &d);
	assert_int_equal(unwind_tables_new(true, ret), 0);
	assert_int_equal(unwind_tables_get(*ret, &d, false, &t), 0);
	return t;
}

/* Without the file itself, and perf's cache of files, only ours can know. */
static bool is_cached(void)
{
	struct unwind_tables *tables;
	const struct unwind_table *t;
	struct dso d;
	int err;

	describe_dso(BIG_FILE, 1, &d);
	d.path = (char *)"/nowhere";
	assert_int_equal(unwind_tables_new(true, &tables), 0);
	err = unwind_tables_get(tables, &d, false, &t);
	unwind_tables_free(tables);
	return !err;
}

static void flip_byte(const char *path, off_t at)
{
	uint8_t byte;
	int fd = open(path, O_RDWR);

	assert_true(fd >= 0 && pread(fd, &byte, 1, at) == 1);
	byte ^= 0x10;
	assert_int_equal(pwrite(fd, &byte, 1, at), 1);
	close(fd);
}

static void tables_are_kept_on_disk(void **state UNUSED)
{
	struct unwind_tables *first, *second;
	const struct unwind_table *a, *b;
	char *name;

	setenv("XDG_CACHE_HOME", scratch, 1);
	assert_false(is_cached());
	a = load(&first);
	assert_int_equal(files_in("inspect/unwind"), 1);
	assert_true(is_cached());
	b = load(&second);
	same_tables(a, b);
	unwind_tables_free(first);
	unwind_tables_free(second);
	/* A byte that is wrong anywhere is noticed, and the file made anew. */
	name = shell("echo inspect/unwind/*.rows");
	name[strcspn(name, "\n")] = '\0';
	for (off_t at = 0; at < 100000; at = at * 3 + 9) {
		flip_byte(name, at);
		assert_false(is_cached());
		load(&first);
		unwind_tables_free(first);
		assert_true(is_cached());
	}
	assert_int_equal(truncate(name, 5000), 0);
	assert_false(is_cached());
	/* Whatever else lies there is not followed. */
	free(shell("rm %s; ln -s /etc/passwd %s", name, name));
	assert_false(is_cached());
	free(name);
	/* Others may not write there. */
	assert_int_equal(chmod("inspect/unwind", 0777), 0);
	load(&first);
	unwind_tables_free(first);
	assert_false(is_cached());
	unsetenv("XDG_CACHE_HOME");
}

static void a_missing_home_is_no_failure(void **state UNUSED)
{
	struct unwind_tables *tables;

	unsetenv("XDG_CACHE_HOME");
	unsetenv("HOME");
	load(&tables);
	unwind_tables_free(tables);
	setenv("HOME", "/proc/self", 1);
	load(&tables);
	unwind_tables_free(tables);
	setenv("HOME", "/nowhere", 1);
}

static void old_tables_make_room(void **state UNUSED)
{
	struct unwind_tables *tables;

	setenv("XDG_CACHE_HOME", scratch, 1);
	free(shell("rm -rf inspect; mkdir -m 700 inspect inspect/unwind; cd inspect/unwind; "
		   "truncate -s 200M old.rows; touch -d '2 days ago' old.rows; "
		   "truncate -s 100M new.rows"));
	load(&tables);
	unwind_tables_free(tables);
	assert_int_equal(access("inspect/unwind/old.rows", F_OK), -1);
	assert_int_equal(access("inspect/unwind/new.rows", F_OK), 0);
	assert_true(is_cached());
	unsetenv("XDG_CACHE_HOME");
}

/* --- what has no rows ------------------------------------------------------------------------- */

static void nothing_to_tell(void **state UNUSED)
{
	struct elf_file *f;
	struct unwind_table *t;

	write_text("n.c", "int f(int x) { return x + 1; }\nint _start(void) { return f(1); }\n");
	free(shell("cc -O1 -nostdlib -fno-asynchronous-unwind-tables -fno-unwind-tables -static "
		   "-o none n.c"));
	f = open_elf("none");
	assert_int_equal(unwind_table_build(f, &t), 0);
	assert_int_equal(unwind_table_find(t, 0)->kind, UNWIND_RULE_NONE);
	assert_int_equal(unwind_table_find(t, UINT64_MAX)->kind, UNWIND_RULE_NONE);
	unwind_table_free(t);
	elf_file_free(f);
	write_text("m.c", "int main(void) { return 0; }\n");
	if (!system("cc -m32 -c -o m32 m.c 2>/dev/null")) {
		f = open_elf("m32");
		assert_int_equal(unwind_table_build(f, &t), -EOPNOTSUPP);
		elf_file_free(f);
	}
}

/* Rows made of the program headers alone are those made of the sections, _init (from 0x1000 on) and
 * _fini aside, whose sections say where they end. */
static void section_headers_are_not_needed(void **state UNUSED)
{
	struct elf_file *f;
	struct unwind_table *with, *without;
	const struct unwind_rule *a, *b;
	uint64_t zero = 0, fini_off;
	char *fini;
	int fd;

	write_text("s.c", "int g(int);\nint main(int c, char **v) { (void)v; return g(c) + 1; }\n"
			  "int g(int x) { char b[x + 10]; b[0] = 1; return b[x]; }\n");
	free(shell("cc -O1 -o with s.c && cp with without"));
	fini = shell("nm with | sed -n 's/ . _fini$//p'");
	fini_off = strtoull(fini, NULL, 16);
	free(fini);
	fd = open("without", O_RDWR);
	/* e_shoff, then e_shnum and e_shstrndx. */
	assert_int_equal(pwrite(fd, &zero, 8, 40), 8);
	assert_int_equal(pwrite(fd, &zero, 4, 60), 4);
	close(fd);
	f = open_elf("with");
	assert_int_equal(unwind_table_build(f, &with), 0);
	elf_file_free(f);
	f = open_elf("without");
	assert_int_equal(unwind_table_build(f, &without), 0);
	elf_file_free(f);
	for (uint64_t off = 0x1020; off < 0x1300; off++) {
		a = unwind_table_find(with, off);
		b = unwind_table_find(without, off);
		if (b->kind == UNWIND_RULE_NONE)
			assert_true(a->kind == UNWIND_RULE_NONE || off + 16 > fini_off);
		else
			assert_memory_equal(a, b, sizeof(*a));
	}
	unwind_table_free(with);
	unwind_table_free(without);
}

struct expected_rule {
	const char *symbol;
	int add, kind, off;
};

static void have_rules(const char *code, const struct expected_rule *cases, size_t n)
{
	struct elf_file *f;
	struct unwind_table *t;

	write_text("g.s", code);
	free(shell("cc -nostdlib -static -o gaps g.s"));
	f = open_elf("gaps");
	assert_int_equal(unwind_table_build(f, &t), 0);
	for (size_t i = 0; i < n; i++) {
		char *address = shell("nm gaps | sed -n 's/ . %s$//p'", cases[i].symbol);
		const struct unwind_rule *r;
		uint64_t off;

		assert_int_equal(elf_file_vaddr_to_off(f, strtoull(address, NULL, 16), &off), 0);
		r = unwind_table_find(t, off + (uint64_t)(int64_t)cases[i].add);
		if (r->kind != cases[i].kind || r->off != cases[i].off)
			fail_msg("%s%+d: kind %u off %d", cases[i].symbol, cases[i].add, r->kind,
				 r->off);
		free(address);
	}
	unwind_table_free(t);
	elf_file_free(f);
}

/* What no linker describes: lld's PLT, _init and _fini, the return from a signal handler, the ends
 * of musl. */
static void gaps_are_filled(void **state UNUSED)
{
	static const char code[] =
		".globl _start\n_start: call main\n.skip 80, 0x90\n"
		".globl exit\nexit: hlt\n.skip 40, 0x90\n"
		"ends: call *%rax\nafter_call: mov %eax, %edi\ncall exit\n.skip 40, 0x90\n"
		"restorer: mov $15, %rax\nsyscall\n.skip 40, 0x90\n"
		".globl main\nmain: ret\n.skip 40, 0x90\n"
		".section .plt.sec, \"ax\", @progbits\nentry: jmp *%rax\n.skip 14, 0x90\n"
		".section .init, \"ax\", @progbits\n"
		"begin: sub $8, %rsp\nnop\nadd $8, %rsp\nret\n"
		".section .fini, \"ax\", @progbits\n"
		"finish: endbr64\npush %rax\nnop\npop %rax\nret\n";
	static const struct expected_rule cases[] = {
		{"_start", 4, UNWIND_RULE_END, 0},       {"after_call", -1, UNWIND_RULE_END, 0},
		{"restorer", -1, UNWIND_RULE_SIGNAL, 0}, {"restorer", 8, UNWIND_RULE_SIGNAL, 0},
		{"restorer", 9, UNWIND_RULE_NONE, 0},    {"exit", 0, UNWIND_RULE_NONE, 0},
		{"main", 0, UNWIND_RULE_NONE, 0},        {"entry", 0, UNWIND_RULE_CFA, 8},
		{"begin", 3, UNWIND_RULE_CFA, 8},        {"begin", 4, UNWIND_RULE_CFA, 16},
		{"begin", 8, UNWIND_RULE_CFA, 16},       {"begin", 9, UNWIND_RULE_CFA, 8},
		{"finish", 4, UNWIND_RULE_CFA, 8},       {"finish", 5, UNWIND_RULE_CFA, 16},
		{"finish", 7, UNWIND_RULE_CFA, 8},
	};
	have_rules(code, cases, ARRAY_SIZE(cases));
}

/* Go's own, which its call frame information says to be a function like others. */
static void go_returns_from_signals(void **state UNUSED)
{
	static const char code[] =
		".cfi_sections .debug_frame\n.globl _start\n"
		"_start: .cfi_startproc\ncall _start\n.cfi_endproc\n.skip 40, 0xcc\n"
		"restorer: .cfi_startproc\nmov $15, %rax\nsyscall\nint3\n.cfi_endproc\n"
		".skip 40, 0xcc\nrest: .skip 40, 0xcc\n"
		".section .go.buildinfo, \"a\", @progbits\n.byte 1\n";
	static const struct expected_rule cases[] = {
		{"_start", 4, UNWIND_RULE_CFA, 8},       {"restorer", -2, UNWIND_RULE_FP, 0},
		{"restorer", -1, UNWIND_RULE_SIGNAL, 0}, {"restorer", 8, UNWIND_RULE_SIGNAL, 0},
		{"rest", 0, UNWIND_RULE_FP, 0},
	};

	have_rules(code, cases, ARRAY_SIZE(cases));
}

static void damage_is_survived(void **state UNUSED)
{
	struct stat st;
	uint64_t seed = 7;
	uint8_t *bytes;
	int fd;

	write_text("d.c", "#include <stdio.h>\nint main(int c, char **v) { char b[c + 9]; "
			  "return snprintf(b, 9, \"%s\", v[0]); }\n");
	free(shell("cc -O2 -g -o d d.c"));
	fd = open("d", O_RDONLY);
	assert_int_equal(fstat(fd, &st), 0);
	bytes = malloc((size_t)st.st_size);
	assert_int_equal(read(fd, bytes, (size_t)st.st_size), st.st_size);
	close(fd);
	for (int round = 0; round < 3000; round++) {
		uint8_t *copy = malloc((size_t)st.st_size);
		struct unwind_table *t;
		struct elf_file *f;

		memcpy(copy, bytes, (size_t)st.st_size);
		for (int i = 0; i < 20; i++) {
			seed = hash_u64(seed + 1);
			/* Half of it among the headers and in .eh_frame, which lies early. */
			copy[(i & 1 ? seed : seed % 16384) % (uint64_t)st.st_size] =
				(uint8_t)(seed >> 40);
		}
		if (!elf_file_open_memory(copy, (size_t)st.st_size, &f)) {
			if (!unwind_table_build(f, &t)) {
				for (size_t i = 1; i < t->rows.n; i++)
					assert_true(t->rows.v[i].off > t->rows.v[i - 1].off);
				unwind_table_free(t);
			}
			elf_file_free(f);
		}
		free(copy);
	}
	free(bytes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(build_ids_share_tables),
		cmocka_unit_test(our_vdso_has_rows),
		cmocka_unit_test(tables_are_kept_on_disk),
		cmocka_unit_test(a_missing_home_is_no_failure),
		cmocka_unit_test(old_tables_make_room),
		cmocka_unit_test(nothing_to_tell),
		cmocka_unit_test(section_headers_are_not_needed),
		cmocka_unit_test(gaps_are_filled),
		cmocka_unit_test(go_returns_from_signals),
		cmocka_unit_test(damage_is_survived),
	};

	setenv("HOME", "/nowhere", 1);
	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, scratch_setup, scratch_teardown);
}
