/* SPDX-License-Identifier: BSD-2-Clause */
#include "sampling.h"
#include "watch.h"

#include <inspect/clock.h>
#include <inspect/streaming.h>
#include <inspect/unwind.h>

struct stream_session {
	struct unwind_tables *tables; /* NULL: no stacks */
	const struct streaming_config *config;
	struct streaming *result;
	struct syscall_stream *stream;
	struct watch watch;
	struct diag *d;
};

static int open_stream(struct stream_session *s)
{
	const struct streaming_config *c = s->config;
	struct syscall_stream_config stream = {
		.target = watch_target(&s->watch),
		.only = c->only,
		.min_latency_ns = c->min_latency_ns,
		.failed_only = c->failed_only,
		.with_stack = c->with_stack,
		.string_bytes = c->string_bytes,
	};
	int err = c->with_stack ? unwind_tables_new(true, &s->tables) : 0;

	if (err)
		return diag_errno(s->d, err, "preparing to unwind");
	if (c->with_stack) {
		stream.target.rows = unwind_rows_of_tables;
		stream.target.rows_ctx = s->tables;
	}
	err = syscall_stream_new(&stream, c->host, &s->stream, s->d);
	if (!err)
		s->result->attached = syscall_stream_attached(s->stream);
	return err;
}

static int start(struct stream_session *s)
{
	int err;

	s->result->watched.start_ns = clock_now_ns();
	err = syscall_stream_start(s->stream);
	return err ? diag_errno(s->d, err, "cannot start the stream") : watch_go(&s->watch);
}

/* What is there, a part of it at a time. More than 0: there may be more. */
static int drain(struct stream_session *s)
{
	int n = syscall_stream_read(s->stream, s->config->event, s->config->ctx);

	return n ? n : s->config->idle(s->config->ctx);
}

static int loop(struct stream_session *s)
{
	int more = 0, err = 0;

	while (!err && !watch_is_over(&s->watch, syscall_stream_alive(s->stream))) {
		err = watch_wait(&s->watch, syscall_stream_fd(s->stream), more ? 0 : UINT64_MAX);
		if (!err)
			more = drain(s);
		if (more < 0)
			err = more;
	}
	return err;
}

static int finish(struct stream_session *s, note_list *notes)
{
	int err, n;

	s->result->end_ns = clock_now_ns();
	err = syscall_stream_stop(s->stream);
	while (!err && (n = drain(s)) != 0)
		err = MIN(n, 0);
	if (!err)
		err = syscall_stream_counts(s->stream, &s->result->counts);
	return err ? err : syscall_stream_notes(s->stream, notes);
}

int streaming_run(const struct streaming_config *c, note_list *notes, struct streaming *ret,
		  struct diag *d)
{
	struct stream_session s = {
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

	*ret = (struct streaming){0};
	err = watch_prepare(&s.watch);
	if (!err)
		err = open_stream(&s);
	if (!err)
		err = start(&s);
	if (!err)
		err = loop(&s);
	if (!err)
		err = finish(&s, notes);
	syscall_stream_free(s.stream);
	unwind_tables_free(s.tables);
	watch_close(&s.watch, err != 0);
	ret->canceled = err == -ECANCELED;
	return !err || ret->canceled ? 0 : diag_errno(d, err, "the stream ended");
}

void streaming_release(struct streaming *s)
{
	watched_release(&s->watched);
}
