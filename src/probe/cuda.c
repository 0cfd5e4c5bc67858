/* SPDX-License-Identifier: BSD-2-Clause */
#include <inspect/cuda_counts.h>

#include "core.h"
#include "kernel_types.h"
#include "uprobe_multi.h"

#include "cuda.skel.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <inspect/clock.h>
#include <inspect/procfs.h>

enum { KEYS_MAX = 1 << 16 };

struct cuda_counts {
	struct probe_core core;
	struct cuda *skeleton;
	ARRAY(int) links; /* of many probes each; without such links they are the core's */
	uint32_t multi_type;
	uint64_t started_ns, stopped_ns;
};

static int open_counts(struct cuda_counts *c, const struct probe_target *target, uint32_t by,
		       const struct host *h, struct diag *d)
{
	CLEANUP(kernel_types_release) struct kernel_types types = KERNEL_TYPES_INIT;
	int err = probe_core_init(&c->core, target, false, h, d);

	if (err)
		return err;
	c->skeleton = KERNEL_TYPES_OPEN(cuda, &types);
	if (!c->skeleton)
		return probe_core_load(&c->core, NULL, h, d);
	if (!probe_may_allocate(h) && bpf_map__set_map_flags(c->skeleton->maps.rows, 0))
		return diag_errno(d, -errno, "rows for BPF");
	c->multi_type = uprobe_multi_type(h);
	if (c->multi_type) {
		bpf_program__set_expected_attach_type(c->skeleton->progs.on_call, c->multi_type);
		bpf_program__set_expected_attach_type(c->skeleton->progs.on_return, c->multi_type);
	}
	((struct cuda_setup *)&c->skeleton->rodata->setup)->by = by;
	*(struct target_setup *)&c->skeleton->rodata->target_setup = c->core.setup;
	err = probe_core_load(&c->core, c->skeleton->skeleton, h, d);
	if (err)
		return err;
	c->core.shared = &c->skeleton->bss->target_shared;
	err = probe_core_follow(&c->core, d);
	if (!err)
		err = probe_core_attach(&c->core, "calls_on_exec", d);
	if (!err)
		err = probe_core_attach(&c->core, "calls_on_exit", d);
	return err ? err : probe_core_targets(&c->core, d);
}

int cuda_counts_new(const struct probe_target *target, uint32_t by, const struct host *h,
		    struct cuda_counts **ret, struct diag *d)
{
	struct cuda_counts *c = calloc(1, sizeof(*c));
	int err = c ? open_counts(c, target, by, h, d) : diag_errno(d, -ENOMEM, "tracing CUDA");

	if (err) {
		cuda_counts_free(c);
		return err;
	}
	*ret = c;
	return 0;
}

/* The return first: what begins must not miss it. */
static int attach_one(struct cuda_counts *c, const char *path, const struct cuda_point *p)
{
	for (int at_return = 1; at_return >= 0; at_return--) {
		LIBBPF_OPTS(bpf_uprobe_opts, opts, .retprobe = at_return, .bpf_cookie = p->cookie);
		const struct bpf_program *program =
			at_return ? c->skeleton->progs.on_return : c->skeleton->progs.on_call;
		int err = probe_core_keep(&c->core, bpf_program__attach_uprobe_opts(
							    program, -1, path, p->file_off, &opts));

		if (err)
			return err;
	}
	return 0;
}

static void detach(struct cuda_counts *c, size_t n_links, size_t n_core)
{
	while (c->links.n > n_links)
		close(c->links.v[--c->links.n]);
	probe_core_detach(&c->core, n_core);
}

static int attach_many(struct cuda_counts *c, const char *path, const uint64_t *offs,
		       const uint64_t *cookies, size_t n, bool at_return)
{
	const struct bpf_program *program =
		at_return ? c->skeleton->progs.on_return : c->skeleton->progs.on_call;
	int fd = uprobe_multi_attach(bpf_program__fd(program), path, offs, cookies, n, at_return);

	if (fd < 0)
		return fd;
	if (!array_push(&c->links, fd))
		return 0;
	close(fd);
	return -ENOMEM;
}

