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

void gpu_not_seen(const struct gpu_run *run, struct result *r)
{
	if (gpu_choice_has_nvidia(&run->choice))
		result_fact(r, "", "not seen here",
			    cell_text(r, "kernel launches, graphs and asynchronous copies, which "
					 "need no system call: inspect trace --cuda "
					 "--cuda-launch"));
}

void gpu_losses_each(const struct gpu_losses *l, struct gpu_loss ret[GPU_LOSSES])
{
	const struct gpu_loss all[GPU_LOSSES] = {
		{"rows_full", l->rows_full, "calls of dropped rows"},
		{"no_memory", l->threads_dropped, "calls of threads without room"},
		{"unreadable", l->reads_failed, "calls whose struct could not be read"},
		{"ranges_cut", l->ranges_cut, "unmapped ranges of too many parts"},
		{"sets_cut", l->sets_cut, "looks at epoll sets of too many members"},
		{"ring_full", l->events, "events without room in the ring"},
		{"recursion_misses", l->recursion_misses, "missed by recursion"},
	};

	memcpy(ret, all, sizeof(all));
}

void gpu_losses_put(const struct gpu_losses *l, struct strbuf *out)
{
	struct gpu_loss all[GPU_LOSSES];
	bool any = false;

	gpu_losses_each(l, all);
	for (size_t i = 0; i < GPU_LOSSES; i++) {
		if (!all[i].n)
			continue;
		strbuf_printf(out, "%s%llu %s", any ? ", " : "", (unsigned long long)all[i].n,
			      all[i].text);
		any = true;
	}
	if (!any)
		strbuf_puts(out, "0");
}

static void add_facts(const struct gpu_run *run, struct result *r)
{
	const struct gpu_table *t = &run->tracing.table;
	CLEANUP(strbuf_release) struct strbuf b = {0};
	uint64_t calls = 0, failed = 0, before = 0;

	for (size_t i = 0; i < t->rows.n; i++) {
		before += t->rows.v[i].before + t->rows.v[i].before_open;
		calls += t->rows.v[i].calls;
		failed += gpu_call_failed(&t->rows.v[i].key) ? t->rows.v[i].calls : 0;
	}
	gpu_losses_put(&t->losses, &b);
	result_fact(r, "target", "target", cell_text(r, strbuf_str(&run->target_given)));
	if (gpu_choice_has_nvidia(&run->choice))
		result_fact(r, "driver_version", "driver",
			    cell_text(r, gpu_version_text(&run->choice.version, r)));
	result_fact(r, "elapsed_ns", "measured", cell_u64(CELL_NS, t->elapsed_ns));
	result_fact(r, "calls", gpu_choice_has_nvidia(&run->choice) ? "GPU calls" : "calls",
		    cell_u64(CELL_COUNT, calls));
	result_fact(r, "failed", "failed", cell_u64(CELL_COUNT, failed));
	result_fact(r, "calls_from_before", before ? "begun before the start" : "",
		    cell_u64(CELL_COUNT, before));
	result_fact(r, "ioctls_of_other_files", "",
		    cell_u64(CELL_COUNT, t->ioctls_seen - t->ioctls_counted));
	result_fact(r, "lost", "lost", cell_text(r, strbuf_str(&b)));
	gpu_not_seen(run, r);
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
