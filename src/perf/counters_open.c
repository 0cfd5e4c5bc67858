/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Opening: each event at each place. What the kernel refuses decides what happens: a group that
 * does not fit is broken up, an event that is not there is missing, kernel code is left out where
 * it is not allowed, and all else is a failure.
 */
#include "counters_impl.h"
#include "open.h"
#include <inspect/cpu_list.h>

#include <inspect/explain.h>
#include <inspect/procfs.h>
#include <sys/stat.h>

/* See attach.c: whoever makes threads in between has events by then. */
#define LIST_ROUNDS_MAX 8

struct opening {
	struct counters *c;
	const struct counters_config *config;
	struct host host;
	note_list *notes;
	struct diag *d;
	cpu_list cpus;
	size_t opened; /* descriptors */
	size_t threads_gone;
	bool guests_refused; /* this PMU does not take exclude_guest */
	bool kernel_dropped;
	pid_t pid; /* of the place at hand, for advice */
	unsigned long flags;
};

static void opening_release(struct opening *o)
{
	cpu_list_release(&o->cpus);
}

static bool is_cpu_wide(const struct counters_config *c)
{
	return c->all || c->n_cgroups;
}

static bool is_hardware(const struct perf_event_attr *a)
{
	return a->type != PERF_TYPE_SOFTWARE && a->type != PERF_TYPE_TRACEPOINT;
}

/* Software events that the kernel counts while it runs: without kernel code nothing is left. */
static bool happens_in_kernel(const struct perf_event_attr *a)
{
	return a->type == PERF_TYPE_TRACEPOINT ||
	       (a->type == PERF_TYPE_SOFTWARE && (a->config == PERF_COUNT_SW_CONTEXT_SWITCHES ||
						  a->config == PERF_COUNT_SW_CPU_MIGRATIONS ||
						  a->config == PERF_COUNT_SW_CGROUP_SWITCHES));
}

const char *counter_reason(int err, bool hardware, const struct host *host)
{
	if (err == -EACCES || err == -EPERM)
		return "not permitted (perf_event_paranoid, CAP_PERFMON): see inspect doctor";
	if (hardware && !host->has_pmu)
		return host->virtual_machine ? "no hardware counters in this VM"
					     : "no hardware counters here";
	if (err == -ENOSYS)
		return "no perf events in this kernel or sandbox";
	if (hardware)
		return "this CPU's counters do not have the event";
	return "this kernel does not have the event";
}

/* --- one event -------------------------------------------------------------------------------- */

static int explain(struct opening *o, const struct counter_event *e, int err)
{
	const struct counters_config *c = o->config;
	struct perf_attempt a = {
		.event = e->name,
		.command = "stat",
		.counts = true,
		.all_cpus = c->all,
		.cgroup = c->n_cgroups,
		.tracepoint = e->attr.type == PERF_TYPE_TRACEPOINT,
		.kernel =
			!e->attr.exclude_kernel && (is_cpu_wide(c) || happens_in_kernel(&e->attr)),
		.hardware = is_hardware(&e->attr),
		.events_open = o->opened,
		.events_wanted = o->opened + o->c->events.n,
	};
	char path[32];
	struct stat st;

	if (!is_cpu_wide(c)) {
		snprintf(path, sizeof(path), "/proc/%d", (int)o->pid);
		a.own_process =
			o->pid == c->child || (stat(path, &st) == 0 && st.st_uid == o->host.euid);
		a.pid = o->pid == c->child ? 0 : o->pid;
	}
	return explain_perf_open(err, &a, &o->host, o->d);
}

static int set_missing(struct opening *o, struct counter_event *e, int err)
{
	const char *reason = counter_reason(err, is_hardware(&e->attr), &o->host);

	e->missing = strdup(reason);
	e->err = err;
	return e->missing ? 0 : diag_errno(o->d, -ENOMEM, "opening the counters");
}

static bool is_absence(int err)
{
	return err == -ENOENT || err == -ENODEV || err == -EOPNOTSUPP || err == -EINVAL ||
	       err == -ENOSYS || err == -ENXIO;
}

static bool is_refusal(int err)
{
	return err == -EACCES || err == -EPERM;
}

static int drop_kernel(struct opening *o, struct counter_event *e)
{
	char *name;

	if (asprintf(&name, "%s%su", e->name,
		     strchr(e->name, ':') || str_ends(e->name, "/") ? "" : ":") < 0)
		return diag_errno(o->d, -ENOMEM, "opening the counters");
	free(e->name);
	e->name = name;
	e->attr.exclude_kernel = e->attr.exclude_hv = 1;
	o->kernel_dropped = true;
	return 0;
}

