/* SPDX-License-Identifier: BSD-2-Clause */
#include "waiting.h"

#include "blocked_stacks.h"
#include "gpu_labels.h"
#include "wait_labels.h"
#include "wait_records.h"
#include "wait_wakers.h"

#include <inspect/clock.h>
#include <poll.h>
#include <time.h>

enum { REPAIRS_AT_ONCE = 64, REPAIRS_MAX = 100 };

/* In struct sample_waits: the number of a loop's gap, not of a site. */
#define SITE_OF_GAP 0x80000000U

struct waiting {
	struct source source;
	struct event_table events;
	struct offcpu_probe *probe;
	struct wait_labels *labels;
	struct waits *waits;
	uint64_t id, loops_id; /* of our events */
	/* The end of the last read but one: what is older has been named. What a row has added up
	 * ended after it, so that its stack is named at a time when it was there. */
	uint64_t since_ns;
	uint64_t read_ns; /* the end of the last one */
	uint64_t *record;
	struct blocked_stacks *blocked; /* NULL: no user stacks */
	blocked_stack_list before;      /* of those that waited at the start */
	ARRAY(pid_t) pids, tids;        /* the target; none: everyone */
	bool everyone, with_wakers, with_loops;
	const char *point; /* the text of a point in code, borrowed; NULL: waits or calls */
	struct wait_wakers wakers;
	struct gpu_labels gpu;
	unsigned n_repairs;
	/* During a read. */
	record_fn *emit;
	void *ctx;
};

static struct waiting *waiting_of(const struct source *s)
{
	return (struct waiting *)s;
}

/* --- records ---------------------------------------------------------------------------------- */

static int emit_record(struct waiting *s, const struct perf_event_header *h)
{
	return s->emit(s->ctx, h, h->size);
}

/* Of what a row has added up. */
static struct wait_sample sample_of(const struct waiting *s, const struct offcpu_wait *wait,
				    uint32_t label, uint64_t weight_ns, uint32_t site)
{
	const struct offcpu_row *row = wait->row;
	struct wait_sample sample = {
		.id = s->id,
		.time_ns = MAX(row->last_ns, s->since_ns),
		.weight_ns = weight_ns,
		.pid = row->pid,
		.tid = row->tid,
		.label = label,
		.stack = wait->stack,
		.waits = {SAMPLE_WAITS_MAGIC, site, row->count, row->max_ns},
	};

	return sample;
}

static int emit_sample(struct waiting *s, const struct wait_sample *sample)
{
	return emit_record(s, wait_record_sample(sample, s->record));
}

/* Before the first sample that has the label. */
static int tell_label(struct waiting *s, uint32_t label)
{
	struct wait_label *l = &s->waits->labels.v[label];

	if (l->told)
		return 0;
	l->told = true;
	return emit_record(s, wait_record_label(l, label, s->since_ns, s->id, s->record));
}

static int pass_record(void *ctx, const struct perf_event_header *h, size_t size_bytes)
{
	struct waiting *s = ctx;

	return s->emit(s->ctx, h, size_bytes);
}

/* A wait since before the start has the stack that was read then. */
static struct offcpu_wait with_stack(const struct waiting *s, const struct offcpu_wait *wait,
				     struct offcpu_key *key)
{
	struct offcpu_wait w = *wait;
	const struct blocked_stack *before;

	if (w.stack || !(w.key->flags & OFFCPU_BEFORE))
		return w;
	before = blocked_stacks_find(&s->before, (pid_t)w.row->tid);
	if (!before)
		return w;
	*key = *w.key;
	key->stack = before->record->id;
	w.key = key;
	w.stack = before->record;
	return w;
}

static int add_link(struct waiting *s, uint32_t waker, const struct stack_record *stack,
		    struct wait_sample *sample)
{
	struct wait_link *l = &sample->links[sample->n_links];
	int err = wait_wakers_label(&s->wakers, s->waits, waker, stack, &l->label);

	l->stack = stack;
	if (!err)
		err = tell_label(s, l->label);
	sample->n_links += !err;
	return err;
}

