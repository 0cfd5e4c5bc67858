/* SPDX-License-Identifier: BSD-2-Clause */
#include <inspect/gpu_counts.h>

#include "core.h"
#include "iterator.h"

#include "gpu.skel.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <inspect/clock.h>
#include <inspect/syscalls.h>

enum { KEYS_MAX = 1 << 16 };

struct gpu_counts {
	struct probe_core core;
	struct gpu *skeleton;
	struct ring_buffer *ring; /* NULL: without events */
	uint64_t started_ns, stopped_ns;

	/* while events are read */
	gpu_event_fn *fn;
	void *ctx;
	int err;
};

/* --- loading ---------------------------------------------------------------------------------- */

static void fill_setup(struct gpu_setup *setup, const struct gpu_counts_config *config)
{
	static const struct {
		const char *name;
		enum gpu_kind kind;
	} calls[] = {
		{"ioctl", GPU_IOCTL},         {"open", GPU_OPEN},
		{"openat", GPU_OPEN},         {"openat2", GPU_OPEN},
		{"close", GPU_CLOSE},         {"mmap", GPU_MMAP},
		{"munmap", GPU_MUNMAP},       {"poll", GPU_POLL},
		{"ppoll", GPU_POLL},          {"epoll_wait", GPU_EPOLL},
		{"epoll_pwait", GPU_EPOLL},   {"epoll_pwait2", GPU_EPOLL},
		{"epoll_ctl", GPU_EPOLL_CTL},
	};

	*setup = (struct gpu_setup){
		.own_pid = (uint32_t)getpid(), .by = config->by, .with_events = config->events};
	for (size_t i = 0; i < ARRAY_SIZE(calls); i++) {
		int nr = syscall_number(SYSCALL_NATIVE, calls[i].name);

		if (nr >= 0 && nr < GPU_NUMBERS)
			setup->kinds[nr] = (uint8_t)calls[i].kind;
	}
}

static int fill_maps(struct gpu_counts *c, const struct gpu_counts_config *config)
{
	int devices = bpf_map__fd(c->skeleton->maps.devices);
	int layouts = bpf_map__fd(c->skeleton->maps.layouts);
	int epolls = bpf_map__fd(c->skeleton->maps.epolls);

	for (size_t i = 0; i < config->n_devices; i++)
		if (bpf_map_update_elem(devices, &config->devices[i].key,
					&config->devices[i].device, BPF_ANY))
			return -errno;
	for (size_t i = 0; i < config->n_layouts; i++)
		if (bpf_map_update_elem(layouts, &config->layouts[i].key,
					&config->layouts[i].layout, BPF_ANY))
			return -errno;
	for (size_t i = 0; i < config->n_epolls; i++) {
		const struct gpu_epoll_entry *e = &config->epolls[i];
		/* struct epoll_key and found_device of the program. */
		const uint32_t key[4] = {0, 0, e->pid, e->fd};
		const uint32_t value[6] = {e->device, 0, e->class};

		if (bpf_map_update_elem(epolls, key, value, BPF_ANY))
			return -errno;
	}
	return 0;
}

static int take_event(void *ctx, void *record, size_t n_bytes)
{
	struct gpu_counts *c = ctx;

	if (n_bytes < sizeof(struct gpu_event))
		return 0;
	c->err = c->fn(c->ctx, record);
	return c->err;
}

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
	int err = probe_core_init(&c->core, &config->target, false, h, d);

	if (err)
		return err;
	c->skeleton = gpu__open();
	if (!c->skeleton)
		return probe_core_load(&c->core, NULL, h, d);
	fill_setup((struct gpu_setup *)&c->skeleton->rodata->setup, config);
	*(struct target_setup *)&c->skeleton->rodata->target_setup = c->core.setup;
	err = probe_core_load(&c->core, c->skeleton->skeleton, h, d);
	if (err)
		return err;
	c->core.shared = &c->skeleton->bss->target_shared;
	err = fill_maps(c, config);
	if (err)
		return diag_errno(d, err, "telling BPF which devices are meant");
	if (config->events) {
		c->ring =
			ring_buffer__new(bpf_map__fd(c->skeleton->maps.ring), take_event, c, NULL);
		if (!c->ring)
			return diag_errno(d, -errno, "mapping BPF's ring");
	}
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
	c->started_ns = clock_now_ns();
	return probe_core_start(&c->core);
}