/* Takes away what may be taken away from the event; false when nothing is left to try. */
static bool can_lower(struct opening *o, struct counter_event *e, int err, int *ret_err)
{
	*ret_err = 0;
	if (is_refusal(err) && !is_cpu_wide(o->config) && !e->attr.exclude_kernel &&
	    !e->attr.exclude_user && !happens_in_kernel(&e->attr)) {
		*ret_err = drop_kernel(o, e);
		return true;
	}
	if ((err == -EINVAL || err == -EOPNOTSUPP) && e->attr.exclude_guest &&
	    !e->attr.exclude_host) {
		o->guests_refused |= is_hardware(&e->attr);
		e->attr.exclude_guest = 0;
		return true;
	}
	return false;
}

/* A descriptor, or -errno; a lone event with all that may be left out left out. */
static int open_one(struct opening *o, size_t event, const struct counter_place *place,
		    int group_fd, int *ret_failed)
{
	struct counter_event *e = &o->c->events.v[event];
	int fd;

	*ret_failed = 0;
	for (;;) {
		if (o->guests_refused && is_hardware(&e->attr) && !e->attr.exclude_host)
			e->attr.exclude_guest = 0;
		fd = o->c->ops->open(o->c->ops_ctx, &e->attr, o->pid, place->cpu, group_fd,
				     o->flags);
		if (fd >= 0 || (fd == -EINVAL && group_fd >= 0))
			return fd;
		if (!can_lower(o, e, fd, ret_failed) || *ret_failed)
			return fd;
	}
}

static bool is_open_elsewhere(const struct opening *o, size_t event)
{
	for (size_t place = 0; place + 1 < o->c->places.n; place++)
		if (*counters_fd(o->c, place, event) >= 0)
			return true;
	return false;
}

static bool is_accounted(const struct opening *o, const struct counter_event *e)
{
	return !is_cpu_wide(o->config) && e->attr.type == PERF_TYPE_SOFTWARE &&
	       happens_in_kernel(&e->attr);
}

/* What an event that could not be opened means for the whole. */
static int judge_failure(struct opening *o, size_t event, const struct counter_place *place,
			 int err)
{
	struct counter_event *e = &o->c->events.v[event];

	if (err == -ESRCH && !is_cpu_wide(o->config))
		return -ESRCH;
	if (err == -ENODEV && place->cpu >= 0 && !cpu_is_online(place->cpu))
		return 0;
	/* A CPU of another kind (hybrid) may not have what the others have. */
	if (is_absence(err) && is_open_elsewhere(o, event))
		return 0;
	/* Switches of a task are accounted anyway: the caller may know another source. */
	if (is_absence(err) || (is_refusal(err) && (!o->config->required || is_accounted(o, e))))
		return set_missing(o, e, err);
	return explain(o, e, err);
}

/* --- groups ----------------------------------------------------------------------------------- */

static int note_broken(struct opening *o, size_t first, size_t end)
{
	CLEANUP(strbuf_release) struct strbuf names = {0};

	for (size_t i = first; i < end; i++)
		strbuf_printf(&names, "%s%s", i > first ? ", " : "", o->c->events.v[i].name);
	if (names.failed ||
	    note_add(o->notes, "%s do not fit the counters together: each is counted alone",
		     strbuf_str(&names)))
		return diag_errno(o->d, -ENOMEM, "opening the counters");
	return 0;
}

static int break_group(struct opening *o, size_t first, size_t end)
{
	for (size_t i = first; i < end; i++) {
		int *fd = counters_fd(o->c, o->c->places.n - 1, i);

		if (*fd >= 0) {
			o->c->ops->close(o->c->ops_ctx, *fd);
			o->opened--;
		}
		*fd = -1;
		o->c->events.v[i].broken_up = true;
	}
	return note_broken(o, first, end);
}

/* 0; -EAGAIN: the group was broken up, once more; -ESRCH: the thread has ended; or an error. */
static int open_group(struct opening *o, size_t first, size_t end,
		      const struct counter_place *place)
{
	int leader = -1;

	for (size_t i = first; i < end; i++) {
		struct counter_event *e = &o->c->events.v[i];
		int failed, fd, err;

		if (e->missing)
			continue;
		fd = open_one(o, i, place, e->broken_up ? -1 : leader, &failed);
		if (failed)
			return failed;
		if (fd == -EINVAL && leader >= 0 && !e->broken_up) {
			err = break_group(o, first, end);
			return err ? err : -EAGAIN;
		}
		if (fd < 0) {
			err = judge_failure(o, i, place, fd);
			if (err)
				return err;
			continue;
		}
		*counters_fd(o->c, o->c->places.n - 1, i) = fd;
		o->opened++;
		leader = leader < 0 ? fd : leader;
	}
	return 0;
}

