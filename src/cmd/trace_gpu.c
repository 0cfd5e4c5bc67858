/* SPDX-License-Identifier: BSD-2-Clause */
/* --gpu: calls of NVIDIA's driver, and with --device of any other, with their latency. */
#include "trace_gpu.h"

#include "print_result.h"
#include "target_text.h"

#include <inspect/explain.h>

static void gpu_run_release(struct gpu_run *run)
{
	gpu_tracing_release(&run->tracing);
	gpu_objects_free(run->objects);
	gpu_choice_release(&run->choice);
	target_release(&run->target);
	strbuf_release(&run->target_text);
	strbuf_release(&run->target_given);
	note_list_release(&run->notes);
}

/* --- options ---------------------------------------------------------------------------------- */

static int parse_by(const char *text, uint32_t *ret, struct diag *d)
{
	static const struct {
		const char *name;
		enum gpu_part part;
	} names[] = {
		{"call", GPU_PART_CALL},     {"group", GPU_PART_GROUP}, {"thread", GPU_PART_THREAD},
		{"tid", GPU_PART_THREAD},    {"comm", GPU_PART_COMM},   {"device", GPU_PART_DEVICE},
		{"client", GPU_PART_CLIENT},
	};

	*ret = 0;
	for (const char *at = text ? text : "call";; at++) {
		size_t n = strcspn(at, ","), i = 0;

		while (i < ARRAY_SIZE(names) &&
		       (strlen(names[i].name) != n || strncmp(names[i].name, at, n)))
			i++;
		if (i == ARRAY_SIZE(names))
			return diag_set(d, -EINVAL,
					"--by: '%.*s' is not one of call, group, thread, comm, "
					"device, client (stack: with -c, and no other key)",
					(int)n, at);
		*ret |= 1u << names[i].part;
		at += n;
		if (!*at)
			return 0;
	}
}

/* --- running ---------------------------------------------------------------------------------- */

static int measure(struct gpu_run *run, bool stream)
{
	const struct trace_values *v = run->v;
	struct gpu_tracing_config config = {
		.target = &run->target,
		.host = &run->host,
		.devices = &run->choice.devices,
		.version = &run->choice.version,
		.duration_ns = v->duration.duration_ns,
		.delay_ns = v->duration.delay_ns,
		.stdout_taken = stream || v->common.json || v->common.csv,
		.by = GPU_BY_COMM, /* findings say whose calls they are */
		.event = stream ? gpu_stream_event : NULL,
		.idle = stream ? gpu_stream_idle : NULL,
		.ctx = run,
	};

	if (run->parts & 1u << GPU_PART_THREAD)
		config.by |= GPU_BY_THREAD;
	if (run->parts & 1u << GPU_PART_CLIENT)
		config.by |= GPU_BY_CLIENT;
	return gpu_tracing_run(&config, &run->notes, &run->tracing, run->d);
}

void gpu_not_seen(struct result *r)
{
	result_fact(r, "", "not seen here",
		    cell_text(r, "kernel launches, graphs and asynchronous copies, which need no "
				 "system call: inspect trace --cuda --cuda-launch"));
}

