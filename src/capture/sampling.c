/* SPDX-License-Identifier: BSD-2-Clause */
#include "sampling.h"

#include "unwinding.h"

#include <inspect/bpf_sampler.h>
#include <inspect/explain.h>
#include <inspect/unwind.h>

/* --- the kernel's side ------------------------------------------------------------------------ */

/* So much code takes long, unless its rows are on disk. */
#define QUICK_BYTES (1u << 20)

int unwind_rows_of_tables(void *ctx, const struct dso *d, bool quick, struct unwind_rows *ret)
{
	const struct unwind_table *table;
	int err;

	unwind_tables_leave_large(ctx, quick ? QUICK_BYTES : 0);
	err = unwind_tables_get(ctx, d, true, &table);
	if (err)
		return err;
	*ret = (struct unwind_rows){
		.rows = table->rows.v,
		.n_rows = table->rows.n,
		.rules = table->rules.v,
		.n_rules = table->rules.n,
		.base_off = table->base_off,
	};
	return 0;
}

struct event_list {
	ARRAY(struct perf_event_attr) attrs;
	ARRAY(const char *) names; /* borrowed */
};

static void event_list_release(struct event_list *l)
{
	array_release(&l->attrs);
	array_release(&l->names);
}

static int list_events(const struct sampler_config *c, const struct host *host, note_list *notes,
		       struct event_list *ret, struct diag *d)
{
	struct sampler_config plain = *c;
	int err = 0;

	plain.callchain = false; /* its limits are perf's */
	for (size_t i = 0; i < c->events->n && !err; i++) {
		struct perf_event_attr attr;

		err = sampler_attr(&plain, i, host, notes, &attr, d);
		if (!err && (array_push(&ret->attrs, attr) ||
			     array_push(&ret->names, c->events->v[i].name)))
			err = diag_errno(d, -ENOMEM, "opening the events");
	}
	return err;
}

static struct probe_target target_of(const struct sampler_config *c, struct unwind_tables *tables)
{
	return (struct probe_target){.pids = c->pids,
				     .n_pids = c->n_pids,
				     .tids = c->tids,
				     .n_tids = c->n_tids,
				     .cpus = c->cpus,
				     .n_cpus = c->n_cpus,
				     .all = c->all,
				     .cgroup_fd = c->cgroup_fd,
				     .child = c->child,
				     .child_runs = c->child_runs,
				     .command = c->child_command,
				     .rows = unwind_rows_of_tables,
				     .rows_ctx = tables};
}

static int open_bpf(const struct sampler_config *c, bool no_cache, const struct host *host,
		    note_list *notes, struct sampling *ret, struct diag *d)
{
	CLEANUP(event_list_release) struct event_list events = {0};
	uint8_t early_slots[64];
	struct bpf_sampler_config config = {
		.callchain = c->callchain,
		.user_only = c->user_only,
		.kernel_only = c->kernel_only,
		.idle_cpus = c->idle_cpus,
		.max_stack = c->max_stack,
		.ring_pages = c->ring_pages,
	};
	int err = list_events(c, host, notes, &events, d);

	if (err)
		return err;
	config.attrs = events.attrs.v;
	config.names = events.names.v;
	config.n_events = events.attrs.n;
	err = unwind_tables_new(!no_cache, &ret->tables);
	if (err)
		return diag_errno(d, err, "preparing to unwind");
	config.early_regs = unwind_perf_regs(unwinding_host_arch());
	unwind_perf_slots(unwinding_host_arch(), early_slots);
	config.early_slots = early_slots;
	ret->stack_copies = true;
	config.target = target_of(c, ret->tables);
	return bpf_sampler_new(&config, host, notes, &ret->source, d);
}

static bool has_tracepoint(const struct sampler_config *c)
{
	for (size_t i = 0; i < c->events->n; i++)
		if (c->events->v[i].is_tracepoint)
			return true;
	return false;
}

/* Tracepoints take another kind of program; what the kernel's own stack is all that is asked for,
 * perf takes as well. */
static bool bpf_is_of_use(const struct sampler_config *c)
{
	return !has_tracepoint(c) && c->callchain && !c->kernel_only &&
	       c->max_stack <= UNWIND_MAX_STACK;
}

static int check_unwound_depth(const struct sampler_config *c, struct diag *d)
{
	if (!c->callchain || c->kernel_only || c->max_stack <= UNWIND_MAX_STACK)
		return 0;
	diag_set(d, -EINVAL, "cannot unwind stacks of %u frames", c->max_stack);
	diag_why(d, "%u frames are the most that are unwound without frame pointers",
		 UNWIND_MAX_STACK);
	diag_fix(d, "--max-stack %u", UNWIND_MAX_STACK);
	return -EINVAL;
}

