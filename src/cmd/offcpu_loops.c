/* SPDX-License-Identifier: BSD-2-Clause */
/* --loop: for each event loop the time from the end of one wait until the next, and where the
 * longest of them went. */
#include "frame_page.h"
#include "offcpu_view.h"

#include <inspect/clock.h>
#include <inspect/term.h>

enum { LOOPS_SHOWN = 10, GAPS_SHOWN = 5, BARS_MOST = 16, BAR_COLUMNS = 32, FRAMES_SHOWN = 12 };

struct gap_ref {
	const struct wait_loop *loop;
	const struct wait_gap *gap;
};

struct gap_refs {
	struct gap_ref *v; /* the longest first; malloc'ed */
	size_t n;
};

static int by_length(const void *a, const void *b)
{
	const struct gap_ref *x = a, *y = b;

	if (x->gap->gap_ns != y->gap->gap_ns)
		return x->gap->gap_ns < y->gap->gap_ns ? 1 : -1;
	return (x->gap->begin_ns > y->gap->begin_ns) - (x->gap->begin_ns < y->gap->begin_ns);
}

static int rank_gaps(const struct waits *w, struct gap_refs *ret)
{
	*ret = (struct gap_refs){.v = calloc(w->loops.n * OFFCPU_LOOP_GAPS + 1, sizeof(*ret->v))};
	if (!ret->v)
		return -ENOMEM;
	for (size_t i = 0; i < w->loops.n; i++)
		for (size_t j = 0; j < w->loops.v[i].n_longest; j++)
			ret->v[ret->n++] =
				(struct gap_ref){&w->loops.v[i], &w->loops.v[i].longest[j]};
	if (ret->n)
		qsort(ret->v, ret->n, sizeof(*ret->v), by_length);
	return 0;
}

static const char *comm_of(const struct waits *w, const struct wait_loop *l)
{
	const struct wait_thread *t = waits_thread(w, l->serial);

	return t ? t->totals.comm : "";
}

/* --- tables ----------------------------------------------------------------------------------- */

static void add_loops(struct result *r, const struct waits *w)
{
	static const struct column columns[] = {
		{"pid", "pid", CELL_COUNT, COLUMN_DATA_ONLY},
		{"tid", "tid", CELL_COUNT, 0},
		{"gaps", "gaps", CELL_COUNT, 0},
		{"p50_ns", "p50", CELL_NS, 0},
		{"p99_ns", "p99", CELL_NS, 0},
		{"max_ns", "max", CELL_NS, 0},
		{"busy_percent", "busy", CELL_PERCENT, 0},
		{"waits", "waits", CELL_COUNT, COLUMN_SPARE},
		{"polls", "polls", CELL_COUNT, COLUMN_DATA_ONLY},
		{"call", "loop", CELL_TEXT, 0},
		{"comm", "thread", CELL_TEXT, COLUMN_CUT},
		{"", "", CELL_TEXT, COLUMN_TABLE_ONLY},
	};
	size_t section = result_section(r, "loops",
					"Event loops: from the end of a wait until "
					"the next one",
					columns, ARRAY_SIZE(columns));

	for (size_t i = 0; i < w->loops.n; i++) {
		const struct wait_loop *l = &w->loops.v[i];
		const struct wait_thread *t = waits_thread(w, l->serial);
		uint64_t wall_ns = t ? t->totals.end_ns - t->totals.start_ns : 0;
		const struct cell cells[] = {
			cell_u64(CELL_COUNT, l->pid),
			cell_u64(CELL_COUNT, l->tid),
			cell_u64(CELL_COUNT, l->gaps.n),
			cell_u64(CELL_NS, histogram_percentile(&l->gaps, 50)),
			cell_u64(CELL_NS, histogram_percentile(&l->gaps, 99)),
			cell_u64(CELL_NS, l->gaps.max),
			cell_double(CELL_PERCENT, offcpu_percent(l->gaps.sum, wall_ns)),
			cell_u64(CELL_COUNT, l->waits),
			cell_u64(CELL_COUNT, l->polls),
			cell_text(r, result_text(r, "%s", l->call)),
			cell_text(r, comm_of(w, l)),
			cell_text(r, l->waits ? "" : "never waits"),
		};

		_Static_assert(ARRAY_SIZE(cells) == ARRAY_SIZE(columns), "a cell for each column");
		result_row(r, section, cells);
	}
	if (!r->failed) {
		r->sections.v[section].limit = LOOPS_SHOWN;
		r->sections.v[section].more = "--all";
	}
}

static void add_gaps(struct result *r, const struct offcpu_view *v, const struct gap_refs *gaps)
{
	static const struct column columns[] = {
		{"stack", "stack", CELL_COUNT, COLUMN_DATA_ONLY},
		{"tid", "tid", CELL_COUNT, 0},
		{"begin_ns", "after", CELL_NS, 0},
		{"gap_ns", "gap", CELL_NS, 0},
		{"ran_ns", "running", CELL_NS, 0},
		{"waited", "waited", CELL_BOOL, COLUMN_DATA_ONLY},
		{"open", "open", CELL_BOOL, COLUMN_DATA_ONLY},
		{"comm", "thread", CELL_TEXT, COLUMN_CUT},
		{"", "", CELL_TEXT, COLUMN_TABLE_ONLY},
	};
	const struct waits *w = v->waits;
	size_t section = result_section(r, "gaps", "The longest", columns, ARRAY_SIZE(columns));

	for (size_t i = 0; i < gaps->n; i++) {
		const struct wait_gap *g = gaps->v[i].gap;
		const struct cell cells[] = {
			cell_u64(CELL_COUNT, v->groups->n + i + 1),
			cell_u64(CELL_COUNT, gaps->v[i].loop->tid),
			cell_u64(CELL_NS, g->begin_ns - MIN(g->begin_ns, w->start_ns)),
			cell_u64(CELL_NS, g->gap_ns),
			cell_u64(CELL_NS, g->ran_ns),
			cell_bool(g->waited),
			cell_bool(g->open),
			cell_text(r, comm_of(w, gaps->v[i].loop)),
			cell_text(r, g->open ? "open" : ""),
		};

		_Static_assert(ARRAY_SIZE(cells) == ARRAY_SIZE(columns), "a cell for each column");
		result_row(r, section, cells);
	}
	if (!r->failed) {
		r->sections.v[section].limit = GAPS_SHOWN;
		r->sections.v[section].more = "--all";
	}
}