void gpu_counts_stop(struct gpu_counts *c)
{
	probe_core_stop(&c->core);
	c->stopped_ns = clock_now_ns();
	probe_core_detach(&c->core, 0);
}

void gpu_counts_free(struct gpu_counts *c)
{
	if (!c)
		return;
	ring_buffer__free(c->ring);
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
	return c->ring ? ring_buffer__epoll_fd(c->ring) : -1;
}

int gpu_counts_events(struct gpu_counts *c, gpu_event_fn *fn, void *ctx)
{
	int n;

	if (!c->ring)
		return 0;
	c->fn = fn;
	c->ctx = ctx;
	c->err = 0;
	n = ring_buffer__consume(c->ring);
	return c->err ? c->err : n < 0 ? n : 0;
}

static int read_rows(struct gpu_counts *c, struct gpu_table *t)
{
	int fd = bpf_map__fd(c->skeleton->maps.rows), err = 0;
	struct gpu_key key, *before = NULL;
	struct gpu_row value;

	for (size_t i = 0; i < KEYS_MAX && !err; i++) {
		struct gpu_count row = {0};

		if (bpf_map_get_next_key(fd, before, &key))
			return errno == ENOENT ? 0 : -errno;
		before = &key;
		if (bpf_map_lookup_elem(fd, &key, &value))
			continue;
		row.key = key;
		row.calls = value.calls;
		row.bytes = value.bytes;
		row.crowded_calls = value.crowded_calls;
		row.crowded_ns = value.crowded_ns;
		for (size_t k = 0; k < LOG_LINEAR_SLOTS; k++) {
			row.h.slots[k] = value.slots[k];
			row.h.n += value.slots[k];
		}
		row.h.sum = value.total_ns;
		row.h.max = value.max_ns;
		err = array_push(&t->rows, row);
	}
	return err;
}

static int add_thread(void *ctx, const void *element)
{
	const struct gpu_thread *thread = element;
	struct gpu_table *t = ctx;

	return array_push(&t->rows, (struct gpu_count){.key = thread->key,
						       .in_flight = 1,
						       .open_ns = thread->in_call_ns,
						       .oldest_ns = thread->in_call_ns});
}

static int read_losses(struct gpu_counts *c, struct gpu_losses *l)
{
	const struct probe_sum all[] = {
		{GPU_ROWS_FULL, &l->rows_full},
		{GPU_STATES_FULL, &l->threads_dropped},
		{GPU_READS_FAILED, &l->reads_failed},
	};

	l->events = c->skeleton->bss->shared.lost_events;
	l->recursion_misses = probe_core_missed(&c->core);
	return probe_core_sums(&c->core, "counts", all, ARRAY_SIZE(all));
}

int gpu_counts_read(struct gpu_counts *c, struct gpu_table *ret)
{
	int err = read_losses(c, &ret->losses);

	ret->elapsed_ns = (c->stopped_ns ? c->stopped_ns : clock_now_ns()) - c->started_ns;
	ret->ioctls_seen = c->skeleton->bss->shared.ioctls_seen;
	ret->ioctls_counted = c->skeleton->bss->shared.ioctls_counted;
	if (!err)
		err = read_rows(c, ret);
	return err ? err
		   : probe_iterate(c->skeleton->progs.collect, sizeof(struct gpu_thread),
				   add_thread, ret);
}

int gpu_counts_notes(const struct gpu_counts *c, note_list *notes)
{
	return probe_core_notes(&c->core, notes);
}
