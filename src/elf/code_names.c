/* SPDX-License-Identifier: BSD-2-Clause */
#include <fcntl.h>
#include <inspect/code_names.h>
#include <inspect/elf_file.h>
#include <inspect/procfs.h>

#define FILES_MAX 256

struct named_file {
	uint32_t maj, min;
	uint64_t ino;
	struct elf_file *file; /* NULL: it could not be opened */
	struct elf_file *debug;
	struct elf_symbols symbols, debug_symbols;
};

struct code_names {
	struct named_file files[FILES_MAX];
	size_t n, next; /* the one to be replaced when all are used */
};

int code_names_new(struct code_names **ret)
{
	struct code_names *n = calloc(1, sizeof(*n));

	if (!n)
		return -ENOMEM;
	*ret = n;
	return 0;
}

static void forget(struct named_file *f)
{
	elf_symbols_release(&f->symbols);
	elf_symbols_release(&f->debug_symbols);
	elf_file_free(f->file);
	elf_file_free(f->debug);
	*f = (struct named_file){.file = NULL};
}

void code_names_free(struct code_names *n)
{
	if (!n)
		return;
	for (size_t i = 0; i < n->n; i++)
		forget(&n->files[i]);
	free(n);
}

/* In the root of the process; when that has ended, in ours. Never another file of that name. */
static int open_file(pid_t pid, const char *path, const struct named_file *f)
{
	char root[64];
	CLEANUP(closep) int root_fd = -1;
	int fd;

	snprintf(root, sizeof(root), "/proc/%d/root", proc_living(pid));
	root_fd = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
	fd = root_fd >= 0 ? file_open_in_root(root_fd, path) : -ENOENT;
	if (fd < 0)
		fd = file_open_regular(path);
	if (fd >= 0 && !file_is_same(fd, f->maj, f->min, f->ino)) {
		close(fd);
		return -ESTALE;
	}
	return fd;
}

static void read_file(pid_t pid, const char *path, struct named_file *f)
{
	int fd = open_file(pid, path, f);

	if (fd < 0 || elf_file_open_fd(fd, &f->file))
		return;
	elf_symbols_read(f->file, &f->symbols);
	if (!elf_file_has_symtab(f->file) && !elf_debug_file_find(f->file, path, -1, &f->debug))
		elf_symbols_read(f->debug, &f->debug_symbols);
}

static struct named_file *file_of(struct code_names *n, pid_t pid, const char *path, uint32_t maj,
				  uint32_t min, uint64_t ino)
{
	struct named_file *f;

	for (size_t i = 0; i < n->n; i++) {
		f = &n->files[i];
		if (f->ino == ino && f->maj == maj && f->min == min)
			return f;
	}
	f = &n->files[n->n < FILES_MAX ? n->n++ : n->next++ % FILES_MAX];
	forget(f);
	f->maj = maj;
	f->min = min;
	f->ino = ino;
	read_file(pid, path, f);
	return f;
}

void code_names_find(struct code_names *n, pid_t pid, const char *path, uint32_t maj, uint32_t min,
		     uint64_t ino, uint64_t file_off, bool before, struct code_name *ret)
{
	struct named_file *f = file_of(n, pid, path, maj, min, ino);
	const struct elf_symbol *s;
	uint64_t elf_vaddr;

	*ret = (struct code_name){.symbol = NULL};
	if (!f->file || elf_file_off_to_vaddr(f->file, file_off - before, &elf_vaddr))
		return;
	ret->elf_vaddr = elf_vaddr + before;
	s = elf_symbols_find(&f->debug_symbols, elf_vaddr);
	if (!s)
		s = elf_symbols_find(&f->symbols, elf_vaddr);
	if (!s)
		return;
	ret->symbol = s->name;
	ret->offset_bytes = elf_vaddr + before - s->elf_vaddr;
}
