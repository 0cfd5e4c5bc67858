/* SPDX-License-Identifier: BSD-2-Clause */
#include "unwind_process.h"

#include <bpf/bpf.h>
#include <fcntl.h>
#include <inspect/clock.h>
#include <inspect/elf_file.h>
#include <inspect/procfs.h>
#include <signal.h>
#include <sys/stat.h>

#define PAUSE_LEAST_NS (2 * NSEC_PER_MSEC)
#define PAUSE_MOST_NS NSEC_PER_SEC
#define LARGE_BYTES (2u << 20)
#define RANGES_MAX (1u << UNWIND_RANGE_STEPS)

static void process_free(struct known_process *p)
{
	array_release(&p->ranges);
	free(p);
}

void unwind_processes_release(struct unwind_processes *u)
{
	for (size_t i = 0; i < u->files.n; i++)
		free(u->files.v[i].path);
	for (size_t i = 0; i < u->known.n; i++)
		process_free(u->known.v[i]);
	array_release(&u->files);
	hashmap_release(&u->by_file);
	array_release(&u->known);
	array_release(&u->fresh);
	row_store_release(&u->row_store);
	range_store_release(&u->range_store);
}

/* --- files ------------------------------------------------------------------------------------ */

static void set_stop(struct known_file *f, uint8_t stop)
{
	f->kind = UNWIND_RANGE_STOP;
	f->stop = stop;
}

static int upload(struct unwind_processes *u, const struct unwind_rows *r, struct known_file *f)
{
	int err = row_store_add(&u->row_store, r, &f->first_row, &f->n_rows);

	f->kind = UNWIND_RANGE_ROWS;
	f->base_off = r->base_off;
	if (err == -ENOMEM)
		return err;
	if (err) {
		set_stop(f, UNWIND_NO_MEMORY);
		u->refused++;
	}
	return 0;
}

/* Opens the file and learns its build-id. 0, -ENOEXEC: no ELF file, or -errno. */
static int open_file(pid_t pid, const struct proc_map *m, struct dso *d)
{
	CLEANUP(elf_file_freep) struct elf_file *elf = NULL;
	size_t size = 0;
	int fd, err;

	d->fd = elf_open_mapped(pid, m->start, m->end, m->path, m->maj, m->min, m->ino);
	if (d->fd < 0)
		return d->fd;
	fd = fcntl(d->fd, F_DUPFD_CLOEXEC, 0);
	err = fd < 0 ? -errno : elf_file_open_fd(fd, &elf);
	if (!err && !elf_file_build_id(elf, d->build_id, &size) && size <= BUILD_ID_MAX)
		d->build_id_size = (uint8_t)size;
	return err;
}

/* So much code takes too long for others to wait. */
static bool is_large(const struct proc_map *m)
{
	return m->end - m->start > LARGE_BYTES;
}

/* -ENOMEM and -EAGAIN are for the caller; whatever else is wrong with a file is what its frames end
 * with. */
static int make_rows(struct unwind_processes *u, pid_t pid, const struct proc_map *m,
		     struct known_file *f)
{
	struct dso d = {.id = (uint32_t)u->files.n,
			.kind = str_eq(m->path, "[vdso]") ? DSO_VDSO : DSO_ELF,
			.path = m->path,
			.maj = m->maj,
			.min = m->min,
			.ino = m->ino,
			.pid = (uint32_t)pid,
			.start_va = m->start,
			.end_va = m->end,
			.fd = -1};
	struct unwind_rows rows;
	uint64_t start_ns;
	int err;

	start_ns = clock_now_ns();
	err = d.kind == DSO_ELF ? open_file(pid, m, &d) : 0;
	if (!err)
		err = u->rows(u->rows_ctx, &d, u->quick, &rows);
	u->rows_ns += clock_now_ns() - start_ns;
	if (d.fd >= 0)
		close(d.fd);
	if (!err)
		return upload(u, &rows, f);
	if (err == -ENOEXEC)
		f->kind = UNWIND_RANGE_FP; /* a file that is no ELF holds code made at run time */
	else
		set_stop(f, err == -ESTALE ? UNWIND_FILE_CHANGED : UNWIND_NO_FILE);
	return err == -ENOMEM || err == -EAGAIN ? err : 0;
}

static bool is_file(const struct proc_map *m, const struct known_file *f)
{
	return f->ino == m->ino && f->maj == m->maj && f->min == m->min && str_eq(f->path, m->path);
}