/* With --wakers: who ended the waits of a row, as far as anybody did, and who woke whom before. */
static int add_links(struct waiting *s, const struct offcpu_wait *wait, struct wait_sample *sample)
{
	const struct offcpu_chain *chain = wait->chain;
	bool missing = false;
	int err;

	if (!s->with_wakers)
		return 0;
	err = wait_wakers_note(&s->wakers, wait->key->thread, (pid_t)wait->row->tid);
	if (err || wait->key->waker == OFFCPU_WAKER_NONE)
		return err;
	if (!chain)
		return add_link(s, wait->key->waker, NULL, sample);
	for (uint32_t i = 0; i < chain->n && !err; i++) {
		const struct stack_record *stack = offcpu_stack(s->probe, chain->links[i].stack);

		missing |= chain->links[i].stack && !stack;
		err = add_link(s, chain->links[i].waker, stack, sample);
	}
	s->waits->without_link += missing ? wait->row->count : 0;
	return err;
}

/* In a call of a GPU's driver. The kernel's functions may say what else it waits for there. */
static int find_gpu_label(struct waiting *s, const struct offcpu_wait *wait, uint32_t *ret)
{
	int err = gpu_labels_find(&s->gpu, s->probe, s->waits, (int32_t)wait->key->inode, ret);

	if (!err && wait->key->flags & OFFCPU_UNINTERRUPTIBLE)
		s->waits->labels.v[*ret].by_stack = true;
	return err;
}

static int find_label(struct waiting *s, const struct offcpu_wait *wait, uint32_t *ret)
{
	int err;

	if (wait->key->how == OFFCPU_BLOCKED && wait->key->flags & OFFCPU_GPU)
		return find_gpu_label(s, wait, ret);
	if (wait->key->how == OFFCPU_IN_GPU)
		return gpu_labels_find(&s->gpu, s->probe, s->waits, wait->key->nr, ret);
	if (!s->point)
		return wait_labels_find(s->labels, s->probe, s->waits, wait->key, wait->row->pid,
					ret);
	err = waits_label(s->waits, s->point, WAIT_OTHER, ret);
	if (!err)
		s->waits->labels.v[*ret].is_probe = true;
	return err;
}

static int pass_wait(void *ctx, const struct offcpu_wait *raw)
{
	struct waiting *s = ctx;
	struct offcpu_key key;
	const struct offcpu_wait found = with_stack(s, raw, &key), *wait = &found;
	struct wait_sample sample;
	uint32_t label, queued, site;
	int err;

	err = find_label(s, wait, &label);
	if (!err)
		err = waits_label(s->waits, "runnable", WAIT_RUNNABLE, &queued);
	if (!err)
		err = waits_add(s->waits, wait->key, wait->row, label, &site);
	if (err)
		return err;
	s->waits->without_stack += wait->key->stack && !wait->stack ? wait->row->count : 0;
	sample = sample_of(s, wait, label, wait->row->wait_ns, site);
	err = add_links(s, wait, &sample);
	if (sample.n_links)
		sample.waits.site |= SITE_WITH_LINKS;
	if (!err && wait->row->wait_ns)
		err = tell_label(s, label);
	if (!err && wait->row->wait_ns)
		err = emit_sample(s, &sample);
	if (err || !wait->row->queue_ns)
		return err;
	sample = sample_of(s, wait, queued, wait->row->queue_ns,
			   wait->row->wait_ns ? UINT32_MAX : site);
	err = tell_label(s, queued);
	return err ? err : emit_sample(s, &sample);
}

void waiting_found(void *ctx, uint32_t site, uint32_t stack)
{
	struct waits *w = ctx;

	uint32_t loop = (site & ~SITE_OF_GAP) / OFFCPU_LOOP_GAPS;
	uint32_t number = site & ~SITE_WITH_LINKS;
	bool has_links = site != number;

	if (site & SITE_OF_GAP) {
		if (loop < w->loops.n)
			w->loops.v[loop].longest[site % OFFCPU_LOOP_GAPS].stack = stack;
	} else if (number < w->sites.n && (has_links || !w->sites.v[number].has_links)) {
		/* The last wait of many, not over at the end, does not hide who ended them. */
		w->sites.v[number].stack = stack;
		w->sites.v[number].has_links = has_links;
	}
}

/* --- a source --------------------------------------------------------------------------------- */

