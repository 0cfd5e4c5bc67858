/* SPDX-License-Identifier: BSD-2-Clause */
#include "counters_impl.h"

#include <sys/ioctl.h>
#include <sys/syscall.h>

/* --- the kernel's PMU ------------------------------------------------------------------------- */

static int kernel_open(void *ctx UNUSED, const struct perf_event_attr *attr, pid_t pid, int cpu,
		       int group_fd, unsigned long flags)
{
	long fd = syscall(SYS_perf_event_open, attr, pid, cpu, group_fd,
			  flags | PERF_FLAG_FD_CLOEXEC);

	return fd < 0 ? -errno : (int)fd;
}

static int kernel_enable(void *ctx UNUSED, int fd, bool on)
{
	return ioctl(fd, on ? PERF_EVENT_IOC_ENABLE : PERF_EVENT_IOC_DISABLE, 0) < 0 ? -errno : 0;
}

static int kernel_read(void *ctx UNUSED, int fd, struct count *ret)
{
	uint64_t v[3]; /* in the order of perf_event_open(2), "Reading results" */
	ssize_t n = read(fd, v, sizeof(v));

	if (n != (ssize_t)sizeof(v))
		return n < 0 ? -errno : -EIO;
	*ret = (struct count){v[0], v[1], v[2]};
	return 0;
}

static void kernel_close(void *ctx UNUSED, int fd)
{
	close(fd);
}

const struct pmu_ops pmu_kernel_ops = {
	.open = kernel_open,
	.enable = kernel_enable,
	.read = kernel_read,
	.close = kernel_close,
};

/* --- counting --------------------------------------------------------------------------------- */

double count_scaled(const struct count *c)
{
	if (!c->running_ns)
		return 0;
	if (c->running_ns >= c->enabled_ns)
		return (double)c->value;
	/* tools/lib/perf/evsel.c: perf_counts_values__scale rounds to whole counts. */
	return (double)(uint64_t)((double)c->value * (double)c->enabled_ns / (double)c->running_ns +
				  0.5);
}

int counters_add_place(struct counters *c, const struct counter_place *place)
{
	size_t n = (c->places.n + 1) * c->events.n;
	int err = array_reserve(&c->fds, n);

	if (!err)
		err = array_reserve(&c->counts, n);
	if (!err)
		err = array_push(&c->places, *place);
	if (err)
		return err;
	for (size_t i = n - c->events.n; i < n; i++) {
		c->fds.v[i] = -1;
		c->counts.v[i] = (struct count){0};
	}
	c->fds.n = c->counts.n = n;
	return 0;
}

void counters_drop_place(struct counters *c)
{
	c->places.n--;
	for (size_t i = 0; i < c->events.n; i++) {
		int fd = *counters_fd(c, c->places.n, i);

		if (fd >= 0)
			c->ops->close(c->ops_ctx, fd);
	}
	c->fds.n = c->counts.n = c->places.n * c->events.n;
}

void counters_free(struct counters *c)
{
	if (!c)
		return;
	while (c->places.n)
		counters_drop_place(c);
	for (size_t i = 0; i < c->events.n; i++) {
		free(c->events.v[i].name);
		free(c->events.v[i].missing);
	}
	array_release(&c->events);
	array_release(&c->groups);
	array_release(&c->places);
	array_release(&c->fds);
	array_release(&c->counts);
	free(c);
}

void counters_freep(struct counters **c)
{
	counters_free(*c);
}

static int enable_all(struct counters *c, bool on)
{
	int err = 0;

	/* Backwards: the leader of a group comes last, and with it all of them begin. */
	for (size_t i = c->fds.n; i > 0; i--) {
		int fd = c->fds.v[i - 1];
		int failed = fd >= 0 ? c->ops->enable(c->ops_ctx, fd, on) : 0;

		err = err ? err : failed;
	}
	return err;
}

int counters_start(struct counters *c)
{
	return c->on_exec ? 0 : enable_all(c, true);
}

int counters_stop(struct counters *c)
{
	int err = 0;

	/* Forwards: the leader stops its group. */
	for (size_t i = 0; i < c->fds.n; i++) {
		int failed = c->fds.v[i] >= 0 ? c->ops->enable(c->ops_ctx, c->fds.v[i], false) : 0;

		err = err ? err : failed;
	}
	return err;
}

static bool is_always_on(const struct counter_event *e)
{
	return e->attr.type == PERF_TYPE_SOFTWARE || e->attr.type == PERF_TYPE_TRACEPOINT;
}

/*
 * The time that an event has waited for a counter is what tells an estimate from a count. A
 * software event never waits; a task's event on one CPU is "enabled" while the task runs on others
 * (kernel: event_filter_match), so the time on this CPU is that of the event which ran longest.
 */
static void settle_times(struct counters *c, size_t place)
{
	struct count *counts = &c->counts.v[place * c->events.n];
	bool bound = c->places.v[place].tid && c->places.v[place].cpu >= 0;
	uint64_t here_ns = 0;

	for (size_t i = 0; i < c->events.n; i++)
		here_ns = MAX(here_ns, counts[i].running_ns);
	for (size_t i = 0; i < c->events.n; i++) {
		if (is_always_on(&c->events.v[i]))
			counts[i].enabled_ns = counts[i].running_ns;
		else if (bound)
			counts[i].enabled_ns = MIN(counts[i].enabled_ns, here_ns);
	}
}

int counters_read(struct counters *c)
{
	int err = 0;

	for (size_t i = 0; i < c->fds.n && !err; i++)
		if (c->fds.v[i] >= 0)
			err = c->ops->read(c->ops_ctx, c->fds.v[i], &c->counts.v[i]);
	for (size_t place = 0; place < c->places.n && !err; place++)
		settle_times(c, place);
	return err;
}

size_t counters_events(const struct counters *c)
{
	return c->events.n;
}

const struct counter_event *counters_event(const struct counters *c, size_t event)
{
	return &c->events.v[event];
}

size_t counters_places(const struct counters *c)
{
	return c->places.n;
}

const struct counter_place *counters_place(const struct counters *c, size_t place)
{
	return &c->places.v[place];
}

bool counters_at(const struct counters *c, size_t event, size_t place, struct count *ret)
{
	if (*counters_fd(c, place, event) < 0)
		return false;
	*ret = c->counts.v[place * c->events.n + event];
	return true;
}

static double scaled_value(const struct counter_event *e, const struct count *c)
{
	if (is_always_on(e))
		return (double)c->value;
	return count_scaled(c);
}

bool counters_value(const struct counters *c, size_t event, const struct count *count, double *ret)
{
	const struct counter_event *e = &c->events.v[event];

	if (e->missing || (!is_always_on(e) && count->enabled_ns && !count->running_ns))
		return false;
	*ret = scaled_value(e, count);
	return true;
}

double counters_total(const struct counters *c, size_t event, struct count *ret)
{
	struct count total = {0}, one;
	double scaled = 0;

	for (size_t place = 0; place < c->places.n; place++) {
		if (!counters_at(c, event, place, &one))
			continue;
		total.value += one.value;
		total.enabled_ns += one.enabled_ns;
		total.running_ns += one.running_ns;
		scaled += scaled_value(&c->events.v[event], &one);
	}
	*ret = total;
	return scaled;
}
