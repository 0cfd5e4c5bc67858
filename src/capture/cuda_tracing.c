/* SPDX-License-Identifier: BSD-2-Clause */
#include "watch.h"

#include <fcntl.h>
#include <inspect/clock.h>
#include <inspect/cuda_tracing.h>
#include <inspect/elf_file.h>
#include <inspect/procfs.h>
#include <sys/stat.h>

/* How soon a library that is loaded later is looked for: after SCAN_COST times what looking took,
 * but within these; a target's own at each tick at the latest. */
#define SCAN_LEAST_NS (5 * NSEC_PER_MSEC)
#define SCAN_ALL_NS NSEC_PER_SEC
#define SCAN_COST UINT64_C(50)

/* How long CMD is held at most while its libraries are looked for. */
#define PROGRAM_NS_MOST (200 * NSEC_PER_MSEC)

enum { LIBRARIES_MAX = 16, SYMBOLS_MAX = 512 };

struct cuda_session {
	const struct cuda_tracing_config *config;
	struct cuda_tracing *result;
	struct cuda_counts *counts;
	note_list *notes;
	uint64_t next_scan_ns;
	uint64_t scanned_ns; /* what was mapped before then is known; 0: not yet */
	pid_t pid;           /* of the mappings that are looked at; 0: of an installed file */
	struct watch watch;
	struct diag *d;
};

/* --- functions of a library ------------------------------------------------------------------- */

struct function_list {
	struct elf_file *file;
	bool launches;
	ARRAY(struct cuda_point) points;
	struct cuda_library *library;
};

static uint64_t cookie_of(uint64_t function, const struct cuda_arguments *a)
{
	return function | (uint64_t)a->bytes << CUDA_AT_BYTES |
	       (uint64_t)a->times << CUDA_AT_TIMES | (uint64_t)a->stream << CUDA_AT_STREAM |
	       (uint64_t)a->shift << CUDA_AT_SHIFT | (uint64_t)a->narrow << CUDA_AT_NARROW |
	       (uint64_t)a->fields << CUDA_AT_FIELDS | (uint64_t)a->offset << CUDA_AT_OFFSET |
	       (uint64_t)a->stream_off << CUDA_AT_STREAM_OFFSET;
}

static int add_function(void *ctx, const char *name, uint64_t elf_vaddr)
{
	struct function_list *l = ctx;
	struct cuda_arguments arguments;
	int index = cuda_function_find(name, &arguments);
	const struct cuda_function *f = index < 0 ? NULL : &cuda_functions[index];
	struct cuda_point p;

	if (!f || (cuda_function_launches(f) && !l->launches) || l->points.n >= SYMBOLS_MAX)
		return 0;
	if (elf_file_vaddr_to_off(l->file, elf_vaddr, &p.file_off))
		return 0;
	p.cookie = cookie_of((uint64_t)index, &arguments);
	if ((size_t)index < ARRAY_SIZE(l->library->found)) {
		l->library->n_functions += !l->library->found[index];
		l->library->found[index] = true;
	}
	/* Two names of one function. */
	for (size_t i = 0; i < l->points.n; i++)
		if (l->points.v[i].file_off == p.file_off)
			return 0;
	return array_push(&l->points, p);
}

/* Before the start nothing is missed. */
static void note_unwatched(const struct cuda_session *s, struct cuda_library *library)
{
	uint64_t started_ns = s->result->watched.start_ns;

	if (!s->pid || !started_ns)
		return;
	library->pid = s->pid;
	library->unwatched_ns = clock_now_ns() - MAX(s->scanned_ns, started_ns);
}

/* A library that was met for the first time, by a descriptor: its path may be another file's, or
 * nobody's. */
