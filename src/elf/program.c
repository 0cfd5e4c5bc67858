/* SPDX-License-Identifier: BSD-2-Clause */
/* The files that a command will map, before it does. */
#include "elf_struct.h"

#include <inspect/clock.h>
#include <inspect/procfs.h>
#include <limits.h>
#include <sys/stat.h>

enum { FILES_MAX = 64, FOLDERS_MAX = 256, LINE_BYTES = 256 };

struct program {
	const char *opened;
	const char *path;      /* of the file that is being looked at */
	char folder[PATH_MAX]; /* of the interpreter; "": not known yet */
	ARRAY(char *) paths;   /* as the kernel names them; each once */
	ARRAY(char *) folders; /* of RPATHs and RUNPATHs so far */
};

/* The file at a path that may lead over symlinks. 0, or -ENOMEM: what is not there is left out. */
static int add_path(struct program *p, const char *path)
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
static int add_command(struct program *p, const char *name)
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
static int add_script(struct program *p, const char *line)
{
	char words[2][LINE_BYTES] = {{0}};
	int n = sscanf(line, "#! %255s %255s", words[0], words[1]);
	const char *base = strrchr(words[0], '/');
	int err = n > 0 ? add_path(p, words[0]) : 0;

	return err || n < 2 || !base || !str_eq(base, "/env") ? err : add_command(p, words[1]);
}

/* A folder of a list, n bytes; $ORIGIN is that of the file that says so. */
static int add_folder(struct program *p, const char *text, size_t n)
{
	static const char *const origins[] = {"$ORIGIN", "${ORIGIN}"};
	const char *slash = strrchr(p->path, '/');
	CLEANUP(strbuf_release) struct strbuf folder = {0};
	char *copy;

	for (size_t i = 0; i < ARRAY_SIZE(origins); i++) {
		size_t n_origin = strlen(origins[i]);

		if (folder.n || n < n_origin || strncmp(text, origins[i], n_origin))
			continue;
		strbuf_add(&folder, p->path, slash ? (size_t)(slash - p->path) : 0);
		text += n_origin;
		n -= n_origin;
	}
	strbuf_add(&folder, text, n);
	if (folder.failed)
		return -ENOMEM;
	for (size_t i = 0; i < p->folders.n; i++)
		if (str_eq(p->folders.v[i], strbuf_str(&folder)))
			return 0;
	if (!folder.n || p->folders.n >= FOLDERS_MAX)
		return 0;
	copy = strdup(strbuf_str(&folder));
	if (copy && !array_push(&p->folders, copy))
		return 0;
	free(copy);
	return -ENOMEM;
}

static int add_folders(struct program *p, const char *list)
{
	int err = 0;

	for (const char *at = list; at && *at && !err;) {
		size_t n = strcspn(at, ":");

		err = add_folder(p, at, n);
		at += n + (at[n] == ':');
	}
	return err;
}

/* Those of one file hold for what it needs, and, as RPATHs do, for what that needs. */
static int add_library(struct program *p, const char *name)
{
	const char *const usual[] = {p->folder, "/lib", "/usr/lib"};
	CLEANUP(strbuf_release) struct strbuf path = {0};

	for (size_t i = 0; i < p->folders.n + ARRAY_SIZE(usual); i++) {
		const char *folder = i < p->folders.n ? p->folders.v[i] : usual[i - p->folders.n];

		strbuf_release(&path);
		strbuf_printf(&path, "%s/%s", folder, name);
		if (path.failed)
			return -ENOMEM;
		if (is_file(strbuf_str(&path)))
			return add_path(p, strbuf_str(&path));
	}
	return 0;
}

static int add_needed(void *ctx, enum elf_needed what, const char *text)
{
	struct program *p = ctx;
	char *slash;
	int err;

	if (what == ELF_FOLDERS)
		return add_folders(p, text);
	if (!strchr(text, '/'))
		return add_library(p, text);
	err = add_path(p, text);
	if (!err && what == ELF_INTERPRETER && !*p->folder && realpath(text, p->folder)) {
		slash = strrchr(p->folder, '/');
		*slash = '\0';
	}
	return err;
}

static int look_at(struct program *p, const char *path, elf_program_fn *fn, void *ctx)
{
	CLEANUP(elf_file_freep) struct elf_file *f = NULL;
	char line[LINE_BYTES] = "";
	int fd = file_open_regular(path), err;

	if (fd < 0)
		return 0;
	if (pread(fd, line, sizeof(line) - 1, 0) < 2 || (line[0] == '#' && line[1] == '!')) {
		close(fd);
		return add_script(p, line);
	}
	err = elf_file_open_fd(fd, &f);
	if (err)
		return err == -ENOMEM ? err : 0;
	p->path = path;
	err = fn(ctx, path, fd, f);
	if (!err)
		err = elf_needed_each(f, add_needed, p);
	return err || !p->opened ? err : add_library(p, p->opened);
}

int elf_program_each(const char *command, const char *opened, uint64_t until_ns, elf_program_fn *fn,
		     void *ctx)
{
	struct program p = {.opened = opened, .path = ""};
	int err = add_folders(&p, getenv("LD_LIBRARY_PATH"));

	if (!err)
		err = add_command(&p, command);
	for (size_t i = 0; i < p.paths.n && !err && clock_now_ns() < until_ns; i++)
		err = look_at(&p, p.paths.v[i], fn, ctx);
	for (size_t i = 0; i < p.paths.n; i++)
		free(p.paths.v[i]);
	for (size_t i = 0; i < p.folders.n; i++)
		free(p.folders.v[i]);
	array_release(&p.paths);
	array_release(&p.folders);
	return err;
}
