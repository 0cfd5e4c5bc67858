/* SPDX-License-Identifier: BSD-2-Clause */
#include "signals.h"

#include <inspect/clock.h>
#include <inspect/gpu_tracing.h>
#include <inspect/procfs.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <time.h>

/* How soon the end of the target is seen. */
#define TICK_NS (50 * NSEC_PER_MSEC)

enum { FDINFO_BYTES_MAX = 65536, EPOLLS_MAX = 2048, FDS_MAX = 65536, MINOR_BITS = 20 };

struct gpu_session {
	const struct gpu_tracing_config *config;
	struct gpu_tracing *result;
	struct gpu_counts *counts;
	int signal_fd;
	struct diag *d;
};

static bool measures_child(const struct gpu_session *s)
{
	return s->config->target->argv && !s->config->target->cmd_times_only;
}

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
	const struct target *t = c->target;
	ARRAY(struct gpu_layout_entry) entries = {0};
	struct gpu_counts_config config = {
		.target = {.pids = t->pids.v,
			   .n_pids = t->pids.n,
			   .tids = t->tids.v,
			   .n_tids = t->tids.n,
			   .all = t->all,
			   .cgroup_fd = t->cgroup_fd},
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
	if (measures_child(s)) {
		config.target.child = s->result->child.pid;
		config.target.child_runs = c->delay_ns != 0;
	}
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

static int prepare(struct gpu_session *s)
{
	const struct gpu_tracing_config *c = s->config;
	struct child *child = &s->result->child;
	int err =
		c->target->argv ? child_prepare(c->target->argv, c->stdout_taken, child, s->d) : 0;

	if (!err && child->pid && c->delay_ns)
		err = child_go(child, s->d);
	if (err)
		return err;
	if (c->delay_ns) {
		struct pollfd fd = {.fd = s->signal_fd, .events = POLLIN};

		if (poll(&fd, 1, (int)MIN(c->delay_ns / NSEC_PER_MSEC, (uint64_t)INT32_MAX)) > 0)
			s->result->interrupted = true;
	}
	return open_counts(s);
}

static int start(struct gpu_session *s)
{
	struct child *child = &s->result->child;
	int err;

	s->result->start_ns = clock_now_ns();
	err = gpu_counts_start(s->counts);
	if (err)
		return diag_errno(s->d, err, "cannot start counting");
	return child->pid && child->go_fd >= 0 ? child_go(child, s->d) : 0;
}

static int read_events(struct gpu_session *s)
{
	const struct gpu_tracing_config *c = s->config;
	int err = c->event ? gpu_counts_events(s->counts, c->event, c->ctx) : 0;

	return !err && c->event && c->idle ? c->idle(c->ctx) : err;
}

static bool is_over(struct gpu_session *s, uint64_t now_ns)
{
	struct gpu_tracing *r = s->result;

	if (r->interrupted || (r->child.pid && child_poll(&r->child)) ||
	    !gpu_counts_alive(s->counts))
		return true;
	if (!s->config->duration_ns || now_ns - r->start_ns < s->config->duration_ns)
		return false;
	r->ended_by_duration = measures_child(s);
	return true;
}

static int loop(struct gpu_session *s)
{
	for (;;) {
		uint64_t now_ns = clock_now_ns(), until_ns = now_ns + TICK_NS;
		struct pollfd fds[] = {
			{.fd = s->signal_fd, .events = POLLIN},
			{.fd = s->result->child.pid ? s->result->child.pidfd : -1,
			 .events = POLLIN},
			{.fd = gpu_counts_fd(s->counts), .events = POLLIN},
		};
		struct timespec wait = {0};
		int err;

		if (s->config->duration_ns)
			until_ns = MIN(until_ns, s->result->start_ns + s->config->duration_ns);
		if (until_ns > now_ns)
			wait.tv_nsec = (long)(until_ns - now_ns);
		if (ppoll(fds, ARRAY_SIZE(fds), &wait, NULL) < 0 && errno != EINTR)
			return diag_errno(s->d, -errno, "cannot wait for the end");
		s->result->interrupted |= fds[0].revents != 0;
		err = read_events(s);
		if (err)
			return err;
		if (is_over(s, clock_now_ns()))
			return 0;
	}
}

static int finish(struct gpu_session *s, note_list *notes)
{
	struct gpu_tracing *r = s->result;
	int err;

	gpu_counts_stop(s->counts);
	err = gpu_counts_read(s->counts, &r->table);
	if (!err)
		err = read_events(s);
	if (!err)
		err = gpu_counts_notes(s->counts, notes);
	if (r->child.pid && !child_poll(&r->child) && !s->config->target->cmd_times_only)
		child_end(&r->child);
	return err;
}

int gpu_tracing_run(const struct gpu_tracing_config *c, note_list *notes, struct gpu_tracing *ret,
		    struct diag *d)
{
	struct gpu_session s = {.config = c, .result = ret, .d = d};
	int err;

	*ret = (struct gpu_tracing){.child = {.go_fd = -1, .error_fd = -1, .pidfd = -1}};
	s.signal_fd = signals_open();
	if (s.signal_fd < 0)
		return diag_errno(d, s.signal_fd, "cannot receive signals");
	err = prepare(&s);
	if (!err)
		err = start(&s);
	if (!err && !ret->interrupted)
		err = loop(&s);
	if (!err || (err == -ECANCELED && s.counts))
		err = finish(&s, notes);
	gpu_counts_free(s.counts);
	signals_close(s.signal_fd);
	if (!err || err == -ECANCELED)
		return 0;
	if (ret->child.go_fd >= 0)
		child_cancel(&ret->child);
	else
		child_end(&ret->child);
	return diag_errno(d, err, "tracing failed");
}

void gpu_tracing_release(struct gpu_tracing *t)
{
	gpu_table_release(&t->table);
	if (t->child.pid && !t->child.reaped)
		child_end(&t->child);
}
