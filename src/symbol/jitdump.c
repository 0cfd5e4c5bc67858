/* SPDX-License-Identifier: BSD-2-Clause */
#include <inspect/jitdump.h>

#include "identity.h"
#include "naming.h"
#include <fcntl.h>
#include <sys/stat.h>

#define JIT_MAGIC 0x4a695444U /* "JiTD" in the byte order of the file */
#define JIT_MAGIC_SWAPPED 0x4454694aU
#define JIT_FLAGS_ARCH_TIMESTAMP 1U
#define LOADS_MAX (1U << 22)
#define FILE_BYTES_MAX (64ULL << 30)

enum { JIT_CODE_LOAD = 0, JIT_CODE_MOVE = 1, JIT_CODE_CLOSE = 3 };

struct header {
	uint32_t magic, version, total_size, elf_mach, pad, pid;
	uint64_t timestamp, flags;
};

struct record {
	uint32_t id, total_size;
	uint64_t timestamp;
};

struct code_load {
	uint32_t pid, tid;
	uint64_t vma, code_addr, code_size, code_index;
};

struct code_move {
	uint32_t pid, tid;
	uint64_t vma, old_code_addr, new_code_addr, code_size, code_index;
};

_Static_assert(sizeof(struct header) == 40 && sizeof(struct record) == 16 &&
		       sizeof(struct code_load) == 40 && sizeof(struct code_move) == 48,
	       "as in the file");

/* A part of the file at a time: dumps hold the code too, which is not looked at. */
struct window {
	int fd;
	uint64_t file_bytes, start;
	size_t n;
	uint8_t v[128 << 10];
};

/* The bytes at off, which may be fewer than asked for at the end. */
static size_t window_read(struct window *w, uint64_t off, size_t want, const uint8_t **ret)
{
	if (off < w->start || off - w->start > w->n || w->n - (off - w->start) < want) {
		ssize_t got =
			off < w->file_bytes ? pread(w->fd, w->v, sizeof(w->v), (off_t)off) : 0;

		w->start = off;
		w->n = got > 0 ? (size_t)got : 0;
	}
	*ret = w->v + (off - w->start);
	return MIN(want, w->n - (size_t)(off - w->start));
}

struct parser {
	struct window *w;
	jit_loads *loads;
	struct hashmap by_index; /* code_index → load: for moves */
	size_t first;            /* loads of this file */
	ARRAY(uint64_t) index;   /* by load - first */
};

static int add_load(struct parser *p, const struct jit_load *l, uint64_t index)
{
	int err = 0;

	if (l->end_va <= l->start_va || p->loads->n - p->first >= LOADS_MAX)
		return 0;
	err = array_push(p->loads, *l);
	if (!err)
		err = array_push(&p->index, index);
	if (!err && l->name_n)
		err = hashmap_insert(&p->by_index, hash_u64(index),
				     (uint32_t)(p->loads->n - p->first - 1));
	return err;
}

static int read_load(struct parser *p, uint64_t off, const struct record *r)
{
	size_t room = r->total_size - sizeof(*r), name_max;
	struct code_load c;
	const uint8_t *v;

	if (room < sizeof(c) || window_read(p->w, off, sizeof(c), &v) < sizeof(c))
		return 0;
	memcpy(&c, v, sizeof(c));
	off += sizeof(c);
	name_max = MIN(room - sizeof(c), (size_t)SYMBOL_NAME_MAX);
	name_max = window_read(p->w, off, name_max, &v);
	return add_load(p,
			&(struct jit_load){.start_va = c.code_addr,
					   .end_va = c.code_addr + c.code_size,
					   .from_ns = r->timestamp,
					   .name_off = off,
					   .name_n = (uint32_t)strnlen((const char *)v, name_max)},
			c.code_index);
}

static int read_move(struct parser *p, uint64_t off, const struct record *r)
{
	struct jit_load moved = {0};
	struct code_move m;
	const uint8_t *v;
	uint32_t at, i;
	int err;

	if (r->total_size - sizeof(*r) < sizeof(m) ||
	    window_read(p->w, off, sizeof(m), &v) < sizeof(m))
		return 0;
	memcpy(&m, v, sizeof(m));
	hashmap_each_candidate(&p->by_index, hash_u64(m.code_index), at, i) {
		const struct jit_load *l = &p->loads->v[p->first + i];

		if (p->index.v[i] == m.code_index && l->start_va == m.old_code_addr) {
			moved = *l;
			break;
		}
	}
	if (!moved.name_n)
		return 0;
	moved.from_ns = r->timestamp;
	moved.start_va = m.new_code_addr;
	moved.end_va = m.new_code_addr + m.code_size;
	err = add_load(p,
		       &(struct jit_load){.start_va = m.old_code_addr,
					  .end_va = m.old_code_addr + m.code_size,
					  .from_ns = r->timestamp},
		       m.code_index);
	return err ? err : add_load(p, &moved, m.code_index);
}

