/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Opening: one event for each thread, CPU and -e, all of a CPU in one ring. Threads are opened for
 * each CPU because an inherited event cannot have a ring otherwise (perf_mmap: cpu -1 with inherit
 * is EINVAL).
 */
#include "attach.h"

#include "open.h"

#include <inspect/explain.h>
#include <inspect/procfs.h>
#include <sys/ioctl.h>
#include <sys/stat.h>

/* A process that does not stop making threads is complete after the second round already: whoever
 * makes them has its events by then. */
#define LIST_ROUNDS_MAX 8
#define LATE_THREADS_MAX 4096

/* perf_event_open's (pid, flags), and what of the attr depends on whom it is for. */
struct whom {
	pid_t pid;
	unsigned long flags;
	bool inherit, on_exec;
};

static void opening_release(struct opening *o)
{
	for (size_t i = 0; i < o->names.n; i++)
		free(o->names.v[i]);
	array_release(&o->names);
	array_release(&o->attrs);
	array_release(&o->negotiated);
	array_release(&o->tids);
	hashmap_release(&o->tids_seen);
}

/* True the first time. */
static int tid_first_seen(struct opening *o, pid_t tid, bool *ret)
{
	uint64_t hash = hash_u64((uint64_t)tid);
	uint32_t at, i;
	int err;

	*ret = false;
	hashmap_each_candidate(&o->tids_seen, hash, at, i)
		if (o->tids.v[i] == tid)
			return 0;
	err = array_push(&o->tids, tid);
	if (!err)
		err = hashmap_insert(&o->tids_seen, hash, (uint32_t)o->tids.n - 1);
	if (err)
		return diag_errno(o->d, err, "opening the events");
	*ret = true;
	return 0;
}

/* --- one event -------------------------------------------------------------------------------- */

static int explain_open(const struct opening *o, const struct whom *w, size_t event, int err)
{
	const struct perf_event_attr *attr = &o->attrs.v[event];
	const struct sampler_config *c = o->config;
	struct perf_attempt a = {
		.event = o->names.v[event],
		.command = c->command,
		.all_cpus = c->all && c->cgroup_fd < 0,
		.cgroup = c->cgroup_fd >= 0,
		.tracepoint = attr->type == PERF_TYPE_TRACEPOINT,
		/* For a process the kernel's part would have been left out. */
		.kernel = !attr->exclude_kernel && (config_is_cpu_wide(c) || attr->exclude_user),
		.hardware = attr->type != PERF_TYPE_TRACEPOINT && attr->type != PERF_TYPE_SOFTWARE,
		.events_open = o->s->fds.n,
		.events_wanted = o->whom_wanted * o->s->slots.n * o->attrs.n,
		.freq_hz = attr->freq ? attr->sample_freq : 0,
	};
	char path[32];
	struct stat st;

	if (!config_is_cpu_wide(c)) {
		snprintf(path, sizeof(path), "/proc/%d", w->pid);
		a.own_process =
			w->pid == c->child || (stat(path, &st) == 0 && st.st_uid == o->host.euid);
		a.pid = w->pid == c->child ? 0 : w->pid;
		a.thread = c->n_tids && w->pid != c->child;
	}
	return explain_perf_open(err, &a, &o->host, o->d);
}

static int open_event(struct opening *o, const struct whom *w, const struct cpu_slot *slot,
		      size_t event)
{
	struct perf_event_attr *attr = &o->attrs.v[event];
	int fd;

	attr->inherit = w->inherit;
	attr->enable_on_exec = w->on_exec;
	if (o->negotiated.v[event])
		return perf_open(attr, w->pid, slot->cpu, w->flags);
	fd = perf_open_negotiated(attr, &o->names.v[event], w->pid, slot->cpu, w->flags,
				  !config_is_cpu_wide(o->config), &o->host, o->notes);
	o->negotiated.v[event] = fd >= 0;
	return fd;
}

