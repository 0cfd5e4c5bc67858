/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A PMU made of a table: so many counters, these events at these rates. Groups take turns on the
 * counters as the kernel rotates them: a group is on as a whole or not at all.
 */
#ifndef FAKE_PMU_H
#define FAKE_PMU_H

#include <inspect/counters.h>

enum { FAKE_EVENTS = 256, FAKE_SLICE_NS = 1000000 };

struct fake_rate {
	uint32_t type;
	uint64_t config;
	uint64_t per_slice;
};

struct fake_event {
	bool open, enabled;
	struct perf_event_attr attr;
	pid_t pid;
	int cpu;
	int leader; /* its own fd when it leads */
	struct count count;
};

struct fake_pmu {
	unsigned counters; /* hardware; software events need none */
	const struct fake_rate *rates;
	size_t n_rates;
	int kernel_error; /* for events that are not user only; 0: none */
	int open_error;   /* for all, after `opens_left` have gone well */
	size_t opens_left;
	pid_t gone;          /* ESRCH */
	bool refuses_guests; /* EINVAL for exclude_guest */
	int read_error;
	struct fake_event events[FAKE_EVENTS]; /* fd - 1 */
	unsigned turn;                         /* group that comes first in the next slice */
	unsigned opened, closed;
};

static inline bool fake_is_hardware(const struct perf_event_attr *a)
{
	return a->type != PERF_TYPE_SOFTWARE;
}

static inline const struct fake_rate *fake_find(const struct fake_pmu *p,
						const struct perf_event_attr *a)
{
	for (size_t i = 0; i < p->n_rates; i++)
		if (p->rates[i].type == a->type && p->rates[i].config == a->config)
			return &p->rates[i];
	return NULL;
}

static inline unsigned fake_group_size(const struct fake_pmu *p, int leader)
{
	unsigned n = 0;

	for (int i = 0; i < FAKE_EVENTS; i++)
		n += p->events[i].open && p->events[i].leader == leader &&
		     fake_is_hardware(&p->events[i].attr);
	return n;
}

static inline int fake_open(void *ctx, const struct perf_event_attr *attr, pid_t pid, int cpu,
			    int group_fd, unsigned long flags)
{
	struct fake_pmu *p = ctx;

	(void)flags;
	if (p->gone && pid == p->gone)
		return -ESRCH;
	if (p->open_error && !p->opens_left)
		return p->open_error;
	if (!fake_find(p, attr))
		return -ENOENT;
	if (p->kernel_error && !attr->exclude_kernel)
		return p->kernel_error;
	if (p->refuses_guests && fake_is_hardware(attr) && attr->exclude_guest)
		return -EINVAL;
	if (fake_is_hardware(attr) && group_fd >= 0 &&
	    fake_group_size(p, group_fd) + 1 > p->counters)
		return -EINVAL;
	for (int i = 0; i < FAKE_EVENTS; i++) {
		if (p->events[i].open)
			continue;
		p->events[i] = (struct fake_event){
			.open = true,
			.attr = *attr,
			.pid = pid,
			.cpu = cpu,
			.leader = group_fd >= 0 ? group_fd : i + 1,
		};
		p->opens_left -= p->open_error != 0;
		p->opened++;
		return i + 1;
	}
	return -EMFILE;
}

static inline int fake_enable(void *ctx, int fd, bool on)
{
	struct fake_pmu *p = ctx;

	p->events[fd - 1].enabled = on;
	return 0;
}

static inline int fake_read(void *ctx, int fd, struct count *ret)
{
	struct fake_pmu *p = ctx;

	if (p->read_error)
		return p->read_error;
	*ret = p->events[fd - 1].count;
	return 0;
}

static inline void fake_close(void *ctx, int fd)
{
	struct fake_pmu *p = ctx;

	p->events[fd - 1].open = false;
	p->closed++;
}

static const struct pmu_ops fake_pmu_ops = {fake_open, fake_enable, fake_read, fake_close};

/* One group for a slice; `on`: it is on counters. */
static inline void fake_run_group(struct fake_pmu *p, int leader, bool on)
{
	for (int i = 0; i < FAKE_EVENTS; i++) {
		struct fake_event *e = &p->events[i];
		bool hardware = fake_is_hardware(&e->attr);

		/* Members count when their leader does. */
		if (!e->open || e->leader != leader || !e->enabled ||
		    !p->events[leader - 1].enabled)
			continue;
		e->count.enabled_ns += FAKE_SLICE_NS;
		if (!on && hardware)
			continue;
		e->count.running_ns += FAKE_SLICE_NS;
		e->count.value += fake_find(p, &e->attr)->per_slice;
	}
}

/* Lets the target run: in each slice the groups are placed in order, from the one whose turn it is,
 * as long as counters are left. */
static inline void fake_run(struct fake_pmu *p, unsigned slices)
{
	for (unsigned s = 0; s < slices; s++) {
		int leaders[FAKE_EVENTS];
		unsigned n = 0, left = p->counters;

		for (int i = 0; i < FAKE_EVENTS; i++) {
			if (!p->events[i].open || p->events[i].leader != i + 1)
				continue;
			if (fake_group_size(p, i + 1))
				leaders[n++] = i + 1;
			else
				fake_run_group(p, i + 1, true);
		}
		for (unsigned i = 0; i < n; i++) {
			int leader = leaders[(p->turn + i) % n];
			unsigned size = fake_group_size(p, leader);
			bool on = size <= left;

			left -= on ? size : 0;
			fake_run_group(p, leader, on);
		}
		p->turn++;
	}
}

#endif
