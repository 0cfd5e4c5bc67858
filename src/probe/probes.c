/* SPDX-License-Identifier: BSD-2-Clause */
#include <inspect/probe_counts.h>

#include "kernel_types.h"
#include "points.h"
#include "row_reader.h"

#include "probes.skel.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <inspect/clock.h>

struct probe_counts {
	struct probe_core core;
	struct probes *skeleton;
	struct row_reader reader;
	uint64_t started_ns, stopped_ns;
	bool has_end, by_trampoline;
};

/* --- opening ---------------------------------------------------------------------------------- */

static int open_counts(struct probe_counts *c, const struct probe_counts_config *config,
		       const struct host *h, struct diag *d)
{
	CLEANUP(kernel_types_release) struct kernel_types types = KERNEL_TYPES_INIT;
	struct point_programs points;
	struct probes_setup *setup;
	int err = probe_core_init(&c->core, &config->target, false, h, d);

	if (err)
		return err;
	c->skeleton = KERNEL_TYPES_OPEN(probes, &types);
	if (!c->skeleton)
		return probe_core_load(&c->core, NULL, h, d);
	points = POINT_PROGRAMS_OF(c->skeleton->progs);
	setup = (struct probes_setup *)&c->skeleton->rodata->probe_setup;
	points.fentry = c->skeleton->progs.on_fentry;
	points.fexit = c->skeleton->progs.on_fexit;
	points_choose(&points, config, h, setup);
	c->by_trampoline = points.by_trampoline;
	c->has_end = setup->has_end;
	*(struct target_setup *)&c->skeleton->rodata->target_setup = c->core.setup;
	err = probe_core_load(&c->core, c->skeleton->skeleton, h, d);
	if (err)
		return err;
	c->core.shared = &c->skeleton->bss->target_shared;
	err = probe_core_follow(&c->core, d);
	if (!err)
		err = points_attach(&c->core, &points, config, h, d);
	return err ? err : probe_core_targets(&c->core, d);
}

int probe_counts_new(const struct probe_counts_config *config, const struct host *h,
		     struct probe_counts **ret, struct diag *d)
{
	struct probe_counts *c = calloc(1, sizeof(*c));
	int err = c ? open_counts(c, config, h, d) : diag_errno(d, -ENOMEM, "probing");

	if (err) {
		probe_counts_free(c);
		return err;
	}
	*ret = c;
	return 0;
}

int probe_counts_start(struct probe_counts *c)
{
	c->started_ns = clock_now_ns();
	return probe_core_start(&c->core);
}

void probe_counts_stop(struct probe_counts *c)
{
	c->stopped_ns = probe_core_stop(&c->core);
	probe_core_detach(&c->core, 0);
}

void probe_counts_free(struct probe_counts *c)
{
	if (!c)
		return;
	probe_core_release(&c->core);
	probes__destroy(c->skeleton);
	row_reader_release(&c->reader);
	free(c);
}

bool probe_counts_alive(const struct probe_counts *c)
{
	return probe_core_alive(&c->core);
}

bool probe_counts_has_end(const struct probe_counts *c)
{
	return c->has_end;
}

bool probe_counts_by_trampoline(const struct probe_counts *c)
{
	return c->by_trampoline;
}

/* --- reading ---------------------------------------------------------------------------------- */

int probe_counts_read(struct probe_counts *c, struct syscall_table *ret)
{
	ret->elapsed_ns = (c->stopped_ns ? c->stopped_ns : clock_now_ns()) - c->started_ns;
	return row_reader_map(&c->reader, bpf_map__fd(c->skeleton->maps.rows), ret);
}

int probe_counts_losses(struct probe_counts *c, struct probe_losses *ret)
{
	const struct probe_sum all[] = {
		{PROBES_END_WITHOUT_BEGIN, &ret->ends_without_begin},
		{PROBES_TOO_DEEP, &ret->too_deep},
		{PROBES_KEYS_FULL, &ret->keys_dropped},
		{PROBES_THREADS_FULL, &ret->threads_dropped},
	};

	return probe_core_sums(&c->core, "counts", all, ARRAY_SIZE(all));
}
