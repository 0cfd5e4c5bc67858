/* SPDX-License-Identifier: BSD-2-Clause */
/* --locks: who waits at which futex, for how long, and who wakes. */
#include "trace_locks.h"

#include <inspect/clock.h>
#include <inspect/code_names.h>
#include <inspect/lock_names.h>
#include <inspect/near_miss.h>

enum { LOCK_COLUMNS = 20, LOCKS_SHOWN = 15, STACKS_SHOWN = 1 };

static const char *lock_name(const struct trace_view *view, const struct syscalls_key *key,
			     struct result *r)
{
	const struct syscalls_file_key place = {key->cgroup, key->device, key->code};
	CLEANUP(strbuf_release) struct strbuf file = {0};

	if (key->pid)
		return trace_lock_name(view->locks, r, key->pid, key->inode, key->code);
	syscall_counts_file(view->counts, &place, &file);
	/* Shared memory without a name lies in no folder. */
	if (!file.n || str_eq(strbuf_str(&file), "/"))
		return result_text(r, "[shared memory %llu]+0x%llx",
				   (unsigned long long)key->cgroup, (unsigned long long)key->inode);
	return result_text(r, "%s+0x%llx (shared)", strbuf_str(&file),
			   (unsigned long long)key->inode);
}

/* "": nothing tells. */
static const char *kind_of(const struct trace_view *view, const struct syscalls_key *key,
			   const char *name, const struct lock_facts *f, struct code_names *code)
{
	enum lock_use use;

	if (lock_name_is_thread(name))
		return lock_use_name(LOCK_USE_THREAD);
	if (trace_lock_is_gil(view->locks, key->pid, key->inode))
		return "GIL";
	if (f->pi_waits)
		return "PI mutex";
	use = lock_use_by_stack(view->counts, f->waiter.stack, code);
	/* Nobody's stack tells; but only a mutex says who has it. */
	if (use == LOCK_USE_UNKNOWN && f->holder.tid)
		use = LOCK_USE_MUTEX;
	return lock_use_name(use);
}

/* --lock: an address, or a part of the name. */
static bool is_wanted(const struct trace_view *view, const struct syscalls_key *key,
		      const char *name)
{
	const char *wanted = view->v->lock;

	if (!wanted)
		return true;
	if (str_starts(wanted, "0x"))
		return trace_lock_object(view->locks, key->pid, strtoull(wanted, NULL, 16)) ==
		       key->inode;
	return strstr(name, wanted) != NULL;
}

/* --- the table -------------------------------------------------------------------------------- */

/* A lock that is shown. */
struct shown_lock {
	const struct syscall_row *row;
	const char *name, *kind;
	struct lock_facts facts;
};

enum { OTHERS_SHOWN = 3 };

struct shown_locks {
	ARRAY(struct shown_lock) v;
	uint64_t total_ns;
	const char *others[OTHERS_SHOWN]; /* the first that --lock leaves out */
	size_t n_others;
	struct near_misses near;
};

static struct cell thread_cell(const struct trace_view *view, const struct lock_role *role,
			       const char *none, struct result *r)
{
	return role->tid ? cell_text(r, lock_thread_text(view, role->tid, r)) : cell_null(r, none);
}

static void put_lock(const struct trace_view *view, const struct shown_lock *lock, size_t number,
		     struct result *r, size_t section)
{
	const struct syscall_row *row = lock->row;
	const struct lock_facts *f = &lock->facts;
	const char *none = "no wait has ended";

#define NS_OF_WAITS(v) (row->calls ? cell_u64(CELL_NS, (v)) : cell_null(r, none))
	result_row(
		r, section,
		(const struct cell[LOCK_COLUMNS]){
			cell_u64(CELL_COUNT, number),
			cell_text(r, lock->name),
			*lock->kind ? cell_text(r, lock->kind) : cell_null(r, "nothing tells"),
			row->key.pid ? cell_u64(CELL_COUNT, row->key.pid)
				     : cell_null(r, "shared by processes"),
			cell_text(r, result_text(r, "0x%llx", (unsigned long long)row->key.inode)),
			cell_u64(CELL_COUNT, row->calls),
			cell_u64(CELL_COUNT, f->waiters),
			cell_u64(CELL_NS, trace_row_wall_ns(row)),
			NS_OF_WAITS(row->total_ns / row->calls),
			NS_OF_WAITS(histogram_percentile(&row->h, 50)),
			NS_OF_WAITS(histogram_percentile(&row->h, 99)),
			NS_OF_WAITS(row->h.max),
			cell_u64(CELL_COUNT, f->timeouts),
			cell_u64(CELL_COUNT, f->races),
			cell_u64(CELL_COUNT, f->moved),
			cell_u64(CELL_COUNT, row->in_flight),
			row->in_flight ? cell_u64(CELL_NS, row->oldest_ns) : cell_null(r, ""),
			thread_cell(view, &f->waiter, none, r),
			thread_cell(view, &f->waker, "nobody of the target woke", r),
			thread_cell(view, &f->holder, "", r),
		});
#undef NS_OF_WAITS
}

