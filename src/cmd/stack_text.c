/* SPDX-License-Identifier: BSD-2-Clause */
/* A snapshot for people: who waits for whom first, then the groups, the odd ones first. */
#include "stack_page.h"

#include <inspect/clock.h>
#include <inspect/term.h>

enum { TIDS_SHOWN = 8 };

const struct snapshot_thread *stack_thread_at(const struct snapshot *s, size_t i)
{
	return &s->threads.v[s->order.v[i]];
}

static const char *symbol_name(const struct snapshot *s, const struct symbol_at *at)
{
	return intern_str(&s->profile->strings, s->profile->symbols.v[at->symbol].name);
}

static bool is_kernel(const struct snapshot *s, const struct symbol_at *at)
{
	return s->profile->symbols.v[at->symbol].kind == FRAME_KERNEL;
}

/* --- states ----------------------------------------------------------------------------------- */

const char *stack_state_words(const struct task_state *t)
{
	static const char frozen[] = "is frozen with its cgroup";

	static const struct {
		char letter;
		const char *words;
	} states[] = {
		{'S', "waits"},
		{'D', "waits (D, not interruptible)"},
		{'T', "is stopped"},
		{'t', "is stopped by a tracer"},
		{'Z', "has ended (Z, a zombie)"},
		{'X', "has ended"},
		{'I', "is idle"},
		{'P', "is parked"},
	};

	if (t->frozen && strchr("SD", t->state))
		return frozen;
	for (size_t i = 0; i < ARRAY_SIZE(states); i++)
		if (t->state == states[i].letter)
			return states[i].words;
	return t->on_cpu ? "runs" : "waits for a CPU";
}

static bool is_fault(const char *name)
{
	static const char *const parts[] = {"page_fault", "handle_mm_fault", "do_mem_abort"};

	for (size_t i = 0; i < ARRAY_SIZE(parts); i++)
		if (strstr(name, parts[i]))
			return true;
	return false;
}

bool stack_in_page_fault(const struct snapshot *s, const struct snapshot_thread *t)
{
	for (size_t i = 0; i < t->path.at.n; i++)
		if (is_kernel(s, &t->path.at.v[i]) && is_fault(symbol_name(s, &t->path.at.v[i])))
			return true;
	return false;
}

/* The scheduler's clocks of two CPUs do not agree to the microsecond. */
static const char *spell_time(uint64_t ns, char *buf, size_t size)
{
	return ns < NSEC_PER_MSEC ? "under 1 ms" : duration_format(ns, buf, size);
}

void stack_put_times(struct strbuf *b, const struct snapshot *s, const struct snapshot_group *g)
{
	uint64_t least = UINT64_MAX, most = 0;
	char from_buf[32], to_buf[32];
	const char *from, *to;

	for (size_t i = g->first; i < g->first + g->n; i++) {
		uint64_t ns = stack_thread_at(s, i)->task.since_ns;

		if (ns == TASK_STATE_TIME_UNKNOWN)
			return;
		least = MIN(least, ns);
		most = MAX(most, ns);
	}
	from = spell_time(least, from_buf, sizeof(from_buf));
	to = spell_time(most, to_buf, sizeof(to_buf));
	if (str_eq(from, to))
		strbuf_puts(b, to);
	else
		strbuf_printf(b, "%s … %s", from, to);
}

/* --- what a group waits for ------------------------------------------------------------------- */

static size_t count_objects(const struct snapshot *s, const struct snapshot_group *g)
{
	size_t n = 0;

	for (size_t i = g->first; i < g->first + g->n; i++) {
		const char *object = stack_thread_at(s, i)->wait.object;
		bool seen = !object;

		for (size_t k = g->first; k < i && !seen && n < TIDS_SHOWN; k++)
			seen = stack_thread_at(s, k)->wait.object &&
			       str_eq(stack_thread_at(s, k)->wait.object, object);
		n += !seen;
	}
	return n;
}

static void add_holder(struct strbuf *b, const struct snapshot *s, const struct snapshot_wait *wait)
{
	if (wait->readers)
		strbuf_printf(b, ", held by %u reader%s", wait->readers,
			      wait->readers == 1 ? "" : "s");
	if (!wait->owner)
		return;
	strbuf_printf(b, ", held by %d", wait->owner);
	for (size_t i = 0; i < s->threads.n; i++) {
		if (s->threads.v[i].task.tid != wait->owner)
			continue;
		strbuf_putc(b, ' ');
		frame_page_escape(b, s->threads.v[i].task.comm);
		return;
	}
}