/* The first event of a CPU gets the ring, the others write into it. */
static int join_ring(struct opening *o, struct cpu_slot *slot, int fd)
{
	int err;

	if (slot->ring_fd >= 0) {
		if (ioctl(fd, PERF_EVENT_IOC_SET_OUTPUT, slot->ring_fd) == 0)
			return 0;
		return diag_errno(o->d, -errno, "joining the events of CPU %d", slot->cpu);
	}
	err = ring_map(&slot->ring, fd, o->ring_pages);
	if (err) {
		o->ring_err = err;
		return err;
	}
	slot->ring_fd = fd;
	return 0;
}

/* 0, or -ESRCH (no diag) when the thread has ended, or another error (with diag or ring_err). */
static int open_on_cpu(struct opening *o, const struct whom *w, uint32_t at, size_t event)
{
	struct cpu_slot *slot = &o->s->slots.v[at];
	CLEANUP(closep) int fd = open_event(o, w, slot, event);
	struct sampler_fd entry = {.slot = at, .event = (uint32_t)event, .on_exec = w->on_exec};
	int err;

	if (fd == -ESRCH && !config_is_cpu_wide(o->config))
		return -ESRCH;
	if (fd == -ENODEV && !cpu_is_online(slot->cpu)) {
		slot->absent = true;
		return opening_note_offline(o, slot->cpu);
	}
	if (fd < 0)
		return explain_open(o, w, event, fd);
	err = array_reserve(&o->s->fds, o->s->fds.n + 1);
	if (err)
		return diag_errno(o->d, err, "opening the events");
	if (ioctl(fd, PERF_EVENT_IOC_ID, &entry.id) < 0)
		return diag_errno(o->d, -errno, "reading the id of event '%s'", o->names.v[event]);
	err = join_ring(o, slot, fd);
	if (err)
		return err;
	entry.fd = TAKE_FD(fd);
	o->s->fds.v[o->s->fds.n++] = entry;
	return 0;
}

/*
 * A thread and its children whose events are all inherited count as clones: at a switch between
 * them the kernel swaps their events instead of stopping and starting the timers, and what the
 * sampled thread had run up towards its next sample ends with the short-lived child. One event that
 * is not inherited keeps them apart. Without it sampling works, but sees less.
 */
static int open_anchor(struct opening *o, const struct whom *w)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_DUMMY,
		.size = sizeof(attr),
		.disabled = 1,
		.exclude_kernel = 1,
		.exclude_hv = 1,
	};
	CLEANUP(closep) int fd = perf_open(&attr, w->pid, -1, w->flags);

	if (fd < 0)
		return 0;
	if (array_reserve(&o->s->anchors, o->s->anchors.n + 1))
		return diag_errno(o->d, -ENOMEM, "opening the events");
	o->s->anchors.v[o->s->anchors.n++] = TAKE_FD(fd);
	return 0;
}

static int open_whom(struct opening *o, const struct whom *w)
{
	for (size_t slot = 0; slot < o->s->slots.n; slot++) {
		for (size_t event = 0; event < o->attrs.n; event++) {
			int err = 0;

			if (!o->s->slots.v[slot].absent)
				err = open_on_cpu(o, w, (uint32_t)slot, event);
			if (err)
				return err;
		}
	}
	return w->inherit ? open_anchor(o, w) : 0;
}

/* --- whom ------------------------------------------------------------------------------------- */

/* `ret_opened` grows by one when the thread is there. */
static int open_thread(struct opening *o, pid_t tid, bool inherit, bool late, size_t *ret_opened)
{
	struct whom w = {.pid = tid, .inherit = inherit};
	struct late_thread entry = {.tid = tid, .first_fd = o->s->fds.n};
	int err = open_whom(o, &w);

	if (err == -ESRCH) {
		o->threads_gone++;
		return 0;
	}
	if (err)
		return err;
	++*ret_opened;
	entry.n_fds = o->s->fds.n - entry.first_fd;
	if (!late || o->s->late.n == LATE_THREADS_MAX)
		return 0;
	err = array_push(&o->s->late, entry);
	return err ? diag_errno(o->d, err, "opening the events") : 0;
}

static void pid_list_release(struct pid_list *l)
{
	array_release(l);
}

