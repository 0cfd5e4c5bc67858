/* SPDX-License-Identifier: BSD-2-Clause */
/* From the details that were counted beside the rows: who waits, wakes and holds. */
#include "trace_locks.h"

static bool is_of_lock(uint32_t kind)
{
	return kind >= SYSCALLS_LOCK_TIMEOUT && kind <= SYSCALLS_LOCK_MOVED;
}

static int compare(uint64_t a, uint64_t b)
{
	return (a > b) - (a < b);
}

static int by_lock(const void *a, const void *b)
{
	const struct syscall_detail *x = *(const struct syscall_detail *const *)a;
	const struct syscall_detail *y = *(const struct syscall_detail *const *)b;
	int order = compare(x->key.value, y->key.value);

	if (!order)
		order = compare(x->key.kind, y->key.kind);
	return order ? order : compare(x->key.id, y->key.id);
}

int lock_details_sort(const struct syscall_table *t, struct lock_details *ret)
{
	struct lock_details d = {.v = calloc(t->details.n + 1, sizeof(*d.v))};

	if (!d.v)
		return -ENOMEM;
	for (size_t i = 0; i < t->details.n; i++)
		if (is_of_lock(t->details.v[i].key.kind))
			d.v[d.n++] = &t->details.v[i];
	qsort(d.v, d.n, sizeof(*d.v), by_lock);
	*ret = d;
	return 0;
}

void lock_details_release(struct lock_details *d)
{
	free(d->v);
	*d = (struct lock_details){0};
}

static size_t first_of(const struct lock_details *d, uint64_t lock)
{
	size_t low = 0, high = d->n;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (d->v[middle]->key.value < lock)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* glibc notes ids as the thread's own pid namespace has them. Whatever lies behind another kind of
 * lock is no thread: 0. */
static uint32_t holder_tid(const struct trace_view *view, uint32_t own_tid, uint32_t pid)
{
	char comm[SYSCALLS_COMM + 1];

	for (size_t i = 0; i < view->table->threads.n; i++) {
		const struct syscall_thread *t = &view->table->threads.v[i];

		if (t->own_tid == own_tid && (!pid || t->pid == pid))
			return t->tid;
	}
	return syscall_counts_ended_name(view->counts, own_tid, comm) ? own_tid : 0;
}

static void keep_greater(struct lock_role *top, const struct lock_role *one)
{
	if (one->tid && (!top->tid || one->amount > top->amount))
		*top = *one;
}

/* The details from i on that are of one kind, lock and thread, as one. Where they end. */
static size_t add_up(const struct lock_details *d, size_t i, bool by_count, struct lock_role *ret)
{
	const struct syscalls_detail_key *key = &d->v[i]->key;
	uint64_t most = 0;

	*ret = (struct lock_role){.tid = key->id};
	for (size_t first = i; i < d->n && !by_lock(&d->v[first], &d->v[i]); i++) {
		uint64_t amount = by_count ? d->v[i]->v.count : d->v[i]->v.sum;

		ret->amount += amount;
		if (amount >= most && (d->v[i]->key.stack || !ret->stack)) {
			most = amount;
			ret->stack = d->v[i]->key.stack;
		}
	}
	return i;
}

struct lock_facts lock_facts_of(const struct trace_view *view, const struct lock_details *d,
				uint64_t lock, uint32_t pid)
{
	struct lock_facts f = {0};

	for (size_t i = first_of(d, lock); i < d->n && d->v[i]->key.value == lock;) {
		uint32_t kind = d->v[i]->key.kind;
		uint64_t count = d->v[i]->v.count;
		struct lock_role role;

		i = add_up(d, i, kind == SYSCALLS_LOCK_WAKER, &role);
		if (kind == SYSCALLS_LOCK_WAITER) {
			f.waiters++;
			keep_greater(&f.waiter, &role);
		} else if (kind == SYSCALLS_LOCK_WAKER) {
			keep_greater(&f.waker, &role);
		} else if (kind == SYSCALLS_LOCK_HOLDER) {
			role.tid = holder_tid(view, role.tid, pid);
			keep_greater(&f.holder, &role);
		} else if (kind == SYSCALLS_LOCK_TIMEOUT) {
			f.timeouts += count;
		} else if (kind == SYSCALLS_LOCK_EAGAIN) {
			f.races += count;
		} else if (kind == SYSCALLS_LOCK_PI) {
			f.pi_waits += count;
		} else if (kind == SYSCALLS_LOCK_MOVED) {
			f.moved += count;
		}
	}
	return f;
}

/* --- threads ---------------------------------------------------------------------------------- */

static const char *name_of_thread(const struct trace_view *view, uint32_t tid,
				  char comm[SYSCALLS_COMM + 1])
{
	for (size_t i = 0; i < view->table->threads.n; i++)
		if (view->table->threads.v[i].tid == tid)
			return view->table->threads.v[i].comm;
	return syscall_counts_ended_name(view->counts, tid, comm) ? comm : NULL;
}

const char *lock_thread_text(const struct trace_view *view, uint32_t tid, struct result *r)
{
	char comm[SYSCALLS_COMM + 1];
	const char *name = name_of_thread(view, tid, comm);

	return result_text(r, "%u%s%s", tid, name ? " " : "", name ? name : "");
}
