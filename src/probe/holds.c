/* SPDX-License-Identifier: BSD-2-Clause */
#include <inspect/hold_counts.h>

#include "core.h"
#include "kernel_types.h"
#include "row_reader.h"

#include "holds.skel.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <inspect/clock.h>

struct hold_counts {
	struct probe_core core;
	struct holds *skeleton;
	struct row_reader reader;
	uint64_t started_ns, stopped_ns;
};

static int open_counts(struct hold_counts *c, const struct probe_target *target,
		       const struct host *h, struct diag *d)
{
	CLEANUP(kernel_types_release) struct kernel_types types = KERNEL_TYPES_INIT;
	int err = probe_core_init(&c->core, target, false, h, d);

	if (err)
		return err;
	c->skeleton = KERNEL_TYPES_OPEN(holds, &types);
	if (!c->skeleton)
		return probe_core_load(&c->core, NULL, h, d);
	*(struct target_setup *)&c->skeleton->rodata->target_setup = c->core.setup;
	err = probe_core_load(&c->core, c->skeleton->skeleton, h, d);
	if (err)
		return err;
	c->core.shared = &c->skeleton->bss->target_shared;
	err = probe_core_follow(&c->core, d);
	return err ? err : probe_core_targets(&c->core, d);
}

int hold_counts_new(const struct probe_target *target, const struct host *h,
		    struct hold_counts **ret, struct diag *d)
{
	struct hold_counts *c = calloc(1, sizeof(*c));
	int err = c ? open_counts(c, target, h, d) : diag_errno(d, -ENOMEM, "timing locks");

	if (err) {
		hold_counts_free(c);
		return err;
	}
	*ret = c;
	return 0;
}

/* Since glibc 2.34 they are those of libc, before of libpthread. The end first: what begins must
 * not miss it. */
int hold_counts_attach(struct hold_counts *c, const char *path)
{
	static const char *const providers[] = {"libc", "libpthread"};
	int err = -ENOENT;

	for (size_t i = 0; i < ARRAY_SIZE(providers) && err; i++) {
		size_t before = c->core.links.n;

		err = probe_core_keep(
			&c->core, bpf_program__attach_usdt(c->skeleton->progs.on_released, -1, path,
							   providers[i], "mutex_release", NULL));
		if (!err)
			err = probe_core_keep(
				&c->core,
				bpf_program__attach_usdt(c->skeleton->progs.on_acquired, -1, path,
							 providers[i], "mutex_acquired", NULL));
		if (err)
			probe_core_detach(&c->core, before);
	}
	return err;
}

int hold_counts_start(struct hold_counts *c)
{
	c->started_ns = clock_now_ns();
	return probe_core_start(&c->core);
}

void hold_counts_stop(struct hold_counts *c)
{
	c->stopped_ns = probe_core_stop(&c->core);
	probe_core_detach(&c->core, 0);
}

void hold_counts_free(struct hold_counts *c)
{
	if (!c)
		return;
	probe_core_release(&c->core);
	holds__destroy(c->skeleton);
	row_reader_release(&c->reader);
	free(c);
}

bool hold_counts_alive(const struct hold_counts *c)
{
	return probe_core_alive(&c->core);
}

/* --- reading ---------------------------------------------------------------------------------- */

static int add_held(struct syscall_table *t, const struct hold_key *of, const struct hold *hold,
		    uint64_t now_ns)
{
	const struct syscalls_key key = {.fd = -1, .pid = hold->pid, .inode = of->user_va};
	struct syscall_row *row = syscall_table_row(t, &key);
	uint64_t held_ns = now_ns > hold->since_ns ? now_ns - hold->since_ns : 0;

	if (!row)
		return -ENOMEM;
	row->pid = hold->pid;
	row->in_flight++;
	row->open_ns += held_ns;
	row->oldest_ns = MAX(row->oldest_ns, held_ns);
	return 0;
}

/* One that is given back meanwhile may hide what comes after it: the next reading has that. */
static int read_held(struct hold_counts *c, struct syscall_table *t)
{
	int fd = bpf_map__fd(c->skeleton->maps.holds), err = 0;
	struct hold_key key, *before = NULL;
	uint64_t now_ns = c->stopped_ns ? c->stopped_ns : clock_now_ns();
	struct hold hold;

	for (size_t i = 0; i < HOLDS_MAX && !err; i++) {
		if (bpf_map_get_next_key(fd, before, &key))
			return errno == ENOENT ? 0 : -errno;
		before = &key;
		if (!bpf_map_lookup_elem(fd, &key, &hold))
			err = add_held(t, &key, &hold, now_ns);
	}
	return err;
}

int hold_counts_read(struct hold_counts *c, struct syscall_table *ret)
{
	int err = row_reader_map(&c->reader, bpf_map__fd(c->skeleton->maps.rows), ret);

	ret->elapsed_ns = (c->stopped_ns ? c->stopped_ns : clock_now_ns()) - c->started_ns;
	return err ? err : read_held(c, ret);
}

void hold_counts_losses(const struct hold_counts *c, struct holds_shared *ret)
{
	*ret = c->skeleton->bss->shared;
}
