/* SPDX-License-Identifier: BSD-2-Clause */
#include "unwind_preload.h"

#include <inspect/clock.h>
#include <inspect/elf_file.h>
#include <inspect/procfs.h>
#include <limits.h>
#include <sys/mman.h>
#include <sys/stat.h>

#define PRELOAD_NS_MOST (50 * NSEC_PER_MSEC)

enum { FILES_MAX = 64, LINE_BYTES = 256 };

struct preload {
	struct unwind_processes *u;
	struct proc_map map;   /* of the file that is being looked at */
	char folder[PATH_MAX]; /* of the interpreter; "": not known yet */
	ARRAY(char *) paths;   /* as the kernel names them; each once */
};

/* The file at a path that may lead over symlinks. 0, or -ENOMEM: what is not there is left out. */
static int add_path(struct preload *p, const char *path)
{
	char *real = p->paths.n < FILES_MAX ? realpath(path, NULL) : NULL;
	int err = 0;

	for (size_t i = 0; i < p->paths.n && real; i++)
		if (str_eq(p->paths.v[i], real)) {
			free(real);
			return 0;
		}
	if (real)
		err = array_push(&p->paths, real);
	if (err)
		free(real);
	return err;
}

static bool is_file(const char *path)
{
	struct stat st;

	return !stat(path, &st) && S_ISREG(st.st_mode);
}

/* As execvp(3) looks for it. */
static int add_command(struct preload *p, const char *name)
{
	const char *at = getenv("PATH");
	char path[PATH_MAX];

	if (strchr(name, '/'))
		return add_path(p, name);
	for (at = at ? at : "/bin:/usr/bin"; at;
	     at = strchr(at, ':') ? strchr(at, ':') + 1 : NULL) {
		int n = (int)strcspn(at, ":");

		if (snprintf(path, sizeof(path), "%.*s/%s", n, n ? at : ".", name) <
			    (int)sizeof(path) &&
		    is_file(path) && !access(path, X_OK))
			return add_path(p, path);
	}
	return 0;
}

/* #!INTERPRETER, or #!/usr/bin/env NAME, which executes that. */
static int add_script(struct preload *p, const char *line)
{
	char words[2][LINE_BYTES] = {{0}};
	int n = sscanf(line, "#! %255s %255s", words[0], words[1]);
	const char *base = strrchr(words[0], '/');
	int err = n > 0 ? add_path(p, words[0]) : 0;

	return err || n < 2 || !base || !str_eq(base, "/env") ? err : add_command(p, words[1]);
}

static int add_needed(void *ctx, const char *name)
{
	struct preload *p = ctx;
	const char *const folders[] = {p->folder, "/lib", "/usr/lib"};
	char path[2 * PATH_MAX];
	char *slash;
	int err;

	if (strchr(name, '/')) {
		err = add_path(p, name);
		if (!err && !*p->folder && realpath(name, p->folder)) {
			slash = strrchr(p->folder, '/');
			*slash = '\0';
		}
		return err;
	}
	for (size_t i = 0; i < ARRAY_SIZE(folders); i++) {
		snprintf(path, sizeof(path), "%s/%s", folders[i], name);
		if (is_file(path))
			return add_path(p, path);
	}
	return 0;
}

/* As if it were mapped. */
static int add_code(void *ctx, uint64_t file_off, uint64_t size_bytes)
{
	struct preload *p = ctx;

	p->map.pgoff_bytes = file_off;
	p->map.start = p->map.end - size_bytes;
	return unwind_process_learn(p->u, &p->map);
}

static int take_numbers(void *ctx, const struct proc_map *m)
{
	struct proc_map *map = ctx;

	if (m->start != map->start)
		return 0;
	map->ino = m->ino;
	map->maj = m->maj;
	map->min = m->min;
	return 1;
}

/* Device and inode as they are in mappings: on some file systems stat(2) has others. */
static bool find_numbers(struct proc_map *map, int fd)
{
	size_t page_bytes = (size_t)sysconf(_SC_PAGESIZE);
	void *page = mmap(NULL, page_bytes, PROT_READ, MAP_PRIVATE, fd, 0);
	int found;

	if (page == MAP_FAILED)
		return false;
	map->start = (uintptr_t)page;
	found = proc_maps_each(getpid(), take_numbers, map);
	munmap(page, page_bytes);
	return found == 1;
}

static int look_at(struct preload *p, char *path)
{
	CLEANUP(elf_file_freep) struct elf_file *f = NULL;
	char line[LINE_BYTES] = "";
	int fd = file_open_regular(path), err;

	if (fd < 0)
		return 0;
	p->map = (struct proc_map){.exec = true, .path = path};
	if (pread(fd, line, sizeof(line) - 1, 0) < 2 || !find_numbers(&p->map, fd)) {
		close(fd);
		return 0;
	}
	p->map.end = INT64_MAX & ~((uint64_t)sysconf(_SC_PAGESIZE) - 1);
	if (line[0] == '#' && line[1] == '!') {
		close(fd);
		return add_script(p, line);
	}
	err = elf_file_open_fd(fd, &f);
	if (err)
		return err == -ENOMEM ? err : 0;
	err = elf_code_each(f, add_code, p);
	return err ? err : elf_needed_each(f, add_needed, p);
}

int unwind_preload(struct unwind_processes *u, const char *command)
{
	uint64_t until_ns = clock_now_ns() + PRELOAD_NS_MOST;
	struct preload p = {.u = u};
	int err = add_command(&p, command);

	for (size_t i = 0; i < p.paths.n && !err && clock_now_ns() < until_ns; i++)
		err = look_at(&p, p.paths.v[i]);
	for (size_t i = 0; i < p.paths.n; i++)
		free(p.paths.v[i]);
	array_release(&p.paths);
	return err == -ENOMEM ? err : 0;
}
