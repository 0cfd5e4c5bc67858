/* SPDX-License-Identifier: BSD-2-Clause */
/* --gpu -c --by stack, and --leaks: recordings of driver calls by the stack that made them. */
#include "trace_gpu.h"

#include "measure.h"

static int keep_objects(void *ctx, const struct gpu_event *e)
{
	struct gpu_run *run = ctx;

	return gpu_objects_event(run->objects, e);
}

static int fill(void *ctx, const struct recording *rec, const char *target, struct result *r)
{
	struct gpu_run *run = ctx;
	int err;

	if (gpu_choice_has_nvidia(&run->choice))
		result_fact(r, "driver_version", "driver",
			    cell_text(r, gpu_version_text(&run->choice.version, r)));
	gpu_not_seen(run, r);
	if (run->v->leaks)
		return gpu_leaks(run, rec, r);
	err = trace_stacks_table(run->v, rec, TRACE_STACKS_GPU, NULL, r);
	return err ? err : gpu_stack_findings(run->v, rec, target, r);
}

static int prepare(void *ctx, struct measure *m, struct diag *d)
{
	struct gpu_run *run = ctx;
	int err = 0;

	run->calls = (struct gpu_calls_config){
		.devices = &run->choice.devices,
		.version = &run->choice.version,
		.event = run->v->leaks ? keep_objects : NULL,
		.ctx = run,
	};
	m->waits = (struct waits_config){.gpu = &run->calls};
	for (size_t i = 0; i < run->notes.n && !err; i++)
		err = note_add(&m->notes, "%s", run->notes.v[i]);
	return diag_errno(d, err, "trace");
}

int gpu_by_stack(struct gpu_run *run, const struct operands *operands, int argc, char **argv,
		 int *exit_code)
{
	const struct trace_stacks_run recording = {
		.v = run->v,
		.schema =
			run->v->leaks ? "inspect.trace-gpu-leaks/1" : "inspect.trace-gpu-stacks/1",
		.title = gpu_choice_title(&run->v->gpu_choice),
		.prepare = prepare,
		.fill = fill,
		.ctx = run,
	};

	return trace_stacks_record(&recording, operands, argc, argv, exit_code, run->d);
}