static void add_histogram(struct result *r, const struct waits *w, const struct wait_loop *l)
{
	static const struct column columns[] = {
		{"tid", "", CELL_COUNT, COLUMN_DATA_ONLY}, {"from_ns", "from", CELL_NS, 0},
		{"below_ns", "below", CELL_NS, 0},         {"count", "gaps", CELL_COUNT, 0},
		{"", "", CELL_TEXT, COLUMN_TABLE_ONLY},
	};
	struct histogram_bar bars[BARS_MOST];
	size_t n = histogram_bars(&l->gaps, bars, BARS_MOST);
	size_t section = result_section(r, "histograms",
					result_text(r, "Gaps of %s (%u)", comm_of(w, l), l->tid),
					columns, ARRAY_SIZE(columns));
	uint64_t most = 0;

	for (size_t i = 0; i < n; i++)
		most = MAX(most, bars[i].count);
	for (size_t i = 0; i < n; i++) {
		CLEANUP(strbuf_release) struct strbuf bar = {0};

		histogram_put_bar(&bar, bars[i].count, most, BAR_COLUMNS, !term_is_utf8());
		result_row(r, section,
			   (const struct cell[]){
				   cell_u64(CELL_COUNT, l->tid),
				   cell_u64(CELL_NS, bars[i].low),
				   bars[i].high == UINT64_MAX ? cell_null(r, "no upper end")
							      : cell_u64(CELL_NS, bars[i].high),
				   cell_u64(CELL_COUNT, bars[i].count),
				   cell_text(r, result_text(r, "%s", strbuf_str(&bar))),
			   });
	}
}

/* People get the histogram of the loop with the longest gap, data those of all. */
int offcpu_add_loops(struct result *r, const struct offcpu_view *v)
{
	const struct waits *w = v->waits;
	struct gap_refs gaps;
	int err = rank_gaps(w, &gaps);

	if (err)
		return err;
	if (w->loops.n || !v->as_text) {
		add_loops(r, w);
		add_gaps(r, v, &gaps);
	}
	for (size_t i = 0; i < w->loops.n && (!i || v->all || !v->as_text); i++)
		add_histogram(r, w, &w->loops.v[i]);
	if (!w->loops.n)
		result_note(r, "no event loop: no thread waited in epoll_wait, poll or select");
	free(gaps.v);
	return 0;
}

/* --- stacks ----------------------------------------------------------------------------------- */

static const char *title_of(struct result *r, const struct waits *w, const struct gap_ref *g)
{
	char gap[32], ran[32];

	return result_text(r, "%s (%u): %s between waits, of which it ran %s%s",
			   comm_of(w, g->loop), g->loop->tid,
			   duration_format(g->gap->gap_ns, gap, sizeof(gap)),
			   duration_format(g->gap->ran_ns, ran, sizeof(ran)),
			   g->gap->waited ? "; it waited longest at" : "; it ran at");
}

int offcpu_add_gap_stacks(struct result *r, const struct offcpu_view *v)
{
	struct symbol_path path = {0};
	struct gap_refs gaps;
	int err = rank_gaps(v->waits, &gaps);

	for (size_t i = 0; i < gaps.n && !err && v->stacks; i++)
		err = offcpu_put_stack(r, v, gaps.v[i].gap->stack, v->groups->n + i + 1,
				       title_of(r, v->waits, &gaps.v[i]), &path);
	array_release(&path.at);
	free(gaps.v);
	return err;
}

int offcpu_print_gap_stacks(struct frame_page *p, struct result *r, const struct offcpu_view *v)
{
	const struct profile *profile = v->recording->profile;
	struct symbol_path path = {0};
	struct gap_refs gaps;
	size_t shown = 0;
	int err = rank_gaps(v->waits, &gaps);

	for (size_t i = 0; i < gaps.n && shown < v->stacks && !err; i++) {
		const struct profile_row row = {.stack = gaps.v[i].gap->stack};

		if (row.stack == UINT32_MAX)
			continue;
		shown++;
		err = profile_row_path(profile, &row, &path);
		if (err)
			break;
		frame_page_flush(p, false, NULL);
		frame_page_escape(&p->line, title_of(r, v->waits, &gaps.v[i]));
		frame_page_flush(p, true, "1");
		frame_page_kernel(p, profile, &path, path.at.n);
		frame_page_user(p, profile, &path, path.at.n, v->all ? SIZE_MAX : FRAMES_SHOWN);
	}
	array_release(&path.at);
	free(gaps.v);
	return err ? err : p->failed ? -ENOMEM : 0;
}
