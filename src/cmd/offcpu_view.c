/* SPDX-License-Identifier: BSD-2-Clause */
#include "offcpu_view.h"

#include <inspect/term.h>

enum { THREADS_SHOWN = 10, REASONS_IN_LINE = 2 };

double offcpu_percent(uint64_t part, uint64_t whole)
{
	return whole ? 100.0 * (double)part / (double)whole : 0;
}

/* --- threads ---------------------------------------------------------------------------------- */

struct thread_sums {
	uint64_t wall_ns, on_ns, idle_ns, unknown_ns;
	uint64_t by_reason[WAIT_REASONS];
	uint64_t waiting_ns; /* for whatever but a CPU */
};

static uint64_t wall_of(const struct wait_thread *t)
{
	return t->totals.end_ns - t->totals.start_ns;
}

static void add_thread(struct thread_sums *s, const struct wait_thread *t)
{
	s->wall_ns += wall_of(t);
	s->on_ns += t->totals.on_ns;
	s->idle_ns += t->idle_ns;
	s->unknown_ns += t->totals.lost_ns + t->totals.short_ns;
	for (size_t i = 0; i < WAIT_REASONS; i++) {
		s->by_reason[i] += t->by_reason[i];
		if (i != WAIT_RUNNABLE && i != WAIT_THROTTLED && i != WAIT_RUNNING)
			s->waiting_ns += t->by_reason[i];
	}
}

static struct thread_sums sum_all(const struct waits *w)
{
	struct thread_sums s = {0};

	for (size_t i = 0; i < w->threads.n; i++)
		add_thread(&s, &w->threads.v[i]);
	return s;
}

/* What it did or wanted to do; nothing, if it waited for one thing all through. */
static uint64_t busy_of(const struct wait_thread *t)
{
	uint64_t wall_ns = wall_of(t);

	if (!t->totals.switches && !t->totals.on_ns)
		return 0;
	return wall_ns - MIN(wall_ns, t->idle_ns);
}

/* Those first that did, or wanted to do, most. */
static int by_busy_time(const void *a, const void *b)
{
	const struct wait_thread *x = *(const struct wait_thread *const *)a,
				 *y = *(const struct wait_thread *const *)b;
	uint64_t busy_x = busy_of(x), busy_y = busy_of(y);

	if (busy_x != busy_y)
		return busy_x < busy_y ? 1 : -1;
	return (x->serial > y->serial) - (x->serial < y->serial);
}

/* The reasons that there are, that with most time first, without RUNNABLE and RUNNING. Their
 * number. */
static size_t rank_reasons(const struct thread_sums *s, enum wait_reason *ret)
{
	size_t n = 0;

	for (unsigned i = 0; i < WAIT_REASONS; i++) {
		size_t at = n;

		if (i == WAIT_RUNNABLE || i == WAIT_RUNNING || !s->by_reason[i])
			continue;
		for (; at && s->by_reason[ret[at - 1]] < s->by_reason[i]; at--)
			ret[at] = ret[at - 1];
		ret[at] = i;
		n++;
	}
	return n;
}

enum { BEFORE_REASONS = 7 };

static size_t thread_columns(struct result *r, const enum wait_reason *rank, size_t n,
			     const struct thread_sums *sums, bool all, struct column *ret)
{
	static const struct column first[BEFORE_REASONS] = {
		{"pid", "pid", CELL_COUNT, COLUMN_DATA_ONLY},
		{"tid", "tid", CELL_COUNT, 0},
		{"wall_ns", "wall", CELL_NS, 0},
		{"running_percent", "running", CELL_PERCENT, 0},
		{"runnable_percent", "runnable", CELL_PERCENT, 0},
		{"waiting_percent", "waiting", CELL_PERCENT, 0},
		{"idle_percent", "idle", CELL_PERCENT, COLUMN_DATA_ONLY},
	};
	const struct column last[] = {
		{"unknown_percent", "left out", CELL_PERCENT,
		 sums->unknown_ns ? 0 : COLUMN_DATA_ONLY},
		{"switches", "switches", CELL_COUNT, COLUMN_DATA_ONLY},
		{"comm", "thread", CELL_TEXT, COLUMN_CUT},
	};
	size_t at = BEFORE_REASONS;

	memcpy(ret, first, sizeof(first));
	for (size_t i = 0; i < n; i++, at++) {
		const char *name = wait_reason_name(rank[i]);
		char key[40];

		snprintf(key, sizeof(key), "%s_percent", name);
		for (char *c = key; *c; c++)
			*c = *c == ' ' ? '_' : *c;
		ret[at] = (struct column){result_text(r, "%s", key), name, CELL_PERCENT,
					  all ? 0 : COLUMN_SPARE};
	}
	memcpy(ret + at, last, sizeof(last));
	return at + ARRAY_SIZE(last);
}

