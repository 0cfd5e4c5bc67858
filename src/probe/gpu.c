/* SPDX-License-Identifier: BSD-2-Clause */
#include <inspect/gpu_counts.h>

#include "gpu_watch.h"
#include "iterator.h"
#include "kernel_types.h"

#include "gpu.skel.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <inspect/clock.h>

enum { KEYS_MAX = 1 << 16 };

struct gpu_counts {
	struct probe_core core;
	struct gpu *skeleton;
	struct gpu_events events;
	struct bpf_program *mark; /* finds the calls that threads are in at the start */
	uint64_t started_ns, stopped_ns;
};

/* --- loading ---------------------------------------------------------------------------------- */

static int attach(struct gpu_counts *c, struct diag *d)
{
	int err = probe_core_follow(&c->core, d);

	if (!err)
		err = probe_core_attach(&c->core, "state_on_exit", d);
	if (!err)
		err = probe_core_attach(&c->core, "on_sys_exit", d);
	if (!err)
		err = probe_core_attach(&c->core, "on_sys_enter", d);
	return err ? err : probe_core_targets(&c->core, d);
}

static int open_counts(struct gpu_counts *c, const struct gpu_counts_config *config,
		       const struct host *h, struct diag *d)
{
	CLEANUP(kernel_types_release) struct kernel_types types = KERNEL_TYPES_INIT;
	int err = probe_core_init(&c->core, &config->target, false, h, d);

	if (err)
		return err;
	c->skeleton = KERNEL_TYPES_OPEN(gpu, &types);
	if (!c->skeleton)
		return probe_core_load(&c->core, NULL, h, d);
	c->mark = gpu_watch_reads_others(h) ? c->skeleton->progs.mark_reading
					    : c->skeleton->progs.mark;
	bpf_program__set_autoload(c->skeleton->progs.mark, false);
	bpf_program__set_autoload(c->skeleton->progs.mark_reading, false);
	bpf_program__set_autoload(c->mark, true);
	gpu_watch_setup(config->by, config->events,
			(struct gpu_setup *)&c->skeleton->rodata->gpu_setup);
	*(struct target_setup *)&c->skeleton->rodata->target_setup = c->core.setup;
	err = probe_core_load(&c->core, c->skeleton->skeleton, h, d);
	if (err)
		return err;
	c->core.shared = &c->skeleton->bss->target_shared;
	err = gpu_watch_fill(&c->core, &config->watch);
	if (err)
		return diag_errno(d, err, "telling BPF which devices are meant");
	err = config->events ? gpu_events_open(&c->events, &c->core) : 0;
	if (err)
		return diag_errno(d, err, "mapping BPF's ring");
	return attach(c, d);
}

int gpu_counts_new(const struct gpu_counts_config *config, const struct host *h,
		   struct gpu_counts **ret, struct diag *d)
{
	struct gpu_counts *c = calloc(1, sizeof(*c));
	int err = c ? open_counts(c, config, h, d) : diag_errno(d, -ENOMEM, "watching GPU calls");

	if (err) {
		gpu_counts_free(c);
		return err;
	}
	*ret = c;
	return 0;
}

int gpu_counts_start(struct gpu_counts *c)
{
	int err;

	c->skeleton->bss->gpu_shared.start_ns = c->started_ns = clock_now_ns();
	err = probe_core_start(&c->core);
	return err ? err : probe_iterate(c->mark, 1, NULL, NULL);
}

void gpu_counts_stop(struct gpu_counts *c)
{
	c->stopped_ns = probe_core_stop(&c->core);
	probe_core_detach(&c->core, 0);
}

void gpu_counts_free(struct gpu_counts *c)
{
	if (!c)
		return;
	gpu_events_release(&c->events);
	probe_core_release(&c->core);
	gpu__destroy(c->skeleton);
	free(c);
}

bool gpu_counts_alive(const struct gpu_counts *c)
{
	return probe_core_alive(&c->core);
}

/* --- reading ---------------------------------------------------------------------------------- */

int gpu_counts_fd(const struct gpu_counts *c)
{
	return gpu_events_fd(&c->events);
}

int gpu_counts_events(struct gpu_counts *c, gpu_event_fn *fn, void *ctx)
{
	return gpu_events_read(&c->events, fn, ctx);
}

