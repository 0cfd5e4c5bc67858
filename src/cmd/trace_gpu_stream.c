/* SPDX-License-Identifier: BSD-2-Clause */
/* A line for each call of a GPU's driver. */
#include "trace_gpu.h"

#include <inspect/clock.h>
#include <inspect/json_out.h>
#include <inspect/syscall_text.h>
#include <inspect/term.h>

/* What the line says between the call's name and its result. */
static void put_fields(const struct gpu_run *run, const struct gpu_event *e, struct strbuf *out)
{
	struct gpu_fields f;
	uint32_t class;

	gpu_fields_read(&e->key, e->head, e->n_head, &f);
	if (e->key.kind == GPU_IOCTL && e->key.class == GPU_CLASS_RM &&
	    e->key.number == GPU_RM_FREE && f.have & GPU_OBJECT &&
	    gpu_objects_class(run->objects, f.client, f.object, &class)) {
		strbuf_putc(out, ' ');
		if (!gpu_put_class(&run->choice.version, class, out))
			strbuf_printf(out, "0x%x unknown", class);
	}
	if (f.have & GPU_CLIENT)
		strbuf_printf(out, " client=0x%x", f.client);
	if (f.have & GPU_PARENT)
		strbuf_printf(out, " parent=0x%x", f.parent);
	if (f.have & GPU_OBJECT)
		strbuf_printf(out, " object=0x%x", f.object);
	if (f.have & GPU_LENGTH)
		strbuf_printf(out, " bytes=%llu", (unsigned long long)f.length_bytes);
	else if (e->length_bytes)
		strbuf_printf(out, " bytes=%llu", (unsigned long long)e->length_bytes);
}

static void put_result(const struct gpu_run *run, const struct gpu_event *e, struct strbuf *out)
{
	if (e->key.flags & GPU_FAILED) {
		strbuf_puts(out, "-1 ");
		gpu_put_error(&run->choice.version, &e->key, out);
	} else if (e->key.flags & GPU_HAS_STATUS) {
		gpu_put_status(&run->choice.version, e->key.status, out);
	} else if (e->key.kind == GPU_MMAP || e->key.kind == GPU_MAP_OVER ||
		   e->key.kind == GPU_MREMAP) {
		strbuf_printf(out, "0x%llx", (unsigned long long)e->result);
	} else {
		strbuf_printf(out, "%lld", (long long)e->result);
		if (e->key.kind == GPU_IOCTL && e->key.class != GPU_CLASS_OTHER &&
		    e->key.flags & (GPU_NO_LAYOUT | GPU_UNREADABLE))
			strbuf_puts(out, " status unknown");
	}
}

static void put_time(const struct gpu_run *run, const struct gpu_event *e, struct strbuf *out)
{
	const struct syscall_text_options options = {
		.time = run->v->relative     ? SYSCALL_TIME_RELATIVE
			: run->v->timestamps ? SYSCALL_TIME_WALL
					     : SYSCALL_TIME_NONE,
		.first_ns = run->tracing.watched.start_ns,
		.wall_offset_ns = (int64_t)(clock_realtime_ns() - clock_now_ns()),
	};

	if (options.time != SYSCALL_TIME_NONE)
		syscall_text_time(e->start_ns, &options, out);
}

static int print_line(const struct gpu_run *run, const struct gpu_event *e)
{
	CLEANUP(strbuf_release) struct strbuf line = {0};

	put_time(run, e, &line);
	strbuf_printf(&line, "[%u ", e->key.tid);
	term_escape(&line, e->key.comm, strnlen(e->key.comm, sizeof(e->key.comm)));
	strbuf_puts(&line, "] ");
	{
		CLEANUP(strbuf_release) struct strbuf device = {0};

		gpu_device_put(&run->choice.devices, &e->key, &device);
		term_escape(&line, strbuf_str(&device), device.n);
	}
	strbuf_putc(&line, ' ');
	gpu_put_call(&run->choice.version, &e->key, &line);
	put_fields(run, e, &line);
	strbuf_puts(&line, " = ");
	put_result(run, e, &line);
	strbuf_printf(&line, " <%.6f%s>\n", (double)e->duration_ns / NSEC_PER_SEC,
		      e->key.flags & GPU_BEFORE ? " since before the start" : "");
	if (line.failed)
		return -ENOMEM;
	if (fwrite(line.v, 1, line.n, stdout) == line.n)
		return 0;
	return errno == EPIPE ? -ECANCELED : -EIO;
}

