/* SPDX-License-Identifier: BSD-2-Clause */
#include "debug_files.h"

#include <fcntl.h>
#include <inspect/procfs.h>
#include <sys/stat.h>

/* The root of the process that maps the file, -1 when it is ours or the process is gone. That the
 * pid may be another process by now does no harm: files are used only when they belong together. */
static int target_root(const struct naming *w, const struct dso *d)
{
	CLEANUP(closep) int fd = -1;
	struct stat own, other;
	char path[64];

	if (!w->o->local_host || !d->pid)
		return -1;
	snprintf(path, sizeof(path), "/proc/%d/root", proc_living((pid_t)d->pid));
	fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &other) || stat("/", &own) ||
	    (own.st_dev == other.st_dev && own.st_ino == other.st_ino))
		return -1;
	return TAKE_FD(fd);
}

int debug_file_open(struct naming *w, const struct dso *d, struct elf_file *f,
		    struct elf_file **ret)
{
	CLEANUP(closep) int root = target_root(w, d);
	uint8_t id[BUILD_ID_MAX];
	size_t size = 0;

	if (root >= 0 && !elf_debug_file_find(f, d->path, root, ret))
		return 0;
	if (!elf_debug_file_find(f, d->path, -1, ret))
		return 0;
	if (w->o->offline)
		return -ENOENT;
	elf_file_build_id(f, id, &size);
	return debuginfod_find(&w->debuginfod, id, size, ret);
}

static int open_alt(struct naming *w, const struct dso *d, struct elf_file *f,
		    struct dwarf_index *x, struct elf_file **ret)
{
	CLEANUP(closep) int root = target_root(w, d);
	struct dwarf_alt alt;
	int err;

	if (!dwarf_index_alt(x, &alt))
		return 0;
	err = root < 0 ? -ENOENT : elf_alt_file_find(f, alt.name, alt.id, alt.id_size, root, ret);
	if (err)
		err = elf_alt_file_find(f, alt.name, alt.id, alt.id_size, -1, ret);
	if (err && !w->o->offline)
		err = debuginfod_find(&w->debuginfod, alt.id, alt.id_size, ret);
	if (!err)
		return dwarf_index_set_alt(x, *ret);
	return naming_file_note(w,
				"%s: its debug information needs %.200s, which is not found: "
				"inlined functions and lines are left out",
				dso_short_name(d), alt.name);
}

int debug_index_open(struct naming *w, const struct dso *d, struct elf_file *f,
		     struct dwarf_index **ret, struct elf_file **ret_alt)
{
	struct dwarf_index *x = NULL;
	int err = dwarf_index_open(f, &x);

	if (err == -EFBIG)
		err = naming_file_note(w,
				       "%s: its debug information has %llu MB: too much to be "
				       "read; inlined functions and lines are left out",
				       dso_short_name(d),
				       (unsigned long long)(elf_file_debug_bytes(f) >> 20));
	else if (err == -EBADMSG)
		err = naming_file_note(w,
				       "%s: its debug information is damaged: inlined functions "
				       "and lines are left out",
				       dso_short_name(d));
	if (!x)
		return err ? err : -ENOENT;
	err = open_alt(w, d, f, x, ret_alt);
	if (err) {
		dwarf_index_free(x);
		return err;
	}
	*ret = x;
	return 0;
}
