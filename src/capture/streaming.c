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
	note_list *notes;
	int more; /* above 0: not all that was there has been read */
	struct watch watch;
	struct diag *d;
};

static int open_stream(void *ctx)
{
	struct stream_session *s = ctx;
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

static int start(void *ctx)
{
	struct stream_session *s = ctx;

	return diag_errno(s->d, syscall_stream_start(s->stream), "cannot start the stream");
}

static bool alive(void *ctx)
{
	struct stream_session *s = ctx;

	return syscall_stream_alive(s->stream);
}

/* What is there, a part of it at a time. More than 0: there may be more. */
static int drain(struct stream_session *s)
{
	int n = syscall_stream_read(s->stream, s->config->event, s->config->ctx);

	return n ? n : s->config->idle(s->config->ctx);
}

static int turn(void *ctx)
{
	struct stream_session *s = ctx;
	int err = watch_wait(&s->watch, syscall_stream_fd(s->stream), s->more ? 0 : UINT64_MAX);

	if (err)
		return err;
	s->more = drain(s);
	return MIN(s->more, 0);
}

static int finish(void *ctx)
{
	struct stream_session *s = ctx;
	int err, n = s->more;

	if (n == -ECANCELED)
		return 0; /* nobody reads it any more */
	s->result->end_ns = clock_now_ns();
	err = syscall_stream_stop(s->stream);
	while (!err && (n = drain(s)) != 0)
		err = MIN(n, 0);
	if (!err)
		err = syscall_stream_counts(s->stream, &s->result->counts);
	return err ? err : syscall_stream_notes(s->stream, s->notes);
}

static void close_stream(void *ctx)
{
	struct stream_session *s = ctx;

	syscall_stream_free(s->stream);
	unwind_tables_free(s->tables);
}

int streaming_run(const struct streaming_config *c, note_list *notes, struct streaming *ret,
		  struct diag *d)
{
	static const struct watch_steps steps = {open_stream, start,  alive,
						 turn,        finish, close_stream};
	struct stream_session s = {
		.config = c,
		.result = ret,
		.notes = notes,
		.watch = WATCH_OF(c, ret, d),
		.d = d,
	};
	int err;

	*ret = (struct streaming){0};
	err = watch_run(&s.watch, &steps, &s);
	ret->canceled = err == -ECANCELED;
	return ret->canceled ? 0 : diag_errno(d, err, "the stream ended");
}

void streaming_release(struct streaming *s)
{
	watched_release(&s->watched);
}
