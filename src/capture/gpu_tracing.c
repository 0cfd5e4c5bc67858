/* SPDX-License-Identifier: BSD-2-Clause */
#include "watch.h"

#include <inspect/clock.h>
#include <inspect/gpu_tracing.h>

struct gpu_session {
	const struct gpu_tracing_config *config;
	struct gpu_tracing *result;
	struct gpu_counts *counts;
	struct watch watch;
	struct diag *d;
};

static int open_counts(struct gpu_session *s)
{
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

static int start(struct gpu_session *s)
{
	int err;

	s->result->watched.start_ns = clock_now_ns();
	err = gpu_counts_start(s->counts);
	return err ? diag_errno(s->d, err, "cannot start counting") : watch_go(&s->watch);
}

static int read_events(struct gpu_session *s)
{
	const struct gpu_tracing_config *c = s->config;
	int err = c->event ? gpu_counts_events(s->counts, c->event, c->ctx) : 0;

	return !err && c->event && c->idle ? c->idle(c->ctx) : err;
}

static int loop(struct gpu_session *s)
{
	int err = 0;

	while (!err && !watch_is_over(&s->watch, gpu_counts_alive(s->counts))) {
		err = watch_wait(&s->watch, gpu_counts_fd(s->counts), UINT64_MAX);
		if (!err)
			err = read_events(s);
	}
	return err;
}

static int finish(struct gpu_session *s, note_list *notes)
{
	int err;

	gpu_counts_stop(s->counts);
	err = gpu_counts_read(s->counts, &s->result->table);
	if (!err)
		err = read_events(s);
	return err ? err : gpu_counts_notes(s->counts, notes);
}

int gpu_tracing_run(const struct gpu_tracing_config *c, note_list *notes, struct gpu_tracing *ret,
		    struct diag *d)
{
	struct gpu_session s = {
		.config = c,
		.result = ret,
		.watch = {.target = c->target,
			  .duration_ns = c->duration_ns,
			  .delay_ns = c->delay_ns,
			  .stdout_taken = c->stdout_taken,
			  .result = &ret->watched,
			  .d = d},
		.d = d,
	};
	int err;

	*ret = (struct gpu_tracing){0};
	err = watch_prepare(&s.watch);
	if (!err)
		err = open_counts(&s);
	if (!err)
		err = start(&s);
	if (!err)
		err = loop(&s);
	if (!err || (err == -ECANCELED && s.counts))
		err = finish(&s, notes);
	if (err == -ECANCELED)
		err = 0;
	gpu_counts_free(s.counts);
	watch_close(&s.watch, err != 0);
	return err ? diag_errno(d, err, "tracing failed") : 0;
}

void gpu_tracing_release(struct gpu_tracing *t)
{
	gpu_table_release(&t->table);
	watched_release(&t->watched);
}