/* Of a group that waits for one lock, all that wait there have one holder. */
static bool has_one_holder(const struct snapshot *s, const struct snapshot_group *g)
{
	const struct snapshot_wait *first = &stack_thread_at(s, g->first)->wait;

	for (size_t i = g->first + 1; i < g->first + g->n; i++)
		if (stack_thread_at(s, i)->wait.owner != first->owner ||
		    stack_thread_at(s, i)->wait.lock_va != first->lock_va)
			return false;
	return true;
}

void stack_put_wait(struct strbuf *b, const struct snapshot *s, const struct snapshot_group *g,
		    bool is_short)
{
	const struct snapshot_thread *t = stack_thread_at(s, g->first);

	if (t->wait.text[0]) {
		if (is_short && t->wait.call) {
			strbuf_printf(b, "%s%s", t->wait.call, t->wait.object ? " " : "");
			frame_page_escape(b, t->wait.object ? t->wait.object : "");
		} else {
			frame_page_escape(b, t->wait.text);
		}
		if (count_objects(s, g) > 1)
			strbuf_puts(b, " and others");
		if (has_one_holder(s, g))
			add_holder(b, s, &t->wait);
		if (t->wait.by_design)
			strbuf_puts(b, is_short ? " (by design)" : "   (by design)");
	} else if (stack_in_page_fault(s, t)) {
		strbuf_puts(b, "a page fault");
	}
}

static void print_wait(struct stack_page *p, const struct snapshot_group *g)
{
	const struct snapshot_thread *t = stack_thread_at(p->s, g->first);
	CLEANUP(strbuf_release) struct strbuf wait = {0};

	stack_put_wait(&wait, p->s, g, false);
	if (!wait.n)
		return;
	strbuf_printf(&p->page.line, "%*s%s%s", FRAME_INDENT, "",
		      t->task.state == 'Z' ? "awaits  " : "in      ", strbuf_str(&wait));
	frame_page_flush(&p->page, true, "36");
	if (!t->wait.peer || g->n > 1)
		return;
	strbuf_printf(&p->page.line, "%*speer    ", FRAME_INDENT, "");
	frame_page_escape(&p->page.line, t->wait.peer);
	frame_page_flush(&p->page, true, "36");
}

/* --- frames ----------------------------------------------------------------------------------- */

static void print_user(struct stack_page *p, const struct snapshot_thread *t)
{
	frame_page_user(&p->page, p->s->profile, &t->path, t->path.at.n,
			p->style->all ? SIZE_MAX : p->style->max_stack);
	if (t->stack == SNAPSHOT_STACK_NONE && t->missing) {
		strbuf_printf(&p->page.line, "%*s[no user stack: %s]", FRAME_INDENT, "",
			      t->missing);
		frame_page_flush(&p->page, true, NULL);
	} else if (t->stack == SNAPSHOT_STACK_MOVED) {
		strbuf_printf(&p->page.line,
			      "%*s[it ran while it was read: frames may not belong together]",
			      FRAME_INDENT, "");
		frame_page_flush(&p->page, true, NULL);
	}
}

/* --- groups ----------------------------------------------------------------------------------- */

void stack_put_thread(struct strbuf *b, const struct snapshot_thread *t)
{
	strbuf_printf(b, "%d ", t->task.tid);
	frame_page_escape(b, t->task.comm);
}

static void print_members(struct stack_page *p, const struct snapshot_group *g)
{
	size_t shown = p->style->all ? g->n : MIN(g->n, (size_t)TIDS_SHOWN);
	unsigned width = p->style->width ? MAX(p->style->width, (unsigned)FRAME_WIDTH_LEAST) : 100;

	strbuf_printf(&p->page.line, "%*sthreads ", FRAME_INDENT, "");
	for (size_t i = 0; i < shown; i++) {
		CLEANUP(strbuf_release) struct strbuf one = {0};

		stack_put_thread(&one, stack_thread_at(p->s, g->first + i));
		if (i + 1 < g->n)
			strbuf_putc(&one, ',');
		if (i && term_columns(strbuf_str(&p->page.line)) + one.n + 1 > width) {
			frame_page_flush(&p->page, false, NULL);
			strbuf_printf(&p->page.line, "%*s        ", FRAME_INDENT, "");
		}
		strbuf_printf(&p->page.line, "%s%s", i ? " " : "", strbuf_str(&one));
	}
	if (shown < g->n)
		strbuf_printf(&p->page.line, " and %zu more (--all)", g->n - shown);
	frame_page_flush(&p->page, true, NULL);
}