/* Chains by frame pointer are as deep as a sysctl allows; what is unwound here has a limit of its
 * own, which is higher, but where that was raised. */
static int check_depth(const struct sampler_config *c, bool automatic, const struct host *host,
		       struct diag *d)
{
	if (!automatic && !c->stack_bytes)
		return 0;
	if (automatic && host->perf_event_max_stack != HOST_UNKNOWN &&
	    c->max_stack <= (uint64_t)host->perf_event_max_stack)
		return 0;
	return check_unwound_depth(c, d);
}

/* In one line: what, why, and the first thing that would help. */
static int note_fallback(const struct diag *why, note_list *notes)
{
	size_t fix = why->fix ? strcspn(why->fix, "\n") : 0;

	return note_add(notes,
			"stacks by frame pointers (perf sampler): %s%s%s%s%.*s; without frame "
			"pointers: --call-graph dwarf",
			why->what ? why->what : "BPF failed", why->why ? "; " : "",
			why->why ? why->why : "", fix ? " → " : "", (int)fix,
			why->fix ? why->fix : "");
}

/* --- either ----------------------------------------------------------------------------------- */

void sampling_release(struct sampling *s)
{
	source_freep(&s->source);
	unwind_tables_free(s->tables);
	*s = (struct sampling){0};
}

int sampling_new(const struct sampler_config *config, bool automatic, bool no_cache,
		 const struct host *host, note_list *notes, struct sampling *ret, struct diag *d)
{
	struct diag refusal = {0};
	struct sampling s = {0};
	int err = check_depth(config, automatic, host, d);

	if (err)
		return err;
	if (automatic && bpf_is_of_use(config)) {
		err = explain_bpf(host, &refusal);
		if (!err)
			err = open_bpf(config, no_cache, host, notes, &s, &refusal);
		if (!err) {
			*ret = s;
			diag_release(&refusal);
			return 0;
		}
		sampling_release(&s);
		err = note_fallback(&refusal, notes);
	} else if (automatic && config->callchain && !config->kernel_only &&
		   has_tracepoint(config)) {
		err = note_add(notes, "stacks by frame pointers (perf sampler), as for all "
				      "tracepoints; without frame pointers: --call-graph dwarf");
	}
	diag_release(&refusal);
	if (err)
		return diag_errno(d, err, "opening the events");
	ret->stack_copies = config->stack_bytes != 0;
	return sampler_new(config, host, notes, &ret->source, d);
}

int sampling_waits(const struct sampler_config *c, const struct waits_config *waits, bool no_cache,
		   const struct host *host, note_list *notes, struct waits *ret_waits,
		   struct sampling *ret, struct diag *d)
{
	struct probe_target target;
	struct waiting_config config = {
		.target = &target,
		.no_cache = no_cache,
		.with_stacks = c->callchain,
		.user_only = c->user_only,
		.kernel_only = c->kernel_only,
		.kthreads = waits->kthreads,
		.max_stack = c->max_stack,
		.ring_pages = c->ring_pages,
		.min_wait_ns = waits->min_wait_ns,
		.max_wait_ns = waits->max_wait_ns,
		.chains = waits->chains,
		.loops = waits->loops,
		.calls = waits->calls,
		.only = waits->only,
		.probe = waits->probe,
		.gpu = waits->gpu,
		.tick_hz = waits->wall ? c->freq_hz : 0,
	};
	int err = check_unwound_depth(c, d);

	if (err)
		return err;
	err = waits->probe ? explain_bpf_tracing(host, TRACING_SINCE_5_10, "time functions",
						 "perf probe -x PATH FUNC", d)
	      : waits->calls
		      ? explain_bpf_tracing(host, TRACING_SINCE_5_10, "trace system calls",
					    "strace -k -f -p PID", d)
		      : explain_bpf_tracing(host, TRACING_SINCE_5_10, "see what threads wait for",
					    "inspect stack -p PID      (what they wait for now)",
					    d);

	if (!err && unwind_tables_new(!no_cache, &ret->tables))
		err = diag_errno(d, -ENOMEM, "preparing to unwind");
	if (err)
		return err;
	ret->waits = true;
	target = target_of(c, ret->tables);
	return waiting_new(&config, host, notes, ret_waits, &ret->source, d);
}

int sampling_untold_losses(const struct sampling *s, record_fn *emit, void *ctx)
{
	if (s->waits)
		return waiting_finish(s->source, emit, ctx);
	return s->tables ? bpf_sampler_untold_losses(s->source, emit, ctx)
			 : sampler_untold_losses(s->source, emit, ctx);
}

int sampling_final_notes(const struct sampling *s, note_list *notes)
{
	if (s->waits)
		return waiting_notes(s->source, notes);
	return s->tables ? bpf_sampler_notes(s->source, notes) : 0;
}
