/* SPDX-License-Identifier: BSD-2-Clause */
/* --locks: who waits at which futex, for how long, and who wakes. */
#include "trace.h"

enum { LOCK_COLUMNS = 18, LOCKS_SHOWN = 15 };

/* What the details say about one lock. */
struct lock_facts {
	uint64_t waiters, timeouts, races, pi_waits, broadcasts;
	const struct syscall_detail *top_waiter, *top_waker, *top_holder;
};

/* --- threads ---------------------------------------------------------------------------------- */

static const char *name_of_thread(const struct trace_view *view, uint32_t tid,
				  char comm[SYSCALLS_COMM + 1])
{
	for (size_t i = 0; i < view->table->threads.n; i++)
		if (view->table->threads.v[i].tid == tid)
			return view->table->threads.v[i].comm;
	return syscall_counts_ended_name(view->counts, tid, comm) ? comm : NULL;
}

static struct cell thread_cell(const struct trace_view *view, const struct syscall_detail *d,
			       const char *none, struct result *r)
{
	char comm[SYSCALLS_COMM + 1];
	const char *name = d ? name_of_thread(view, d->key.id, comm) : NULL;

	if (!d)
		return cell_null(r, none);
	return cell_text(r, result_text(r, "%u%s%s", d->key.id, name ? " " : "", name ? name : ""));
}

/* --- facts ------------------------------------------------------------------------------------ */

static void keep_greater(const struct syscall_detail **top, const struct syscall_detail *d,
			 bool by_count)
{
	uint64_t v = by_count ? d->v.count : d->v.sum;

	if (!*top || v > (by_count ? (*top)->v.count : (*top)->v.sum))
		*top = d;
}

static struct lock_facts facts_of(const struct trace_view *view, uint64_t lock)
{
	struct lock_facts f = {0};
	char comm[SYSCALLS_COMM + 1];

	for (size_t i = 0; i < view->table->details.n; i++) {
		const struct syscall_detail *d = &view->table->details.v[i];

		if (d->key.value != lock)
			continue;
		if (d->key.kind == SYSCALLS_LOCK_WAITER) {
			f.waiters++;
			keep_greater(&f.top_waiter, d, false);
		} else if (d->key.kind == SYSCALLS_LOCK_WAKER) {
			keep_greater(&f.top_waker, d, true);
		} else if (d->key.kind == SYSCALLS_LOCK_HOLDER) {
			/* Whatever lies behind another kind of lock is no thread. */
			if (name_of_thread(view, d->key.id, comm))
				keep_greater(&f.top_holder, d, false);
		} else if (d->key.kind == SYSCALLS_LOCK_TIMEOUT) {
			f.timeouts += d->v.count;
		} else if (d->key.kind == SYSCALLS_LOCK_EAGAIN) {
			f.races += d->v.count;
		} else if (d->key.kind == SYSCALLS_LOCK_PI) {
			f.pi_waits += d->v.count;
		} else if (d->key.kind == SYSCALLS_LOCK_BROADCAST) {
			f.broadcasts += d->v.count;
		}
	}
	return f;
}

static const char *lock_name(const struct trace_view *view, const struct syscalls_key *key,
			     struct result *r)
{
	const struct syscalls_file_key place = {key->cgroup, key->device, key->code};
	CLEANUP(strbuf_release) struct strbuf file = {0};

	if (key->pid)
		return trace_lock_name(view->locks, r, key->pid, key->inode);
	syscall_counts_file(view->counts, &place, &file);
	return result_text(r, "%s+0x%llx (shared)", file.n ? strbuf_str(&file) : "(file)",
			   (unsigned long long)key->inode);
}

static const char *kind_of(const struct trace_view *view, const struct syscalls_key *key,
			   const struct lock_facts *f)
{
	if (trace_lock_is_gil(view->locks, key->pid, key->inode))
		return "GIL";
	if (f->pi_waits)
		return "PI mutex";
	return f->broadcasts ? "condition" : "mutex";
}

/* --lock: an address, or a part of the name. */
static bool is_wanted(const struct trace_view *view, const struct syscalls_key *key,
		      const char *name)
{
	const char *wanted = view->v->lock;

	if (!wanted)
		return true;
	if (str_starts(wanted, "0x"))
		return strtoull(wanted, NULL, 16) == key->inode;
	return strstr(name, wanted) != NULL;
}

/* --- the table -------------------------------------------------------------------------------- */

