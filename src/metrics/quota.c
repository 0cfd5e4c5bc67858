/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a cgroup's quota makes its threads wait is in their run delay, and in the pressure of the
 * host's CPUs, as if these were full: the kernel leaves a throttled thread in its run queue
 * (kernel/sched/fair.c, throttle_cfs_rq). It is the group's to tell.
 */
#include "readings.h"

enum { THREADS_MAX = 512, TEXT_MAX = 1 << 16 };

void throttles_find(const struct interval *i, struct throttles *ret)
{
	for (size_t k = 0; k < i->now->cgroup.v.n; k++) {
		const struct cgroup *now = &i->now->cgroup.v.v[k];
		const struct cgroup *before = cgroup_before(i, now, k);
		struct throttle t = {now->name, 0};

		if (before)
			t.share = rate_of(now->counters[CG_THROTTLED_NS],
					  before->counters[CG_THROTTLED_NS], i->seconds * 1e9);
		if (t.share > 0 && array_push(&ret->v, t))
			return;
	}
}

void throttles_release(struct throttles *t)
{
	array_release(&t->v);
}

double throttles_sum(const struct throttles *t)
{
	double sum = 0;

	for (size_t i = 0; i < t->v.n; i++)
		sum += t->v.v[i].share;
	return sum;
}

static bool is_in(const char *group, const char *name)
{
	size_t n = strlen(name);

	return str_starts(group, name) && (!group[n] || group[n] == '/');
}

double quota_delay(const struct interval *i, uint32_t tid, double delay)
{
	CLEANUP(strbuf_release) struct strbuf text = {0};
	struct throttles *t = i->throttles;
	char line[1024], group[256];
	double share = 0;

	/* Hardly any thread waits long: who does is looked at. */
	if (!t->v.n || delay < 0.005 || t->looked_at++ >= THREADS_MAX)
		return 0;
	root_read(i->config->root, &text, TEXT_MAX, "/proc/%u/cgroup", tid);
	for (const char *at = strbuf_str(&text); next_line(&at, line, sizeof(line));) {
		if (!cgroup_line_of(line, CG_CPU, i->cgroups->mounts.v2[CG_CPU], group,
				    sizeof(group)))
			continue;
		for (size_t k = 0; k < t->v.n; k++)
			share += is_in(group, t->v.v[k].group) ? t->v.v[k].share : 0;
	}
	return fmin(share, delay);
}
