/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The table of waits. For people, what differs in the object alone (each thread's own lock in a
 * queue, each connection's socket) at the same place of the program is one row; data has them
 * apart.
 */
#include "offcpu_view.h"

#include <inspect/procfs.h>

enum { WAITS_SHOWN = 10, WAKERS_MAX = 64, LABEL_PERCENT = 80, MARK_PERCENT = 10 };

/* Who of those not measured has that number now. */
static const char *stranger(struct result *r, uint32_t tid)
{
	struct proc_stat stat;

	if (proc_stat_read((pid_t)tid, 0, &stat))
		return result_text(r, "tid %u", tid);
	return result_text(r, "%s (%u)", stat.comm, tid);
}

static const char *waker_name(struct result *r, const struct waits *w, uint32_t waker)
{
	const struct wait_thread *t;

	if (waker == OFFCPU_WAKER_NONE)
		return "";
	if (waker == OFFCPU_WAKER_IRQ)
		return "[irq]";
	if (waker & OFFCPU_WAKER_OTHER)
		return stranger(r, waker & ~OFFCPU_WAKER_OTHER);
	t = waits_thread(w, waker);
	return t ? result_text(r, "%s (%u)", t->totals.comm, t->totals.tid) : "[ended]";
}

struct waker_sums {
	struct {
		uint32_t waker;
		uint64_t ns;
	} v[WAKERS_MAX];
	size_t n;
};

/* What ended the wakeable time of a site. Parts are sorted by site. */
static void add_wakers(struct waker_sums *sums, const struct waits *w, uint32_t site)
{
	size_t low = 0, high = w->parts.n;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (w->parts.v[middle].site < site)
			low = middle + 1;
		else
			high = middle;
	}
	for (; low < w->parts.n && w->parts.v[low].site == site; low++) {
		const struct wait_part *p = &w->parts.v[low];
		size_t i = 0;

		if (p->waker == OFFCPU_WAKER_NONE)
			continue;
		while (i < sums->n && sums->v[i].waker != p->waker)
			i++;
		if (i == WAKERS_MAX)
			continue;
		if (i == sums->n) {
			sums->v[i].waker = p->waker;
			sums->v[sums->n++].ns = 0;
		}
		sums->v[i].ns += p->wait_ns;
	}
}

/* The one that ended most of it; "" none. */
const char *offcpu_top_waker(struct result *r, const struct waits *w, const struct wait_group *g)
{
	struct waker_sums sums = {.n = 0};
	size_t best = 0;

	if (g->first == UINT32_MAX)
		return "";
	for (uint32_t i = g->first; i != UINT32_MAX; i = g->next[i])
		add_wakers(&sums, w, i);
	for (size_t i = 1; i < sums.n; i++)
		best = sums.v[i].ns > sums.v[best].ns ? i : best;
	return sums.n ? waker_name(r, w, sums.v[best].waker) : "";
}

static const struct column wait_columns[] = {
	{"wait", "#", CELL_COUNT, 0},
	{"percent", "share", CELL_PERCENT, 0},
	{"wait_ns", "time", CELL_NS, 0},
	{"queue_ns", "queue", CELL_NS, COLUMN_DATA_ONLY},
	{"count", "waits", CELL_COUNT, COLUMN_SPARE},
	{"p50_ns", "p50", CELL_NS, COLUMN_SPARE},
	{"p99_ns", "p99", CELL_NS, COLUMN_SPARE},
	{"max_ns", "max", CELL_NS, COLUMN_SPARE},
	{"threads", "threads", CELL_COUNT, COLUMN_DATA_ONLY},
	{"pid", "pid", CELL_COUNT, COLUMN_DATA_ONLY},
	{"open", "open", CELL_COUNT, COLUMN_DATA_ONLY},
	{"open_ns", "open time", CELL_NS, COLUMN_DATA_ONLY},
	{"before", "before", CELL_COUNT, COLUMN_DATA_ONLY},
	{"before_ns", "before time", CELL_NS, COLUMN_DATA_ONLY},
	{"idle", "idle", CELL_BOOL, COLUMN_DATA_ONLY},
	{"stack", "stack", CELL_COUNT, COLUMN_DATA_ONLY},
	{"reason", "reason", CELL_TEXT, COLUMN_DATA_ONLY},
	{"for", "waits for", CELL_TEXT, COLUMN_CUT},
	{"marks", "", CELL_TEXT, COLUMN_TABLE_ONLY},
	{"waker", "woken by", CELL_TEXT, COLUMN_SPARE},
};