static void put_text(struct json_out *j, const char *key, const struct strbuf *text)
{
	json_key(j, key);
	json_string_n(j, strbuf_str(text), text->n);
}

static void put_number(struct json_out *j, const char *key, uint64_t v)
{
	json_key(j, key);
	json_u64(j, v);
}

static int print_json(const struct gpu_run *run, const struct gpu_event *e)
{
	CLEANUP(strbuf_release)
	struct strbuf call = {0}, device = {0}, fields = {0}, result = {0};
	struct json_out j;

	gpu_put_call(&run->choice.version, &e->key, &call);
	gpu_device_put(&run->choice.devices, &e->key, &device);
	put_fields(run, e, &fields);
	put_result(run, e, &result);
	json_init(&j, stdout, true);
	json_object(&j);
	put_number(&j, "start_ns", e->start_ns);
	put_number(&j, "pid", e->key.pid);
	put_number(&j, "tid", e->key.tid);
	json_key(&j, "comm");
	json_string_n(&j, e->key.comm, strnlen(e->key.comm, sizeof(e->key.comm)));
	put_text(&j, "device", &device);
	put_text(&j, "call", &call);
	put_text(&j, "fields", &fields);
	put_text(&j, "result", &result);
	json_key(&j, "failed");
	json_bool(&j, gpu_call_failed(&e->key));
	put_number(&j, "bytes", e->length_bytes);
	put_number(&j, "duration_ns", e->duration_ns);
	json_key(&j, "from_before");
	json_bool(&j, e->key.flags & GPU_BEFORE);
	put_number(&j, "lost_before", e->lost_before);
	json_end_object(&j);
	return json_finish(&j);
}

static bool is_wanted(const struct trace_values *v, const struct gpu_event *e)
{
	return e->duration_ns >= v->min_latency_ns && (!v->failed || gpu_call_failed(&e->key));
}

/* A line where calls are missing. */
static int print_gap(struct gpu_run *run, uint64_t lost)
{
	uint64_t n = lost - run->lost_told;

	if (lost <= run->lost_told)
		return 0;
	run->lost_told = lost;
	if (run->v->common.json)
		return 0;
	return printf("[lost %llu calls here]\n", (unsigned long long)n) < 0 ? -EIO : 0;
}

int gpu_stream_event(void *ctx, const struct gpu_event *e)
{
	struct gpu_run *run = ctx;
	int err = print_gap(run, e->lost_before);

	if (err)
		return err;
	if (is_wanted(run->v, e))
		err = run->v->common.json ? print_json(run, e) : print_line(run, e);
	return err ? err : gpu_objects_event(run->objects, e);
}

int gpu_stream_idle(void *ctx UNUSED)
{
	if (!fflush(stdout))
		return 0;
	return errno == EPIPE ? -ECANCELED : -errno;
}

/* --- the end ---------------------------------------------------------------------------------- */

static int print_open(const struct gpu_run *run, const struct gpu_count *row)
{
	CLEANUP(strbuf_release) struct strbuf line = {0}, device = {0};

	strbuf_printf(&line, "[%u ", row->key.tid);
	term_escape(&line, row->key.comm, strnlen(row->key.comm, sizeof(row->key.comm)));
	strbuf_puts(&line, "] ");
	gpu_device_put(&run->choice.devices, &row->key, &device);
	term_escape(&line, strbuf_str(&device), device.n);
	strbuf_putc(&line, ' ');
	gpu_put_call(&run->choice.version, &row->key, &line);
	if (line.failed || device.failed)
		return -ENOMEM;
	printf("%s = not ended <%.6f%s>\n", strbuf_str(&line), (double)row->open_ns / NSEC_PER_SEC,
	       row->before_open ? " since before the start" : "");
	return 0;
}

