/* SPDX-License-Identifier: BSD-2-Clause */
#include "watch.h"

#include <inspect/clock.h>
#include <inspect/gpu_tracing.h>

struct gpu_session {
	const struct gpu_tracing_config *config;
	struct gpu_tracing *result;
	struct gpu_counts *counts;
	note_list *notes;
	struct watch watch;
	struct diag *d;
};

static int open_counts(void *ctx)
{
	struct gpu_session *s = ctx;
	const struct gpu_tracing_config *c = s->config;
	struct gpu_counts_config config = {
		.target = watch_target(&s->watch),
		.by = c->by,
		.events = c->event != NULL,
	};
	struct gpu_scope scope = {0};
	int err = gpu_scope_find(c->devices, c->version, &scope);

	config.watch = scope.watch;
	err = err ? diag_errno(s->d, err, "tracing")
		  : gpu_counts_new(&config, c->host, &s->counts, s->d);
	gpu_scope_release(&scope);
	return err;
}

static int start(void *ctx)
{
	struct gpu_session *s = ctx;

	return diag_errno(s->d, gpu_counts_start(s->counts), "cannot start counting");
}

static bool alive(void *ctx)
{
	struct gpu_session *s = ctx;

	return gpu_counts_alive(s->counts);
}

static int read_events(struct gpu_session *s)
{
	const struct gpu_tracing_config *c = s->config;
	int err = c->event ? gpu_counts_events(s->counts, c->event, c->ctx) : 0;

	return !err && c->event && c->idle ? c->idle(c->ctx) : err;
}

static int turn(void *ctx)
{
	struct gpu_session *s = ctx;
	int err = watch_wait(&s->watch, gpu_counts_fd(s->counts), UINT64_MAX);

	return err ? err : read_events(s);
}

static int finish(void *ctx)
{
	struct gpu_session *s = ctx;
	int err;

	gpu_counts_stop(s->counts);
	err = gpu_counts_read(s->counts, &s->result->table);
	if (!err)
		err = read_events(s);
	return err ? err : gpu_counts_notes(s->counts, s->notes);
}

static void close_counts(void *ctx)
{
	struct gpu_session *s = ctx;

	gpu_counts_free(s->counts);
}

int gpu_tracing_run(const struct gpu_tracing_config *c, note_list *notes, struct gpu_tracing *ret,
		    struct diag *d)
{
	static const struct watch_steps steps = {open_counts, start,  alive,
						 turn,        finish, close_counts};
	struct gpu_session s = {
		.config = c,
		.result = ret,
		.notes = notes,
		.watch = WATCH_OF(c, ret, d),
		.d = d,
	};
	int err;

	*ret = (struct gpu_tracing){0};
	err = watch_run(&s.watch, &steps, &s);
	return err && err != -ECANCELED ? diag_errno(d, err, "tracing failed") : 0;
}

void gpu_tracing_release(struct gpu_tracing *t)
{
	gpu_table_release(&t->table);
	watched_release(&t->watched);
}
