/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ELF files, opened by descriptor and read with libelf. Everything in them is hostile.
 */
#ifndef INSPECT_ELF_FILE_H
#define INSPECT_ELF_FILE_H

#include <inspect/array.h>
#include <inspect/strbuf.h>
#include <sys/types.h>

struct elf_file;

/* Takes over fd (closed with the file, also on failure). 0 or -errno; -ENOEXEC: not an ELF file. */
int elf_file_open_fd(int fd, struct elf_file **ret);
/* Reads an image in memory (the vdso); the bytes are copied. */
int elf_file_open_memory(const void *image, size_t size_bytes, struct elf_file **ret);
void elf_file_free(struct elf_file *f);
static inline void elf_file_freep(struct elf_file **f)
{
	elf_file_free(*f);
}

/*
 * Opens a regular file for reading: what the path names is looked at before it is opened, so that
 * a device or FIFO at a path of the target's choosing is never touched. A descriptor or -errno;
 * -EINVAL: no regular file.
 */
int file_open_regular(const char *path);
/* The same below a directory, without following a symlink in any part of the path: it cannot lead
 * out of a container's root. -ELOOP, -ENOTDIR: a symlink; -EINVAL: a ".." in the path. */
int file_open_below(int dir_fd, const char *path);
/* The same with symlinks and ".." resolved inside that root as the target would resolve them (Linux
 * 5.6; below that no symlinks). root_fd -1: this process's own root. */
int file_open_in_root(int root_fd, const char *path);

/* Whether fd is the file of that device and inode (ino 0: true). On overlayfs, btrfs and bcachefs
 * the kernel reports other devices for mappings than for stat: there the inode alone decides. */
bool file_is_same(int fd, uint32_t maj, uint32_t min, uint64_t ino);

/*
 * The file that pid maps at [start, end): through /proc/PID/map_files, or /proc/PID/root/PATH when
 * device and inode agree (maj/min/ino 0: not checked). Regular files only.
 * A descriptor or -errno (-ESTALE: another file); never the file of that name on the host.
 */
int elf_open_mapped(pid_t pid, uint64_t start_va, uint64_t end_va, const char *path, uint32_t maj,
		    uint32_t min, uint64_t ino);

/* GNU build-id (or none: size 0) from the notes. 0 or -errno. */
int elf_file_build_id(struct elf_file *f, uint8_t ret_id[20], size_t *ret_size);

/* File offset ↔ ELF virtual address by the program headers. 0 or -ENOENT. */
int elf_file_off_to_vaddr(struct elf_file *f, uint64_t file_off, uint64_t *ret_elf_vaddr);
int elf_file_vaddr_to_off(struct elf_file *f, uint64_t elf_vaddr, uint64_t *ret_file_off);

/* The whole pages of the file that are mapped as code. A result other than 0 ends the walk and is
 * returned, here and below. */
typedef int elf_code_fn(void *ctx, uint64_t file_off, uint64_t size_bytes);
int elf_code_each(struct elf_file *f, elf_code_fn *fn, void *ctx);
/* What the loader is told of the files that are loaded with it: the interpreter's path, the folders
 * to look in first (RPATH, RUNPATH: with $ORIGIN, ':' between), then the names of libraries; each
 * borrowed during the call. */
enum elf_needed { ELF_INTERPRETER, ELF_FOLDERS, ELF_LIBRARY };
typedef int elf_needed_fn(void *ctx, enum elf_needed what, const char *text);
int elf_needed_each(struct elf_file *f, elf_needed_fn *fn, void *ctx);

/*
 * The files that a command will map as code: the program that execvp(3) would find by it, the
 * interpreters of a script, and what they need, by LD_LIBRARY_PATH, RPATH and RUNPATH, the
 * interpreter's folder, /lib and /usr/lib; at most 64, until that time. `opened` (NULL: none) is a
 * library that a program may open by that name: it is looked for in the same folders of each. What
 * is not there, or not understood, is left out. The descriptor and the file are borrowed.
 */
typedef int elf_program_fn(void *ctx, const char *path, int fd, struct elf_file *f);
int elf_program_each(const char *command, const char *opened, uint64_t until_ns, elf_program_fn *fn,
		     void *ctx);

uint64_t elf_file_entry(struct elf_file *f); /* e_entry, an ELF vaddr */

/* The file's bytes at an offset, up to max_bytes, into buf; nothing is kept. How many there are. */
size_t elf_file_read_at(struct elf_file *f, uint64_t file_off, void *buf, size_t max_bytes);

/* A function (STT_FUNC, STT_GNU_IFUNC, or untyped in code) or a PLT entry. */
struct elf_symbol {
	uint64_t elf_vaddr;
	uint64_t size_bytes; /* 0: up to the next symbol or the section's end */
	uint64_t limit;      /* end of the section: an address at or above is not this symbol's */
	const char *name;    /* mangled, without a version; "foo@plt" for PLT entries; borrowed */
};

