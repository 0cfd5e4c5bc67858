/* SPDX-License-Identifier: BSD-2-Clause */
#include <fcntl.h>
#include <inspect/code_file.h>

static bool same_build_id(const struct dso *d, struct elf_file *f)
{
	uint8_t id[BUILD_ID_MAX];
	size_t size = 0;

	if (!d->build_id_size)
		return true;
	elf_file_build_id(f, id, &size);
	return size == d->build_id_size && memcmp(id, d->build_id, size) == 0;
}

/* Takes over fd. -ESTALE: not the file that was recorded. */
static int open_checked(const struct dso *d, int fd, struct elf_file **ret)
{
	CLEANUP(elf_file_freep) struct elf_file *f = NULL;
	int err = elf_file_open_fd(fd, &f);

	/* One that had a build-id and is no ELF file is being written anew. */
	if (err)
		return err == -ENOEXEC && d->build_id_size ? -ESTALE : err;
	if (!same_build_id(d, f))
		return -ESTALE;
	*ret = TAKE_PTR(f);
	return 0;
}

static int open_running(const struct dso *d, bool local_host, struct elf_file **ret)
{
	int fd = d->fd >= 0 ? fcntl(d->fd, F_DUPFD_CLOEXEC, 0) : -1;
	int err = fd >= 0 ? open_checked(d, fd, ret) : -ENOENT;

	if (!err || !local_host || !d->pid)
		return err;
	fd = elf_open_mapped((pid_t)d->pid, d->start_va, d->end_va, d->path, d->maj, d->min,
			     d->ino);
	/* The pid may be another process by now: what cannot be checked is not used. */
	if (fd < 0 || (!d->build_id_size && !d->ino)) {
		closep(&fd);
		return err;
	}
	return open_checked(d, fd, ret);
}

/* The file that has the path today, on the machine of the report. */
static int open_path(const struct dso *d, bool local_host, struct elf_file **ret)
{
	int fd = d->path[0] == '/' ? file_open_regular(d->path) : -ENOENT;

	if (fd < 0)
		return fd;
	/* Without a build-id the inode tells, where it was recorded and means something; else the
	 * path has to do, as it does for perf. */
	if (!d->build_id_size && (local_host || d->ino == INODE_UNKNOWN) &&
	    !file_is_same(fd, d->maj, d->min, d->ino)) {
		close(fd);
		return -ESTALE;
	}
	return open_checked(d, fd, ret);
}

/* Ours; a 32-bit process has another one. */
static int open_vdso(const struct dso *d, struct elf_file **ret)
{
	CLEANUP(elf_file_freep) struct elf_file *f = NULL;
	int err = vdso_open(&f);

	if (err)
		return err;
	if (!same_build_id(d, f))
		return -ESTALE;
	*ret = TAKE_PTR(f);
	return 0;
}

int code_file_open(const struct dso *d, bool local_host, struct elf_file **ret)
{
	int err, running;

	if (d->kind == DSO_VDSO)
		return local_host ? open_vdso(d, ret) : -ENOENT;
	running = open_running(d, local_host, ret);
	if (!running)
		return 0;
	err = open_path(d, local_host, ret);
	if (err && d->build_id_size && !elf_cached_file_find(d->build_id, d->build_id_size, ret))
		return 0;
	return err && running == -ESTALE ? running : err;
}