static void put_thread(struct result *r, size_t section, const enum wait_reason *rank, size_t n,
		       const struct thread_sums *s, const struct wait_thread *t, const char *name)
{
	struct cell cells[BEFORE_REASONS + WAIT_REASONS + 3] = {
		t ? cell_u64(CELL_COUNT, t->totals.pid) : cell_null(r, "the sum of all threads"),
		t ? cell_u64(CELL_COUNT, t->totals.tid) : cell_null(r, "the sum of all threads"),
		cell_u64(CELL_NS, s->wall_ns),
		cell_double(CELL_PERCENT, offcpu_percent(s->on_ns, s->wall_ns)),
		cell_double(CELL_PERCENT, offcpu_percent(s->by_reason[WAIT_RUNNABLE], s->wall_ns)),
		cell_double(CELL_PERCENT, offcpu_percent(s->waiting_ns, s->wall_ns)),
		cell_double(CELL_PERCENT, offcpu_percent(s->idle_ns, s->wall_ns)),
	};
	size_t at = BEFORE_REASONS;

	for (size_t i = 0; i < n; i++)
		cells[at++] = cell_double(CELL_PERCENT,
					  offcpu_percent(s->by_reason[rank[i]], s->wall_ns));
	cells[at++] = cell_double(CELL_PERCENT, offcpu_percent(s->unknown_ns, s->wall_ns));
	cells[at++] = t ? cell_u64(CELL_COUNT, t->totals.switches)
			: cell_null(r, "the sum of all threads");
	cells[at] = cell_text(r, name);
	result_row(r, section, cells);
}

int offcpu_add_threads(struct result *r, const struct offcpu_view *v, const char *key)
{
	const struct waits *w = v->waits;
	CLEANUP(freep)
	const struct wait_thread **order = calloc(w->threads.n + 1, sizeof(*order));
	struct column *columns =
		arena_alloc(&r->arena, (BEFORE_REASONS + WAIT_REASONS + 3) * sizeof(*columns));
	struct thread_sums all = sum_all(w);
	enum wait_reason rank[WAIT_REASONS];
	size_t n_reasons = rank_reasons(&all, rank), section;

	if (!order || !columns)
		return -ENOMEM;
	section = result_section(r, key, "", columns,
				 thread_columns(r, rank, n_reasons, &all, v->all, columns));
	for (size_t i = 0; i < w->threads.n; i++)
		order[i] = &w->threads.v[i];
	if (w->threads.n)
		qsort(order, w->threads.n, sizeof(*order), by_busy_time);
	if (w->threads.n > 1)
		put_thread(r, section, rank, n_reasons, &all, NULL,
			   result_text(r, "all %zu threads", w->threads.n));
	for (size_t i = 0; i < w->threads.n; i++) {
		struct thread_sums s = {0};

		add_thread(&s, order[i]);
		put_thread(r, section, rank, n_reasons, &s, order[i], order[i]->totals.comm);
	}
	if (!r->failed) {
		r->sections.v[section].limit = THREADS_SHOWN;
		r->sections.v[section].more = "--all";
		r->sections.v[section].sum_first = true;
	}
	return 0;
}

/* What is missing, as data; for people it is in the notes. */
static void add_losses(struct result *r, const struct waits *w)
{
	struct column *columns = arena_alloc(&r->arena, WAIT_LOSSES * sizeof(*columns));
	struct cell cells[WAIT_LOSSES];
	struct wait_loss all[WAIT_LOSSES];
	size_t section;

	if (!columns) {
		r->failed = true;
		return;
	}
	waits_losses(w, all);
	for (size_t i = 0; i < WAIT_LOSSES; i++) {
		columns[i] = (struct column){all[i].key, "", CELL_COUNT, COLUMN_DATA_ONLY};
		cells[i] = cell_u64(CELL_COUNT, all[i].n);
	}
	section = result_section(r, "losses", "", columns, WAIT_LOSSES);
	result_row(r, section, cells);
	if (!r->failed)
		r->sections.v[section].is_object = true;
}