static int attach_library(struct cuda_session *s, int library_fd, const char *path,
			  const struct stat *st)
{
	struct cuda_library library = {.device = st->st_dev, .inode = st->st_ino};
	struct function_list list = {.launches = s->config->launches, .library = &library};
	CLEANUP(elf_file_freep) struct elf_file *file = NULL;
	uint64_t start_ns = clock_now_ns();
	int fd = fcntl(library_fd, F_DUPFD_CLOEXEC, 0), err;

	err = fd < 0 ? -errno : elf_file_open_fd(fd, &file);
	if (err)
		return 0; /* no library: the next scan tries again */
	list.file = file;
	err = elf_functions_each(file, add_function, &list);
	library.path = strdup(path);
	if (!err && !library.path)
		err = -ENOMEM;
	err = err ? diag_errno(s->d, err, "%s", path)
		  : cuda_counts_attach(s->counts, library_fd, path, list.points.v, list.points.n,
				       s->d);
	library.n_symbols = list.points.n;
	library.attach_ns = clock_now_ns() - start_ns;
	note_unwatched(s, &library);
	array_release(&list.points);
	if (!err && array_push(&s->result->libraries, library))
		err = diag_errno(s->d, -ENOMEM, "tracing CUDA");
	if (err)
		free(library.path);
	return err;
}

static int meet_library(struct cuda_session *s, int fd, const char *path)
{
	struct stat st;

	if (s->result->libraries.n >= LIBRARIES_MAX || fd < 0 || fstat(fd, &st))
		return 0;
	for (size_t i = 0; i < s->result->libraries.n; i++)
		if (s->result->libraries.v[i].device == st.st_dev &&
		    s->result->libraries.v[i].inode == st.st_ino)
			return 0;
	return attach_library(s, fd, path, &st);
}

/* --- where it is ------------------------------------------------------------------------------ */

static const char library_name[] = "libcuda.so.1";

struct mapped {
	struct cuda_session *session;
	pid_t pid;
};

static int match_mapped(void *ctx, const struct proc_map *map)
{
	const struct mapped *m = ctx;
	const char *base = strrchr(map->path, '/');
	CLEANUP(closep) int fd = -1;

	if (!base || !str_starts(base + 1, "libcuda.so") || !map->exec)
		return 0;
	fd = elf_open_mapped(m->pid, map->start, map->end, map->path, map->maj, map->min, map->ino);
	return meet_library(m->session, fd, map->path);
}

static int scan_process(struct cuda_session *s, pid_t pid)
{
	struct mapped m = {s, pid};
	int err;

	s->pid = pid;
	err = proc_maps_each(pid, match_mapped, &m);
	s->pid = 0;
	return err == -ENOENT || err == -ESRCH || err == -EACCES ? 0 : err;
}

static int scan_with_children(struct cuda_session *s, pid_t pid)
{
	struct pid_list below = {0};
	int err = scan_process(s, pid);

	if (!err && !proc_descendants(pid, &below))
		for (size_t i = 0; i < below.n && !err; i++)
			err = scan_process(s, below.v[i]);
	array_release(&below);
	return err;
}

static int scan(struct cuda_session *s)
{
	const struct target *t = s->config->target;
	uint64_t now_ns = clock_now_ns();
	struct pid_list all = {0};
	int err = 0;

	if ((t->all || t->cgroup_fd >= 0) && !proc_pids(&all))
		for (size_t i = 0; i < all.n && !err; i++)
			err = scan_process(s, all.v[i]);
	for (size_t i = 0; i < t->pids.n && !err; i++)
		err = scan_with_children(s, t->pids.v[i]);
	for (size_t i = 0; i < t->tids.n && !err; i++)
		err = scan_process(s, t->tids.v[i]);
	if (!err && s->result->watched.child.pid)
		err = scan_with_children(s, s->result->watched.child.pid);
	array_release(&all);
	s->scanned_ns = now_ns;
	return err;
}

static int meet_installed_file(struct cuda_session *s, const char *path)
{
	CLEANUP(closep) int fd = file_open_regular(path);

	return meet_library(s, fd, path);
}

static int meet_program_file(void *ctx, const char *path, int fd, struct elf_file *f UNUSED)
{
	const char *base = strrchr(path, '/');

	return str_starts(base ? base + 1 : path, "libcuda.so") ? meet_library(ctx, fd, path) : 0;
}