static struct file_version version_of(pid_t pid, const struct proc_map *m)
{
	struct file_version v = {0};
	struct stat st;
	char path[96];
	int fd;

	if (!m->ino)
		return v;
	snprintf(path, sizeof(path), "/proc/%d/map_files/%llx-%llx", proc_living(pid),
		 (unsigned long long)m->start, (unsigned long long)m->end);
	v.known = !stat(path, &st);
	if (!v.known) {
		fd = elf_open_mapped(pid, m->start, m->end, m->path, m->maj, m->min, m->ino);
		v.known = fd >= 0 && !fstat(fd, &st);
		closep(&fd);
	}
	if (v.known) {
		v.size_bytes = (uint64_t)st.st_size;
		v.ctime = st.st_ctim;
	}
	return v;
}

static bool same_version(const struct file_version *a, const struct file_version *b)
{
	return a->known == b->known && a->size_bytes == b->size_bytes &&
	       a->ctime.tv_sec == b->ctime.tv_sec && a->ctime.tv_nsec == b->ctime.tv_nsec;
}

static int find_file(struct unwind_processes *u, pid_t pid, const struct proc_map *m,
		     const struct known_file **ret)
{
	uint64_t hash = hash_u64(m->ino ^ hash_u64((uint64_t)m->maj << 32 | m->min));
	struct known_file f = {.ino = m->ino, .maj = m->maj, .min = m->min};
	uint32_t at, i;
	int err;

	hashmap_each_candidate(&u->by_file, hash, at, i) {
		if (is_file(m, &u->files.v[i]) && u->files.v[i].seen == u->refreshes) {
			*ret = &u->files.v[i];
			return 0;
		}
	}
	f.version = version_of(pid, m);
	f.seen = u->refreshes;
	hashmap_each_candidate(&u->by_file, hash, at, i) {
		if (is_file(m, &u->files.v[i]) &&
		    same_version(&f.version, &u->files.v[i].version)) {
			u->files.v[i].seen = u->refreshes;
			*ret = &u->files.v[i];
			return 0;
		}
	}
	*ret = NULL;
	if (u->put_off && is_large(m)) {
		u->was_put_off = true;
		return 0;
	}
	f.path = strdup(m->path);
	err = f.path ? make_rows(u, pid, m, &f) : -ENOMEM;
	if (!err)
		err = array_push(&u->files, f);
	if (err) {
		free(f.path);
		return err;
	}
	*ret = &u->files.v[u->files.n - 1];
	return hashmap_insert(&u->by_file, hash, (uint32_t)u->files.n - 1);
}

/* --- ranges ----------------------------------------------------------------------------------- */

struct reading {
	struct unwind_processes *u;
	pid_t pid;
};

/* Memory without a file behind it: what runs there was made at run time, by a compiler that keeps
 * frame pointers or by one that can't be helped. */
static bool is_anonymous(const struct proc_map *m)
{
	return !str_eq(m->path, "[vdso]") &&
	       (m->path[0] != '/' || str_starts(m->path, "//") || str_starts(m->path, "/memfd:"));
}

/* As bpf/lib/unwind_check.bpf.h finds it. */
static uint64_t identity_of(const struct proc_map *m, const struct unwind_range *range,
			    const struct file_version *version)
{
	uint32_t device = unwind_device(m->maj, m->min);
	uint64_t page = m->pgoff_bytes / (uint64_t)sysconf(_SC_PAGESIZE);

	if (str_eq(m->path, "[vsyscall]")) /* in no tree */
		return UNWIND_UNKNOWN;
	if (!m->ino)
		return 0;
	if (range->kind == UNWIND_RANGE_FP)
		return unwind_memory_identity(m->ino, device);
	return version->known ? unwind_identity(m->ino, device, page, version->size_bytes,
						(uint64_t)version->ctime.tv_sec,
						(uint64_t)version->ctime.tv_nsec)
			      : UNWIND_UNKNOWN;
}

static void tell(const struct unwind_processes *u, const struct unwind_known *value)
{
	struct unwind_known old;

	/* An update for nothing would drop another entry of a full map. What does not get in is
	 * asked for, as if it were new. */
	if (bpf_map_lookup_elem(u->known_fd, &value->identity, &old) < 0)
		bpf_map_update_elem(u->known_fd, &value->identity, value, BPF_ANY);
}

/* Tells programs of a file whose rows they have: other processes that map it need not wait for
 * ranges of their own. */