static void add_lock(const struct trace_view *view, const struct syscall_row *row, struct result *r,
		     size_t section)
{
	struct lock_facts f = facts_of(view, row->key.stack);
	const char *name = lock_name(view, &row->key, r), *none = "no wait has ended";

	if (!is_wanted(view, &row->key, name))
		return;
#define NS_OF_WAITS(v) (row->calls ? cell_u64(CELL_NS, (v)) : cell_null(r, none))
	result_row(
		r, section,
		(const struct cell[LOCK_COLUMNS]){
			cell_text(r, name),
			cell_text(r, kind_of(view, &row->key, &f)),
			row->key.pid ? cell_u64(CELL_COUNT, row->key.pid)
				     : cell_null(r, "shared by processes"),
			cell_text(r, result_text(r, "0x%llx", (unsigned long long)row->key.inode)),
			cell_u64(CELL_COUNT, row->calls),
			cell_u64(CELL_COUNT, f.waiters),
			cell_u64(CELL_NS, trace_row_wall_ns(row)),
			NS_OF_WAITS(row->total_ns / row->calls),
			NS_OF_WAITS(histogram_percentile(&row->h, 50)),
			NS_OF_WAITS(histogram_percentile(&row->h, 99)),
			NS_OF_WAITS(row->h.max),
			cell_u64(CELL_COUNT, f.timeouts),
			cell_u64(CELL_COUNT, f.races),
			cell_u64(CELL_COUNT, row->in_flight),
			row->in_flight ? cell_u64(CELL_NS, row->oldest_ns) : cell_null(r, ""),
			thread_cell(view, f.top_waiter, "no wait has ended", r),
			thread_cell(view, f.top_waker, "nobody of the target woke", r),
			thread_cell(view, f.top_holder, "", r),
		});
#undef NS_OF_WAITS
}

static const struct column *lock_columns(bool narrow)
{
#define COLUMNS_OF(wide)                                                                           \
	{                                                                                          \
		{"lock", "lock", CELL_TEXT, COLUMN_CUT}, {"kind", "kind?", CELL_TEXT, 0},          \
			{"pid", "", CELL_COUNT, COLUMN_DATA_ONLY},                                 \
			{"address", "", CELL_TEXT, COLUMN_DATA_ONLY},                              \
			{"waits", "waits", CELL_COUNT, 0},                                         \
			{"waiters", "waiters", CELL_COUNT, wide},                                  \
			{"total_ns", "total", CELL_NS, 0},                                         \
			{"avg_ns", "avg", CELL_NS, COLUMN_DATA_ONLY},                              \
			{"p50_ns", "p50", CELL_NS, wide}, {"p99_ns", "p99", CELL_NS, 0},           \
			{"max_ns", "max", CELL_NS, wide},                                          \
			{"timeouts", "timeouts", CELL_COUNT, wide},                                \
			{"eagain", "eagain", CELL_COUNT, wide},                                    \
			{"in_flight", "now", CELL_COUNT, 0},                                       \
			{"oldest_ns", "since", CELL_NS, wide},                                     \
			{"top_waiter", "top waiter", CELL_TEXT, wide},                             \
			{"top_waker", "top waker", CELL_TEXT, 0},                                  \
			{"top_holder", "holder?", CELL_TEXT, wide},                                \
	}
	static const struct column all[LOCK_COLUMNS] = COLUMNS_OF(0);
	static const struct column few[LOCK_COLUMNS] = COLUMNS_OF(COLUMN_DATA_ONLY);
#undef COLUMNS_OF

	return narrow ? few : all;
}

int trace_lock_table(const struct trace_view *view, struct result *r)
{
	CLEANUP(freep) size_t *order = NULL;
	int err = trace_sorted_rows(view->table, view->v->sort, &order);
	size_t section;

	if (err)
		return err;
	result_note(r, "kind and holder are guesses; how long a lock is held is not seen from "
		       "futexes: without a rival it never enters the kernel");
	section = result_section(r, "locks", "", lock_columns(view->narrow), LOCK_COLUMNS);
	for (size_t i = 0; i < view->table->rows.n; i++)
		add_lock(view, &view->table->rows.v[order[i]], r, section);
	if (r->failed)
		return -ENOMEM;
	r->sections.v[section].limit = view->v->top ? view->v->top : LOCKS_SHOWN;
	r->sections.v[section].fits = !view->v->top;
	r->sections.v[section].more = "--all";
	trace_losses(view->table, r);
	return r->failed ? -ENOMEM : 0;
}
