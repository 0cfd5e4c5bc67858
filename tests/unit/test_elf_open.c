/* SPDX-License-Identifier: BSD-2-Clause */
/* Opening, build-ids, addresses and debug files, against the loader, readelf and objcopy. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <inspect/elf_file.h>
#include <inspect/procfs.h>
#include <link.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "scratch.h"

static struct elf_file *open_elf(const char *path)
{
	struct elf_file *f = NULL;
	int fd = file_open_regular(path);

	assert_true(fd >= 0);
	assert_int_equal(elf_file_open_fd(fd, &f), 0);
	return f;
}

static void build_program(void)
{
	write_text("p.c", "int f(int x) { return x + 1; }\n"
			  "int main(int c, char **v) { (void)v; return f(c); }\n");
	free(shell("cc -g -O0 -Wl,--build-id=sha1 -o p p.c"));
}

static void build_id_equals_readelf(void **state)
{
	struct elf_file *f;
	uint8_t id[20];
	size_t size = 0;
	char hex[41] = "", *want;

	(void)state;
	build_program();
	want = shell("readelf -n p | sed -n 's/.*Build ID: *//p'");
	want[strcspn(want, "\n")] = '\0';
	f = open_elf("p");
	assert_int_equal(elf_file_build_id(f, id, &size), 0);
	for (size_t i = 0; i < size; i++)
		sprintf(hex + 2 * i, "%02x", id[i]);
	assert_string_equal(hex, want);
	elf_file_free(f);
	free(want);
	free(shell("cc -Wl,--build-id=none -o none p.c"));
	f = open_elf("none");
	assert_int_equal(elf_file_build_id(f, id, &size), 0);
	assert_int_equal(size, 0);
	elf_file_free(f);
	/* Without section headers the segments say it. */
	free(shell("objcopy --strip-section-headers p bare 2>/dev/null || "
		   "{ cp p bare; printf '\\0\\0\\0\\0\\0\\0\\0\\0' | dd of=bare bs=1 seek=40 "
		   "conv=notrunc status=none; printf '\\0\\0\\0\\0' | dd of=bare bs=1 seek=60 "
		   "conv=notrunc status=none; }"));
	f = open_elf("bare");
	assert_int_equal(elf_file_build_id(f, id, &size), 0);
	assert_int_equal(size, 20);
	assert_false(elf_file_has_symtab(f));
	elf_file_free(f);
}

/* What the loader did with the objects of this process. */
struct object {
	const char *path;
	uint64_t bias;
	unsigned mappings;
};

static int compare_mapping(void *ctx, const struct proc_map *m)
{
	struct object *o = ctx;
	struct elf_file *f;

	if (!m->exec || !str_eq(m->path, o->path))
		return 0;
	f = open_elf(o->path);
	for (uint64_t va = m->start; va < m->end; va += 1000) {
		uint64_t off = va - m->start + m->pgoff_bytes, elf_vaddr = 0, back = 0;

		/* The page's end may lie behind the segment. */
		if (elf_file_off_to_vaddr(f, off, &elf_vaddr))
			continue;
		assert_int_equal(elf_vaddr, va - o->bias);
		assert_int_equal(elf_file_vaddr_to_off(f, elf_vaddr, &back), 0);
		assert_int_equal(back, off);
		o->mappings++;
	}
	elf_file_free(f);
	return 0;
}

static int each_object(struct dl_phdr_info *info, size_t size, void *ctx)
{
	struct object o = {.path = info->dlpi_name, .bias = info->dlpi_addr};
	char real[4096];

	(void)size;
	if (o.path[0] != '/' || !realpath(o.path, real))
		return 0;
	o.path = real;
	assert_int_equal(proc_maps_each(getpid(), compare_mapping, &o), 0);
	assert_true(o.mappings > 0);
	*(unsigned *)ctx += 1;
	return 0;
}

static void addresses_agree_with_the_loader(void **state)
{
	unsigned objects = 0;

	(void)state;
	dl_iterate_phdr(each_object, &objects);
	assert_true(objects >= 3);
}

static void addresses_of_other_layouts(void **state)
{
	/* f's file offset by objdump -F, its address by nm: of a program not at zero, and of what
	 * lld and static linking make. */
	static const char *const flags[] = {"-no-pie",      "-static-pie",
					    "-static",      "-Wl,-z,noseparate-code",
					    "-fuse-ld=lld", "-Wl,-Ttext-segment=0x7000000 -no-pie"};

	(void)state;
	build_program();
	for (size_t i = 0; i < ARRAY_SIZE(flags); i++) {
		unsigned long long elf_vaddr, off;
		struct elf_file *f;
		uint64_t got = 0;
		char *text = shell("if %s %s -o q p.c 2>/dev/null; then objdump -dF q | sed -n "
				   "'s/^\\([0-9a-f]*\\) <f> (File Offset: 0x\\([0-9a-f]*\\)).*/\\1 "
				   "\\2/p'; fi",
				   strstr(flags[i], "lld") ? "clang" : "cc", flags[i]);

		if (!*text) {
			print_message("# no compiler for %s\n", flags[i]);
			free(text);
			continue;
		}
		assert_int_equal(sscanf(text, "%llx %llx", &elf_vaddr, &off), 2);
		free(text);
		f = open_elf("q");
		assert_int_equal(elf_file_off_to_vaddr(f, off, &got), 0);
		assert_int_equal(got, elf_vaddr);
		assert_int_equal(elf_file_vaddr_to_off(f, elf_vaddr, &got), 0);
		assert_int_equal(got, off);
		assert_int_equal(elf_file_off_to_vaddr(f, 1ULL << 40, &got), -ENOENT);
		assert_int_equal(elf_file_vaddr_to_off(f, UINT64_MAX, &got), -ENOENT);
		elf_file_free(f);
	}
}