static size_t group_end(const struct counters *c, size_t first)
{
	size_t end = first + 1;

	while (end < c->events.n && c->groups.v[end] == c->groups.v[first])
		end++;
	return end;
}

/* `pid` is that of perf_event_open, or the cgroup's descriptor. */
static int open_place(struct opening *o, const struct counter_place *place, pid_t pid,
		      unsigned long flags)
{
	int err = counters_add_place(o->c, place);

	if (err)
		return diag_errno(o->d, err, "opening the counters");
	o->pid = pid;
	o->flags = flags;
	for (size_t first = 0; first < o->c->events.n;) {
		err = open_group(o, first, group_end(o->c, first), place);
		if (err == -EAGAIN)
			continue;
		if (err) {
			counters_drop_place(o->c);
			return err;
		}
		first = group_end(o->c, first);
	}
	return 0;
}

/* --- whom ------------------------------------------------------------------------------------- */

static void set_task_flags(struct opening *o, bool inherit, bool on_exec)
{
	for (size_t i = 0; i < o->c->events.n; i++) {
		o->c->events.v[i].attr.inherit = inherit;
		o->c->events.v[i].attr.enable_on_exec = on_exec;
	}
}

static int open_task(struct opening *o, pid_t tid, size_t *ret_opened)
{
	struct counter_place place = {.tid = tid, .cpu = -1, .cgroup = SIZE_MAX};
	size_t n_cpus = o->config->per_cpu || o->config->cpus ? o->cpus.n : 1;
	int err = 0;

	for (size_t i = 0; i < n_cpus && !err; i++) {
		if (o->config->per_cpu || o->config->cpus)
			place.cpu = o->cpus.v[i];
		err = open_place(o, &place, tid, 0);
	}
	if (err == -ESRCH) {
		o->threads_gone++;
		return 0;
	}
	*ret_opened += !err;
	return err;
}

static bool has_tid(const struct opening *o, pid_t tid)
{
	for (size_t i = 0; i < o->c->places.n; i++)
		if (o->c->places.v[i].tid == tid)
			return true;
	return false;
}

static void pid_list_release(struct pid_list *l)
{
	array_release(l);
}

static int open_process(struct opening *o, pid_t pid)
{
	size_t opened = 0, known = 0;

	for (unsigned round = 0; round < LIST_ROUNDS_MAX; round++) {
		CLEANUP(pid_list_release) struct pid_list threads = {0};
		size_t fresh = 0;
		int err = proc_threads(pid, &threads);

		if (err == -ENOENT || err == -ESRCH)
			break;
		if (err)
			return explain_target(err, (int)pid, &o->host, o->d);
		for (size_t i = 0; i < threads.n && !err; i++) {
			if (has_tid(o, threads.v[i])) {
				known++;
				continue;
			}
			fresh++;
			err = open_task(o, threads.v[i], &opened);
		}
		if (err)
			return err;
		if (!fresh)
			break;
	}
	if (!opened && !known)
		return explain_target(-ESRCH, (int)pid, &o->host, o->d);
	return 0;
}

static int open_tasks(struct opening *o)
{
	const struct counters_config *c = o->config;
	size_t opened = 0;
	int err = 0;

	set_task_flags(o, true, c->child && !c->child_runs);
	if (c->child) {
		err = open_task(o, c->child, &opened);
		if (!err && !opened)
			err = explain_target(-ESRCH, (int)c->child, &o->host, o->d);
	}
	for (size_t i = 0; i < c->n_pids && !err; i++)
		err = open_process(o, c->pids[i]);
	set_task_flags(o, false, false);
	for (size_t i = 0; i < c->n_tids && !err; i++)
		if (!has_tid(o, c->tids[i]))
			err = open_task(o, c->tids[i], &opened);
	if (!err && c->n_tids && !opened && !c->n_pids)
		err = explain_target(-ESRCH, (int)c->tids[0], &o->host, o->d);
	if (!err && o->threads_gone && !c->child)
		err = note_add(o->notes, "%zu thread%s ended before being attached",
			       o->threads_gone, o->threads_gone == 1 ? "" : "s");
	return err;
}