static int read_rows(struct gpu_counts *c, struct gpu_table *t)
{
	int fd = bpf_map__fd(c->skeleton->maps.rows), err = 0;
	struct gpu_key key, *before = NULL;
	struct gpu_row value;

	for (size_t i = 0; i < KEYS_MAX && !err; i++) {
		struct gpu_count row = {0};
		bool begun_before;

		if (bpf_map_get_next_key(fd, before, &key))
			return errno == ENOENT ? 0 : -errno;
		before = &key;
		if (bpf_map_lookup_elem(fd, &key, &value))
			continue;
		begun_before = key.flags & GPU_BEFORE;
		row.key = key;
		row.key.flags &= (uint8_t) ~(GPU_BEFORE | GPU_STARTING);
		row.starting = key.flags & GPU_STARTING;
		row.seconds = value.seconds;
		row.calls = value.calls;
		row.before = begun_before ? value.calls : 0;
		row.open_ns = begun_before ? value.total_ns : 0;
		row.bytes = value.bytes;
		for (size_t k = 0; k < LOG_LINEAR_SLOTS; k++) {
			row.h.slots[k] = value.slots[k];
			row.h.n += value.slots[k];
		}
		row.h.sum = begun_before ? 0 : value.total_ns;
		row.h.max = value.max_ns;
		err = array_push(&t->rows, row);
	}
	return err;
}

static int read_queues(struct gpu_counts *c, struct gpu_table *t)
{
	int fd = bpf_map__fd(c->skeleton->maps.queues), err = 0;
	struct gpu_queue_key *before = NULL;
	struct gpu_queued one;

	for (size_t i = 0; i < KEYS_MAX && !err; i++) {
		struct gpu_queue_key key;

		if (bpf_map_get_next_key(fd, before, &key))
			return errno == ENOENT ? 0 : -errno;
		one.key = key;
		before = &one.key;
		if (!bpf_map_lookup_elem(fd, &key, &one.v))
			err = array_push(&t->queues, one);
	}
	return err;
}

static int read_waiters(struct gpu_counts *c, struct gpu_table *t)
{
	int fd = bpf_map__fd(c->skeleton->maps.waiters), err = 0;
	uint32_t tid, *before = NULL;
	struct gpu_waiter one;

	for (size_t i = 0; i < KEYS_MAX && !err; i++) {
		if (bpf_map_get_next_key(fd, before, &tid))
			return errno == ENOENT ? 0 : -errno;
		before = &tid;
		if (!bpf_map_lookup_elem(fd, &tid, &one))
			err = array_push(&t->waiters, one);
	}
	return err;
}

static int add_thread(void *ctx, const void *element)
{
	const struct gpu_thread *thread = element;
	struct gpu_table *t = ctx;
	/* While it still runs, the iterator is later than that. */
	uint64_t open_ns = MIN(thread->in_call_ns, t->elapsed_ns);
	struct gpu_count row = {.key = thread->key,
				.in_flight = 1,
				.before_open = !!(thread->key.flags & GPU_BEFORE),
				.open_ns = open_ns,
				.oldest_ns = open_ns};

	row.key.flags &= (uint8_t)~GPU_BEFORE;
	return array_push(&t->rows, row);
}

int gpu_counts_read(struct gpu_counts *c, struct gpu_table *ret)
{
	const struct gpu_shared *shared = (const struct gpu_shared *)&c->skeleton->bss->gpu_shared;
	int err = gpu_watch_losses(&c->core, shared, &ret->losses);

	ret->elapsed_ns = (c->stopped_ns ? c->stopped_ns : clock_now_ns()) - c->started_ns;
	ret->ioctls_seen = shared->ioctls_seen;
	ret->ioctls_counted = shared->ioctls_counted;
	if (!err)
		err = read_rows(c, ret);
	if (!err)
		err = read_queues(c, ret);
	if (!err)
		err = read_waiters(c, ret);
	return err ? err
		   : probe_iterate(c->skeleton->progs.collect, sizeof(struct gpu_thread),
				   add_thread, ret);
}

int gpu_counts_notes(const struct gpu_counts *c, note_list *notes)
{
	return probe_core_notes(&c->core, notes);
}