static void tell_known(const struct unwind_processes *u, const struct proc_map *m,
		       const struct unwind_range *range)
{
	struct unwind_known value = {
		.identity = range->identity,
		.bias = range->bias + m->start,
		.first_row = range->first_row,
		.n_rows = range->n_rows,
	};

	if (range->kind != UNWIND_RANGE_ROWS || range->identity == UNWIND_UNKNOWN)
		return;
	if (str_eq(m->path, "[vdso]"))
		value.identity = unwind_vdso_identity(m->end - m->start);
	tell(u, &value);
	value.identity = unwind_memory_identity(m->ino, unwind_device(m->maj, m->min));
	if (m->ino)
		tell(u, &value);
}

static int add_range(void *ctx, const struct proc_map *m)
{
	struct reading *r = ctx;
	struct unwind_range range = {
		.start_va = m->start, .end_va = m->end, .kind = UNWIND_RANGE_FP};
	const struct file_version unknown = {0};
	const struct known_file *f = NULL;
	int err;

	if (!m->exec || m->start >= m->end)
		return 0;
	if (r->u->fresh.n == RANGES_MAX)
		return -ENOSPC;
	if (!is_anonymous(m)) {
		err = find_file(r->u, r->pid, m, &f);
		if (err)
			return err;
	}
	if (!is_anonymous(m) && !f) {
		range.kind = UNWIND_RANGE_STOP;
		range.stop = UNWIND_NEW_MAPPING;
	} else if (!is_anonymous(m)) {
		range.kind = f->kind;
		range.stop = f->stop;
		range.first_row = f->first_row;
		range.n_rows = f->n_rows;
		range.bias = m->pgoff_bytes - m->start - f->base_off;
	}
	range.identity = identity_of(m, &range, f ? &f->version : &unknown);
	tell_known(r->u, m, &range);
	return array_push(&r->u->fresh, range);
}

