/* SPDX-License-Identifier: BSD-2-Clause */
/* What exists when sampling starts, as records: tools/perf/util/synthetic-events.c. */
#include "synthesize.h"

#include <inspect/elf_file.h>
#include <inspect/perf_sampler.h>
#include <inspect/procfs.h>
#include <limits.h>
#include <sys/mman.h>

/* The parts before a path, the path, and a trailer. */
#define RECORD_ROOM (PATH_MAX + 1024)
#define BUILD_IDS_MAX 65536

int record_builder_init(struct record_builder *b, const struct event_table *events, record_fn *emit,
			void *ctx)
{
	*b = (struct record_builder){.emit = emit, .ctx = ctx};
	if (events->events.n && events->events.v[0].attr.sample_id_all)
		b->sample_type = events->events.v[0].attr.sample_type;
	b->record = malloc(RECORD_ROOM);
	return b->record ? 0 : -ENOMEM;
}

void record_builder_release(struct record_builder *b)
{
	free(b->record);
}

void record_add(struct record_builder *b, const void *bytes, size_t n)
{
	memcpy((uint8_t *)b->record + b->n, bytes, n);
	b->n += n;
}

void record_begin(struct record_builder *b, uint32_t type, uint16_t misc)
{
	struct perf_event_header header = {.type = type, .misc = misc};

	b->n = 0;
	record_add(b, &header, sizeof(header));
}

void record_add_string(struct record_builder *b, const char *s)
{
	static const char zeros[8];
	size_t n = strnlen(s, PATH_MAX - 1);

	record_add(b, s, n);
	record_add(b, zeros, 8 - n % 8);
}

int record_end(struct record_builder *b, uint32_t pid, uint32_t tid)
{
	static const uint64_t words[] = {PERF_SAMPLE_TIME, PERF_SAMPLE_ID, PERF_SAMPLE_STREAM_ID,
					 PERF_SAMPLE_CPU, PERF_SAMPLE_IDENTIFIER};
	uint32_t who[2] = {pid, tid};

	/* perf_event__output_id_sample: TID comes first; time and ids of none are 0. */
	if (b->sample_type & PERF_SAMPLE_TID)
		record_add(b, who, sizeof(who));
	for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
		uint64_t word = words[i] == PERF_SAMPLE_CPU ? b->cpu : 0;

		if (b->sample_type & words[i])
			record_add(b, &word, sizeof(word));
	}
	b->record->size = (uint16_t)b->n;
	return b->emit(b->ctx, b->record, b->n);
}

/* --- build-ids -------------------------------------------------------------------------------- */

struct file_build_id {
	uint64_t ino;
	uint32_t maj, min;
	uint8_t id[20];
	uint8_t size; /* 0: the file has none */
};

struct walk {
	struct record_builder builder;
	uint32_t pid;          /* the process whose maps are read */
	struct proc_map file;  /* the last mapping of a file; its path is owned, NULL none */
	struct proc_map moved; /* code without a file that follows it at once; end 0: none */
	ARRAY(struct file_build_id) files;
	struct hashmap by_file;
};

static uint64_t file_hash(const struct proc_map *m)
{
	return hash_u64(m->ino ^ hash_u64((uint64_t)m->maj << 32 | m->min));
}

/* 0, or -errno where another process may have better luck with the same file (rights). */
static int build_id_read(pid_t pid, const struct proc_map *m, struct file_build_id *ret)
{
	struct elf_file *elf;
	size_t size = 0;
	int err, fd = elf_open_mapped(pid, m->start, m->end, m->path, m->maj, m->min, m->ino);

	if (fd < 0)
		return fd;
	err = elf_file_open_fd(fd, &elf);
	if (err == -ENOMEM)
		return err;
	if (err)
		return 0;
	if (elf_file_build_id(elf, ret->id, &size) == 0 && size >= RECORD_BUILD_ID_MIN &&
	    size <= sizeof(ret->id))
		ret->size = (uint8_t)size;
	elf_file_free(elf);
	return 0;
}