static void what_is_no_elf_file_is_refused(void **state)
{
	struct elf_file *f = NULL;
	int pipe_fds[2];

	(void)state;
	write_text("text", "#!/bin/sh\necho\n");
	assert_int_equal(elf_file_open_fd(open("text", O_RDONLY), &f), -ENOEXEC);
	write_text("empty", "");
	assert_int_equal(elf_file_open_fd(open("empty", O_RDONLY), &f), -ENOEXEC);
	write_text("short", "\177ELF\2\1\1");
	assert_int_equal(elf_file_open_fd(open("short", O_RDONLY), &f), -ENOEXEC);
	assert_int_equal(elf_file_open_memory("", 0, &f), -ENOEXEC);
	assert_int_equal(pipe(pipe_fds), 0);
	assert_int_equal(elf_file_open_fd(pipe_fds[0], &f), -ENOEXEC);
	assert_int_equal(fcntl(pipe_fds[0], F_GETFD), -1); /* closed on failure too */
	close(pipe_fds[1]);
	assert_int_equal(mkfifo("fifo", 0600), 0);
	assert_int_equal(file_open_regular("fifo"), -EINVAL);
	assert_int_equal(file_open_regular("/dev/null"), -EINVAL);
	assert_int_equal(file_open_regular("."), -EINVAL);
	assert_int_equal(file_open_regular("absent"), -ENOENT);
	assert_null(f);
}

static void paths_below_a_root_cannot_leave_it(void **state)
{
	CLEANUP(closep) int root = -1;
	CLEANUP(closep) int fd = -1;

	(void)state;
	free(shell("mkdir -p root/usr/lib && echo inside > root/usr/lib/file && "
		   "echo outside > outside && ln -s /etc root/etc && "
		   "ln -s ../outside root/link && ln -s file root/usr/lib/alias"));
	root = open("root", O_PATH | O_DIRECTORY | O_CLOEXEC);
	fd = file_open_below(root, "/usr//lib/./file");
	assert_true(fd >= 0);
	assert_int_equal(file_open_below(root, "/../outside"), -EINVAL);
	assert_int_equal(file_open_below(root, "/link"), -ELOOP);
	assert_int_equal(file_open_below(root, "/usr/lib/alias"), -ELOOP);
	assert_int_equal(file_open_below(root, "/etc/passwd"), -ENOTDIR);
	assert_int_equal(file_open_below(root, "/usr/lib"), -EINVAL);
	assert_int_equal(file_open_below(root, "/usr/absent"), -ENOENT);
}

static void the_mapped_file_is_opened_not_the_path(void **state)
{
	struct stat st, now;
	char *at;
	int fd;
	uint64_t start;
	char path[600];

	(void)state;
	build_program();
	snprintf(path, sizeof(path), "%s/p", scratch);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_int_equal(fstat(fd, &st), 0);
	at = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
	assert_true(at != MAP_FAILED);
	close(fd);
	start = (uint64_t)(uintptr_t)at;
	/* Its place is taken by another file, as an upgrade does. */
	free(shell("cp p p.new && mv p.new p"));
	fd = elf_open_mapped(getpid(), start, start + 4096, path, major(st.st_dev),
			     minor(st.st_dev), st.st_ino);
	if (fd < 0) /* without the capability for map_files */
		assert_int_equal(fd, -ESTALE);
	else
		assert_true(!fstat(fd, &now) && now.st_ino == st.st_ino);
	closep(&fd);
	/* No such mapping: the path, if it is the file. */
	assert_int_equal(elf_open_mapped(getpid(), 4096, 8192, path, major(st.st_dev),
					 minor(st.st_dev), st.st_ino),
			 -ESTALE);
	assert_int_equal(stat(path, &now), 0);
	fd = elf_open_mapped(getpid(), 4096, 8192, path, major(now.st_dev), minor(now.st_dev),
			     now.st_ino);
	assert_true(fd >= 0);
	assert_true(file_is_same(fd, 0, 0, now.st_ino));
	assert_true(file_is_same(fd, 1, 2, 0));
	assert_false(file_is_same(fd, major(now.st_dev), minor(now.st_dev), now.st_ino + 1));
	close(fd);
	assert_int_equal(elf_open_mapped(getpid(), 4096, 8192, "/absent", 0, 0, 0), -ENOENT);
	assert_int_equal(elf_open_mapped(getpid(), 4096, 8192, "//anon", 0, 0, 0), -ENOENT);
	munmap(at, 4096);
}

