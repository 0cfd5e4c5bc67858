/* SPDX-License-Identifier: BSD-2-Clause */
#include "watch.h"

#include <inspect/clock.h>
#include <inspect/gpu_tracing.h>
#include <inspect/procfs.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

enum { FDINFO_BYTES_MAX = 65536, EPOLLS_MAX = 2048, FDS_MAX = 65536, MINOR_BITS = 20 };

struct gpu_session {
	const struct gpu_tracing_config *config;
	struct gpu_tracing *result;
	struct gpu_counts *counts;
	struct watch watch;
	struct diag *d;
};

/* --- sets made before the attach -------------------------------------------------------------- */

typedef ARRAY(struct gpu_epoll_entry) epoll_entries;

static const struct gpu_device_entry *device_of(const struct gpu_devices *devices, pid_t pid,
						int fd)
{
	char path[64];
	struct stat st;

	snprintf(path, sizeof(path), "/proc/%d/fd/%d", pid, fd);
	if (stat(path, &st))
		return NULL;
	for (size_t i = 0; i < devices->entries.n; i++) {
		const struct gpu_device_entry *e = &devices->entries.v[i];
		uint32_t rdev = major(st.st_rdev) << MINOR_BITS | minor(st.st_rdev);
		uint32_t dev = major(st.st_dev) << MINOR_BITS | minor(st.st_dev);

		if (e->key.inode
			    ? e->key.inode == st.st_ino && e->key.device == dev
			    : S_ISCHR(st.st_mode) &&
				      (e->key.any_minor
					       ? e->key.device == rdev >> MINOR_BITS << MINOR_BITS
					       : e->key.device == rdev))
			return e;
	}
	return NULL;
}

/* The lines "tfd: 5 events: …" of /proc/PID/fdinfo/FD. */
static int find_in_set(const struct gpu_devices *devices, pid_t pid, int fd, epoll_entries *ret)
{
	CLEANUP(strbuf_release) struct strbuf text = {0};
	const char *at;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/fdinfo/%d", pid, fd);
	if (file_read(path, FDINFO_BYTES_MAX, &text))
		return 0;
	for (at = strstr(strbuf_str(&text), "tfd:"); at; at = strstr(at + 4, "tfd:")) {
		const struct gpu_device_entry *e = device_of(devices, pid, atoi(at + 4));

		if (e)
			return array_push(ret,
					  (struct gpu_epoll_entry){(uint32_t)pid, (uint32_t)fd,
								   e->device.id, e->device.class});
	}
	return 0;
}

static int find_sets(const struct gpu_devices *devices, const pid_t *pids, size_t n,
		     epoll_entries *ret)
{
	int err = 0;

	for (size_t i = 0; i < n && !err && ret->n < EPOLLS_MAX; i++)
		for (int fd = 0, missing = 0; fd < FDS_MAX && missing < 64 && !err; fd++) {
			char path[64], target[32];
			ssize_t got;

			snprintf(path, sizeof(path), "/proc/%d/fd/%d", pids[i], fd);
			got = readlink(path, target, sizeof(target) - 1);
			missing = got < 0 ? missing + 1 : 0;
			if (got < 0)
				continue;
			target[got] = '\0';
			if (str_eq(target, "anon_inode:[eventpoll]"))
				err = find_in_set(devices, pids[i], fd, ret);
		}
	return err;
}

/* --- the session ------------------------------------------------------------------------------ */

static int new_counts(struct gpu_session *s, const gpu_layouts *layouts,
		      const epoll_entries *epolls)
{
	const struct gpu_tracing_config *c = s->config;
	ARRAY(struct gpu_layout_entry) entries = {0};
	struct gpu_counts_config config = {
		.target = watch_target(&s->watch),
		.devices = c->devices->entries.v,
		.n_devices = c->devices->entries.n,
		.epolls = epolls->v,
		.n_epolls = epolls->n,
		.by = c->by,
		.events = c->event != NULL,
	};
	int err = 0;

	for (size_t i = 0; i < layouts->n && !err; i++)
		err = array_push(&entries, (struct gpu_layout_entry){layouts->v[i].key,
								     layouts->v[i].layout});
	config.layouts = entries.v;
	config.n_layouts = entries.n;
	err = err ? diag_errno(s->d, err, "tracing")
		  : gpu_counts_new(&config, c->host, &s->counts, s->d);
	array_release(&entries);
	return err;
}

static int open_counts(struct gpu_session *s)
{
	const struct gpu_tracing_config *c = s->config;
	gpu_layouts layouts = {0};
	epoll_entries epolls = {0};
	struct pid_list all = {0};
	int err = gpu_layouts_of(c->version, &layouts);

	if (!err && c->target->all)
		err = proc_pids(&all);
	if (!err)
		err = c->target->all ? find_sets(c->devices, all.v, all.n, &epolls)
				     : find_sets(c->devices, c->target->pids.v, c->target->pids.n,
						 &epolls);
	err = err ? diag_errno(s->d, err, "tracing") : new_counts(s, &layouts, &epolls);
	array_release(&layouts);
	array_release(&epolls);
	array_release(&all);
	return err;
}

static int start(struct gpu_session *s)
{
	int err;

	s->result->watched.start_ns = clock_now_ns();
	err = gpu_counts_start(s->counts);
	return err ? diag_errno(s->d, err, "cannot start counting") : watch_go(&s->watch);
}

static int read_events(struct gpu_session *s)
{
	const struct gpu_tracing_config *c = s->config;
	int err = c->event ? gpu_counts_events(s->counts, c->event, c->ctx) : 0;

	return !err && c->event && c->idle ? c->idle(c->ctx) : err;
}

static int loop(struct gpu_session *s)
{
	int err = 0;

	while (!err && !watch_is_over(&s->watch, gpu_counts_alive(s->counts))) {
		err = watch_wait(&s->watch, gpu_counts_fd(s->counts), UINT64_MAX);
		if (!err)
			err = read_events(s);
	}
	return err;
}

static int finish(struct gpu_session *s, note_list *notes)
{
	int err;

	gpu_counts_stop(s->counts);
	err = gpu_counts_read(s->counts, &s->result->table);
	if (!err)
		err = read_events(s);
	return err ? err : gpu_counts_notes(s->counts, notes);
}

int gpu_tracing_run(const struct gpu_tracing_config *c, note_list *notes, struct gpu_tracing *ret,
		    struct diag *d)
{
	struct gpu_session s = {
		.config = c,
		.result = ret,
		.watch = {.target = c->target,
			  .duration_ns = c->duration_ns,
			  .delay_ns = c->delay_ns,
			  .stdout_taken = c->stdout_taken,
			  .result = &ret->watched,
			  .d = d},
		.d = d,
	};
	int err;

	*ret = (struct gpu_tracing){0};
	err = watch_prepare(&s.watch);
	if (!err)
		err = open_counts(&s);
	if (!err)
		err = start(&s);
	if (!err)
		err = loop(&s);
	if (!err || (err == -ECANCELED && s.counts))
		err = finish(&s, notes);
	if (err == -ECANCELED)
		err = 0;
	gpu_counts_free(s.counts);
	watch_close(&s.watch, err != 0);
	return err ? diag_errno(d, err, "tracing failed") : 0;
}

void gpu_tracing_release(struct gpu_tracing *t)
{
	gpu_table_release(&t->table);
	watched_release(&t->watched);
}