/* Each file is read once, however many processes have it. NULL: no build-id. */
static const struct file_build_id *build_id_find(struct walk *w, const struct proc_map *m)
{
	struct file_build_id f = {.ino = m->ino, .maj = m->maj, .min = m->min};
	uint32_t at, i;

	if (m->path[0] != '/' || !m->ino)
		return NULL;
	hashmap_each_candidate(&w->by_file, file_hash(m), at, i) {
		const struct file_build_id *have = &w->files.v[i];

		if (have->ino == f.ino && have->maj == f.maj && have->min == f.min)
			return have->size ? have : NULL;
	}
	if (w->files.n >= BUILD_IDS_MAX || build_id_read((pid_t)w->pid, m, &f) < 0)
		return NULL;
	if (array_push(&w->files, f) < 0)
		return NULL;
	if (hashmap_insert(&w->by_file, file_hash(m), (uint32_t)w->files.n - 1) < 0) {
		w->files.n--;
		return NULL;
	}
	return f.size ? &w->files.v[w->files.n - 1] : NULL;
}

/* --- processes -------------------------------------------------------------------------------- */

static int emit_mapping(struct walk *w, const struct proc_map *m)
{
	struct record_builder *b = &w->builder;
	const struct file_build_id *id;
	struct { /* PERF_RECORD_MMAP2 in perf_event.h, up to the file name */
		uint32_t pid, tid;
		uint64_t start, len, pgoff;
		union {
			struct {
				uint32_t maj, min;
				uint64_t ino, ino_generation;
			};
			struct {
				uint8_t build_id_size, reserved[3];
				uint8_t build_id[20];
			};
		};
		uint32_t prot, flags;
	} body = {
		.pid = w->pid,
		.tid = w->pid,
		.start = m->start,
		.len = m->end - m->start,
		.pgoff = m->pgoff_bytes,
		.maj = m->maj,
		.min = m->min,
		.ino = m->ino,
		.prot = (m->read ? PROT_READ : 0) | (m->write ? PROT_WRITE : 0) | PROT_EXEC,
		.flags = m->shared ? MAP_SHARED : MAP_PRIVATE,
	};

	_Static_assert(sizeof(body) == 64, "as the kernel lays it out");
	id = build_id_find(w, m);
	if (id) {
		body.ino_generation = 0;
		body.build_id_size = id->size;
		memset(body.reserved, 0, sizeof(body.reserved));
		memcpy(body.build_id, id->id, sizeof(body.build_id));
	}
	record_begin(b, PERF_RECORD_MMAP2,
		     PERF_RECORD_MISC_USER | (id ? PERF_RECORD_MISC_MMAP_BUILD_ID : 0));
	record_add(b, &body, sizeof(body));
	record_add_string(b, m->path[0] ? m->path : "//anon");
	return record_end(b, w->pid, w->pid);
}

/* The part of a file that lies, or would lie, at an address. */
static bool continues(const struct proc_map *file, const struct proc_map *m)
{
	return m->ino == file->ino && m->maj == file->maj && m->min == file->min &&
	       m->pgoff_bytes - file->pgoff_bytes == m->start - file->start;
}

/*
 * Code in anonymous memory in the middle of a file's mappings, in the place of that part of the
 * file: a program has copied its code there, to have it in huge pages. It is shown as what it is a
 * copy of. `next` (NULL: no more) is the mapping behind it.
 */
static int emit_moved(struct walk *w, const struct proc_map *next)
{
	struct proc_map m = w->moved;

	if (!m.end)
		return 0;
	w->moved.end = 0;
	m.path = (char *)"";
	if (next && next->start == m.end && continues(&w->file, next)) {
		m.pgoff_bytes = w->file.pgoff_bytes + (m.start - w->file.start);
		m.maj = w->file.maj;
		m.min = w->file.min;
		m.ino = w->file.ino;
		m.path = w->file.path;
	}
	return emit_mapping(w, &m);
}

