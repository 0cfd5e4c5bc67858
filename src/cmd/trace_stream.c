/* SPDX-License-Identifier: BSD-2-Clause */
/* The stream: a line for each call, in the shape of strace's. */
#include "trace.h"

#include <inspect/clock.h>
#include <inspect/code_names.h>
#include <inspect/json_out.h>
#include <inspect/kernel_names.h>
#include <inspect/symbolize.h>
#include <inspect/syscall_text.h>
#include <inspect/term.h>
#include <inspect/unwind.h>
#include <signal.h>

#define STDOUT_BYTES (1u << 20)

enum { STRING_BYTES = 32 }; /* as in strace */

struct line_printer {
	const struct trace_values *v;
	const struct streaming *s;
	struct syscall_text_options text;
	struct code_names *code; /* with --stack */
	struct kernel_names *kernel;
	struct strbuf line;
	uint64_t lost, printed; /* calls */
	char *buffer;           /* of stdout */
};

static const char *const end_names[] = {
	[SYSCALL_RETURNED] = "returned",
	[SYSCALL_NEVER_RETURNS] = "never_returns",
	[SYSCALL_THREAD_ENDED] = "thread_ended",
	[SYSCALL_IN_FLIGHT] = "in_flight",
};

/* --- lines ------------------------------------------------------------------------------------ */

static void put_text(struct json_out *j, const char *key, const char *text)
{
	json_key(j, key);
	json_string(j, text);
}

static void put_number(struct json_out *j, const char *key, int64_t v)
{
	json_key(j, key);
	json_i64(j, v);
}

/* strace -k's: "/usr/lib/libc.so.6(read+0x10) [0xfb06e]" */
static void frame_text(struct line_printer *p, const struct syscall_event *e, uint32_t i,
		       struct strbuf *out)
{
	CLEANUP(strbuf_release) struct strbuf plain = {0};
	const struct syscall_frame *f = &e->frames[i];
	struct code_name name;
	const char *symbol;

	if (!f->path) {
		strbuf_printf(out, "[0x%llx]", (unsigned long long)f->user_va);
		return;
	}
	code_names_find(p->code, e->pid, f->path, f->maj, f->min, f->ino, f->file_off, i > 0,
			&name);
	strbuf_puts(out, f->path);
	symbol = name.symbol && symbol_demangle(name.symbol, &plain) ? strbuf_str(&plain)
								     : name.symbol;
	if (symbol)
		strbuf_printf(out, "(%s+0x%llx)", symbol, (unsigned long long)name.offset_bytes);
	strbuf_printf(out, " [0x%llx]",
		      (unsigned long long)(name.elf_vaddr ? name.elf_vaddr : f->file_off));
}

/* A line, escaped. */
static void put_line(struct strbuf *line, const struct strbuf *frame)
{
	strbuf_puts(line, " > ");
	term_escape(line, strbuf_str(frame), frame->n);
	strbuf_putc(line, '\n');
}

static bool is_cut(const struct syscall_event *e)
{
	return e->n_frames && e->stack_stop != UNWIND_END;
}

static void add_stack(struct line_printer *p, const struct syscall_event *e)
{
	CLEANUP(strbuf_release) struct strbuf frame = {0};

	for (uint32_t i = 0; i < e->n_kernel; i++) {
		strbuf_clear(&frame);
		kernel_names_put(p->kernel, e->kernel[i], &frame);
		put_line(&p->line, &frame);
	}
	for (uint32_t i = 0; i < e->n_frames; i++) {
		strbuf_clear(&frame);
		frame_text(p, e, i, &frame);
		put_line(&p->line, &frame);
	}
	if (e->stack_lost)
		strbuf_puts(&p->line, " > [lost: no room in the ring]\n");
	if (is_cut(e))
		strbuf_printf(&p->line, " > [truncated: %s]\n",
			      unwind_stop_text((enum unwind_stop)e->stack_stop));
}

static void put_stack(struct line_printer *p, const struct syscall_event *e, struct json_out *j)
{
	CLEANUP(strbuf_release) struct strbuf frame = {0};

	json_key(j, "kernel_stack");
	json_array(j);
	for (uint32_t i = 0; i < e->n_kernel; i++) {
		strbuf_clear(&frame);
		kernel_names_put(p->kernel, e->kernel[i], &frame);
		json_string(j, strbuf_str(&frame));
	}
	json_end_array(j);
	json_key(j, "stack");
	json_array(j);
	for (uint32_t i = 0; i < e->n_frames; i++) {
		strbuf_clear(&frame);
		frame_text(p, e, i, &frame);
		json_string(j, strbuf_str(&frame));
	}
	json_end_array(j);
	if (e->stack_lost)
		put_text(j, "truncated", "lost: no room in the ring");
	else if (is_cut(e))
		put_text(j, "truncated", unwind_stop_text((enum unwind_stop)e->stack_stop));
}

