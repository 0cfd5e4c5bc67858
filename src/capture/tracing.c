/* SPDX-License-Identifier: BSD-2-Clause */
#include "sampling.h"
#include "watch.h"

#include <inspect/clock.h>
#include <inspect/tracing.h>
#include <inspect/unwind.h>

/* Slots of the kernel's histograms have 32 bits: they are read before they can wrap. */
#define READ_NS_MAX (60 * NSEC_PER_SEC)
/* The first of the caller's ticks; each comes twice as late as the one before, up to the last. */
#define ASK_NS_FIRST (50 * NSEC_PER_MSEC)
#define ASK_NS_MAX NSEC_PER_SEC

struct trace_session {
	const struct tracing_config *config;
	struct tracing *result;
	struct syscall_table before; /* as last read */
	note_list *notes;
	uint64_t next_interval_ns, next_read_ns, next_ask_ns, ask_ns;
	unsigned intervals;
	struct watch watch;
	struct diag *d;
};

/* --- what counts ------------------------------------------------------------------------------ */

static int open_source(void *ctx)
{
	struct trace_session *s = ctx;
	const struct tracing_config *c = s->config;
	struct tracing *r = s->result;
	struct syscall_counts_config counts = {
		.target = watch_target(&s->watch),
		.only = c->only,
		.by = c->by,
		.of_bytes = c->of_bytes,
		.details = c->details,
	};
	struct probe_counts_config probe;
	int err;

	if (c->probe) {
		probe = *c->probe;
		probe.target = counts.target;
		return probe_counts_new(&probe, c->host, &r->probes, s->d);
	}
	err = c->with_stacks ? unwind_tables_new(true, &r->tables) : 0;
	if (err)
		return diag_errno(s->d, err, "preparing to unwind");
	if (c->with_stacks) {
		counts.target.rows = unwind_rows_of_tables;
		counts.target.rows_ctx = r->tables;
	}
	err = syscall_counts_new(&counts, c->host, s->notes, &r->counts, s->d);
	if (!err)
		r->attached = syscall_counts_attached(r->counts);
	return err;
}

static int start_source(struct tracing *r)
{
	return r->probes ? probe_counts_start(r->probes) : syscall_counts_start(r->counts);
}

static void stop_source(struct tracing *r)
{
	if (r->probes)
		probe_counts_stop(r->probes);
	else
		syscall_counts_stop(r->counts);
}

static int read_source(struct tracing *r, struct syscall_table *ret)
{
	return r->probes ? probe_counts_read(r->probes, ret) : syscall_counts_read(r->counts, ret);
}

/* --- the session ------------------------------------------------------------------------------ */

static int start(void *ctx)
{
	struct trace_session *s = ctx;
	uint64_t now_ns = s->result->watched.start_ns;

	s->next_interval_ns = s->config->interval_ns ? now_ns + s->config->interval_ns : UINT64_MAX;
	s->next_read_ns = now_ns + READ_NS_MAX;
	s->ask_ns = ASK_NS_FIRST;
	s->next_ask_ns = now_ns + s->ask_ns;
	return diag_errno(s->d, start_source(s->result), "cannot start counting");
}

static int read_table(struct trace_session *s, struct syscall_table *ret)
{
	int err = read_source(s->result, ret);

	if (err)
		syscall_table_release(ret);
	return err ? diag_errno(s->d, err, "cannot read the counts") : 0;
}

static int end_interval(struct trace_session *s)
{
	struct syscall_table now = {0}, since = {0};
	int err = read_table(s, &now);

	if (err)
		return err;
	err = syscall_table_since(&now, &s->before, &since);
	if (!err)
		err = s->config->interval(s->config->ctx, s->result->counts, &since);
	syscall_table_release(&since);
	syscall_table_release(&s->before);
	s->before = now;
	s->intervals++;
	return err;
}

static int do_timers(struct trace_session *s, uint64_t now_ns)
{
	const struct tracing_config *c = s->config;
	struct syscall_table unused = {0};
	int err = 0;

	if (now_ns >= s->next_interval_ns) {
		err = end_interval(s);
		/* A late one does not make the next ones late. */
		while (s->next_interval_ns <= now_ns)
			s->next_interval_ns += c->interval_ns;
	}
	if (!err && c->tick && s->result->counts && now_ns >= s->next_ask_ns) {
		err = c->tick(c->ctx, s->result->counts);
		s->ask_ns = MIN(s->ask_ns * 2, ASK_NS_MAX);
		s->next_ask_ns = now_ns + s->ask_ns;
	}
	if (!err && now_ns >= s->next_read_ns) {
		err = read_table(s, &unused);
		if (!err)
			syscall_table_release(&unused);
		s->next_read_ns = now_ns + READ_NS_MAX;
	}
	return err;
}

/* … and not all intervals are over. */
static bool alive(void *ctx)
{
	struct trace_session *s = ctx;
	const struct tracing_config *c = s->config;
	const struct tracing *r = s->result;

	if (c->intervals_max && s->intervals >= c->intervals_max)
		return false;
	return r->probes ? probe_counts_alive(r->probes) : syscall_counts_alive(r->counts);
}

static int turn(void *ctx)
{
	struct trace_session *s = ctx;
	int err = watch_wait(&s->watch, -1, s->next_interval_ns);

	return err ? err : do_timers(s, clock_now_ns());
}

/* What is left behind the last whole interval, so that all of them add up to the total. */
static int last_interval(struct trace_session *s)
{
	const struct tracing_config *c = s->config;
	struct syscall_table since = {0};
	int err;

	if (!c->interval_ns || (c->intervals_max && s->intervals >= c->intervals_max) ||
	    s->result->table.elapsed_ns < s->before.elapsed_ns + NSEC_PER_MSEC)
		return 0;
	err = syscall_table_since(&s->result->table, &s->before, &since);
	if (!err)
		err = c->interval(c->ctx, s->result->counts, &since);
	syscall_table_release(&since);
	return err;
}

static int finish(void *ctx)
{
	struct trace_session *s = ctx;
	struct tracing *r = s->result;
	int err;

	if (s->config->tick && r->counts && s->config->tick(s->config->ctx, r->counts))
		return -ENOMEM;
	stop_source(r);
	err = read_table(s, &r->table);
	return err ? err : last_interval(s);
}

int tracing_run(const struct tracing_config *c, note_list *notes, struct tracing *ret,
		struct diag *d)
{
	static const struct watch_steps steps = {open_source, start, alive, turn, finish, NULL};
	struct trace_session s = {
		.config = c,
		.result = ret,
		.notes = notes,
		.watch = WATCH_OF(c, ret, d),
		.d = d,
	};
	int err;

	*ret = (struct tracing){0};
	err = watch_run(&s.watch, &steps, &s);
	syscall_table_release(&s.before);
	return err && err != -ECANCELED ? diag_errno(d, err, "tracing failed") : 0;
}

void tracing_release(struct tracing *t)
{
	syscall_table_release(&t->table);
	syscall_counts_free(t->counts);
	probe_counts_free(t->probes);
	unwind_tables_free(t->tables); /* their thread has used it */
	t->tables = NULL;
	t->probes = NULL;
	t->counts = NULL;
	watched_release(&t->watched);
}
