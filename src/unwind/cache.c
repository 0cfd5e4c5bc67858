/* SPDX-License-Identifier: BSD-2-Clause */
#include "table.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>

/*
 * One file per build-id: header, rules, rows. Only a finished file gets its name. Whoever can write
 * to the directory could say anything of a stack: it belongs to this user, and what is read is
 * checked as if it came from elsewhere. Raise the version when rows or rules change their meaning,
 * or the reading of call frame information becomes better.
 */

enum { VERSION = 4, RULES_MAX = 1 << 20, ROWS_MAX = 1 << 26 };

#define CACHE_BYTES_MAX (256LL << 20)
#define FILES_MAX 4096
#define SUFFIX ".rows"

struct header {
	char magic[8];
	uint32_t version, arch;
	uint64_t base_off;
	uint32_t n_rules, n_rows;
	uint64_t sum; /* of what follows */
};

static const char magic[8] = {'I', 'N', 'S', 'P', 'R', 'O', 'W', 'S'};

/* Stable across builds, as hash_bytes is not. */
static uint64_t checksum(const void *v, size_t words, uint64_t seed)
{
	const uint64_t *p = v;

	for (size_t i = 0; i < words; i++)
		seed = (seed ^ p[i]) * 0x9e3779b97f4a7c15ULL + (seed >> 29);
	return seed;
}

static uint64_t table_sum(const struct unwind_table *t)
{
	uint64_t sum = checksum(t->rules.v, t->rules.n * sizeof(*t->rules.v) / 8, t->base_off);

	return checksum(t->rows.v, t->rows.n, sum);
}

static void file_name(char *buf, size_t size, const uint8_t *build_id, size_t n)
{
	size_t at = 0;

	for (size_t i = 0; i < n && at + 2 < size; i++)
		at += (size_t)snprintf(buf + at, size - at, "%02x", build_id[i]);
	snprintf(buf + at, size - at, SUFFIX);
}

/* --- the directory ---------------------------------------------------------------------------- */

static int open_own_dir(int at, const char *name)
{
	struct stat st;
	int fd;

	mkdirat(at, name, 0700);
	fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) || st.st_uid != geteuid() || st.st_mode & 022) {
		close(fd);
		return -EPERM;
	}
	return fd;
}