static int print_open_json(const struct gpu_run *run, const struct gpu_count *row)
{
	CLEANUP(strbuf_release) struct strbuf call = {0}, device = {0};
	struct json_out j;

	gpu_put_call(&run->choice.version, &row->key, &call);
	gpu_device_put(&run->choice.devices, &row->key, &device);
	json_init(&j, stdout, true);
	json_object(&j);
	put_number(&j, "pid", row->key.pid);
	put_number(&j, "tid", row->key.tid);
	json_key(&j, "comm");
	json_string_n(&j, row->key.comm, strnlen(row->key.comm, sizeof(row->key.comm)));
	put_text(&j, "device", &device);
	put_text(&j, "call", &call);
	json_key(&j, "result");
	json_null(&j);
	put_number(&j, "duration_ns", row->open_ns);
	json_key(&j, "from_before");
	json_bool(&j, row->before_open);
	json_end_object(&j);
	return json_finish(&j);
}

static int print_json_end(const struct gpu_run *run, uint64_t calls)
{
	const struct gpu_table *t = &run->tracing.table;
	struct gpu_loss losses[GPU_LOSSES];
	uint64_t lost = 0;
	struct json_out j;

	gpu_losses_each(&t->losses, losses);
	for (size_t i = 0; i < GPU_LOSSES; i++)
		lost += losses[i].n;
	json_init(&j, stdout, true);
	json_object(&j);
	json_key(&j, "schema");
	json_string(&j, "inspect.trace-gpu-stream/1");
	put_number(&j, "calls", calls);
	put_number(&j, "lost", lost);
	put_number(&j, "elapsed_ns", t->elapsed_ns);
	json_key(&j, "losses");
	json_object(&j);
	for (size_t i = 0; i < GPU_LOSSES; i++)
		put_number(&j, losses[i].key, losses[i].n);
	json_end_object(&j);
	json_end_object(&j);
	return json_finish(&j);
}

static void print_end(const struct gpu_run *run, uint64_t calls)
{
	const struct gpu_table *t = &run->tracing.table;
	bool nvidia = gpu_choice_has_nvidia(&run->choice);
	CLEANUP(strbuf_release) struct strbuf lost = {0};
	char elapsed[32];

	gpu_losses_put(&t->losses, &lost);
	fprintf(stderr, "# %llu %scalls in %s · lost %s%s\n", (unsigned long long)calls,
		nvidia ? "GPU " : "", duration_format(t->elapsed_ns, elapsed, sizeof(elapsed)),
		strbuf_str(&lost), nvidia ? " · launches need no system call: --cuda" : "");
	for (size_t i = 0; i < run->notes.n; i++)
		fprintf(stderr, "# note: %s\n", run->notes.v[i]);
}

/* Calls that have not ended, and what was lost. */
int gpu_stream_end(struct gpu_run *run)
{
	const struct gpu_table *t = &run->tracing.table;
	bool json = run->v->common.json;
	uint64_t calls = 0;
	int err = print_gap(run, t->losses.events);

	for (size_t i = 0; i < t->rows.n && !err; i++) {
		calls += t->rows.v[i].calls;
		if (t->rows.v[i].in_flight)
			err = json ? print_open_json(run, &t->rows.v[i])
				   : print_open(run, &t->rows.v[i]);
	}
	if (!err && json)
		err = print_json_end(run, calls);
	fflush(stdout);
	if (!err && !run->v->common.quiet)
		print_end(run, calls);
	return diag_errno(run->d, err, "cannot write to stdout");
}