/* Who waits already will not come by a switch before the wait is over. */
static int read_before(struct waiting *s)
{
	const struct task_selection which = {
		.pids = s->pids.v, .n_pids = s->pids.n, .tids = s->tids.v, .n_tids = s->tids.n};

	if (!s->blocked || (!s->pids.n && !s->tids.n && !s->everyone))
		return 0;
	return blocked_stacks_read(s->blocked, &which, &s->before);
}

static int waiting_start(struct source *source, struct diag *d)
{
	struct waiting *s = waiting_of(source);
	int err;

	s->since_ns = s->read_ns = s->waits->start_ns = clock_now_ns();
	err = offcpu_start(s->probe, d);
	if (err)
		return err;
	err = read_before(s);
	return err ? diag_errno(d, err, "reading what threads wait for") : 0;
}

/* Stacks that the program could not finish, while their threads are still where they were. */
static int repair_stacks(struct waiting *s)
{
	const struct stack_record *incomplete[REPAIRS_AT_ONCE];
	CLEANUP(blocked_stacks_release) blocked_stack_list now = {0};
	struct task_selection which = {0};
	pid_t tids[REPAIRS_AT_ONCE];
	size_t n = offcpu_incomplete(s->probe, incomplete, REPAIRS_AT_ONCE);
	int err;

	if (!n || !s->blocked || s->n_repairs >= REPAIRS_MAX)
		return 0;
	s->n_repairs++;
	for (size_t i = 0; i < n; i++)
		tids[i] = (pid_t)incomplete[i]->tid;
	which.tids = tids;
	which.n_tids = n;
	err = blocked_stacks_read(s->blocked, &which, &now);
	for (size_t i = 0; i < n && !err; i++) {
		const struct blocked_stack *b = blocked_stacks_find(&now, tids[i]);

		if (b && b->record->stop == UNWIND_END)
			err = offcpu_replace_stack(s->probe, incomplete[i]->id, b->record);
		err = err == -ENOENT ? 0 : err;
	}
	return err;
}

static size_t waiting_fds(struct source *source, struct pollfd *v, size_t max)
{
	return offcpu_fds(waiting_of(source)->probe, v, max);
}

static int waiting_read(struct source *source, record_fn *emit, void *ctx, struct diag *d)
{
	struct waiting *s = waiting_of(source);
	int more, err;

	s->emit = emit;
	s->ctx = ctx;
	more = offcpu_read(s->probe, pass_record, pass_wait, s, d);
	s->since_ns = s->read_ns;
	s->read_ns = clock_now_ns();
	if (more < 0)
		return more;
	err = repair_stacks(s);
	if (err)
		return diag_errno(d, err, "reading stacks");
	err = s->gpu.config && s->gpu.config->event
		      ? offcpu_gpu_events(s->probe, s->gpu.config->event, s->gpu.config->ctx)
		      : 0;
	return err ? diag_errno(d, err, "reading calls") : more;
}

static int waiting_stop(struct source *source)
{
	struct waiting *s = waiting_of(source);
	struct diag d = {0};
	int err = offcpu_stop(s->probe, &d);

	s->waits->end_ns = clock_now_ns();
	diag_release(&d);
	return err;
}

static void waiting_free(struct source *source)
{
	struct waiting *s = waiting_of(source);

	offcpu_free(s->probe);
	wait_labels_free(s->labels);
	blocked_stacks_free(s->blocked);
	blocked_stacks_release(&s->before);
	wait_wakers_release(&s->wakers);
	gpu_labels_release(&s->gpu);
	array_release(&s->pids);
	array_release(&s->tids);
	event_table_release(&s->events);
	free(s->record);
	free(s);
}

static const struct source_ops waiting_ops = {
	.name = "waits",
	.start = waiting_start,
	.fds = waiting_fds,
	.read = waiting_read,
	.stop = waiting_stop,
	.free = waiting_free,
};

static int take_loops(struct waiting *s)
{
	CLEANUP(freep) struct offcpu_loop *loop = malloc(sizeof(*loop));
	uint32_t serial = 0;
	int err = loop ? 0 : -ENOMEM;

	while (!err && !(err = offcpu_loop_next(s->probe, &serial, loop)))
		err = waits_add_loop(s->waits, serial, loop);
	return err == -ENOENT ? 0 : err;
}

