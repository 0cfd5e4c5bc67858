/* SPDX-License-Identifier: BSD-2-Clause */
#include "build_ids.h"

#include <fcntl.h>
#include <inspect/clock.h>
#include <inspect/decode.h>
#include <inspect/elf_file.h>
#include <inspect/jitdump.h>
#include <inspect/process.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>

enum { FILES_MAX = 1 << 16, FILES_HELD_MAX = 256 };

/* PERF_RECORD_MMAP2 up to the file name. */
struct mmap2_record {
	struct perf_event_header header;
	uint32_t pid, tid;
	uint64_t start_va, len_bytes, pgoff_bytes;
	union {
		struct {
			uint32_t maj, min;
			uint64_t ino, ino_generation;
		};
		struct {
			uint8_t build_id_size, reserved[3];
			uint8_t build_id[BUILD_ID_MAX];
		};
	};
	uint32_t prot, flags;
};

_Static_assert(sizeof(struct mmap2_record) == 72, "as in perf_event.h");

struct file {
	uint64_t ino, ino_generation;
	uint32_t maj, min;
	uint8_t id[BUILD_ID_MAX];
	uint8_t size; /* 0: none */
	int fd;       /* held; -1: too many are */
	/* As it was when the build-id was read. */
	uint64_t size_bytes, written_ns, changed_ns; /* CLOCK_REALTIME */
	bool removed;
};

struct build_ids {
	ARRAY(struct file) files;
	struct hashmap map;
	uint64_t record[UINT16_MAX / 8 + 1];
};

int build_ids_new(struct build_ids **ret)
{
	*ret = calloc(1, sizeof(**ret));
	return *ret ? 0 : -ENOMEM;
}

void build_ids_free(struct build_ids *b)
{
	if (!b)
		return;
	for (size_t i = 0; i < b->files.n; i++)
		closep(&b->files.v[i].fd);
	array_release(&b->files);
	hashmap_release(&b->map);
	free(b);
}

/* By the process's own mapping, or by its path where the process has ended already. */
static int open_file(const struct mmap2_record *m, const char *path)
{
	int fd = elf_open_mapped((pid_t)m->pid, m->start_va, m->start_va + m->len_bytes, path,
				 m->maj, m->min, m->ino);

	if (fd >= 0)
		return fd;
	fd = file_open_regular(path);
	if (fd >= 0 && file_is_same(fd, m->maj, m->min, m->ino))
		return fd;
	closep(&fd);
	return -ENOENT;
}

static uint64_t timespec_ns(const struct timespec *t)
{
	return (uint64_t)t->tv_sec * NSEC_PER_SEC + (uint64_t)t->tv_nsec;
}

/* Takes over fd. 0 or -ENOMEM. */
static int read_id(int fd, struct file *ret)
{
	struct elf_file *elf;
	struct stat st;
	size_t size = 0;
	int err;

	ret->size = 0;
	if (!fstat(fd, &st)) {
		ret->size_bytes = (uint64_t)st.st_size;
		ret->written_ns = timespec_ns(&st.st_mtim);
		ret->changed_ns = timespec_ns(&st.st_ctim);
		ret->removed = !st.st_nlink;
	}
	err = elf_file_open_fd(fd, &elf);
	if (err)
		return err == -ENOMEM ? err : 0;
	if (!elf_file_build_id(elf, ret->id, &size) && size >= RECORD_BUILD_ID_MIN &&
	    size <= sizeof(ret->id))
		ret->size = (uint8_t)size;
	elf_file_free(elf);
	return 0;
}

/* A file that was written anew has the same numbers. Nobody can set the time of the last change. */
static bool is_unchanged(int fd, const struct file *f)
{
	struct stat st;

	return fstat(fd, &st) ||
	       ((uint64_t)st.st_size == f->size_bytes && timespec_ns(&st.st_ctim) == f->changed_ns);
}

/* The file as it is now; as it was where nobody can look any more. 0 or -ENOMEM. */
static int look_again(const struct mmap2_record *m, const char *path, struct file *f)
{
	int fd = f->fd >= 0 ? fcntl(f->fd, F_DUPFD_CLOEXEC, 0) : open_file(m, path);

	if (fd >= 0 && !is_unchanged(fd, f))
		return read_id(fd, f);
	closep(&fd);
	return 0;
}