static int open_cpus(struct opening *o)
{
	const struct counters_config *c = o->config;
	size_t n_whom = c->n_cgroups ? c->n_cgroups : 1;
	int err = 0;

	for (size_t g = 0; g < n_whom && !err; g++)
		for (size_t i = 0; i < o->cpus.n && !err; i++) {
			struct counter_place place = {
				.cpu = o->cpus.v[i],
				.cgroup = c->n_cgroups ? g : SIZE_MAX,
			};

			err = open_place(o, &place, c->n_cgroups ? c->cgroup_fds[g] : -1,
					 c->n_cgroups ? PERF_FLAG_PID_CGROUP : 0);
		}
	return err;
}

/* --- all of it -------------------------------------------------------------------------------- */

static int add_event(struct opening *o, const struct event_spec *spec, unsigned group)
{
	struct counter_event e = {.attr = spec->attr, .name = strdup(spec->name)};
	int err = e.name ? array_push(&o->c->groups, group) : -ENOMEM;

	e.attr.size = sizeof(e.attr);
	e.attr.sample_period = 0;
	e.attr.precise_ip = 0;
	e.attr.disabled = 1;
	e.attr.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
	if (!happens_in_kernel(&e.attr)) {
		e.attr.exclude_kernel |= o->config->user_only;
		e.attr.exclude_hv |= o->config->user_only;
		e.attr.exclude_user |= o->config->kernel_only;
	}
	if (!err && e.attr.exclude_kernel && e.attr.exclude_user)
		err = diag_set(o->d, -EINVAL, "event '%s': nothing is left of it %s", e.name,
			       o->config->user_only ? "with --user-only" : "with --kernel-only");
	if (!err)
		err = array_push(&o->c->events, e);
	if (err)
		free(e.name);
	return err;
}

static int choose_cpus(struct opening *o)
{
	const struct counters_config *c = o->config;
	CLEANUP(cpu_list_release) cpu_list online = {0};
	int err = cpu_list_online(&online);

	if (!err && !c->cpus) {
		o->cpus = online;
		online = (cpu_list){0};
	}
	for (size_t i = 0; i < c->n_cpus && c->cpus && !err; i++) {
		if (!cpu_list_has(&online, c->cpus[i]))
			err = note_add(o->notes, "CPU %d is offline: not counted", c->cpus[i]);
		else if (!cpu_list_has(&o->cpus, c->cpus[i]))
			err = array_push(&o->cpus, c->cpus[i]);
	}
	if (err)
		return diag_errno(o->d, err, "listing the CPUs");
	if (!o->cpus.n)
		return diag_set(o->d, -ENODEV, "none of the CPUs asked for is online");
	return 0;
}

static int note_kernel_dropped(struct opening *o)
{
	if (!o->kernel_dropped)
		return 0;
	if (o->host.perf_event_paranoid == HOST_UNKNOWN)
		return note_add(o->notes, "kernel code may not be counted: user code only");
	return note_add(o->notes,
			"kernel code may not be counted (perf_event_paranoid=%lld): user code only",
			(long long)o->host.perf_event_paranoid);
}

int counters_new(const struct counters_config *config, const struct pmu_ops *ops, void *ops_ctx,
		 const struct host *host, note_list *notes, struct counters **ret, struct diag *d)
{
	CLEANUP(counters_freep) struct counters *c = calloc(1, sizeof(*c));
	CLEANUP(opening_release)
	struct opening o = {.c = c, .config = config, .host = *host, .notes = notes, .d = d};
	const struct counter_events *events = config->events;
	int err = 0;

	if (!c)
		return diag_errno(d, -ENOMEM, "opening the counters");
	c->ops = ops;
	c->ops_ctx = ops_ctx;
	c->on_exec = config->child && !config->child_runs && !is_cpu_wide(config);
	raise_descriptor_limit(&o.host);
	for (size_t i = 0; i < events->specs.n && !err; i++)
		err = add_event(&o, &events->specs.v[i], events->groups.v[i]);
	if (!err)
		err = choose_cpus(&o);
	if (!err)
		err = is_cpu_wide(config) ? open_cpus(&o) : open_tasks(&o);
	if (!err)
		err = note_kernel_dropped(&o);
	if (err)
		return diag_errno(d, err, "opening the counters");
	*ret = TAKE_PTR(c);
	return 0;
}
