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
	gpu_devices_release(&run->devices);
	target_release(&run->target);
	strbuf_release(&run->target_text);
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
					"device, client",
					(int)n, at);
		*ret |= 1u << names[i].part;
		at += n;
		if (!*at)
			return 0;
	}
}

static int no_device(struct diag *d)
{
	diag_set(d, -ENODEV, "no NVIDIA driver is loaded here");
	diag_why(d, "/proc/devices has no nvidia");
	diag_fix(d, "inspect trace --gpu --device PATH …      (another driver's device)");
	return -ENODEV;
}

static int find_devices(struct gpu_run *run, struct diag *d)
{
	const struct trace_values *v = run->v;
	int err = 0;

	for (size_t i = 0; i < v->devices.n && !err; i++)
		err = gpu_devices_add(&run->devices, v->devices.v[i], d);
	if (err)
		return err;
	if (!v->devices.n) {
		err = gpu_devices_find("", &run->devices);
		if (err)
			return diag_errno(d, err, "looking for GPUs");
	}
	return run->devices.entries.n ? 0
	       : v->devices.n         ? diag_set(d, -ENODEV, "--device: no file there")
				      : no_device(d);
}

static bool has_nvidia(const struct gpu_run *run)
{
	for (size_t i = 0; i < run->devices.entries.n; i++)
		if (run->devices.entries.v[i].device.class != GPU_CLASS_OTHER)
			return true;
	return false;
}

static int find_version(struct gpu_run *run, struct diag *d)
{
	const char *given = run->v->nvidia_version;
	struct gpu_version *version = &run->version;

	if (given && gpu_version_parse(given, version))
		return diag_set(d, -EINVAL, "--nvidia-version %s: not of the form 550.54.14",
				given);
	if (!given && gpu_version_read("", version) && has_nvidia(run))
		return note_add(&run->notes,
				"the driver's version is not known: only what all versions have in "
				"common is decoded; --nvidia-version says it");
	if (version->assumed)
		return note_add(&run->notes,
				"this driver is newer than the tables: the layout and the names "
				"of %s are assumed",
				gpu_tables_newest());
	if (version->number && !version->table)
		return note_add(&run->notes,
				"this driver is older than the tables, which begin at %s: numbers "
				"stay numbers",
				gpu_tables_oldest());
	return 0;
}

/* --- running ---------------------------------------------------------------------------------- */

static int keep_objects(void *ctx, const struct gpu_event *e)
{
	struct gpu_run *run = ctx;

	return gpu_objects_event(run->objects, e);
}

static int measure(struct gpu_run *run, bool stream)
{
	const struct trace_values *v = run->v;
	struct gpu_tracing_config config = {
		.target = &run->target,
		.host = &run->host,
		.devices = &run->devices,
		.version = &run->version,
		.duration_ns = v->duration.duration_ns,
		.delay_ns = v->duration.delay_ns,
		.stdout_taken = stream || v->common.json || v->common.csv,
		.event = stream     ? gpu_stream_event
			 : v->leaks ? keep_objects
				    : NULL,
		.idle = stream ? gpu_stream_idle : NULL,
		.ctx = run,
	};

	if (run->parts & 1u << GPU_PART_THREAD)
		config.by |= GPU_BY_THREAD | GPU_BY_COMM;
	if (run->parts & 1u << GPU_PART_COMM)
		config.by |= GPU_BY_COMM;
	if (run->parts & 1u << GPU_PART_CLIENT)
		config.by |= GPU_BY_CLIENT;
	return gpu_tracing_run(&config, &run->notes, &run->tracing, run->d);
}