/* The return first: what begins must not miss it. Each link costs a wait of some 0.1 s for all CPUs
 * when it is taken away: one for all of them where there is such. */
static int attach_points(struct cuda_counts *c, const char *path, const struct cuda_point *points,
			 size_t n)
{
	CLEANUP(freep) uint64_t *offs = calloc(n + 1, sizeof(*offs));
	CLEANUP(freep) uint64_t *cookies = calloc(n + 1, sizeof(*cookies));
	int err = offs && cookies ? 0 : -ENOMEM;

	for (size_t i = 0; i < n && !err; i++) {
		offs[i] = points[i].file_off;
		cookies[i] = points[i].cookie;
		if (!c->multi_type)
			err = attach_one(c, path, &points[i]);
	}
	if (err || !n || !c->multi_type)
		return err;
	err = attach_many(c, path, offs, cookies, n, true);
	return err ? err : attach_many(c, path, offs, cookies, n, false);
}

int cuda_counts_attach(struct cuda_counts *c, int fd, const char *path,
		       const struct cuda_point *points, size_t n, struct diag *d)
{
	char link[64];
	int err;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	err = attach_points(c, link, points, n);
	if (!err)
		return 0;
	diag_errno(d, err, "%s: cannot attach", path);
	if (err == -EPERM || err == -EACCES)
		diag_why(d, "uprobes need CAP_SYS_ADMIN besides CAP_BPF and CAP_PERFMON");
	else if (err == -EOPNOTSUPP)
		diag_why(d, "probes that say which function they are need Linux 5.15");
	return err;
}

/* --- what it costs ---------------------------------------------------------------------------- */

/* Called with probes and without. */
static __attribute__((noinline)) void probed(void)
{
	__asm__ volatile("" ::: "memory");
}

struct own_code {
	uint64_t va, file_off;
};

static int match_code(void *ctx, const struct proc_map *map)
{
	struct own_code *code = ctx;

	if (code->va < map->start || code->va >= map->end)
		return 0;
	code->file_off = code->va - map->start + map->pgoff_bytes;
	return 1;
}

static uint64_t time_calls(unsigned n)
{
	uint64_t start_ns = clock_now_ns();

	for (unsigned i = 0; i < n; i++)
		probed();
	return clock_now_ns() - start_ns;
}

int cuda_counts_cost(struct cuda_counts *c, uint64_t *ret_ns)
{
	enum { CALLS = 200, ROUNDS = 5 };
	struct own_code code = {.va = (uint64_t)(uintptr_t)probed};
	size_t before = c->core.links.n, links_before = c->links.n;
	uint64_t least_ns = UINT64_MAX, alone_ns = time_calls(CALLS);
	int err = proc_maps_each(getpid(), match_code, &code);

	if (err != 1)
		return err < 0 ? err : -ENOENT;
	err = attach_points(c, "/proc/self/exe", &(struct cuda_point){.file_off = code.file_off},
			    1);
	/* The least of a few rounds is that of a quiet moment. */
	for (unsigned i = 0; i < ROUNDS && !err; i++) {
		uint64_t took_ns = time_calls(CALLS);

		least_ns = MIN(least_ns, took_ns);
	}
	detach(c, links_before, before);
	if (!err)
		*ret_ns = least_ns > alone_ns ? (least_ns - alone_ns) / CALLS : 0;
	return err;
}

/* --- running ---------------------------------------------------------------------------------- */

int cuda_counts_start(struct cuda_counts *c)
{
	c->started_ns = clock_now_ns();
	return probe_core_start(&c->core);
}

void cuda_counts_stop(struct cuda_counts *c)
{
	c->stopped_ns = probe_core_stop(&c->core);
	detach(c, 0, 0);
}

void cuda_counts_free(struct cuda_counts *c)
{
	if (!c)
		return;
	detach(c, 0, 0);
	array_release(&c->links);
	probe_core_release(&c->core);
	cuda__destroy(c->skeleton);
	free(c);
}

bool cuda_counts_alive(const struct cuda_counts *c)
{
	return probe_core_alive(&c->core);
}

