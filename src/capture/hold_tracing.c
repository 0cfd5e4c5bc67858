/* SPDX-License-Identifier: BSD-2-Clause */
#include "watch.h"

#include <inspect/clock.h>
#include <inspect/elf_file.h>
#include <inspect/hold_tracing.h>
#include <inspect/procfs.h>

#define TICK_NS (200 * NSEC_PER_MSEC)
enum { LIBRARIES_MAX = 16 };

struct hold_session {
	const struct hold_tracing_config *config;
	struct hold_tracing *result;
	struct hold_counts *counts;
	struct watch watch;
	uint64_t next_tick_ns;
	struct diag *d;
};

/* --- the C library ---------------------------------------------------------------------------- */

/* Files by device and inode: a library that several processes map is attached to once. */
struct libraries {
	struct hold_session *session;
	pid_t pid;
	struct {
		uint32_t maj, min;
		uint64_t ino;
	} seen[LIBRARIES_MAX];
	size_t n, n_attached;
};

static bool is_c_library(const char *path)
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;

	return str_starts(name, "libc.so") || str_starts(name, "libc-") ||
	       str_starts(name, "libpthread");
}

static int attach_mapped(void *ctx, const struct proc_map *map)
{
	struct libraries *l = ctx;
	CLEANUP(closep) int fd = -1;
	char path[64];
	int err;

	if (!map->exec || !map->ino || !is_c_library(map->path) || l->n == LIBRARIES_MAX)
		return 0;
	for (size_t i = 0; i < l->n; i++)
		if (l->seen[i].ino == map->ino && l->seen[i].maj == map->maj &&
		    l->seen[i].min == map->min)
			return 0;
	l->seen[l->n].ino = map->ino;
	l->seen[l->n].maj = map->maj;
	l->seen[l->n++].min = map->min;
	/* What is mapped, wherever it lies, and also when it was deleted or replaced. */
	fd = elf_open_mapped(l->pid, map->start, map->end, map->path, map->maj, map->min, map->ino);
	if (fd < 0)
		return 0;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	err = hold_counts_attach(l->session->counts, path);
	l->n_attached += !err;
	return err == -EPERM || err == -EACCES ? err : 0;
}

static int refuse(struct hold_session *s)
{
	diag_set(s->d, -ENOENT,
		 "how long locks are held is not to be seen: no C library of the "
		 "target has probes for it");
	diag_why(s->d, "USDT libc:mutex_acquired is in a glibc that was built with "
		       "--enable-systemtap, as those of Fedora, RHEL and Ubuntu are; readelf -n "
		       "lists them");
	diag_fix(s->d, "inspect trace --locks -p PID      (how long each lock is waited for)");
	return -ENOENT;
}

/* Of CMD, which is not there yet, the library that this program itself is linked with. */
static int attach_libraries(struct hold_session *s)
{
	const struct target *t = s->config->target;
	struct libraries l = {.session = s};
	int err = 0;

	for (size_t i = 0; i < t->pids.n && err >= 0; i++) {
		l.pid = t->pids.v[i];
		err = proc_maps_each(l.pid, attach_mapped, &l);
	}
	for (size_t i = 0; i < t->tids.n && err >= 0; i++) {
		l.pid = t->tids.v[i];
		err = proc_maps_each(l.pid, attach_mapped, &l);
	}
	if (!t->pids.n && !t->tids.n) {
		l.pid = getpid();
		err = proc_maps_each(l.pid, attach_mapped, &l);
	}
	if (err == -EPERM || err == -EACCES) {
		diag_errno(s->d, err, "cannot attach to the C library's probes");
		diag_why(s->d, "uprobes need CAP_SYS_ADMIN besides CAP_BPF and CAP_PERFMON");
		return err;
	}
	return l.n_attached ? 0 : refuse(s);
}

/* --- the session ------------------------------------------------------------------------------ */

static int open_counts(void *ctx)
{
	struct hold_session *s = ctx;
	const struct probe_target target = watch_target(&s->watch);
	int err = hold_counts_new(&target, s->config->host, &s->counts, s->d);

	return err ? err : attach_libraries(s);
}

static int start(void *ctx)
{
	struct hold_session *s = ctx;

	s->next_tick_ns = s->result->watched.start_ns + TICK_NS;
	return diag_errno(s->d, hold_counts_start(s->counts), "cannot start counting");
}

static bool alive(void *ctx)
{
	struct hold_session *s = ctx;

	return hold_counts_alive(s->counts);
}

static int tick(struct hold_session *s)
{
	struct syscall_table now = {0};
	int err = hold_counts_read(s->counts, &now);

	if (!err)
		err = s->config->tick(s->config->ctx, &now);
	syscall_table_release(&now);
	s->next_tick_ns = clock_now_ns() + TICK_NS;
	return err;
}

static int turn(void *ctx)
{
	struct hold_session *s = ctx;
	int err = watch_wait(&s->watch, -1, s->next_tick_ns);

	return err || clock_now_ns() < s->next_tick_ns ? err : tick(s);
}

static int finish(void *ctx)
{
	struct hold_session *s = ctx;
	int err = tick(s);

	if (err)
		return err;
	hold_counts_stop(s->counts);
	err = hold_counts_read(s->counts, &s->result->table);
	hold_counts_losses(s->counts, &s->result->losses);
	return err;
}

static void close_counts(void *ctx)
{
	struct hold_session *s = ctx;

	hold_counts_free(s->counts);
}

int hold_tracing_run(const struct hold_tracing_config *c, struct hold_tracing *ret, struct diag *d)
{
	static const struct watch_steps steps = {open_counts, start,  alive,
						 turn,        finish, close_counts};
	struct hold_session s = {
		.config = c,
		.result = ret,
		.watch = WATCH_OF(c, ret, d),
		.d = d,
	};

	*ret = (struct hold_tracing){0};
	return diag_errno(d, watch_run(&s.watch, &steps, &s), "tracing failed");
}

void hold_tracing_release(struct hold_tracing *t)
{
	syscall_table_release(&t->table);
	watched_release(&t->watched);
}