static void print_group(struct stack_page *p, size_t number)
{
	const struct snapshot_group *g = &p->s->groups.v[number - 1];
	const struct snapshot_thread *t = stack_thread_at(p->s, g->first);
	CLEANUP(strbuf_release) struct strbuf times = {0};

	frame_page_flush(&p->page, false, NULL);
	if (p->s->groups.n > 1)
		strbuf_printf(&p->page.line, "#%zu ", number);
	if (g->n == 1)
		stack_put_thread(&p->page.line, t);
	else
		strbuf_printf(&p->page.line, "%zu threads", g->n);
	strbuf_printf(&p->page.line, ": %s", stack_state_words(&t->task));
	if (!t->task.on_cpu && t->task.state != 'I')
		stack_put_times(&times, p->s, g);
	if (times.n)
		strbuf_printf(&p->page.line, " for %s", strbuf_str(&times));
	frame_page_flush(&p->page, true, "1");
	if (g->n > 1)
		print_members(p, g);
	print_wait(p, g);
	frame_page_kernel(&p->page, p->s->profile, &t->path, t->path.at.n);
	print_user(p, t);
}

/* --- the head --------------------------------------------------------------------------------- */

/* One line for each thread of a circle. */
static void print_cycle(struct stack_page *p, uint32_t cycle)
{
	const struct snapshot *s = p->s;
	size_t n = 0;

	for (size_t i = 0; i < s->threads.n; i++)
		n += s->threads.v[i].cycle == cycle;
	strbuf_printf(&p->page.line, "# deadlock: %zu thread%s", n,
		      n == 1 ? " waits for itself" : "s wait for each other");
	frame_page_flush(&p->page, true, "31;1");
	for (size_t i = 0; i < s->threads.n; i++) {
		const struct snapshot_thread *t = &s->threads.v[i];

		if (t->cycle != cycle)
			continue;
		strbuf_puts(&p->page.line, "#   ");
		stack_put_thread(&p->page.line, t);
		strbuf_puts(&p->page.line, " waits for ");
		frame_page_escape(&p->page.line, t->wait.object ? t->wait.object : "a lock");
		add_holder(&p->page.line, s, &t->wait);
		frame_page_flush(&p->page, true, "31");
	}
}

static const char *plural(size_t n)
{
	return n == 1 ? "" : "s";
}

/* A letter, that no state has for those that are frozen. */
static char count_as(const struct task_state *t)
{
	return t->frozen && strchr("SD", t->state) ? 'F' : t->state;
}

static void add_counts(struct strbuf *b, const struct snapshot *s)
{
	static const struct {
		const char *letters, *words;
	} kinds[] = {
		{"S", "wait"},     {"D", "wait in D"}, {"F", "frozen"}, {"R", "run or want a CPU"},
		{"Tt", "stopped"}, {"ZX", "ended"},    {"IP", "idle"},
	};
	const char *separator = ": ";

	for (size_t k = 0; k < ARRAY_SIZE(kinds); k++) {
		size_t n = 0;

		for (size_t i = 0; i < s->threads.n; i++)
			n += strchr(kinds[k].letters, count_as(&s->threads.v[i].task)) != NULL;
		if (!n)
			continue;
		strbuf_printf(b, "%s%zu %s", separator, n, kinds[k].words);
		separator = ", ";
	}
}

static void print_head(struct stack_page *p)
{
	const struct snapshot *s = p->s;
	size_t processes = 0;
	char read[32];

	for (size_t i = 0; i < s->threads.n; i++)
		processes += !i || s->threads.v[i].task.pid != s->threads.v[i - 1].task.pid;
	strbuf_printf(&p->page.line, "# %zu thread%s", s->threads.n, plural(s->threads.n));
	if (processes > 1)
		strbuf_printf(&p->page.line, " of %zu processes", processes);
	add_counts(&p->page.line, s);
	frame_page_flush(&p->page, true, NULL);
	strbuf_printf(&p->page.line,
		      "# %zu group%s of equal stacks · read in %s without stopping any",
		      s->groups.n, plural(s->groups.n),
		      duration_format(s->read_ns, read, sizeof(read)));
	frame_page_flush(&p->page, true, NULL);
	if (s->n_left_out) {
		strbuf_printf(&p->page.line, "# %u kernel threads that sleep are left out",
			      s->n_left_out);
		frame_page_flush(&p->page, true, NULL);
	}
	for (uint32_t i = 1; i <= s->n_cycles; i++)
		print_cycle(p, i);
}

int stack_text(const struct snapshot *s, const struct stack_style *style, FILE *out)
{
	struct stack_page p = {
		.s = s,
		.style = style,
		.page = {.out = out,
			 .width = style->width,
			 .color = style->color,
			 .ascii = style->ascii},
	};
	int err;

	print_head(&p);
	stack_summary(&p);
	for (size_t i = 1; i <= s->groups.n; i++)
		print_group(&p, i);
	err = p.page.failed ? -ENOMEM : fflush(out) || ferror(out) ? -EIO : 0;
	strbuf_release(&p.page.line);
	return err;
}