static int open_base(void)
{
	const char *dir = getenv("XDG_CACHE_HOME");
	char path[4096];
	int fd;

	if (!dir || dir[0] != '/') {
		const char *home = getenv("HOME");

		if (!home || home[0] != '/' ||
		    snprintf(path, sizeof(path), "%s/.cache", home) >= (int)sizeof(path))
			return -ENOENT;
		mkdir(path, 0700);
		dir = path;
	}
	fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

int unwind_cache_open(void)
{
	CLEANUP(closep) int base = open_base();
	CLEANUP(closep) int own = base < 0 ? -1 : open_own_dir(base, "inspect");

	return own < 0 ? -ENOENT : open_own_dir(own, "unwind");
}

/* --- reading ---------------------------------------------------------------------------------- */

static bool read_all(int fd, void *v, size_t n)
{
	uint8_t *p = v;

	while (n) {
		ssize_t got = read(fd, p, n);

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return false;
		p += got;
		n -= (size_t)got;
	}
	return true;
}

static bool rule_is_valid(const struct unwind_rule *r)
{
	return r->kind <= UNWIND_RULE_UNSUPPORTED && r->reg < UNWIND_REGS &&
	       r->index < UNWIND_REGS && (!(r->flags & UNWIND_RA_IN_REG) || r->ra < UNWIND_REGS);
}

static bool table_is_valid(const struct unwind_table *t)
{
	for (size_t i = 0; i < t->rules.n; i++)
		if (!rule_is_valid(&t->rules.v[i]))
			return false;
	for (size_t i = 0; i < t->rows.n; i++)
		if (t->rows.v[i].rule >= t->rules.n ||
		    (i && t->rows.v[i].off <= t->rows.v[i - 1].off))
			return false;
	return true;
}

static int read_table(int fd, struct unwind_table *t)
{
	struct header h;
	struct stat st;

	if (fstat(fd, &st) || st.st_uid != geteuid() || !S_ISREG(st.st_mode))
		return -EPERM;
	if (!read_all(fd, &h, sizeof(h)) || memcmp(h.magic, magic, sizeof(magic)) != 0 ||
	    h.version != VERSION || h.arch > UNWIND_ARM64 || !h.n_rules || h.n_rules > RULES_MAX ||
	    h.n_rows > ROWS_MAX ||
	    (uint64_t)st.st_size != sizeof(h) + h.n_rules * sizeof(struct unwind_rule) +
					    h.n_rows * sizeof(struct unwind_row))
		return -EBADMSG;
	t->arch = (enum unwind_arch)h.arch;
	t->base_off = h.base_off;
	if (array_reserve(&t->rules, h.n_rules) || array_reserve(&t->rows, h.n_rows))
		return -ENOMEM;
	t->rules.n = h.n_rules;
	t->rows.n = h.n_rows;
	if (!read_all(fd, t->rules.v, t->rules.n * sizeof(*t->rules.v)) ||
	    !read_all(fd, t->rows.v, t->rows.n * sizeof(*t->rows.v)))
		return -EBADMSG;
	return table_sum(t) == h.sum && table_is_valid(t) ? 0 : -EBADMSG;
}

int unwind_cache_load(int dir_fd, const uint8_t *build_id, size_t size, struct unwind_table **ret)
{
	CLEANUP(unwind_table_freep) struct unwind_table *t = NULL;
	CLEANUP(closep) int fd = -1;
	char name[2 * BUILD_ID_MAX + sizeof(SUFFIX)];
	int err;

	file_name(name, sizeof(name), build_id, size);
	fd = openat(dir_fd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (fd < 0)
		return -errno;
	t = calloc(1, sizeof(*t));
	if (!t)
		return -ENOMEM;
	err = read_table(fd, t);
	if (err)
		return err;
	/* The time of the last use decides what is removed first. */
	futimens(fd, NULL);
	*ret = TAKE_PTR(t);
	return 0;
}

/* --- writing ---------------------------------------------------------------------------------- */

static bool write_all(int fd, const void *v, size_t n)
{
	const uint8_t *p = v;

	while (n) {
		ssize_t done = write(fd, p, n);

		if (done < 0 && errno == EINTR)
			continue;
		if (done <= 0)
			return false;
		p += done;
		n -= (size_t)done;
	}
	return true;
}

static bool write_table(int fd, const struct unwind_table *t)
{
	struct header h = {
		.version = VERSION,
		.arch = t->arch,
		.base_off = t->base_off,
		.n_rules = (uint32_t)t->rules.n,
		.n_rows = (uint32_t)t->rows.n,
		.sum = table_sum(t),
	};

	memcpy(h.magic, magic, sizeof(magic));
	return write_all(fd, &h, sizeof(h)) &&
	       write_all(fd, t->rules.v, t->rules.n * sizeof(*t->rules.v)) &&
	       write_all(fd, t->rows.v, t->rows.n * sizeof(*t->rows.v));
}

struct cached {
	char name[64];
	int64_t bytes;
	struct timespec used;
};

static int by_use(const void *pa, const void *pb)
{
	const struct cached *a = pa, *b = pb;

	if (a->used.tv_sec != b->used.tv_sec)
		return a->used.tv_sec < b->used.tv_sec ? -1 : 1;
	return a->used.tv_nsec < b->used.tv_nsec ? -1 : a->used.tv_nsec > b->used.tv_nsec;
}

/* Files left unfinished by a crash have no suffix of ours; they count and go like the others. */
static void prune(int dir_fd)
{
	ARRAY(struct cached) files = {0};
	int64_t bytes = 0;
	int fd = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *e;

	if (!dir) {
		closep(&fd);
		return;
	}
	while (files.n < FILES_MAX && (e = readdir(dir))) {
		struct cached c = {0};
		struct stat st;

		if (fstatat(dir_fd, e->d_name, &st, AT_SYMLINK_NOFOLLOW) || !S_ISREG(st.st_mode) ||
		    strlen(e->d_name) >= sizeof(c.name))
			continue;
		memcpy(c.name, e->d_name, strlen(e->d_name));
		c.bytes = st.st_size;
		c.used = st.st_mtim;
		bytes += c.bytes;
		if (array_push(&files, c))
			break;
	}
	closedir(dir);
	if (files.n)
		qsort(files.v, files.n, sizeof(*files.v), by_use);
	for (size_t i = 0; i < files.n && (bytes > CACHE_BYTES_MAX || files.n - i > FILES_MAX / 2);
	     i++) {
		unlinkat(dir_fd, files.v[i].name, 0);
		bytes -= files.v[i].bytes;
	}
	array_release(&files);
}

void unwind_cache_store(int dir_fd, const uint8_t *build_id, size_t size,
			const struct unwind_table *t)
{
	CLEANUP(closep) int fd = -1;
	char name[2 * BUILD_ID_MAX + sizeof(SUFFIX)], unfinished[32];

	if (t->rules.n > RULES_MAX || t->rows.n > ROWS_MAX)
		return;
	file_name(name, sizeof(name), build_id, size);
	snprintf(unfinished, sizeof(unfinished), "new-%d", (int)getpid());
	unlinkat(dir_fd, unfinished, 0);
	fd = openat(dir_fd, unfinished, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return;
	if (!write_table(fd, t) || renameat(dir_fd, unfinished, dir_fd, name))
		unlinkat(dir_fd, unfinished, 0);
	prune(dir_fd);
}