static size_t place_of(const struct unwind_processes *u, pid_t pid)
{
	size_t low = 0, high = u->known.n;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (u->known.v[middle]->pid < pid)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static struct known_process *find_process(const struct unwind_processes *u, pid_t pid)
{
	size_t at = place_of(u, pid);

	return at < u->known.n && u->known.v[at]->pid == pid ? u->known.v[at] : NULL;
}

static int add_process(struct unwind_processes *u, pid_t pid, struct known_process **ret)
{
	size_t at = place_of(u, pid);
	struct known_process *p;

	if (array_reserve(&u->known, u->known.n + 1))
		return -ENOMEM;
	p = calloc(1, sizeof(*p));
	if (!p)
		return -ENOMEM;
	p->pid = pid;
	memmove(&u->known.v[at + 1], &u->known.v[at], (u->known.n - at) * sizeof(*u->known.v));
	u->known.v[at] = p;
	u->known.n++;
	*ret = p;
	return 0;
}

static int drop_process(struct unwind_processes *u, struct known_process *p)
{
	size_t at = place_of(u, p->pid);
	int err = p->placed ? range_store_drop(&u->range_store, p->place, clock_now_ns()) : 0;

	u->known.n--;
	memmove(&u->known.v[at], &u->known.v[at + 1], (u->known.n - at) * sizeof(*u->known.v));
	process_free(p);
	return err;
}

static bool is_unchanged(const struct unwind_processes *u, const struct known_process *p)
{
	return p->placed && p->ranges.n == u->fresh.n && p->ranges.n &&
	       memcmp(p->ranges.v, u->fresh.v, p->ranges.n * sizeof(*p->ranges.v)) == 0;
}

/* Writes the fresh ranges with a generation of their own. */
static int place_ranges(struct unwind_processes *u, struct known_process *p,
			struct range_place *ret)
{
	int err = array_reserve(&p->ranges, u->fresh.n);

	if (err)
		return err;
	memcpy(p->ranges.v, u->fresh.v, u->fresh.n * sizeof(*u->fresh.v));
	p->ranges.n = u->fresh.n;
	u->generation = u->generation == UINT32_MAX ? 1 : u->generation + 1;
	for (size_t i = 0; i < u->fresh.n; i++)
		u->fresh.v[i].generation = u->generation;
	return range_store_put(&u->range_store, u->fresh.v, u->fresh.n, ret);
}

/* What programs look up. With the ranges unchanged its generation stays too. */
static int publish(const struct unwind_processes *u, const struct known_process *p,
		   uint32_t generation)
{
	uint32_t key = (uint32_t)p->pid;
	uint64_t until_ns = clock_now_ns() + p->pause_ns;
	struct unwind_process value = {
		.first = p->place.first,
		.n = (uint32_t)p->ranges.n,
		.generation = generation,
		.fresh = 1,
		.quiet_until_ns = until_ns,
		.sure_until_ns = until_ns,
	};

	return bpf_map_update_elem(u->processes_fd, &key, &value, BPF_ANY) < 0 ? -errno : 0;
}

static uint64_t pause_after(uint64_t took_ns)
{
	return MAX(PAUSE_LEAST_NS, MIN(took_ns, PAUSE_MOST_NS));
}

static int replace(struct unwind_processes *u, struct known_process *p, uint64_t took_ns)
{
	struct range_place old = p->place, place;
	bool had = p->placed;
	int err = place_ranges(u, p, &place);

	if (err)
		return err;
	p->place = place;
	p->placed = true;
	p->pause_ns = pause_after(took_ns);
	err = publish(u, p, u->generation);
	if (had && range_store_drop(&u->range_store, old, clock_now_ns()))
		return -ENOMEM;
	return err;
}

/* Nothing new: the address that was asked for is wrong. Asked again later and later. */
static int keep(struct unwind_processes *u, struct known_process *p, uint64_t took_ns)
{
	uint32_t key = (uint32_t)p->pid;
	struct unwind_process now;

	p->pause_ns = MIN(2 * p->pause_ns, PAUSE_MOST_NS);
	if (bpf_map_lookup_elem(u->processes_fd, &key, &now) < 0)
		return 0;
	if (!now.generation) /* it has executed another program, mapped the same */
		return replace(u, p, took_ns);
	now.waiting = 0;
	now.fresh = 0;
	now.quiet_until_ns = clock_now_ns() + p->pause_ns;
	now.sure_until_ns = clock_now_ns() + pause_after(took_ns);
	return bpf_map_update_elem(u->processes_fd, &key, &now, BPF_EXIST) < 0 && errno != ENOENT
		       ? -errno
		       : 0;
}

int unwind_process_refresh(struct unwind_processes *u, pid_t pid, bool put_off)
{
	uint64_t start_ns = clock_now_ns(), took_ns;
	struct known_process *p = find_process(u, pid);
	struct reading r = {.u = u, .pid = pid};
	int err;

	u->fresh.n = 0;
	u->refreshes++;
	u->rows_ns = 0;
	u->put_off = put_off;
	u->was_put_off = false;
	err = proc_maps_each(pid, add_range, &r);
	if (err && err != -ENOSPC) {
		uint32_t key = (uint32_t)pid;

		bpf_map_delete_elem(u->processes_fd, &key);
		if (p && drop_process(u, p))
			return -ENOMEM;
		return err;
	}
	if (!u->fresh.n && !p)
		return 0; /* a kernel thread */
	if (!p)
		err = add_process(u, pid, &p);
	else
		err = 0;
	/* Making rows happens once; reading mappings costs as much each time. */
	took_ns = clock_now_ns() - start_ns - u->rows_ns;
	if (!err)
		err = is_unchanged(u, p) ? keep(u, p, took_ns) : replace(u, p, took_ns);
	return err ? err : u->was_put_off;
}

int unwind_process_learn(struct unwind_processes *u, const struct proc_map *m)
{
	struct reading r = {.u = u, .pid = getpid()};
	int err;

	u->fresh.n = 0;
	u->refreshes++;
	u->put_off = false;
	u->quick = true;
	err = add_range(&r, m);
	u->quick = false;
	return err == -EAGAIN ? 0 : err;
}

bool unwind_process_is_used(const struct unwind_processes *u, pid_t pid)
{
	uint32_t key = (uint32_t)pid;
	struct unwind_process value;

	return find_process(u, pid) || (bpf_map_lookup_elem(u->processes_fd, &key, &value) == 0 &&
					(value.generation || value.waiting));
}

int unwind_processes_sweep(struct unwind_processes *u)
{
	int err = 0;

	for (size_t i = u->known.n; i > 0 && !err; i--) {
		struct known_process *p = u->known.v[i - 1];
		uint32_t key = (uint32_t)p->pid;
		struct unwind_process value;

		/* The program has forgotten it, or a refresh came after its end. */
		if (kill(p->pid, 0) < 0 && errno == ESRCH)
			bpf_map_delete_elem(u->processes_fd, &key);
		if (bpf_map_lookup_elem(u->processes_fd, &key, &value) < 0 && errno == ENOENT)
			err = drop_process(u, p);
	}
	return err;
}