/* In place of empty tables. */
static void note_nothing(struct result *r, const struct offcpu_view *v)
{
	const struct waits *w = v->waits;

	if (!w->threads.n)
		result_note(r, "no thread of the target was seen: it had ended, or ended before "
			       "measuring began");
	else if (sum_all(w).unknown_ns)
		result_note(r,
			    "no wait to show: all that there were are left out by --min-wait and "
			    "--max-wait, or lost");
	else if (!v->groups->n)
		result_note(r, "no wait to show: no thread of the target was off its CPU");
}

int offcpu_tables(struct result *r, const struct offcpu_view *v)
{
	int err = 0;

	add_losses(r, v->waits);
	if (v->as_text && !v->groups->n)
		note_nothing(r, v);
	if (!v->as_text || v->waits->threads.n)
		err = offcpu_add_threads(r, v, "threads");
	if (!err && v->with_loops)
		err = offcpu_add_loops(r, v);
	if (err || (v->as_text && !v->groups->n))
		return err;
	return offcpu_add_waits(r, v, sum_all(v->waits).wall_ns);
}

/* --- the first line --------------------------------------------------------------------------- */

/* " (sleep 40 %, lock 20 %)": the largest of what is waited for. */
static void put_reasons(struct strbuf *b, const struct thread_sums *s)
{
	enum wait_reason rank[WAIT_REASONS];
	size_t n = rank_reasons(s, rank), shown = 0;

	for (size_t i = 0; i < n && shown < REASONS_IN_LINE; i++) {
		double percent = offcpu_percent(s->by_reason[rank[i]], s->wall_ns);

		if (rank[i] == WAIT_THROTTLED || percent < 1)
			continue;
		strbuf_printf(b, "%s%s %.0f %%", shown++ ? ", " : " (", wait_reason_name(rank[i]),
			      percent);
	}
	if (shown)
		strbuf_putc(b, ')');
}

/* Of several threads the one that ran most. */
static void put_hottest(struct strbuf *b, const struct offcpu_view *v)
{
	const struct waits *w = v->waits;
	const struct wait_thread *most = NULL;
	double percent;

	for (size_t i = 0; i < w->threads.n; i++)
		if (!most || w->threads.v[i].totals.on_ns > most->totals.on_ns)
			most = &w->threads.v[i];
	percent = most ? offcpu_percent(most->totals.on_ns, v->recording->profile->duration_ns) : 0;
	if (w->threads.n < 2 || percent < 1)
		return;
	strbuf_puts(b, " · hottest thread ");
	term_escape(b, most->totals.comm, strnlen(most->totals.comm, sizeof(most->totals.comm)));
	strbuf_printf(b, " %.0f %%", percent);
}

void offcpu_headline(struct strbuf *b, const struct offcpu_view *v)
{
	const struct target_load *l = &v->recording->load;
	struct thread_sums s = sum_all(v->waits);
	uint64_t throttled = s.by_reason[WAIT_THROTTLED];

	strbuf_printf(b, "target %.2f of %u CPUs",
		      v->recording->profile->duration_ns
			      ? (double)s.on_ns / (double)v->recording->profile->duration_ns
			      : 0,
		      l->cpus_online);
	if (l->quota > 0)
		strbuf_printf(b, " (quota %.3g)", l->quota);
	strbuf_printf(b, " · %.0f %% running", offcpu_percent(s.on_ns, s.wall_ns));
	strbuf_printf(b, " · %.0f %% waiting", offcpu_percent(s.waiting_ns, s.wall_ns));
	put_reasons(b, &s);
	strbuf_printf(b, " · %.0f %% runnable",
		      offcpu_percent(s.by_reason[WAIT_RUNNABLE], s.wall_ns));
	if (throttled)
		strbuf_printf(b, " · %.0f %% throttled", offcpu_percent(throttled, s.wall_ns));
	if (throttled && l->n_throttled > 0)
		strbuf_printf(b, " (%s%lld times)", l->at_least ? "at least " : "",
			      (long long)l->n_throttled);
	if (offcpu_percent(s.unknown_ns, s.wall_ns) >= 1)
		strbuf_printf(b, " · %.0f %% left out", offcpu_percent(s.unknown_ns, s.wall_ns));
	put_hottest(b, v);
	strbuf_printf(b, " · lost %llu", (unsigned long long)v->recording->profile->losses.lost);
}