/* CMD has mapped nothing yet: where its loader will look, and where programs that open it by its
 * path have it. */
static int meet_installed(struct cuda_session *s)
{
	static const char folders[] =
		"/usr/lib/x86_64-linux-gnu:/usr/lib/aarch64-linux-gnu:/usr/lib64:/usr/lib:"
		"/usr/local/cuda/compat:/usr/local/nvidia/lib64";
	const char *lists[] = {getenv("LD_LIBRARY_PATH"), folders};
	int err = elf_program_each(s->config->target->argv[0], library_name,
				   clock_now_ns() + PROGRAM_NS_MOST, meet_program_file, s);

	for (size_t i = 0; i < ARRAY_SIZE(lists); i++)
		for (const char *at = lists[i]; at && *at && !err;) {
			CLEANUP(strbuf_release) struct strbuf path = {0};
			size_t n = strcspn(at, ":");

			strbuf_printf(&path, "%.*s/%s", (int)n, at, library_name);
			err = path.failed ? -ENOMEM : meet_installed_file(s, strbuf_str(&path));
			at += n + (at[n] == ':');
		}
	return err;
}

/* --- the session ------------------------------------------------------------------------------ */

static int open_counts(void *ctx)
{
	struct cuda_session *s = ctx;
	const struct cuda_tracing_config *c = s->config;
	const struct probe_target target = watch_target(&s->watch);
	int err = cuda_counts_new(&target, c->by, c->host, &s->counts, s->d);

	if (!err && cuda_counts_cost(s->counts, &s->result->pair_ns))
		s->result->pair_ns = 0;
	if (!err && watch_measures_child(&s->watch))
		err = meet_installed(s);
	return err ? err : scan(s);
}

static int start(void *ctx)
{
	struct cuda_session *s = ctx;

	return diag_errno(s->d, cuda_counts_start(s->counts), "cannot start counting");
}

static bool alive(void *ctx)
{
	struct cuda_session *s = ctx;

	return cuda_counts_alive(s->counts);
}

static int turn(void *ctx)
{
	struct cuda_session *s = ctx;
	const struct target *t = s->config->target;
	uint64_t most_ns = t->all || t->cgroup_fd >= 0 ? SCAN_ALL_NS : WATCH_TICK_NS;
	uint64_t start_ns = clock_now_ns(), end_ns;
	int err = 0;

	if (start_ns >= s->next_scan_ns) {
		err = scan(s);
		end_ns = clock_now_ns();
		s->next_scan_ns =
			end_ns + MAX(SCAN_LEAST_NS, MIN(SCAN_COST * (end_ns - start_ns), most_ns));
	}
	return err ? err : watch_wait(&s->watch, -1, s->next_scan_ns);
}

static int finish(void *ctx)
{
	struct cuda_session *s = ctx;
	int err;

	cuda_counts_stop(s->counts);
	err = cuda_counts_read(s->counts, &s->result->table);
	return err ? err : cuda_counts_notes(s->counts, s->notes);
}

static void close_counts(void *ctx)
{
	struct cuda_session *s = ctx;

	cuda_counts_free(s->counts);
}

int cuda_tracing_run(const struct cuda_tracing_config *c, note_list *notes,
		     struct cuda_tracing *ret, struct diag *d)
{
	static const struct watch_steps steps = {open_counts, start,  alive,
						 turn,        finish, close_counts};
	struct cuda_session s = {
		.config = c,
		.result = ret,
		.notes = notes,
		.watch = WATCH_OF(c, ret, d),
		.d = d,
	};

	*ret = (struct cuda_tracing){0};
	return diag_errno(d, watch_run(&s.watch, &steps, &s), "tracing failed");
}

void cuda_tracing_release(struct cuda_tracing *t)
{
	cuda_table_release(&t->table);
	for (size_t i = 0; i < t->libraries.n; i++)
		free(t->libraries.v[i].path);
	array_release(&t->libraries);
	watched_release(&t->watched);
}