/* The longest gaps of loops as samples of an event of their own, with their stacks. */
static int emit_gaps(struct waiting *s)
{
	uint32_t label;
	int err;

	if (!s->waits->loops.n)
		return 0;
	err = waits_label(s->waits, "loop busy", WAIT_RUNNING, &label);
	if (!err)
		err = tell_label(s, label);
	for (size_t i = 0; i < s->waits->loops.n && !err; i++) {
		const struct wait_loop *l = &s->waits->loops.v[i];

		for (size_t j = 0; j < l->n_longest && !err; j++) {
			const struct wait_gap *g = &l->longest[j];
			const struct wait_sample sample = {
				.id = s->loops_id,
				.time_ns = s->read_ns,
				.weight_ns = g->gap_ns,
				.pid = l->pid,
				.tid = l->tid,
				.label = label,
				.stack = offcpu_stack(s->probe, g->stack_id),
				.waits = {SAMPLE_WAITS_MAGIC,
					  SITE_OF_GAP | (uint32_t)(i * OFFCPU_LOOP_GAPS + j), 1,
					  g->gap_ns},
			};

			err = emit_sample(s, &sample);
		}
	}
	return err;
}

/* What is lost is the sum of all that is missing; of each kind there is a note. */
int waiting_finish(struct source *source, record_fn *emit, void *ctx)
{
	struct waiting *s = waiting_of(source);
	struct {
		struct perf_event_header header;
		uint64_t id, lost;
		uint32_t pid, tid; /* the trailer: TID, TIME, CPU, IDENTIFIER */
		uint64_t time_ns;
		uint32_t cpu, reserved;
		uint64_t identifier;
	} record = {
		.header = {.type = PERF_RECORD_LOST, .size = sizeof(record)},
		.id = s->id,
		.time_ns = s->read_ns,
		.cpu = UINT32_MAX, /* of no one */
		.identifier = s->id,
	};
	const struct offcpu_ended *threads;
	size_t n;
	int err;

	threads = offcpu_threads(s->probe, &n);
	err = s->with_loops ? take_loops(s) : 0;
	if (!err)
		err = waits_finish(s->waits, threads, n);
	s->emit = emit;
	s->ctx = ctx;
	if (!err)
		err = emit_gaps(s);
	offcpu_losses(s->probe, &s->waits->lost);
	if (!err)
		err = offcpu_delays(s->probe, &s->waits->delays);
	if (!err && s->gpu.config)
		err = offcpu_gpu_losses(s->probe, &s->waits->gpu_lost);
	record.lost = waits_lost(s->waits);
	return err || !record.lost ? err : emit(ctx, &record.header, sizeof(record));
}

int waiting_notes(const struct source *source, note_list *notes)
{
	const struct waiting *s = waiting_of(source);
	struct wait_loss all[WAIT_LOSSES];
	int err = 0;

	waits_losses(s->waits, all);
	for (size_t i = 0; i < WAIT_LOSSES && !err; i++)
		if (all[i].n)
			err = note_add(notes, "%llu %s", (unsigned long long)all[i].n, all[i].text);
	if (!err && s->waits->parts_left_out)
		err = note_add(notes,
			       "%llu ms of waits are in no thread's row: too many different ones "
			       "in all",
			       (unsigned long long)(s->waits->parts_left_out / NSEC_PER_MSEC));
	return err ? err : offcpu_notes(s->probe, notes);
}

/* --- making ----------------------------------------------------------------------------------- */

static int add_id(void *ctx, uint64_t id)
{
	return event_table_add_id(ctx, 0, id);
}