/*
 * Sorted by address; of several at one address perf's choice (choose_best_symbol in
 * tools/perf/util/symbol.c) is kept: one with a size, typed, not weak, global, with fewer leading
 * underscores, the longest, the first. A label without size inside a function is left out.
 */
struct elf_symbols {
	ARRAY(struct elf_symbol) v;
	struct elf_symbols_names *names; /* owns the strings */
	bool damaged;                    /* a table is there but cannot be read */
};

/* .symtab and .dynsym of f, and PLT entries. 0 or -errno. */
int elf_symbols_read(struct elf_file *f, struct elf_symbols *ret);
void elf_symbols_release(struct elf_symbols *s);

/* The symbol that covers elf_vaddr (size 0 reaches to the next or the section's end), or NULL. */
const struct elf_symbol *elf_symbols_find(const struct elf_symbols *s, uint64_t elf_vaddr);

/* Every name of every function in .symtab, then in .dynsym: one may come several times, an address
 * under several names. `name` (mangled, without a version) is borrowed during the call. A result
 * other than 0 ends the walk and is returned. */
typedef int elf_function_fn(void *ctx, const char *name, uint64_t elf_vaddr);
int elf_functions_each(struct elf_file *f, elf_function_fn *fn, void *ctx);

/* The variable that covers elf_vaddr, from .symtab or .dynsym: appends its name (mangled, without a
 * version). 0, -ENOENT, -ENOMEM. */
int elf_variable_find(struct elf_file *f, uint64_t elf_vaddr, struct strbuf *name,
		      uint64_t *ret_offset_bytes, uint64_t *ret_size_bytes);
/* The allocated section that covers elf_vaddr, .bss too: its name. 0, -ENOENT, -ENOMEM. */
int elf_section_at(struct elf_file *f, uint64_t elf_vaddr, struct strbuf *name,
		   uint64_t *ret_offset_bytes);

/* True when the file has a .symtab with contents (else names are partial). */
bool elf_file_has_symtab(struct elf_file *f);

/* For libdw, which reads the debug sections. Borrowed. */
struct Elf;
struct Elf *elf_file_elf(struct elf_file *f);
bool elf_file_has_section(struct elf_file *f, const char *name);
/* Bytes of all debug sections, as they are when decompressed. */
uint64_t elf_file_debug_bytes(struct elf_file *f);
/* .debug_info, or its older compressed form. */
bool elf_file_has_dwarf(struct elf_file *f);

/*
 * A copy in memory that has the debug sections alone, those compressed with zstd as they were
 * before; about twice the memory of the sections. 0, -ENOENT (no section is zstd's), -EBADMSG, or
 * -errno.
 */
int elf_zstd_debug_open(struct elf_file *f, struct elf_file **ret);

/* .gnu_debuglink: file name and CRC. 0 or -ENOENT. */
int elf_file_debuglink(struct elf_file *f, const char **ret_name, uint32_t *ret_crc);

/*
 * The separate debug file, with symbols or DWARF, in the root of root_fd (-1: our own):
 * /usr/lib/debug/.build-id/xx/rest.debug; then the name in .gnu_debuglink, else NAME.debug, beside
 * `path`, in .debug/ there, and under /usr/lib/debug. Only when the build-id (or the CRC of the
 * link) matches. 0 or -ENOENT.
 */
int elf_debug_file_find(struct elf_file *f, const char *path, int root_fd, struct elf_file **ret);

/*
 * What several debug files share (.gnu_debugaltlink of dwz): by build-id, then by name, which is
 * absolute or relative to the folder of `f`. Only when the build-id matches. 0 or -ENOENT.
 */
int elf_alt_file_find(struct elf_file *f, const char *name, const uint8_t *id, size_t id_size,
		      int root_fd, struct elf_file **ret);

/* The folder of a file that was opened by its path, with the '/' at its end; "": none. */
void elf_file_folder(struct elf_file *f, char *out, size_t size);

/* True when f is of that build-id. */
bool elf_file_has_build_id(struct elf_file *f, const uint8_t *id, size_t id_size);

/* MiniDebugInfo: the symbols that .dynsym lacks, in the xz-compressed ELF file of .gnu_debugdata.
 * 0, -ENOENT (none), -EBADMSG, -EFBIG or -ENOMEM. */
int elf_mini_debug_open(struct elf_file *f, struct elf_file **ret);

/* The program file (not its debug part) of that build-id in perf's cache. 0 or -ENOENT. */
int elf_cached_file_find(const uint8_t *build_id, size_t size_bytes, struct elf_file **ret);

#endif
