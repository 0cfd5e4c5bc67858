/* SPDX-License-Identifier: BSD-2-Clause */
/* Whole profiles named, against nm and dlsym. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "skip.h"
#include <dlfcn.h>
#include <fcntl.h>
#include <inspect/clock.h>
#include <inspect/elf_file.h>
#include <inspect/saved_names.h>
#include <inspect/symbolize.h>
#include <sys/auxv.h>
#include <sys/stat.h>

#include "naming.h"
#include "scratch.h"

static uint32_t add_file(struct profile *p, const char *path, const uint8_t *id, size_t id_size,
			 uint64_t ino)
{
	struct mmap_event m = {.pid = 4194304, /* above every pid_max: no live process */
			       .tid = 4194304,
			       .start_va = 0x7f0000000000,
			       .len_bytes = 0x100000,
			       .ino = ino,
			       .build_id = id,
			       .build_id_size = id_size,
			       .exec = true,
			       .path = path};
	uint32_t dso = 0;

	assert_int_equal(dso_table_add(&p->processes.dsos, &m, 0, &dso), 0);
	return dso;
}

static const char *module_of(const struct profile *p, uint32_t frame)
{
	return intern_str(&p->strings, symbol_of(p, frame)->module);
}

/* File offset of a function by objdump. */
static uint64_t offset_of(const char *file, const char *function)
{
	char *text = shell("objdump -dF %s | sed -n 's/^[0-9a-f]* <%s> (File Offset: 0x\\(.*\\)).*/"
			   "\\1/p'",
			   file, function);
	uint64_t off = strtoull(text, NULL, 16);

	free(text);
	assert_true(off > 0);
	return off;
}

static size_t build_id_of(const char *path, uint8_t id[20])
{
	struct elf_file *f = NULL;
	size_t size = 0;

	assert_int_equal(elf_file_open_fd(open(path, O_RDONLY), &f), 0);
	elf_file_build_id(f, id, &size);
	elf_file_free(f);
	return size;
}

static const char *in_scratch(const char *name)
{
	static char path[600];

	snprintf(path, sizeof(path), "%s/%s", scratch, name);
	return path;
}

static void build_programs(void)
{
	write_text("p.cc",
		   "namespace ns { __attribute__((noinline)) int f(int x) { return x + 1; } }\n"
		   "extern \"C\" __attribute__((noinline)) int plain(int x) { return x * 3; }\n"
		   "int main(int c, char **) { return ns::f(c) + plain(c); }\n");
	free(shell("c++ -O1 -g -Wl,--build-id=sha1 -o p p.cc"));
}

static void files(void **state)
{
	struct profile *p = new_profile();
	uint8_t id[20];
	uint32_t dso, f, inside, plain, gap, beyond;
	uint64_t f_off, elf_vaddr = 0;
	char want[64];
	struct elf_file *file = NULL;

	(void)state;
	build_programs();
	f_off = offset_of("p", "_ZN2ns1fEi");
	dso = add_file(p, in_scratch("p"), id, build_id_of("p", id), 0);
	f = add_frame(p, dso, f_off, FRAME_NATIVE);
	plain = add_frame(p, dso, offset_of("p", "plain") + 1, FRAME_NATIVE);
	inside = add_frame(p, dso, f_off + 2, FRAME_NATIVE);
	gap = add_frame(p, dso, 0x40, FRAME_NATIVE);
	beyond = add_frame(p, dso, 1ULL << 40, FRAME_NATIVE);
	symbolize(p, true);
	assert_string_equal(name_of(p, f), "ns::f(int)");
	assert_string_equal(module_of(p, f), "p");
	assert_string_equal(name_of(p, plain), "plain");
	assert_ptr_equal(symbol_of(p, f), symbol_of(p, inside));
	assert_int_equal(symbol_of(p, f)->kind, FRAME_NATIVE);
	assert_false(symbol_of(p, f)->unknown);
	/* What has no name gets the address that addr2line takes. */
	assert_int_equal(elf_file_open_fd(open("p", O_RDONLY), &file), 0);
	assert_int_equal(elf_file_off_to_vaddr(file, 0x40, &elf_vaddr), 0);
	elf_file_free(file);
	snprintf(want, sizeof(want), "[p+0x%llx]", (unsigned long long)elf_vaddr);
	assert_string_equal(name_of(p, gap), want);
	assert_true(symbol_of(p, gap)->unknown);
	assert_string_equal(module_of(p, gap), "p");
	assert_string_equal(name_of(p, beyond), "[p+0x10000000000]");
	assert_int_equal(p->notes.n, 0);
	profile_free(p);

	p = new_profile();
	dso = add_file(p, in_scratch("p"), id, build_id_of("p", id), 0);
	f = add_frame(p, dso, f_off, FRAME_NATIVE);
	assert_int_equal(symbolize_profile(p, &(struct symbolize_options){.no_demangle = true}), 0);
	assert_string_equal(name_of(p, f), "_ZN2ns1fEi");
	profile_free(p);
}