static const char *version_text(const struct gpu_version *v, struct result *r)
{
	if (!v->number)
		return "unknown";
	return result_text(r, "%u.%02u.%02u%s", v->number / 1000000, v->number / 1000 % 1000,
			   v->number % 1000, v->assumed ? " (assumed)" : "");
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
		    {"events without room in the ring", l->events},
		    {"missed by recursion", l->recursion_misses}};
	CLEANUP(strbuf_release) struct strbuf b = {0};
	uint64_t calls = 0, failed = 0;

	for (size_t i = 0; i < t->rows.n; i++) {
		calls += t->rows.v[i].calls;
		failed += gpu_key_failed(&t->rows.v[i].key) ? t->rows.v[i].calls : 0;
	}
	for (size_t i = 0; i < ARRAY_SIZE(lost); i++)
		if (lost[i].n)
			strbuf_printf(&b, "%s%llu %s", b.n ? ", " : "",
				      (unsigned long long)lost[i].n, lost[i].text);
	result_fact(r, "target", "target", cell_text(r, strbuf_str(&run->target_text)));
	if (has_nvidia(run))
		result_fact(r, "driver_version", "driver",
			    cell_text(r, version_text(&run->version, r)));
	result_fact(r, "elapsed_ns", "measured", cell_u64(CELL_NS, t->elapsed_ns));
	result_fact(r, "calls", "GPU calls", cell_u64(CELL_COUNT, calls));
	result_fact(r, "failed", "failed", cell_u64(CELL_COUNT, failed));
	result_fact(r, "ioctls_of_other_files", "",
		    cell_u64(CELL_COUNT, t->ioctls_seen - t->ioctls_counted));
	result_fact(r, "lost", "lost", cell_text(r, b.n ? strbuf_str(&b) : "0"));
	result_fact(r, "", "not seen here",
		    cell_text(r, "kernel launches, graphs and asynchronous copies, which need no "
				 "system call: inspect trace --cuda --cuda-launch"));
	if (run->tracing.watched.interrupted)
		result_note(r, "interrupted");
}

static int report(struct gpu_run *run)
{
	const struct trace_values *v = run->v;
	CLEANUP(result_release) struct result r;
	int err;

	result_init(&r, v->leaks  ? "inspect.trace-gpu-leaks/1"
			: v->hist ? "inspect.trace-gpu-hist/1"
				  : "inspect.trace-gpu/1");
	add_facts(run, &r);
	for (size_t i = 0; i < run->notes.n; i++)
		result_note(&r, "%s", run->notes.v[i]);
	for (size_t i = 0; i < run->target.hints.n && !v->common.quiet; i++)
		result_note(&r, "%s", run->target.hints.v[i]);
	err = v->leaks ? gpu_leaks(run, &r) : v->hist ? gpu_hist(run, &r) : gpu_summary(run, &r);
	if (!err && !v->hist && !v->leaks)
		err = gpu_findings(run, &r);
	return err ? diag_errno(run->d, err, "trace")
		   : print_result(&r, &v->common, v->all_rows, run->d);
}

int trace_gpu(const struct trace_values *v, const struct operands *operands, int *exit_code,
	      struct diag *d)
{
	CLEANUP(gpu_run_release) struct gpu_run run = {.v = v, .target = {.cgroup_fd = -1}, .d = d};
	bool stream = trace_is_stream(v);
	int err = parse_by(v->by, &run.parts, d);

	host_read(&run.host, "");
	if (!err)
		err = find_devices(&run, d);
	if (!err)
		err = find_version(&run, d);
	if (!err)
		err = explain_bpf_tracing(&run.host, TRACING_SINCE_5_10, "trace the driver",
					  "strace -f -e ioctl -p PID", d);
	if (!err && (stream || v->leaks))
		err = diag_errno(d, gpu_objects_new(&run.objects), "trace");
	if (!err)
		err = target_resolve(&v->target, operands, &run.host, &run.notes, &run.target, d);
	if (err)
		return err;
	target_text_put(&v->target, v->duration.duration_ns, operands, &run.target,
			&run.target_text);
	err = measure(&run, stream);
	if (!err)
		err = stream ? gpu_stream_end(&run) : report(&run);
	watched_exit_code(&run.tracing.watched, &run.target, err, exit_code);
	return err;
}
