/* SPDX-License-Identifier: BSD-2-Clause */
#include <fcntl.h>
#include <inspect/elf_file.h>
#include <inspect/procfs.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>

#ifndef BCACHEFS_SUPER_MAGIC
#define BCACHEFS_SUPER_MAGIC 0xca451a4e
#endif

/* From a place in the file system to the open file. Owns nothing. */
static int reopen_regular(int path_fd)
{
	char link[64];
	struct stat st;
	int fd;

	if (fstat(path_fd, &st))
		return -errno;
	if (S_ISLNK(st.st_mode))
		return -ELOOP;
	if (!S_ISREG(st.st_mode))
		return -EINVAL;
	snprintf(link, sizeof(link), "/proc/self/fd/%d", path_fd);
	fd = open(link, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

int file_open_regular(const char *path)
{
	CLEANUP(closep) int path_fd = open(path, O_PATH | O_CLOEXEC);

	return path_fd < 0 ? -errno : reopen_regular(path_fd);
}

int file_open_below(int dir_fd, const char *path)
{
	CLEANUP(closep) int at = fcntl(dir_fd, F_DUPFD_CLOEXEC, 0);
	char part[256];

	if (at < 0)
		return -errno;
	for (;;) {
		size_t n;
		int next;

		path += strspn(path, "/");
		n = strcspn(path, "/");
		if (!n)
			return reopen_regular(at);
		if (n >= sizeof(part))
			return -ENAMETOOLONG;
		memcpy(part, path, n);
		part[n] = '\0';
		if (str_eq(part, ".."))
			return -EINVAL;
		/* A symlink is opened itself; it is no directory, so the next part fails. */
		next = openat(at, part, O_PATH | O_NOFOLLOW | O_CLOEXEC);
		if (next < 0)
			return -errno;
		close(at);
		at = next;
		path += n;
	}
}

int file_open_in_root(int root_fd, const char *path)
{
	struct open_how how = {.flags = O_PATH | O_CLOEXEC,
			       .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS};
	CLEANUP(closep) int path_fd = -1;

	if (root_fd < 0)
		return file_open_regular(path);
	path_fd = (int)syscall(SYS_openat2, root_fd, path, &how, sizeof(how));
	/* Linux before 5.6, or a filter that does not know the call. */
	if (path_fd < 0 && (errno == ENOSYS || errno == EPERM))
		return file_open_below(root_fd, path);
	return path_fd < 0 ? -errno : reopen_regular(path_fd);
}

/* File systems whose mappings carry another device number than stat gives. */
static bool device_differs(int fd)
{
	static const unsigned long types[] = {OVERLAYFS_SUPER_MAGIC, BTRFS_SUPER_MAGIC,
					      BCACHEFS_SUPER_MAGIC};
	struct statfs fs;

	if (fstatfs(fd, &fs))
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(types); i++)
		if ((unsigned long)fs.f_type == types[i])
			return true;
	return false;
}

bool file_is_same(int fd, uint32_t maj, uint32_t min, uint64_t ino)
{
	struct stat st;

	if (!ino)
		return true;
	if (fstat(fd, &st) || (uint64_t)st.st_ino != ino)
		return false;
	if ((!maj && !min) || (major(st.st_dev) == maj && minor(st.st_dev) == min))
		return true;
	return device_differs(fd);
}

static int open_map_files(pid_t pid, uint64_t start_va, uint64_t end_va)
{
	char path[96];

	snprintf(path, sizeof(path), "/proc/%d/map_files/%llx-%llx", proc_living(pid),
		 (unsigned long long)start_va, (unsigned long long)end_va);
	return file_open_regular(path);
}

static int open_in_root(pid_t pid, const char *path)
{
	CLEANUP(closep) int root = -1;
	char name[64];

	if (path[0] != '/')
		return -ENOENT;
	snprintf(name, sizeof(name), "/proc/%d/root", proc_living(pid));
	root = open(name, O_PATH | O_DIRECTORY | O_CLOEXEC);
	return root < 0 ? -errno : file_open_below(root, path);
}

int elf_open_mapped(pid_t pid, uint64_t start_va, uint64_t end_va, const char *path, uint32_t maj,
		    uint32_t min, uint64_t ino)
{
	CLEANUP(closep) int fd = open_map_files(pid, start_va, end_va);

	if (fd >= 0 && file_is_same(fd, maj, min, ino))
		return TAKE_FD(fd);
	closep(&fd);
	/* Not allowed (it takes CAP_CHECKPOINT_RESTORE), or the mapping has changed since. */
	fd = open_in_root(pid, path);
	if (fd < 0)
		return fd;
	return file_is_same(fd, maj, min, ino) ? TAKE_FD(fd) : -ESTALE;
}