static void a_replaced_file_is_not_used(void **state)
{
	struct profile *p = new_profile();
	uint8_t id[20];
	size_t id_size;
	uint32_t dso, frame, by_inode, kept;
	uint64_t off;
	struct stat st;
	char name[64];

	(void)state;
	build_programs();
	off = offset_of("p", "plain");
	id_size = build_id_of("p", id);
	assert_int_equal(stat("p", &st), 0);
	free(shell("cp p kept && cp p p.new && printf x >> p.new && mv p.new p2 && "
		   "sed 's/x \\* 3/x * 5/' p.cc > q.cc && c++ -O1 -Wl,--build-id=sha1 -o q q.cc"));
	/* Recorded as p, where now q is. */
	free(shell("mv q p"));
	dso = add_file(p, in_scratch("p"), id, id_size, 0);
	frame = add_frame(p, dso, off, FRAME_NATIVE);
	/* Without a build-id the inode tells. */
	dso = add_file(p, in_scratch("p2"), NULL, 0, st.st_ino);
	by_inode = add_frame(p, dso, off, FRAME_NATIVE);
	assert_int_equal(stat("kept", &st), 0);
	dso = add_file(p, in_scratch("kept"), NULL, 0, st.st_ino);
	kept = add_frame(p, dso, off, FRAME_NATIVE);
	/* The contents of p, but recorded without a build-id: a file of its own. */
	setenv("HOME", scratch, 1);
	symbolize(p, true);
	snprintf(name, sizeof(name), "[p+0x%llx]", (unsigned long long)off);
	assert_string_equal(name_of(p, frame), name);
	assert_true(symbol_of(p, frame)->unknown);
	assert_true(has_note(p, "p: the file on disk is not the one that was recorded (build-id"));
	assert_true(symbol_of(p, by_inode)->unknown);
	assert_true(has_note(p, "p2: the file on disk is not the one that was recorded (inode"));
	assert_string_equal(name_of(p, kept), "plain");
	profile_free(p);

	/* The same build-id under another path, and the running file at hand by descriptor. */
	p = new_profile();
	dso = add_file(p, in_scratch("p"), id, id_size, 0);
	frame = add_frame(p, dso, off, FRAME_NATIVE);
	dso = add_file(p, in_scratch("kept"), id, id_size, 0);
	kept = add_frame(p, dso, off, FRAME_NATIVE);
	symbolize(p, true);
	assert_string_equal(name_of(p, frame), "plain");
	assert_string_equal(module_of(p, frame), "p");
	assert_string_equal(name_of(p, kept), "plain");
	assert_string_equal(module_of(p, kept), "kept");
	profile_free(p);

	p = new_profile();
	dso = add_file(p, in_scratch("p"), NULL, 0, 0);
	p->processes.dsos.dsos.v[dso]->fd = open("kept", O_RDONLY | O_CLOEXEC);
	frame = add_frame(p, dso, off, FRAME_NATIVE);
	symbolize(p, false);
	assert_string_equal(name_of(p, frame), "plain");
	profile_free(p);
}