static int print_json(struct line_printer *p, const struct syscall_event *e)
{
	char buf[SYSCALL_NAME_BYTES];
	const char *failure =
		e->result < 0 && e->result >= -4095 ? errno_name((int)-e->result) : NULL;
	struct json_out j;

	syscall_text_call(e, p->text.formats, &p->line);
	json_init(&j, stdout, true);
	json_object(&j);
	json_key(&j, "start_ns");
	json_u64(&j, e->start_ns);
	put_number(&j, "pid", e->pid);
	put_number(&j, "tid", e->tid);
	put_number(&j, "own_pid", e->own_pid);
	put_number(&j, "own_tid", e->own_tid);
	json_key(&j, "comm");
	json_string_n(&j, e->comm, strnlen(e->comm, sizeof(e->comm)));
	put_text(&j, "syscall", syscall_name((enum syscall_abi)e->abi, e->nr, buf));
	if (e->abi != SYSCALL_NATIVE)
		put_text(&j, "abi", e->abi == SYSCALL_I386 ? "i386" : "x32");
	put_text(&j, "call", strbuf_str(&p->line));
	put_text(&j, "end", end_names[e->end]);
	json_key(&j, "result");
	if (e->end == SYSCALL_RETURNED)
		json_i64(&j, e->result);
	else
		json_null(&j);
	if (failure)
		put_text(&j, "errno", failure);
	json_key(&j, "duration_ns");
	json_u64(&j, e->duration_ns);
	json_key(&j, "lost_before");
	json_u64(&j, p->lost);
	if (p->code)
		put_stack(p, e, &j);
	json_end_object(&j);
	return json_finish(&j);
}

/* Where calls are missing, so that nobody takes what is left for all. */
static int print_gap(struct line_printer *p, uint64_t lost)
{
	uint64_t n = lost - p->lost;

	if (lost <= p->lost)
		return 0;
	p->lost = lost;
	if (p->v->common.json)
		return 0; /* the next line says it */
	return printf("[lost %llu calls here]\n", (unsigned long long)n) < 0 ? -EIO : 0;
}

static int print_event(void *ctx, const struct syscall_event *e, uint64_t lost)
{
	struct line_printer *p = ctx;
	int err = print_gap(p, lost);

	if (err)
		return err;
	strbuf_clear(&p->line);
	p->printed++;
	if (p->v->common.json)
		return print_json(p, e);
	p->text.first_ns = p->s->watched.start_ns;
	err = syscall_text_line(e, &p->text, &p->line);
	strbuf_putc(&p->line, '\n');
	if (p->code)
		add_stack(p, e);
	if (!err && p->line.failed)
		err = -ENOMEM;
	if (!err && fwrite(p->line.v, 1, p->line.n, stdout) != p->line.n)
		err = errno == EPIPE ? -ECANCELED : -EIO;
	return err;
}

static int flush_lines(void *ctx UNUSED)
{
	if (!fflush(stdout))
		return 0;
	return errno == EPIPE ? -ECANCELED : -errno;
}

/* --- the end ---------------------------------------------------------------------------------- */

static uint64_t lost_of(const struct syscall_stream_counts *c)
{
	return c->lost_ring + c->lost_memory + c->recursions;
}

static int print_json_end(const struct streaming *s)
{
	const struct syscall_stream_counts *c = &s->counts;
	const struct {
		const char *name;
		uint64_t n;
	} losses[] = {{"ring_full", c->lost_ring},
		      {"no_memory", c->lost_memory},
		      {"recursion_misses", c->recursions},
		      {"enters_without_exit", c->no_exit}};
	struct json_out j;

	json_init(&j, stdout, true);
	json_object(&j);
	put_text(&j, "schema", "inspect.trace-stream/1");
	put_number(&j, "calls", (int64_t)c->sent);
	put_number(&j, "lost", (int64_t)lost_of(c));
	put_number(&j, "elapsed_ns", (int64_t)(s->end_ns - s->watched.start_ns));
	json_key(&j, "losses");
	json_object(&j);
	for (size_t i = 0; i < ARRAY_SIZE(losses); i++)
		put_number(&j, losses[i].name, (int64_t)losses[i].n);
	json_end_object(&j);
	json_end_object(&j);
	return json_finish(&j);
}