static const struct column lock_columns[LOCK_COLUMNS] = {
	{"number", "#", CELL_COUNT, 0},
	{"lock", "lock", CELL_TEXT, COLUMN_CUT},
	{"kind", "kind?", CELL_TEXT, 0},
	{"pid", "", CELL_COUNT, COLUMN_DATA_ONLY},
	{"address", "", CELL_TEXT, COLUMN_DATA_ONLY},
	{"waits", "waits", CELL_COUNT, 0},
	{"waiters", "waiters", CELL_COUNT, COLUMN_SPARE},
	{"total_ns", "total", CELL_NS, 0},
	{"avg_ns", "avg", CELL_NS, COLUMN_DATA_ONLY},
	{"p50_ns", "p50", CELL_NS, COLUMN_SPARE},
	{"p99_ns", "p99", CELL_NS, 0},
	{"max_ns", "max", CELL_NS, COLUMN_SPARE},
	{"timeouts", "timeouts", CELL_COUNT, COLUMN_SPARE},
	{"eagain", "eagain", CELL_COUNT, COLUMN_SPARE},
	{"moved", "", CELL_COUNT, COLUMN_DATA_ONLY},
	{"in_flight", "now", CELL_COUNT, 0},
	{"oldest_ns", "since", CELL_NS, COLUMN_SPARE},
	{"top_waiter", "top waiter", CELL_TEXT, COLUMN_SPARE},
	{"top_waker", "top waker", CELL_TEXT, 0},
	{"top_holder", "holder?", CELL_TEXT, COLUMN_SPARE},
};

static int choose(const struct trace_view *view, struct result *r, struct shown_locks *ret)
{
	CLEANUP(freep) size_t *order = NULL;
	CLEANUP(lock_details_release) struct lock_details details = {0};
	CLEANUP(code_names_freep) struct code_names *code = NULL;
	int err = trace_sorted_rows(view->table, view->v->sort, &order);

	ret->near.word = view->v->lock ? view->v->lock : "";
	if (!err)
		err = lock_details_sort(view->table, &details);
	if (!err)
		err = code_names_new(&code);
	for (size_t i = 0; i < view->table->rows.n && !err; i++) {
		const struct syscall_row *row = &view->table->rows.v[order[i]];
		struct shown_lock lock = {.row = row, .name = lock_name(view, &row->key, r)};

		if (r->failed)
			return -ENOMEM;
		if (!is_wanted(view, &row->key, lock.name)) {
			near_misses_add(&ret->near, lock.name);
			if (ret->n_others < OTHERS_SHOWN)
				ret->others[ret->n_others] = lock.name;
			ret->n_others++;
			continue;
		}
		lock.facts = lock_facts_of(view, &details, row->key.stack, row->key.pid);
		lock.kind = kind_of(view, &row->key, lock.name, &lock.facts, code);
		ret->total_ns += trace_row_wall_ns(row);
		err = array_push(&ret->v, lock);
	}
	return err;
}

/* --- what it means ---------------------------------------------------------------------------- */