static void add_facts(const struct gpu_run *run, struct result *r)
{
	const struct gpu_table *t = &run->tracing.table;
	const struct gpu_losses *l = &t->losses;
	const struct {
		const char *text;
		uint64_t n;
	} lost[] = {{"calls of dropped rows", l->rows_full},
		    {"calls of threads without room", l->threads_dropped},
		    {"fields that could not be read", l->reads_failed},
		    {"unmapped ranges of too many parts", l->ranges_cut},
		    {"looks at epoll sets of too many members", l->sets_cut},
		    {"events without room in the ring", l->events},
		    {"missed by recursion", l->recursion_misses}};
	CLEANUP(strbuf_release) struct strbuf b = {0};
	uint64_t calls = 0, failed = 0, before = 0;

	for (size_t i = 0; i < t->rows.n; i++) {
		before += t->rows.v[i].before + t->rows.v[i].before_open;
		calls += t->rows.v[i].calls;
		failed += gpu_call_failed(&t->rows.v[i].key) ? t->rows.v[i].calls : 0;
	}
	for (size_t i = 0; i < ARRAY_SIZE(lost); i++)
		if (lost[i].n)
			strbuf_printf(&b, "%s%llu %s", b.n ? ", " : "",
				      (unsigned long long)lost[i].n, lost[i].text);
	result_fact(r, "target", "target", cell_text(r, strbuf_str(&run->target_given)));
	if (gpu_choice_has_nvidia(&run->choice))
		result_fact(r, "driver_version", "driver",
			    cell_text(r, gpu_version_text(&run->choice.version, r)));
	result_fact(r, "elapsed_ns", "measured", cell_u64(CELL_NS, t->elapsed_ns));
	result_fact(r, "calls", "GPU calls", cell_u64(CELL_COUNT, calls));
	result_fact(r, "failed", "failed", cell_u64(CELL_COUNT, failed));
	result_fact(r, "calls_from_before", before ? "begun before the start" : "",
		    cell_u64(CELL_COUNT, before));
	result_fact(r, "ioctls_of_other_files", "",
		    cell_u64(CELL_COUNT, t->ioctls_seen - t->ioctls_counted));
	result_fact(r, "lost", "lost", cell_text(r, b.n ? strbuf_str(&b) : "0"));
	gpu_not_seen(r);
	if (run->tracing.watched.interrupted)
		result_note(r, "interrupted");
}

static int report(struct gpu_run *run)
{
	const struct trace_values *v = run->v;
	CLEANUP(result_release) struct result r;
	int err;

	result_init(&r, v->hist ? "inspect.trace-gpu-hist/1" : "inspect.trace-gpu/1");
	add_facts(run, &r);
	for (size_t i = 0; i < run->notes.n; i++)
		result_note(&r, "%s", run->notes.v[i]);
	for (size_t i = 0; i < run->target.hints.n && !v->common.quiet; i++)
		result_note(&r, "%s", run->target.hints.v[i]);
	err = v->hist ? gpu_hist(run, &r) : gpu_summary(run, &r);
	if (!err && !v->hist)
		err = gpu_findings(run, &r);
	return err ? diag_errno(run->d, err, "trace")
		   : print_result(&r, &v->common, v->all_rows, run->d);
}

static int run_table_or_stream(struct gpu_run *run, const struct operands *operands, bool stream,
			       int *exit_code)
{
	const struct trace_values *v = run->v;
	int err =
		target_resolve(&v->target, operands, &run->host, &run->notes, &run->target, run->d);

	if (err)
		return err;
	target_text_put(&v->target, v->duration.duration_ns, operands, &run->target,
			&run->target_text);
	target_text_given(&v->target, v->duration.duration_ns, operands, &run->target,
			  &run->target_given);
	err = measure(run, stream);
	if (!err)
		err = stream ? gpu_stream_end(run) : report(run);
	watched_exit_code(&run->tracing.watched, &run->target, err, exit_code);
	return err;
}

int trace_gpu(const struct trace_values *v, const struct operands *operands, int argc, char **argv,
	      int *exit_code, struct diag *d)
{
	CLEANUP(gpu_run_release) struct gpu_run run = {.v = v, .target = {.cgroup_fd = -1}, .d = d};
	bool stream = trace_is_stream(v), by_stack = v->leaks || trace_is_by_stack(v);
	int err = by_stack ? 0 : parse_by(v->by, &run.parts, d);

	host_read(&run.host, "");
	if (!err)
		err = gpu_choose(&v->gpu_choice, "trace --gpu", &run.notes, &run.choice, d);
	if (!err)
		err = explain_bpf_tracing(&run.host, TRACING_SINCE_5_10, "trace the driver",
					  "strace -f -e ioctl -p PID", d);
	if (!err && (stream || v->leaks))
		err = diag_errno(d, gpu_objects_new(&run.objects), "trace");
	if (err)
		return err;
	return by_stack ? gpu_by_stack(&run, operands, argc, argv, exit_code)
			: run_table_or_stream(&run, operands, stream, exit_code);
}