static void missing_and_damaged_files(void **state)
{
	struct profile *p = new_profile();
	uint32_t missing, damaged, frame = 0;

	(void)state;
	write_text("damaged", "\177ELF nothing of the kind");
	missing =
		add_frame(p, add_file(p, "/absent/libgone.so.1", NULL, 0, 0), 0x1234, FRAME_NATIVE);
	damaged = add_frame(p, add_file(p, in_scratch("damaged"), NULL, 0, 0), 0x10, FRAME_NATIVE);
	for (int i = 0; i < 30; i++) {
		char path[64];

		snprintf(path, sizeof(path), "/absent/lib%d.so", i);
		frame = add_frame(p, add_file(p, path, NULL, 0, 0), 0x10, FRAME_NATIVE);
	}
	symbolize(p, true);
	assert_string_equal(name_of(p, missing), "[libgone.so.1+0x1234]");
	assert_string_equal(name_of(p, damaged), "[damaged+0x10]");
	assert_string_equal(name_of(p, frame), "[lib29.so+0x10]");
	assert_true(has_note(p, "/absent/libgone.so.1: No such file or directory: its functions "
				"have no names"));
	assert_true(has_note(p, "damaged: no ELF file"));
	assert_true(has_note(p, "24 more files could not be used"));
	assert_int_equal(p->notes.n, 9);
	profile_free(p);
}

static void stripped_with_a_debug_file(void **state)
{
	struct profile *p = new_profile();
	uint32_t frame, plt;
	uint64_t off;

	(void)state;
	write_text("d.c", "#include <stdio.h>\nstatic __attribute__((noinline)) int hidden(int x) "
			  "{ return puts(\"\") + x; }\n"
			  "int main(int c, char **v) { (void)v; return hidden(c); }\n");
	free(shell("cc -O1 -g -Wl,-z,lazy -o d d.c && cp d d.full && "
		   "objcopy --only-keep-debug d d.debug && "
		   "objcopy --strip-all --add-gnu-debuglink=d.debug d"));
	off = offset_of("d.full", "hidden");
	frame = add_frame(p, add_file(p, in_scratch("d"), NULL, 0, 0), off, FRAME_NATIVE);
	plt = add_frame(p, add_file(p, in_scratch("d"), NULL, 0, 0),
			offset_of("d.full", "puts@plt"), FRAME_NATIVE);
	symbolize(p, false);
	assert_string_equal(name_of(p, frame), "hidden");
	assert_string_equal(name_of(p, plt),
			    "puts@plt"); /* the file's own, beside the debug file's */
	profile_free(p);
}

static void kernel(void **state)
{
	struct profile *p = new_profile();
	uint32_t known, low;
	char *line = shell("grep ' [tT] ' /proc/kallsyms | grep -v '\\[' | "
			   "awk '$1 != last { print; last = $1 }' | sed -n 5000p");
	unsigned long long address = 0;
	char name[256];

	(void)state;
	if (sscanf(line, "%llx %*c %255s", &address, name) != 2 || !address) {
		print_message("# kernel addresses are hidden from this user\n");
		address = 0xffffffff81000000;
	}
	free(line);
	known = add_frame(p, DSO_ID_KERNEL, address, FRAME_KERNEL);
	low = add_frame(p, DSO_ID_KERNEL, 0xffff800000001234, FRAME_KERNEL);
	symbolize(p, true);
	if (address != 0xffffffff81000000) {
		assert_false(symbol_of(p, known)->unknown);
		assert_string_equal(module_of(p, known), "[kernel]");
		assert_int_equal(p->notes.n, 0);
	}
	assert_int_equal(symbol_of(p, known)->kind, FRAME_KERNEL);
	assert_string_equal(name_of(p, low), "[kernel] 0xffff800000001234");
	assert_true(symbol_of(p, low)->unknown);
	/* Recorded elsewhere: our kernel's names would be wrong. */
	symbolize(p, false);
	snprintf(name, sizeof(name), "[kernel] 0x%llx", address);
	assert_string_equal(name_of(p, known), name);
	profile_free(p);
}

static void vdso(void **state)
{
	struct profile *p = new_profile();
	void *at = dlopen("linux-vdso.so.1", RTLD_LAZY | RTLD_NOLOAD);
	void *function = at ? dlsym(at, "__vdso_clock_gettime") : NULL;
	uint64_t off = (uint64_t)(uintptr_t)function - getauxval(AT_SYSINFO_EHDR);
	uint32_t frame, none;

	(void)state;
	if (!function) {
		profile_free(p);
		skip_because("no vdso with clock_gettime here");
	}
	frame = add_frame(p, add_file(p, "[vdso]", NULL, 0, 0), off + 1, FRAME_NATIVE);
	none = add_frame(p, add_file(p, "[vdso]", NULL, 0, 0), 0xfffff, FRAME_NATIVE);
	symbolize(p, true);
	assert_non_null(strstr(name_of(p, frame), "clock_gettime"));
	assert_string_equal(module_of(p, frame), "[vdso]");
	assert_string_equal(name_of(p, none), "[vdso+0xfffff]");
	symbolize(p, false);
	assert_true(symbol_of(p, frame)->unknown);
	assert_int_equal(p->notes.n, 0);
	profile_free(p);
}