/* Nobody gets it any more; or somebody computes while he has it; or it is handed on. */
static const char *next_command(const struct shown_lock *top, const char *target, struct result *r)
{
	if (!top->row->calls && top->row->in_flight && str_starts(target, "-p"))
		return result_text(r, "inspect stack -p %u", top->row->pid);
	if (str_eq(top->kind, "GIL"))
		return result_text(r, "inspect record %s", target);
	return result_text(r, "inspect offcpu --wakers %s", target);
}

/* --lock: which there are, if that was none of them. */
static const char *no_such_lock(const struct trace_view *view, const struct shown_locks *locks,
				struct result *r)
{
	CLEANUP(strbuf_release) struct strbuf b = {0};
	size_t n = MIN(locks->n_others, (size_t)OTHERS_SHOWN);

	strbuf_printf(&b, "nobody waited at a lock %s", view->v->lock);
	for (size_t i = 0; i < locks->near.n; i++)
		strbuf_printf(&b, "%s%s%s", i ? ", " : ": did you mean ", locks->near.best[i].name,
			      i + 1 < locks->near.n ? "" : "?");
	for (size_t i = 0; i < n && !locks->near.n; i++)
		strbuf_printf(&b, "%s%s", i ? ", " : "; most waiting was at ", locks->others[i]);
	if (locks->n_others > n && !locks->near.n)
		strbuf_printf(&b, " and %zu more", locks->n_others - n);
	return result_text(r, "%s", strbuf_str(&b));
}

static void put_summary(const struct trace_view *view, const struct shown_locks *locks,
			const char *target, struct result *r)
{
	const struct shown_lock *top = locks->v.n ? &locks->v.v[0] : NULL;
	double seconds = (double)view->table->elapsed_ns / 1e9;

	if (!top || !locks->total_ns || seconds <= 0) {
		result_fact(r, "summary", "locks",
			    cell_text(r, top || !view->v->lock ? "nobody waited at a lock"
							       : no_such_lock(view, locks, r)));
		return;
	}
	result_fact(
		r, "summary", "locks",
		cell_text(r, result_text(r,
					 "%.0f ms of waiting a second at %zu lock%s, %.0f %% of it "
					 "at %s → next: %s",
					 (double)locks->total_ns / 1e6 / seconds, locks->v.n,
					 locks->v.n == 1 ? "" : "s",
					 100 * (double)trace_row_wall_ns(top->row) /
						 (double)locks->total_ns,
					 top->name, next_command(top, target, r))));
}

static int put_stacks(const struct trace_view *view, const struct shown_locks *locks,
		      struct result *r)
{
	CLEANUP(code_names_freep) struct code_names *code = NULL;
	bool all = view->v->all_rows || view->v->common.json || view->v->common.csv ||
		   view->v->common.markdown;
	size_t n = all ? locks->v.n : MIN(locks->v.n, (size_t)STACKS_SHOWN);
	int err = code_names_new(&code);

	for (size_t i = 0; i < n && !err; i++)
		err = lock_stacks_add(view, &locks->v.v[i].facts, i + 1, locks->v.v[i].name, code,
				      r);
	return err;
}

static int put_table(const struct trace_view *view, const struct shown_locks *locks,
		     const char *target, struct result *r)
{
	size_t section;

	if (!view->is_interval)
		put_summary(view, locks, target, r);
	result_note(
		r,
		"kind and holder are guesses; how long a lock is held is not seen from "
		"futexes: without a rival it never enters the kernel (--hold asks the C library)");
	section = result_section(r, "locks", "", lock_columns, LOCK_COLUMNS);
	for (size_t i = 0; i < locks->v.n; i++)
		put_lock(view, &locks->v.v[i], i + 1, r, section);
	if (r->failed)
		return -ENOMEM;
	r->sections.v[section].limit = view->v->top ? view->v->top : LOCKS_SHOWN;
	r->sections.v[section].fits = !view->v->top;
	r->sections.v[section].more = "--all";
	return view->is_interval ? 0 : put_stacks(view, locks, r);
}

int trace_lock_table(const struct trace_view *view, const char *target, struct result *r)
{
	struct shown_locks locks = {0};
	int err = choose(view, r, &locks);

	if (!err)
		err = put_table(view, &locks, target, r);
	array_release(&locks.v);
	trace_losses(view->table, r);
	return err || r->failed ? -ENOMEM : 0;
}