static bool debug_found(const char *path)
{
	char full[600];
	struct elf_file *f = open_elf(path), *debug = NULL;
	int err;

	snprintf(full, sizeof(full), "%s/%s", scratch, path);
	err = elf_debug_file_find(f, full, -1, &debug);
	if (!err) {
		struct elf_symbols s = {0};
		uint64_t off;
		char *address = shell("nm p | awk '$3 == \"f\" { print $1 }'");

		assert_int_equal(elf_symbols_read(debug, &s), 0);
		off = strtoull(address, NULL, 16);
		assert_non_null(elf_symbols_find(&s, off));
		assert_string_equal(elf_symbols_find(&s, off)->name, "f");
		elf_symbols_release(&s);
		free(address);
	}
	elf_file_free(debug);
	elf_file_free(f);
	return !err;
}

static void debug_files_by_link(void **state)
{
	const char *name = NULL;
	struct elf_file *f;
	uint32_t crc = 0;

	(void)state;
	build_program();
	free(shell("mkdir -p d/.debug && objcopy --only-keep-debug p d/p.debug && "
		   "objcopy --strip-all --add-gnu-debuglink=d/p.debug p d/p"));
	f = open_elf("d/p");
	assert_int_equal(elf_file_debuglink(f, &name, &crc), 0);
	assert_string_equal(name, "p.debug");
	assert_false(elf_file_has_symtab(f));
	elf_file_free(f);
	assert_true(debug_found("d/p")); /* beside the file */
	free(shell("mv d/p.debug d/.debug/"));
	assert_true(debug_found("d/p"));
	/* That of another build: the build-id differs. */
	free(shell("sed 's/x + 1/x + 2/' p.c > other.c && cc -g -o other other.c && "
		   "objcopy --only-keep-debug other d/.debug/p.debug"));
	assert_false(debug_found("d/p"));
	free(shell("rm d/.debug/p.debug"));
	assert_false(debug_found("d/p"));
}

static void debug_files_by_checksum(void **state)
{
	(void)state;
	build_program();
	free(shell("mkdir -p c && cc -g -O0 -Wl,--build-id=none -o p p.c && "
		   "objcopy --only-keep-debug p c/p.debug && "
		   "objcopy --strip-all --add-gnu-debuglink=c/p.debug p c/p"));
	assert_true(debug_found("c/p"));
	free(shell("printf x >> c/p.debug"));
	assert_false(debug_found("c/p"));
}

static void debug_files_by_build_id_below_a_root(void **state)
{
	struct elf_file *f, *debug = NULL;
	int root;

	(void)state;
	build_program();
	free(shell("id=$(readelf -n p | sed -n 's/.*Build ID: *//p'); "
		   "dir=r/usr/lib/debug/.build-id/$(echo $id | cut -c1-2); mkdir -p $dir && "
		   "objcopy --only-keep-debug p $dir/$(echo $id | cut -c3-).debug && "
		   "mkdir -p e && objcopy --strip-all p e/p"));
	f = open_elf("e/p");
	root = open("r", O_PATH | O_DIRECTORY);
	assert_true(root >= 0);
	assert_int_equal(elf_debug_file_find(f, "/nowhere/p", -1, &debug), -ENOENT);
	assert_null(debug);
	assert_int_equal(elf_debug_file_find(f, "/nowhere/p", root, &debug), 0);
	close(root);
	assert_true(elf_file_has_symtab(debug));
	elf_file_free(debug);
	elf_file_free(f);
}

static void perf_keeps_copies_by_build_id(void **state)
{
	struct elf_file *f, *cached = NULL;
	uint8_t id[20];
	size_t size = 0;

	(void)state;
	build_program();
	free(shell("id=$(readelf -n p | sed -n 's/.*Build ID: *//p'); "
		   "dir=.debug/.build-id/$(echo $id | cut -c1-2)/$(echo $id | cut -c3-); "
		   "mkdir -p $dir && cp p $dir/elf"));
	f = open_elf("p");
	elf_file_build_id(f, id, &size);
	elf_file_free(f);
	setenv("HOME", scratch, 1);
	assert_int_equal(elf_cached_file_find(id, size, &cached), 0);
	elf_file_free(cached);
	id[19] ^= 1;
	assert_int_equal(elf_cached_file_find(id, size, &cached), -ENOENT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(build_id_equals_readelf),
		cmocka_unit_test(addresses_agree_with_the_loader),
		cmocka_unit_test(addresses_of_other_layouts),
		cmocka_unit_test(what_is_no_elf_file_is_refused),
		cmocka_unit_test(paths_below_a_root_cannot_leave_it),
		cmocka_unit_test(the_mapped_file_is_opened_not_the_path),
		cmocka_unit_test(debug_files_by_link),
		cmocka_unit_test(debug_files_by_checksum),
		cmocka_unit_test(debug_files_by_build_id_below_a_root),
		cmocka_unit_test(perf_keeps_copies_by_build_id),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, scratch_setup, scratch_teardown);
}