static void names_from_the_recording(void **state)
{
	struct profile *p = new_profile(), *q = new_profile();
	struct saved_names *saved = NULL;
	uint32_t frame, other;
	uint8_t *bytes = NULL;
	size_t size = 0;
	uint64_t off;

	(void)state;
	build_programs();
	off = offset_of("p", "plain");
	frame = add_frame(p, add_file(p, in_scratch("p"), NULL, 0, 0), off, FRAME_NATIVE);
	symbolize(p, true);
	assert_string_equal(name_of(p, frame), "plain");
	assert_int_equal(saved_names_encode(p, &bytes, &size), 0);
	assert_int_equal(saved_names_decode(bytes, size, &saved), 0);
	free(bytes);
	free(shell("rm p"));
	frame = add_frame(q, add_file(q, in_scratch("p"), NULL, 0, 0), off, FRAME_NATIVE);
	other = add_frame(q, add_file(q, in_scratch("p"), NULL, 0, 0), off + 0x10000, FRAME_NATIVE);
	for (int no_demangle = 0; no_demangle < 2; no_demangle++) {
		struct symbolize_options o = {.no_demangle = no_demangle, .saved = saved};

		assert_int_equal(symbolize_profile(q, &o), 0);
		assert_string_equal(name_of(q, frame), "plain");
		assert_true(symbol_of(q, other)->unknown);
	}
	saved_names_free(saved);
	profile_free(p);
	profile_free(q);
}

/* Adds a stack, root first, with one sample on it. */
static uint32_t add_stack(struct profile *p, const uint32_t *frames, size_t n)
{
	uint32_t stack = STACK_ROOT, thread = 0;

	for (size_t i = 0; i < n; i++)
		assert_int_equal(profile_stack(p, stack, frames[i], &stack), 0);
	assert_int_equal(profile_thread(p, 1, 1, "t", 1, &thread), 0);
	assert_int_equal(profile_add(p, stack, thread, 0, 1000, 1), 0);
	return stack;
}

#define STACK(...) add_stack(p, (uint32_t[]){__VA_ARGS__}, ARRAY_SIZE(((uint32_t[]){__VA_ARGS__})))