static int read_rows(struct cuda_counts *c, struct cuda_table *ret)
{
	int fd = bpf_map__fd(c->skeleton->maps.rows), err = 0;
	struct cuda_key key, *before = NULL;
	struct cuda_row value;

	for (size_t i = 0; i < KEYS_MAX && !err; i++) {
		struct cuda_count row = {0};

		if (bpf_map_get_next_key(fd, before, &key))
			return errno == ENOENT ? 0 : -errno;
		before = &key;
		if (bpf_map_lookup_elem(fd, &key, &value))
			continue;
		row.key = key;
		row.calls = value.calls;
		row.errors = value.errors;
		row.bytes = value.bytes;
		row.unreturned = value.unreturned;
		row.unreturned_ns = value.unreturned_ns;
		row.last_error = value.last_error;
		for (size_t k = 0; k < LOG_LINEAR_SLOTS; k++) {
			row.h.slots[k] = value.slots[k];
			row.h.n += value.slots[k];
		}
		row.h.sum = value.total_ns;
		row.h.max = value.max_ns;
		err = array_push(&ret->rows, row);
	}
	return err;
}

/* --- calls that have not returned ------------------------------------------------------------- */

static struct cuda_count *row_of(struct cuda_table *t, const struct cuda_key *key)
{
	for (size_t i = 0; i < t->rows.n; i++)
		if (!memcmp(&t->rows.v[i].key, key, sizeof(*key)))
			return &t->rows.v[i];
	return array_push(&t->rows, (struct cuda_count){.key = *key}) ? NULL
								      : &t->rows.v[t->rows.n - 1];
}

static int add_open(const struct cuda_counts *c, const struct cuda_thread *t,
		    const struct cuda_begun *b, uint64_t now_ns, struct cuda_table *ret)
{
	uint32_t by = c->skeleton->rodata->setup.by;
	uint64_t open_ns = now_ns > b->ns ? now_ns - b->ns : 0;
	struct cuda_key key = {.function = b->cookie & 0xffff};
	struct cuda_count *row;

	if (by & CUDA_BY_THREAD) {
		key.pid = t->pid;
		key.tid = t->tid;
	}
	if (by & CUDA_BY_COMM)
		memcpy(key.comm, t->comm, sizeof(key.comm));
	if (by & CUDA_BY_STREAM)
		key.stream = b->stream;
	row = row_of(ret, &key);
	if (!row)
		return -ENOMEM;
	row->in_flight++;
	row->open_ns += open_ns;
	row->oldest_ns = MAX(row->oldest_ns, open_ns);
	return 0;
}

static int read_open(const struct cuda_counts *c, struct cuda_table *ret)
{
	int fd = bpf_map__fd(c->skeleton->maps.thread_states), err = 0;
	uint64_t now_ns = c->stopped_ns ? c->stopped_ns : clock_now_ns();
	uint32_t tid, *before = NULL;
	struct cuda_thread t;

	for (size_t i = 0; i < KEYS_MAX && !err; i++) {
		if (bpf_map_get_next_key(fd, before, &tid))
			return errno == ENOENT ? 0 : -errno;
		before = &tid;
		if (bpf_map_lookup_elem(fd, &tid, &t))
			continue;
		for (uint32_t k = 0; k < MIN(t.depth, (uint32_t)CUDA_DEPTH) && !err; k++)
			err = add_open(c, &t, &t.calls[k], now_ns, ret);
	}
	return err;
}

int cuda_counts_read(struct cuda_counts *c, struct cuda_table *ret)
{
	const struct cuda_shared *shared = (const struct cuda_shared *)&c->skeleton->bss->shared;
	int err = read_rows(c, ret);

	ret->elapsed_ns = (c->stopped_ns ? c->stopped_ns : clock_now_ns()) - c->started_ns;
	ret->lost = shared->rows_full + shared->threads_full + shared->too_deep;
	ret->ends_without_begin = shared->ends_without_begin;
	return err ? err : read_open(c, ret);
}

int cuda_counts_notes(const struct cuda_counts *c, note_list *notes)
{
	return probe_core_notes(&c->core, notes);
}
