/* SPDX-License-Identifier: BSD-2-Clause */
/* What the kernel refused for want of room: descriptors, files, processes. */
#include "readings.h"

static struct task_refusals less(struct task_refusals a, const struct task_table *before)
{
	for (size_t i = 0; i < before->refusals.n; i++) {
		const struct task_refusals *b = &before->refusals.v[i];

		if (b->pid != a.pid)
			continue;
		a.emfile -= MIN(a.emfile, b->emfile);
		a.enfile -= MIN(a.enfile, b->enfile);
		a.eagain -= MIN(a.eagain, b->eagain);
		a.user_eagain -= MIN(a.user_eagain, b->user_eagain);
	}
	return a;
}

struct task_refusals refusals_of(const struct interval *i, pid_t pid)
{
	const struct task_table *now = &i->tasks_now->table, *before = &i->tasks_before->table;
	struct task_refusals sum = {.pid = (uint32_t)pid};

	for (size_t k = 0; k < now->refusals.n; k++) {
		struct task_refusals one = now->refusals.v[k];

		if (pid && one.pid != (uint32_t)pid)
			continue;
		one = less(one, before);
		sum.emfile += one.emfile;
		sum.enfile += one.enfile;
		sum.eagain += one.eagain;
		sum.user_eagain += one.user_eagain;
	}
	return sum;
}

void put_refusals(const struct interval *i, struct use_report *r, struct use_row *row,
		  const char *key, uint64_t count)
{
	const struct task_table *now = &i->tasks_now->table, *before = &i->tasks_before->table;

	struct use_value *v;

	if (now->has_refusals && before->has_refusals) {
		v = row_put(r, row, key, (double)count);
		if (v)
			v->source = now->refusals_source;
	} else
		row_lacks(r, row, key, now->no_refusals ? now->no_refusals : "needs BPF");
	if (now->refusals_dropped > before->refusals_dropped)
		report_note(r, "%llu refused calls were not counted: of too many processes",
			    (unsigned long long)(now->refusals_dropped - before->refusals_dropped));
}