static void stacks_that_reach_no_entry_point(void **state)
{
	struct profile *p = new_profile();
	uint32_t event = 0, dso, main_, plain, libc, libc_too, start, given = 0, kernel_frame;
	uint32_t complete[7], cut[4];
	struct symbol_path path = {0};
	uint64_t entry_off = 0;
	struct elf_file *f = NULL;

	(void)state;
	build_programs();
	free(shell("cc -nostdlib -static -Wl,-e,my_own_start -x c -o bare - <<'END'\n"
		   "int deep(int x) { return x; }\n"
		   "void my_own_start(void) { for (;;) deep(1); }\nEND\n"));
	assert_int_equal(profile_add_event(p, "cpu-clock", "ns", &event), 0);
	dso = add_file(p, in_scratch("p"), NULL, 0, 0);
	main_ = add_frame(p, dso, offset_of("p", "main"), FRAME_NATIVE);
	plain = add_frame(p, dso, offset_of("p", "plain"), FRAME_NATIVE);
	dso = add_file(p, "/absent/libc.so.6", NULL, 0, 0);
	libc = add_frame(p, dso, 0x100, FRAME_NATIVE);
	libc_too = add_frame(p, dso, 0x200, FRAME_NATIVE);
	dso = add_file(p, in_scratch("bare"), NULL, 0, 0);
	assert_int_equal(elf_file_open_fd(open("bare", O_RDONLY), &f), 0);
	assert_int_equal(elf_file_vaddr_to_off(f, elf_file_entry(f), &entry_off), 0);
	elf_file_free(f);
	start = add_frame(p, dso, entry_off + 4, FRAME_NATIVE);
	kernel_frame = add_frame(p, DSO_ID_KERNEL, 0xffffffff81000001, FRAME_KERNEL);
	assert_int_equal(profile_named_frame(p, FRAME_NATIVE, "f", 1, "", 0, &given), 0);

	complete[0] = STACK(main_, plain);
	complete[1] = STACK(libc, main_, plain); /* nameless start code */
	complete[2] = STACK(start);              /* the file's own entry point */
	complete[3] = STACK(kernel_frame);       /* a kernel thread */
	complete[4] = STACK(given);              /* text has its stacks from elsewhere */
	complete[5] = STACK(main_, kernel_frame);
	complete[6] = STACK_ROOT;
	cut[0] = STACK(plain, main_);
	cut[1] = STACK(plain, kernel_frame);
	cut[2] = STACK(libc, libc_too); /* libc alone: not the start of a program */
	cut[3] = STACK(libc, kernel_frame);
	symbolize(p, false);
	assert_string_equal(name_of(p, start), "my_own_start");
	for (size_t i = 0; i < ARRAY_SIZE(complete); i++)
		assert_int_equal(p->cut.v[complete[i]], 0);
	for (size_t i = 0; i < ARRAY_SIZE(cut); i++)
		assert_int_equal(p->cut.v[cut[i]], 1);
	assert_int_equal(p->losses.truncated, 4);
	assert_string_equal(intern_str(&p->strings, p->symbols.v[p->truncated_symbol].name),
			    "[truncated]");
	for (size_t i = 0; i < p->rows.n; i++) {
		if (p->rows.v[i].stack != cut[1])
			continue;
		assert_int_equal(profile_row_path(p, &p->rows.v[i], &path), 0);
		assert_int_equal(path.at.n, 3);
		assert_int_equal(path.at.v[0].symbol, p->truncated_symbol);
	}
	array_release(&path.at);
	profile_free(p);
}

static void many_addresses_are_fast(void **state)
{
	struct profile *p;
	char *path = shell("ls /usr/lib/*/libLLVM-*.so.1 2>/dev/null | head -1");
	char *text;
	unsigned long long base, size;
	unsigned unnamed = 0;
	uint64_t before;
	uint32_t dso;

	(void)state;
	path[strcspn(path, "\n")] = '\0';
	if (!*path) {
		free(path);
		skip_because("no libLLVM here");
	}
	text = shell("readelf -SW %s | sed -n 's/.* \\.text  *PROGBITS *[0-9a-f]* \\([0-9a-f]*\\) "
		     "\\([0-9a-f]*\\) .*/\\1 \\2/p'",
		     path);
	assert_int_equal(sscanf(text, "%llx %llx", &base, &size), 2);
	free(text);
	p = new_profile();
	dso = add_file(p, path, NULL, 0, 0);
	for (uint64_t i = 0; i < 20000; i++)
		add_frame(p, dso, base + hash_u64(i) % size, FRAME_NATIVE);
	before = clock_own_cpu_ns();
	symbolize(p, true);
	print_message("# 20,000 addresses of %s: %.0f ms\n", path,
		      (double)(clock_own_cpu_ns() - before) / 1e6);
	assert_true(clock_own_cpu_ns() - before < 5 * NSEC_PER_SEC);
	for (uint32_t i = 0; i < p->frames.n; i++)
		unnamed += symbol_of(p, i)->unknown;
	assert_true(unnamed < 20000);
	profile_free(p);
	free(path);
}

static void an_empty_profile(void **state)
{
	struct profile *p = new_profile();

	(void)state;
	symbolize(p, true);
	assert_int_equal(p->losses.truncated, 0);
	profile_free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(files),
		cmocka_unit_test(a_replaced_file_is_not_used),
		cmocka_unit_test(missing_and_damaged_files),
		cmocka_unit_test(stripped_with_a_debug_file),
		cmocka_unit_test(kernel),
		cmocka_unit_test(vdso),
		cmocka_unit_test(names_from_the_recording),
		cmocka_unit_test(stacks_that_reach_no_entry_point),
		cmocka_unit_test(many_addresses_are_fast),
		cmocka_unit_test(an_empty_profile),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, scratch_setup, scratch_teardown);
}