static const char *marks_of(struct result *r, const struct waits *w, const struct wait_site *s)
{
	bool idle = w->labels.v[s->label].idle;
	/* Nearly every place has one of each among many. */
	uint64_t least_ns = s->wait_ns / 100 * MARK_PERCENT;

	if (s->n_before == s->count && s->n_open == s->count)
		return "all through";
	return result_text(r, "%s%s%s", idle ? "idle " : "",
			   s->n_before && s->before_ns > least_ns ? "since before the start " : "",
			   s->n_open && s->open_ns > least_ns ? "open" : "");
}

/* "recvfrom, 4 fds"; the object where most of the time goes to one: "futex lock +2". */
const char *offcpu_group_text(struct result *r, const struct waits *w, const struct wait_group *g)
{
	const struct wait_label *l = &w->labels.v[g->sum.label];
	int call = (int)strcspn(l->text, " ");

	if (g->woken_ns)
		return result_text(r, "%s (%.0f %% woken)", l->text,
				   offcpu_percent(g->woken_ns, g->sum.queue_ns));
	if (g->n_labels == 1)
		return l->text;
	/* Python's lock is two words in turn. */
	if (str_ends(l->text, "(GIL)") || g->label_ns >= g->sum.wait_ns / 100 * LABEL_PERCENT)
		return result_text(r, "%s +%zu", l->text, g->n_labels - 1);
	return result_text(r, "%.*s, %zu %s", call, l->text, g->n_labels,
			   g->sum.reason == WAIT_LOCK        ? "locks"
			   : g->sum.reason == WAIT_CONDITION ? "conditions"
			   : g->sum.reason == WAIT_JOIN      ? "threads"
			   : g->sum.reason == WAIT_CHILD     ? "children"
							     : "fds");
}

static void put_wait(struct result *r, size_t section, const struct waits *w,
		     const struct wait_group *g, size_t number, uint64_t wall_ns)
{
	const struct wait_site *s = &g->sum;
	const struct wait_label *l = &w->labels.v[s->label];
	bool runnable = l->reason == WAIT_RUNNABLE;
	bool is_merged = runnable || l->reason == WAIT_THROTTLED;
	const struct cell cells[] = {
		cell_u64(CELL_COUNT, number),
		cell_double(CELL_PERCENT, offcpu_percent(wait_site_ns(s), wall_ns)),
		cell_u64(CELL_NS, wait_site_ns(s)),
		cell_u64(CELL_NS, runnable ? 0 : s->queue_ns),
		cell_u64(CELL_COUNT, s->count),
		cell_u64(CELL_NS, wait_site_percentile(s, 50)),
		cell_u64(CELL_NS, wait_site_percentile(s, 99)),
		cell_u64(CELL_NS, s->max_ns),
		cell_u64(CELL_COUNT, s->n_threads),
		is_merged ? cell_null(r, "of all processes") : cell_u64(CELL_COUNT, s->pid),
		cell_u64(CELL_COUNT, s->n_open),
		cell_u64(CELL_NS, s->open_ns),
		cell_u64(CELL_COUNT, s->n_before),
		cell_u64(CELL_NS, s->before_ns),
		cell_bool(l->idle),
		s->stack == UINT32_MAX ? cell_null(r, is_merged ? "at any place" : "not known")
				       : cell_u64(CELL_COUNT, s->stack),
		cell_text(r, wait_reason_name(s->reason)),
		cell_text(r, offcpu_group_text(r, w, g)),
		cell_text(r, marks_of(r, w, s)),
		cell_text(r, offcpu_top_waker(r, w, g)),
	};

	_Static_assert(ARRAY_SIZE(cells) == ARRAY_SIZE(wait_columns), "a cell for each column");
	result_row(r, section, cells);
}

int offcpu_add_waits(struct result *r, const struct offcpu_view *v, uint64_t wall_ns)
{
	size_t section = result_section(r, "waits", "", wait_columns, ARRAY_SIZE(wait_columns));
	int err;

	for (size_t i = 0; i < v->groups->n; i++)
		put_wait(r, section, v->waits, &v->groups->v[i], i + 1, wall_ns);
	if (!r->failed) {
		r->sections.v[section].limit = WAITS_SHOWN;
		r->sections.v[section].more = "--all";
	}
	if (v->as_text)
		return 0;
	err = offcpu_add_stacks(r, v);
	return err || !v->with_loops ? err : offcpu_add_gap_stacks(r, v);
}
