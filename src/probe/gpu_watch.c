/* SPDX-License-Identifier: BSD-2-Clause */
#include "gpu_watch.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <inspect/syscalls.h>
#include <linux/version.h>

enum { NUMBERS_MAX = 1 << 16 }; /* far more than the map has room for */

void gpu_watch_setup(uint32_t by, bool events, struct gpu_setup *ret)
{
	static const struct {
		const char *name;
		enum gpu_kind kind;
	} calls[] = {
		{"ioctl", GPU_IOCTL},
		{"open", GPU_OPEN},
		{"openat", GPU_OPEN_AT},
		{"openat2", GPU_OPEN_AT},
		{"close", GPU_CLOSE},
		{"mmap", GPU_MMAP},
		{"munmap", GPU_MUNMAP},
		{"mremap", GPU_MREMAP},
		{"poll", GPU_POLL},
		{"ppoll", GPU_POLL},
		{"epoll_wait", GPU_EPOLL},
		{"epoll_pwait", GPU_EPOLL},
		{"epoll_pwait2", GPU_EPOLL},
		{"epoll_ctl", GPU_EPOLL_CTL},
		{"epoll_create", GPU_EPOLL_NEW},
		{"epoll_create1", GPU_EPOLL_NEW},
	};

	*ret = (struct gpu_setup){.own_pid = (uint32_t)getpid(),
				  .by = by,
				  .with_events = events,
				  .page_bytes = (uint64_t)sysconf(_SC_PAGESIZE)};
	for (size_t i = 0; i < ARRAY_SIZE(calls); i++) {
		int nr = syscall_number(SYSCALL_NATIVE, calls[i].name);

		if (nr >= 0 && nr < GPU_NUMBERS)
			ret->kinds[nr] = (uint8_t)calls[i].kind;
	}
}

int gpu_watch_fill(const struct probe_core *core, const struct gpu_watch *watch)
{
	int devices = probe_core_map(core, "gpu_devices");
	int layouts = probe_core_map(core, "gpu_layouts");
	int paths = probe_core_map(core, "gpu_paths");

	for (size_t i = 0; i < watch->n_devices; i++)
		if (bpf_map_update_elem(devices, &watch->devices[i].key, &watch->devices[i].device,
					BPF_ANY))
			return -errno;
	for (size_t i = 0; i < watch->n_layouts; i++)
		if (bpf_map_update_elem(layouts, &watch->layouts[i].key, &watch->layouts[i].layout,
					BPF_ANY))
			return -errno;
	for (size_t i = 0; i < watch->n_paths && paths >= 0; i++) /* waits have no opens */
		if (bpf_map_update_elem(paths, &watch->paths[i].path, &watch->paths[i].device,
					BPF_ANY))
			return -errno;
	return 0;
}

bool gpu_watch_reads_others(const struct host *h)
{
	return h->kernel_version >= KERNEL_VERSION(5, 18, 0);
}

int gpu_watch_losses(const struct probe_core *core, const struct gpu_shared *shared,
		     struct gpu_losses *l)
{
	const struct probe_sum all[] = {
		{GPU_ROWS_FULL, &l->rows_full},       {GPU_STATES_FULL, &l->threads_dropped},
		{GPU_READS_FAILED, &l->reads_failed}, {GPU_RANGES_CUT, &l->ranges_cut},
		{GPU_SETS_CUT, &l->sets_cut},
	};

	l->events = shared->lost_events;
	l->recursion_misses = probe_core_missed(core);
	return probe_core_sums(core, "gpu_counts", all, ARRAY_SIZE(all));
}

/* --- events ----------------------------------------------------------------------------------- */

static int take_event(void *ctx, void *record, size_t n_bytes)
{
	struct gpu_events *e = ctx;

	if (n_bytes < sizeof(struct gpu_event))
		return 0;
	e->err = e->fn(e->ctx, record);
	return e->err;
}

int gpu_events_open(struct gpu_events *e, const struct probe_core *core)
{
	e->ring = ring_buffer__new(probe_core_map(core, "gpu_events"), take_event, e, NULL);
	return e->ring ? 0 : -errno;
}

int gpu_events_fd(const struct gpu_events *e)
{
	return e->ring ? ring_buffer__epoll_fd(e->ring) : -1;
}

int gpu_events_read(struct gpu_events *e, gpu_event_fn *fn, void *ctx)
{
	int n;

	if (!e->ring)
		return 0;
	e->fn = fn;
	e->ctx = ctx;
	e->err = 0;
	n = ring_buffer__consume(e->ring);
	return e->err ? e->err : n < 0 ? n : 0;
}

void gpu_events_release(struct gpu_events *e)
{
	ring_buffer__free(e->ring);
	e->ring = NULL;
}

/* --- calls by number -------------------------------------------------------------------------- */

static int read_keys(struct gpu_keys *k, const struct probe_core *core)
{
	int fd = probe_core_map(core, "gpu_keys");
	struct gpu_key key, *before = NULL;
	uint32_t number;

	for (size_t i = 0; i < NUMBERS_MAX; i++) {
		if (bpf_map_get_next_key(fd, before, &key))
			return 0;
		before = &key;
		if (bpf_map_lookup_elem(fd, &key, &number) || !number || number > NUMBERS_MAX)
			continue;
		while (k->v.n < number)
			if (array_push(&k->v, (struct gpu_key){0}))
				return -ENOMEM;
		k->v.v[number - 1] = key;
	}
	return 0;
}

int gpu_keys_find(struct gpu_keys *k, const struct probe_core *core, uint32_t number,
		  struct gpu_key *ret)
{
	int err = 0;

	if (!number)
		return -ENOENT;
	if (number > k->v.n || k->v.v[number - 1].kind == GPU_NOTHING)
		err = read_keys(k, core);
	if (err)
		return err;
	if (number > k->v.n || k->v.v[number - 1].kind == GPU_NOTHING)
		return -ENOENT;
	*ret = k->v.v[number - 1];
	return 0;
}