/* All threads; those that are made meanwhile are found by listing again until there are no new. */
static int open_process(struct opening *o, pid_t pid, bool *ret_any)
{
	size_t opened = 0, already = 0;

	for (unsigned round = 0; round < LIST_ROUNDS_MAX; round++) {
		CLEANUP(pid_list_release) struct pid_list threads = {0};
		size_t new = 0;
		int err = proc_threads(pid, &threads);

		if (err == -ENOENT || err == -ESRCH)
			break;
		if (err)
			return explain_target(err, pid, &o->host, o->d);
		for (size_t i = 0; i < threads.n; i++) {
			bool first;

			err = tid_first_seen(o, threads.v[i], &first);
			if (!err && first)
				err = open_thread(o, threads.v[i], true, round > 0, &opened);
			if (err)
				return err;
			new += first;
			already += !first;
		}
		if (!new)
			break;
	}
	/* Of several processes some may have ended since they were listed. */
	if (!opened && !already && o->config->n_pids == 1)
		return explain_target(-ESRCH, pid, &o->host, o->d);
	*ret_any |= opened || already;
	return 0;
}

static int open_single_threads(struct opening *o)
{
	const struct sampler_config *c = o->config;
	size_t opened = 0;
	bool first;
	int err;

	for (size_t i = 0; i < c->n_tids; i++) {
		err = tid_first_seen(o, c->tids[i], &first);
		if (!err && first)
			err = open_thread(o, c->tids[i], false, false, &opened);
		if (err)
			return err;
	}
	if (c->n_tids && !opened && !c->n_pids)
		return explain_target(-ESRCH, c->tids[0], &o->host, o->d);
	return 0;
}

static int open_child(struct opening *o)
{
	struct whom w = {
		.pid = o->config->child, .inherit = true, .on_exec = !o->config->child_runs};
	bool first;
	int err = tid_first_seen(o, w.pid, &first);

	if (!err)
		err = open_whom(o, &w);
	return err == -ESRCH ? explain_target(err, w.pid, &o->host, o->d) : err;
}

static int compare_late(const void *a, const void *b)
{
	const struct late_thread *x = a, *y = b;

	return (x->tid > y->tid) - (x->tid < y->tid);
}

static int open_all(struct opening *o)
{
	const struct sampler_config *c = o->config;
	struct whom everyone = {.pid = -1};
	bool any = false;
	int err = 0;

	if (c->cgroup_fd >= 0)
		everyone = (struct whom){.pid = c->cgroup_fd, .flags = PERF_FLAG_PID_CGROUP};
	if (config_is_cpu_wide(c))
		return open_whom(o, &everyone);
	if (c->child)
		err = open_child(o);
	for (size_t i = 0; !err && i < c->n_pids; i++)
		err = open_process(o, c->pids[i], &any);
	if (!err && c->n_pids && !any)
		err = explain_target(-ESRCH, c->pids[0], &o->host, o->d);
	if (!err)
		err = open_single_threads(o);
	if (!err && o->s->late.n)
		qsort(o->s->late.v, o->s->late.n, sizeof(*o->s->late.v), compare_late);
	if (!err && o->threads_gone)
		err = note_add(o->notes, "%zu thread%s ended before being attached",
			       o->threads_gone, o->threads_gone == 1 ? "" : "s");
	return err;
}

/* --- all of it -------------------------------------------------------------------------------- */

/* Everything closed again, for another try with a smaller ring. */
static void start_over(struct opening *o)
{
	for (size_t i = 0; i < o->s->fds.n; i++)
		close(o->s->fds.v[i].fd);
	o->s->fds.n = 0;
	for (size_t i = 0; i < o->s->slots.n; i++) {
		ring_unmap(&o->s->slots.v[i].ring);
		o->s->slots.v[i].ring_fd = -1;
	}
	o->s->late.n = 0;
	o->threads_gone = 0;
	o->tids.n = 0;
	hashmap_release(&o->tids_seen);
	o->ring_err = 0;
}

/* A ring that holds only a few samples loses the next. */
static void bound_stack_copies(struct opening *o)
{
	uint64_t ring_bytes = (uint64_t)o->ring_pages * (uint64_t)sysconf(_SC_PAGESIZE);
	unsigned most = (unsigned)MIN(ring_bytes / 8, (uint64_t)o->config->stack_bytes);

	for (size_t i = 0; i < o->attrs.n; i++)
		if (o->attrs.v[i].sample_type & PERF_SAMPLE_STACK_USER)
			o->attrs.v[i].sample_stack_user = most / 8 * 8;
}