static int read_records(struct parser *p, uint64_t off)
{
	for (;;) {
		const uint8_t *v;
		struct record r;
		int err = 0;

		if (window_read(p->w, off, sizeof(r), &v) < sizeof(r))
			return 0;
		memcpy(&r, v, sizeof(r));
		if (r.total_size < sizeof(r) || r.total_size > p->w->file_bytes - off ||
		    r.id == JIT_CODE_CLOSE)
			return 0;
		if (r.id == JIT_CODE_LOAD)
			err = read_load(p, off + sizeof(r), &r);
		else if (r.id == JIT_CODE_MOVE)
			err = read_move(p, off + sizeof(r), &r);
		if (err)
			return err;
		off += r.total_size;
	}
}

static const char *header_problem(const struct header *h)
{
	if (h->magic == JIT_MAGIC_SWAPPED)
		return "written in another byte order";
	if (h->magic != JIT_MAGIC)
		return "no jitdump file";
	if (h->version != 1)
		return "of a newer version than 1";
	if (h->total_size < sizeof(*h))
		return "damaged";
	if (h->flags & JIT_FLAGS_ARCH_TIMESTAMP)
		return "its times are the processor's own, not CLOCK_MONOTONIC";
	return NULL;
}

int jitdump_read(int fd, jit_loads *ret, const char **ret_problem)
{
	CLEANUP(freep) struct window *w = malloc(sizeof(*w));
	struct parser p = {.w = w, .loads = ret, .first = ret->n};
	const char *problem = "cannot be read";
	const uint8_t *v;
	struct header h;
	struct stat st;
	int err;

	if (!w)
		return -ENOMEM;
	*w = (struct window){.fd = fd};
	if (!fstat(fd, &st) && st.st_size >= 0 && (uint64_t)st.st_size <= FILE_BYTES_MAX) {
		w->file_bytes = (uint64_t)st.st_size;
		problem = "no jitdump file";
		if (window_read(w, 0, sizeof(h), &v) == sizeof(h)) {
			memcpy(&h, v, sizeof(h));
			problem = header_problem(&h);
		}
	}
	if (problem) {
		*ret_problem = problem;
		return -EBADMSG;
	}
	err = read_records(&p, h.total_size);
	hashmap_release(&p.by_index);
	array_release(&p.index);
	return err;
}

int jitdump_name(int fd, const struct jit_load *l, struct strbuf *out)
{
	char text[SYMBOL_NAME_MAX];
	ssize_t n = pread(fd, text, MIN(l->name_n, sizeof(text)), (off_t)l->name_off);

	if (n < 0)
		return -errno;
	strbuf_clear(out);
	strbuf_add(out, text, strnlen(text, (size_t)n));
	return out->failed ? -ENOMEM : 0;
}

bool jitdump_is_marker(const char *path)
{
	const char *slash = strrchr(path, '/');
	size_t digits;

	if (!slash || !str_starts(slash, "/jit-"))
		return false;
	digits = strspn(slash + 5, "0123456789");
	return digits && str_eq(slash + 5 + digits, ".dump");
}

int jitdump_open(const struct dso *d)
{
	CLEANUP(closep) int root = -1;
	uint32_t ns_pid, user = NO_USER;
	struct stat st;
	int fd;

	if (d->fd >= 0)
		fd = fcntl(d->fd, F_DUPFD_CLOEXEC, 0);
	else
		fd = elf_open_mapped((pid_t)d->pid, d->start_va, d->end_va, d->path, d->maj, d->min,
				     d->ino);
	if (fd < 0) {
		root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
		fd = root < 0 ? -errno : file_open_below(root, d->path);
		if (fd < 0)
			return fd;
		if (!file_is_same(fd, d->maj, d->min, d->ino)) {
			close(fd);
			return -ESTALE;
		}
	}
	if (!fstat(fd, &st) && st.st_uid == geteuid())
		return fd;
	process_identity((pid_t)d->pid, &ns_pid, &user);
	return check_owner(fd, user);
}