/* The events as a file states them: bpf-output, whose samples' weight is ns. */
static int add_events(struct waiting *s, const struct waiting_config *c)
{
	struct perf_event_attr a = {
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_BPF_OUTPUT,
		.size = sizeof(a),
		.sample_period = 1,
		.sample_type = WAIT_RECORD_FIELDS,
		.sample_max_stack = (uint16_t)c->max_stack,
		.read_format = PERF_FORMAT_ID,
		.sample_id_all = 1,
		.use_clockid = 1,
		.clockid = CLOCK_MONOTONIC,
		.mmap = 1,
		.mmap2 = 1,
		.comm = 1,
		.comm_exec = 1,
		.task = 1,
		.ksymbol = 1,
	};
	bool has_end = c->probe && probe_has_end(c->probe);
	const char *name = c->calls     ? CALLS_EVENT
			   : c->gpu     ? GPU_EVENT
			   : c->probe   ? (has_end ? PROBE_EVENT : PROBE_HITS_EVENT)
			   : c->tick_hz ? WALL_EVENT
					: OFFCPU_EVENT;
	int err = event_table_add(&s->events, &a, name);

	/* The kernel counts ids up from 1. */
	s->id = 1ULL << 62;
	s->loops_id = s->id + 1;
	if (!err)
		err = event_table_add_id(&s->events, 0, s->id);
	if (!err && c->loops)
		err = event_table_add(&s->events, &a, LOOPS_EVENT);
	if (!err && c->loops)
		err = event_table_add_id(&s->events, 1, s->loops_id);
	return err ? err : offcpu_ids(s->probe, add_id, &s->events);
}

static int keep_target(struct waiting *s, const struct probe_target *t)
{
	int err = 0;

	s->everyone = t->all || t->cgroup_fd >= 0;
	for (size_t i = 0; i < t->n_pids && !err; i++)
		err = array_push(&s->pids, t->pids[i]);
	for (size_t i = 0; i < t->n_tids && !err; i++)
		err = array_push(&s->tids, t->tids[i]);
	return err;
}

int waiting_new(const struct waiting_config *c, const struct host *h, note_list *notes,
		struct waits *waits, struct source **ret, struct diag *d)
{
	struct waiting *s = calloc(1, sizeof(*s));
	struct probe_target target = *c->target;
	struct offcpu_config config = {
		.target = &target,
		.kernel_stacks = c->with_stacks && !c->user_only && !c->calls && !c->gpu &&
				 (!c->probe || probe_is_in_kernel(c->probe)),
		.kthreads = c->kthreads,
		.wakers = !c->calls && !c->probe && !c->gpu,
		.calls = c->calls,
		.probe = c->probe,
		.only = c->only,
		.max_stack = c->max_stack,
		.ring_pages = c->ring_pages,
		.min_wait_ns = c->min_wait_ns,
		.max_wait_ns = c->max_wait_ns,
		.tick_hz = c->tick_hz,
		.chains = c->chains && c->with_stacks,
		.loops = c->loops,
		.gpu_events = c->gpu && c->gpu->event,
		.room = c->room,
	};
	CLEANUP(gpu_scope_release) struct gpu_scope scope = {0};
	int err;

	if (!s)
		return diag_errno(d, -ENOMEM, "preparing to watch threads");
	if (!c->with_stacks || c->kernel_only)
		target.rows = NULL;
	s->source = (struct source){&waiting_ops, &s->events};
	s->waits = waits;
	s->gpu.config = c->gpu;
	s->with_wakers = c->chains;
	s->with_loops = c->loops;
	s->point = c->probe ? c->probe->begin->text : NULL;
	s->record = malloc(WAIT_RECORD_WORDS * sizeof(*s->record));
	err = s->record ? wait_labels_new(&s->labels) : -ENOMEM;
	if (!err)
		err = wait_wakers_init(&s->wakers);
	if (!err)
		err = keep_target(s, c->target);
	if (!err && c->gpu) {
		err = gpu_scope_find(c->gpu->devices, c->gpu->version, &scope);
		config.gpu = &scope.watch;
	}
	if (!err && !c->gpu && !c->calls && !c->probe)
		err = gpu_labels_of_waits(&s->gpu);
	if (!err && s->gpu.waits) {
		err = gpu_scope_find(s->gpu.config->devices, s->gpu.config->version, &scope);
		config.gpu_waits = &scope.watch;
	}
	if (err)
		diag_errno(d, err, "preparing to watch threads");
	wait_labels_arguments(config.arguments);
	if (!err)
		err = offcpu_new(&config, h, notes, &s->probe, d);
	if (!err && target.rows)
		err = blocked_stacks_new(h, c->no_cache, &s->blocked, d);
	if (!err && (err = add_events(s, c)))
		diag_errno(d, err, "preparing to watch threads");
	if (err) {
		waiting_free(&s->source);
		return err;
	}
	*ret = &s->source;
	return 0;
}