static int note_smaller_copies(struct opening *o)
{
	unsigned bytes = o->attrs.n ? o->attrs.v[0].sample_stack_user : 0;

	if (!bytes || bytes == o->config->stack_bytes)
		return 0;
	return note_add(o->notes,
			"stack copies of %u bytes instead of %u: the ring has room for no larger "
			"ones (-m PAGES)",
			bytes, o->config->stack_bytes);
}

/* What mlock limits or memory refuse at the full size may go at half of it. */
static int open_with_rings(struct opening *o)
{
	unsigned wanted = o->ring_pages, least = MIN(wanted, 2u);
	unsigned page_bytes = (unsigned)sysconf(_SC_PAGESIZE);
	int err;

	for (;;) {
		bound_stack_copies(o);
		err = open_all(o);
		if (!o->ring_err)
			break;
		if ((o->ring_err != -EPERM && o->ring_err != -ENOMEM) || o->ring_pages <= least)
			return explain_ring(o->ring_err, o->ring_pages, &o->host, o->d);
		start_over(o);
		o->ring_pages /= 2;
		for (size_t i = 0; i < o->attrs.n; i++)
			o->attrs.v[i].wakeup_watermark = o->ring_pages * page_bytes / 4;
	}
	if (!err && note_smaller_copies(o))
		err = diag_errno(o->d, -ENOMEM, "opening the events");
	if (err || o->ring_pages == wanted)
		return err;
	err = note_add(o->notes,
		       "ring made smaller: %u KiB per CPU instead of %u (perf_event_mlock_kb, "
		       "ulimit -l, or memory)",
		       o->ring_pages * (page_bytes / 1024), wanted * (page_bytes / 1024));
	return err ? diag_errno(o->d, err, "opening the events") : 0;
}

static int fill_event_table(struct opening *o)
{
	struct sampler *s = o->s;
	int err = 0;

	for (size_t i = 0; !err && i < o->attrs.n; i++) {
		/* A recording says how events were meant, not whom the last was opened for. */
		o->attrs.v[i].inherit =
			!config_is_cpu_wide(o->config) && (o->config->n_pids || o->config->child);
		o->attrs.v[i].enable_on_exec = o->config->child && !config_is_cpu_wide(o->config);
		err = event_table_add(&s->events, &o->attrs.v[i], o->names.v[i]);
	}
	for (size_t i = 0; !err && i < s->fds.n; i++)
		err = event_table_add_id(&s->events, s->fds.v[i].event, s->fds.v[i].id);
	s->counts_lost = o->attrs.v[0].read_format & PERF_FORMAT_LOST;
	return err ? diag_errno(o->d, err, "opening the events") : 0;
}

int sampler_attach(struct sampler *s, const struct sampler_config *config, const struct host *host,
		   note_list *notes, struct diag *d)
{
	CLEANUP(opening_release)
	struct opening o = {.s = s, .config = config, .host = *host, .notes = notes, .d = d};
	int err = opening_prepare(&o);

	if (!err)
		err = open_with_rings(&o);
	if (!err && !s->fds.n)
		err = diag_errno(d, -ENODEV, "none of the CPUs can be sampled");
	if (!err)
		err = fill_event_table(&o);
	s->follows_tasks = !config_is_cpu_wide(config);
	if (err)
		sampler_close(s);
	return err;
}

void sampler_close(struct sampler *s)
{
	for (size_t i = 0; i < s->slots.n; i++)
		ring_unmap(&s->slots.v[i].ring);
	for (size_t i = 0; i < s->fds.n; i++)
		close(s->fds.v[i].fd);
	for (size_t i = 0; i < s->anchors.n; i++)
		close(s->anchors.v[i]);
	array_release(&s->anchors);
	array_release(&s->slots);
	array_release(&s->fds);
	array_release(&s->late);
	event_table_release(&s->events);
}