static void print_end(const struct trace_stream_run *run, const struct streaming *s)
{
	const struct syscall_stream_counts *c = &s->counts;
	char elapsed[32];

	fprintf(stderr, "# %llu calls in %s · lost %llu", (unsigned long long)c->sent,
		duration_format(s->end_ns - s->watched.start_ns, elapsed, sizeof(elapsed)),
		(unsigned long long)lost_of(c));
	if (c->lost_ring)
		fprintf(stderr, " · %llu for want of room in the ring: choose calls with -e",
			(unsigned long long)c->lost_ring);
	if (c->lost_memory)
		fprintf(stderr, " · %llu for want of memory in the kernel",
			(unsigned long long)c->lost_memory);
	if (c->recursions)
		fprintf(stderr, " · %llu inside of another tool's programs",
			(unsigned long long)c->recursions);
	if (c->no_exit)
		fprintf(stderr, " · %llu ends not seen", (unsigned long long)c->no_exit);
	fputc('\n', stderr);
	for (size_t i = 0; i < run->notes->n; i++)
		fprintf(stderr, "# note: %s\n", run->notes->v[i]);
}

static void line_printer_release(struct line_printer *p)
{
	syscall_formats_free(p->text.formats);
	code_names_free(p->code);
	kernel_names_free(p->kernel);
	strbuf_release(&p->line);
	fflush(stdout);
	if (p->buffer)
		setvbuf(stdout, NULL, _IOLBF, 0);
	free(p->buffer);
}

static int stream(const struct trace_stream_run *run, const struct streaming_config *config,
		  struct streaming *s)
{
	CLEANUP(line_printer_release)
	struct line_printer p = {.v = run->v, .text = {.with_duration = true}};
	struct streaming_config c = *config;
	int err = syscall_formats_new(run->host->tracefs, &p.text.formats);

	if (err)
		return diag_errno(run->d, err, "trace");
	if (run->v->stack)
		err = code_names_new(&p.code);
	if (!err && run->v->stack)
		err = kernel_names_new(&p.kernel);
	if (err)
		return diag_errno(run->d, err, "trace");
	p.buffer = malloc(STDOUT_BYTES);
	if (p.buffer)
		setvbuf(stdout, p.buffer, _IOFBF, STDOUT_BYTES);
	p.text.time = run->v->relative     ? SYSCALL_TIME_RELATIVE
		      : run->v->timestamps ? SYSCALL_TIME_WALL
					   : SYSCALL_TIME_NONE;
	p.s = s;
	p.text.wall_offset_ns = (int64_t)(clock_realtime_ns() - clock_now_ns());
	c.event = print_event;
	c.idle = flush_lines;
	c.ctx = &p;
	/* A reader that goes away ends the stream, and CMD with it, not this tool alone. */
	signal(SIGPIPE, SIG_IGN);
	err = streaming_run(&c, run->notes, s, run->d);
	if (s->canceled) /* main says nothing of it */
		return diag_errno(run->d, -EPIPE, "cannot write to stdout");
	if (!err)
		err = print_gap(&p, lost_of(&s->counts));
	if (!err && run->v->common.json)
		err = print_json_end(s);
	return diag_errno(run->d, err, "cannot write to stdout");
}

int trace_stream_run(const struct trace_stream_run *run, int *exit_code)
{
	const struct trace_values *v = run->v;
	struct streaming s = {0};
	struct streaming_config config = {
		.target = run->target,
		.host = run->host,
		.only = run->only,
		.min_latency_ns = v->min_latency_ns,
		.failed_only = v->failed,
		.with_stack = v->stack,
		.string_bytes = v->string_bytes_given ? v->string_bytes : STRING_BYTES,
		.duration_ns = v->duration.duration_ns,
		.delay_ns = v->duration.delay_ns,
		.stdout_taken = true,
	};
	int err;

	for (size_t i = 0; i < run->target->hints.n && !v->common.quiet; i++)
		fprintf(stderr, "# note: %s\n", run->target->hints.v[i]);
	err = v->opens ? trace_opens(run, &config, &s) : stream(run, &config, &s);
	if (!err && v->verbose)
		fprintf(stderr, "# attached: %s\n", syscall_attach_text(s.attached));
	if (!err && !s.canceled && !v->common.quiet && !v->common.json && !v->opens)
		print_end(run, &s);
	if (!s.canceled)
		watched_exit_code(&s.watched, run->target, err, exit_code);
	streaming_release(&s);
	return err;
}
