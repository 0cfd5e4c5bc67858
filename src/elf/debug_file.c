/* SPDX-License-Identifier: BSD-2-Clause */
#include "elf_struct.h"
#include <limits.h>
#include <zlib.h>

/* A checksum reads the whole file: no larger one is. */
#define CRC_BYTES_MAX (8LL << 30)

/* What a candidate has to agree with. */
struct wanted {
	uint8_t id[20];
	size_t id_size;
	uint32_t crc;
	bool has_crc;
};

static int file_crc(int fd, uint32_t *ret)
{
	uLong crc = crc32(0, NULL, 0);
	uint8_t buf[65536];
	off_t at = 0;

	for (;;) {
		ssize_t n = pread(fd, buf, sizeof(buf), at);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (!n)
			break;
		crc = crc32(crc, buf, (uInt)n);
		at += n;
		if (at > CRC_BYTES_MAX)
			return -EFBIG;
	}
	*ret = (uint32_t)crc;
	return 0;
}

static bool agrees(struct elf_file *candidate, const struct wanted *w)
{
	uint8_t id[20];
	size_t size = 0;
	uint32_t crc;

	if (!elf_file_has_symtab(candidate) && !elf_file_has_dwarf(candidate))
		return false;
	elf_file_build_id(candidate, id, &size);
	if (w->id_size && size)
		return size == w->id_size && memcmp(id, w->id, size) == 0;
	return w->has_crc && !file_crc(candidate->fd, &crc) && crc == w->crc;
}

static int try_path(int root_fd, const char *path, const struct wanted *w, struct elf_file **ret)
{
	CLEANUP(elf_file_freep) struct elf_file *candidate = NULL;
	int fd = file_open_in_root(root_fd, path);

	if (fd < 0 || elf_file_open_fd(fd, &candidate) || !agrees(candidate, w))
		return -ENOENT;
	*ret = TAKE_PTR(candidate);
	return 0;
}

/* "xx/rest" */
static void build_id_path(const uint8_t *id, size_t size, char out[2 * 20 + 2])
{
	size_t at = 0;

	for (size_t i = 0; i < size; i++) {
		at += (size_t)sprintf(out + at, "%02x", id[i]);
		if (i == 0)
			out[at++] = '/';
	}
	out[at] = '\0';
}

static int try_build_id(int root_fd, const struct wanted *w, struct elf_file **ret)
{
	char name[PATH_MAX], id_path[2 * 20 + 2];

	if (w->id_size < 2)
		return -ENOENT;
	build_id_path(w->id, w->id_size, id_path);
	snprintf(name, sizeof(name), "/usr/lib/debug/.build-id/%s.debug", id_path);
	return try_path(root_fd, name, w, ret);
}

/* Beside `path`: under the name `link`, or NULL for that of path with .debug. */
static int try_beside(int root_fd, const char *path, const char *link, const struct wanted *w,
		      struct elf_file **ret)
{
	static const struct {
		const char *before, *after;
	} places[] = {{"", "/"}, {"", "/.debug/"}, {"/usr/lib/debug", "/"}};
	const char *slash = strrchr(path, '/');
	char name[PATH_MAX];

	if (!slash)
		return -ENOENT;
	for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
		int n = snprintf(name, sizeof(name), "%s%.*s%s%s%s", places[i].before,
				 (int)(slash - path), path, places[i].after,
				 link ? link : slash + 1, link ? "" : ".debug");

		if (n < (int)sizeof(name) && !try_path(root_fd, name, w, ret))
			return 0;
	}
	return -ENOENT;
}

int elf_debug_file_find(struct elf_file *f, const char *path, int root_fd, struct elf_file **ret)
{
	struct wanted w = {0};
	const char *link = NULL;

	elf_file_build_id(f, w.id, &w.id_size);
	if (!try_build_id(root_fd, &w, ret))
		return 0;
	w.has_crc = !elf_file_debuglink(f, &link, &w.crc);
	return try_beside(root_fd, path, link, &w, ret);
}

void elf_file_folder(struct elf_file *f, char *out, size_t size)
{
	char link[64], *slash;
	ssize_t n;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", f->fd);
	n = readlink(link, out, size - 1);
	out[n > 0 ? n : 0] = '\0';
	slash = strrchr(out, '/');
	if (slash)
		slash[1] = '\0';
}

int elf_alt_file_find(struct elf_file *f, const char *name, const uint8_t *id, size_t id_size,
		      int root_fd, struct elf_file **ret)
{
	struct wanted w = {.id_size = MIN(id_size, sizeof(w.id))};
	char path[PATH_MAX], folder[PATH_MAX] = "";

	if (!w.id_size || !*name)
		return -ENOENT;
	memcpy(w.id, id, w.id_size);
	if (!try_build_id(root_fd, &w, ret))
		return 0;
	if (name[0] != '/')
		elf_file_folder(f, folder, sizeof(folder));
	if (snprintf(path, sizeof(path), "%s%s", folder, name) >= (int)sizeof(path) ||
	    path[0] != '/')
		return -ENOENT;
	return try_path(root_fd, path, &w, ret);
}

bool elf_file_has_build_id(struct elf_file *f, const uint8_t *id, size_t id_size)
{
	uint8_t own[20];
	size_t size = 0;

	elf_file_build_id(f, own, &size);
	return size && size == id_size && memcmp(own, id, size) == 0;
}

int elf_cached_file_find(const uint8_t *build_id, size_t size_bytes, struct elf_file **ret)
{
	CLEANUP(elf_file_freep) struct elf_file *f = NULL;
	const char *home = getenv("HOME");
	char name[PATH_MAX], id_path[2 * 20 + 2];
	int fd;

	if (!home || size_bytes < 2 || size_bytes > 20)
		return -ENOENT;
	build_id_path(build_id, size_bytes, id_path);
	if (snprintf(name, sizeof(name), "%s/.debug/.build-id/%s/elf", home, id_path) >=
	    (int)sizeof(name))
		return -ENOENT;
	fd = file_open_regular(name);
	if (fd < 0 || elf_file_open_fd(fd, &f))
		return -ENOENT;
	if (!elf_file_has_build_id(f, build_id, size_bytes))
		return -ENOENT;
	*ret = TAKE_PTR(f);
	return 0;
}