static int visit_mapping(void *ctx, const struct proc_map *m)
{
	struct walk *w = ctx;
	int err = emit_moved(w, m);

	if (err)
		return err;
	if (m->ino && m->path[0] == '/') {
		free(w->file.path);
		w->file = *m;
		w->file.path = strdup(m->path);
		if (!w->file.path)
			return -ENOMEM;
	} else if (m->exec && !m->path[0] && w->file.path && m->start == w->file.end) {
		w->moved = *m;
		return 0;
	}
	return m->exec ? emit_mapping(w, m) : 0;
}

static int emit_thread(struct walk *w, uint32_t tid, uint32_t parent, const char *comm)
{
	struct record_builder *b = &w->builder;
	uint32_t who[2] = {w->pid, tid};
	struct { /* PERF_RECORD_FORK */
		uint32_t pid, ppid, tid, ptid;
		uint64_t time_ns;
	} fork = {.pid = w->pid, .ppid = parent, .tid = tid, .ptid = parent};
	int err;

	record_begin(b, PERF_RECORD_FORK, PERF_RECORD_MISC_FORK_EXEC);
	record_add(b, &fork, sizeof(fork));
	err = record_end(b, w->pid, tid);
	if (err)
		return err;
	record_begin(b, PERF_RECORD_COMM, 0);
	record_add(b, who, sizeof(who));
	record_add_string(b, comm);
	return record_end(b, w->pid, tid);
}

static bool is_gone(int err)
{
	return err == -ENOENT || err == -ESRCH;
}

static void pid_list_release(struct pid_list *l)
{
	array_release(l);
}

static int emit_process(struct walk *w)
{
	CLEANUP(pid_list_release) struct pid_list threads = {0};
	pid_t pid = (pid_t)w->pid;
	struct proc_stat stat;
	int err = proc_threads(pid, &threads);

	if (!err)
		err = proc_stat_read(pid, 0, &stat);
	if (err)
		return is_gone(err) ? 0 : err;
	err = emit_thread(w, w->pid, (uint32_t)stat.ppid, stat.comm);
	for (size_t i = 0; !err && i < threads.n; i++) {
		if (threads.v[i] == pid || proc_stat_read(pid, threads.v[i], &stat) < 0)
			continue;
		err = emit_thread(w, (uint32_t)threads.v[i], w->pid, stat.comm);
	}
	if (err)
		return err;
	err = proc_maps_each(pid, visit_mapping, w);
	if (!err)
		err = emit_moved(w, NULL);
	free(w->file.path);
	w->file.path = NULL;
	w->moved.end = 0;
	/* Of a process of another user the names are public, the mappings are not. */
	return is_gone(err) || err == -EACCES || err == -EPERM ? 0 : err;
}

static int processes_of(const pid_t *pids, size_t n_pids, struct pid_list *ret)
{
	for (size_t i = 0; i < n_pids; i++) {
		pid_t pid = proc_of_thread(pids[i]);
		bool again = false;

		if (pid < 0 && is_gone(pid))
			continue;
		if (pid < 0)
			return pid;
		for (size_t j = 0; j < ret->n && !again; j++)
			again = ret->v[j] == pid;
		if (!again && array_push(ret, pid) < 0)
			return -ENOMEM;
	}
	return 0;
}

int synthesize_processes(const pid_t *pids, size_t n_pids, const struct event_table *events,
			 record_fn *emit, void *ctx)
{
	CLEANUP(pid_list_release) struct pid_list processes = {0};
	struct walk w = {0};
	int err = pids ? processes_of(pids, n_pids, &processes) : proc_pids(&processes);

	if (!err)
		err = record_builder_init(&w.builder, events, emit, ctx);
	for (size_t i = 0; !err && i < processes.n; i++) {
		w.pid = (uint32_t)processes.v[i];
		err = emit_process(&w);
	}
	record_builder_release(&w.builder);
	array_release(&w.files);
	hashmap_release(&w.by_file);
	return err;
}
