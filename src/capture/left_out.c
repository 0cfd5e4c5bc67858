/* SPDX-License-Identifier: BSD-2-Clause */
#include "left_out.h"

static bool has(const pid_t *v, size_t n, pid_t pid)
{
	for (size_t i = 0; i < n; i++)
		if (v[i] == pid)
			return true;
	return false;
}

static uint64_t cpu_ns_of(const struct left_out *l)
{
	uint64_t sum = 0;
	struct proc_stat s;

	for (size_t i = 0; i < l->pids.n; i++)
		if (proc_stat_read(l->pids.v[i], 0, &s) == 0)
			sum += s.utime_ns + s.stime_ns;
	return sum;
}

void left_out_begin(struct left_out *l, const struct target *t)
{
	struct pid_list children = {0};

	*l = (struct left_out){0};
	for (size_t i = 0; i < t->pids.n; i++) {
		children.n = 0;
		if (proc_descendants(t->pids.v[i], &children))
			continue;
		for (size_t k = 0; k < children.n; k++)
			if (!has(t->pids.v, t->pids.n, children.v[k]) &&
			    !has(l->pids.v, l->pids.n, children.v[k]) &&
			    array_push(&l->pids, children.v[k]))
				break;
	}
	array_release(&children);
	l->cpu_ns = cpu_ns_of(l);
}

void left_out_release(struct left_out *l)
{
	array_release(&l->pids);
}

uint64_t left_out_cpu_ns(const struct left_out *l)
{
	uint64_t now_ns = cpu_ns_of(l);

	/* Of those that have ended nothing is known. */
	return now_ns > l->cpu_ns ? now_ns - l->cpu_ns : 0;
}

double left_out_new_threads(const struct left_out *l, const struct target *t)
{
	struct pid_list children = {0}, seen = {0};
	struct proc_stat s;
	double n = 0;

	for (size_t i = 0; i < t->pids.n; i++) {
		children.n = 0;
		if (proc_descendants(t->pids.v[i], &children))
			continue;
		for (size_t k = 0; k < children.n; k++) {
			pid_t pid = children.v[k];

			/* Of two targets one may have been started by the other. */
			if (has(t->pids.v, t->pids.n, pid) || has(l->pids.v, l->pids.n, pid) ||
			    has(seen.v, seen.n, pid) || array_push(&seen, pid))
				continue;
			if (proc_stat_read(pid, 0, &s) == 0 && s.state != 'Z')
				n += s.num_threads;
		}
	}
	array_release(&children);
	array_release(&seen);
	return n;
}
