/* SPDX-License-Identifier: BSD-2-Clause */
#include <inspect/task_times.h>

void task_table_release(struct task_table *t)
{
	array_release(&t->refusals);
	array_release(&t->tasks);
	array_release(&t->locks);
}

static int compare(const void *a, const void *b)
{
	const struct task_times *x = a, *y = b;

	return (x->tid > y->tid) - (x->tid < y->tid);
}

void task_table_sort(struct task_table *t)
{
	if (t->tasks.n)
		qsort(t->tasks.v, t->tasks.n, sizeof(*t->tasks.v), compare);
}

const struct task_times *task_table_at(const struct task_table *t, size_t n, uint32_t tid)
{
	const struct task_times like = {.tid = tid};

	return n ? bsearch(&like, t->tasks.v, n, sizeof(like), compare) : NULL;
}

const struct task_times *task_table_find(const struct task_table *t, const struct task_times *like)
{
	const struct task_times *found = task_table_at(t, t->tasks.n, like->tid);

	return found && found->start == like->start ? found : NULL;
}