/* 0, or -errno where another process may have better luck with the same file. */
static int read_new(const struct mmap2_record *m, const char *path, struct file *ret)
{
	int fd = open_file(m, path);

	if (fd < 0)
		return fd;
	ret->fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	return read_id(fd, ret);
}

static const struct file *find_file(struct build_ids *b, const struct mmap2_record *m,
				    const char *path)
{
	struct file f = {.ino = m->ino,
			 .ino_generation = m->ino_generation,
			 .maj = m->maj,
			 .min = m->min,
			 .fd = -1};
	uint64_t hash = hash_u64(m->ino ^ hash_u64((uint64_t)m->maj << 32 | m->min));
	uint32_t at, i;

	hashmap_each_candidate(&b->map, hash, at, i) {
		struct file *have = &b->files.v[i];

		if (have->ino == f.ino && have->ino_generation == f.ino_generation &&
		    have->maj == f.maj && have->min == f.min)
			return look_again(m, path, have) ? NULL : have;
	}
	if (b->files.n >= FILES_MAX || read_new(m, path, &f) ||
	    array_reserve(&b->files, b->files.n + 1)) {
		closep(&f.fd);
		return NULL;
	}
	if (b->files.n >= FILES_HELD_MAX || !f.size) {
		closep(&f.fd);
		f.fd = -1;
	}
	b->files.v[b->files.n++] = f;
	if (hashmap_insert(&b->map, hash, (uint32_t)b->files.n - 1))
		return NULL;
	return &b->files.v[b->files.n - 1];
}

/* Whether it may hold something else than when it was mapped. Being removed is a change too. */
static bool changed_since(const struct file *f, uint64_t time_ns)
{
	struct timespec now;
	uint64_t before_ns = clock_now_ns();

	clock_gettime(CLOCK_REALTIME, &now);
	time_ns += timespec_ns(&now) - before_ns;
	return f->changed_ns > time_ns && (f->written_ns > time_ns || !f->removed);
}

const struct perf_event_header *build_ids_stamp(struct build_ids *b,
						const struct event_table *events,
						const struct perf_event_header *record,
						size_t size_bytes)
{
	struct mmap2_record m;
	const struct file *f;
	uint64_t time_ns;
	const char *path = (const char *)record + sizeof(m);

	if (record->type != PERF_RECORD_MMAP2 || size_bytes <= sizeof(m) ||
	    record->misc & PERF_RECORD_MISC_MMAP_BUILD_ID)
		return record;
	memcpy(&m, record, sizeof(m));
	if (!(m.prot & PROT_EXEC) || !m.ino || path[0] != '/' ||
	    !memchr(path, 0, size_bytes - sizeof(m)) ||
	    jitdump_is_marker(path)) /* it is written to all the time */
		return record;
	f = find_file(b, &m, path);
	if (!f)
		return record;
	if (!decode_time(events, record, size_bytes, &time_ns) && time_ns &&
	    changed_since(f, time_ns)) {
		m.ino = INODE_UNKNOWN;
	} else if (f->size) {
		m.header.misc |= PERF_RECORD_MISC_MMAP_BUILD_ID;
		m.build_id_size = f->size;
		memset(m.reserved, 0, sizeof(m.reserved));
		memset(m.build_id, 0, sizeof(m.build_id));
		memcpy(m.build_id, f->id, f->size);
	} else {
		return record;
	}
	memcpy(b->record, record, size_bytes);
	memcpy(b->record, &m, sizeof(m));
	return (const struct perf_event_header *)b->record;
}

int build_ids_open(const struct build_ids *b, const uint8_t *id, size_t size)
{
	for (size_t i = 0; size && i < b->files.n; i++) {
		const struct file *f = &b->files.v[i];

		if (f->fd >= 0 && f->size == size && memcmp(f->id, id, size) == 0)
			return fcntl(f->fd, F_DUPFD_CLOEXEC, 0);
	}
	return -1;
}
