/* SPDX-License-Identifier: BSD-2-Clause */
#include <inspect/probe_counts.h>

#include "core.h"
#include "row_reader.h"

#include "probes.skel.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <inspect/clock.h>
#include <inspect/explain.h>

struct probe_counts {
	struct probe_core core;
	struct probes *skeleton;
	struct row_reader reader;
	uint64_t started_ns, stopped_ns;
	bool has_end;
};

/* --- which programs --------------------------------------------------------------------------- */

/* At a point that begins, and at one that ends: by kind of point. */
struct probe_programs {
	struct bpf_program *begin, *end;
};

static struct probe_programs programs_of(const struct probes *k, enum probe_point_kind kind)
{
	switch (kind) {
	case PROBE_FUNCTION:
		return (struct probe_programs){k->progs.on_uprobe, k->progs.on_uprobe_end};
	case PROBE_USDT:
		return (struct probe_programs){k->progs.on_usdt, k->progs.on_usdt_end};
	case PROBE_TRACEPOINT:
		return (struct probe_programs){k->progs.on_tracepoint, k->progs.on_tracepoint_end};
	default:
		return (struct probe_programs){k->progs.on_kprobe, k->progs.on_kretprobe};
	}
}

/* What is not attached is not loaded: a kernel without kprobes would refuse all. */
static void choose_programs(struct probe_counts *c, const struct probe_counts_config *config)
{
	struct probes *k = c->skeleton;
	struct bpf_program *const all[] = {
		k->progs.on_uprobe, k->progs.on_uretprobe, k->progs.on_uprobe_end,
		k->progs.on_usdt,   k->progs.on_usdt_end,  k->progs.on_tracepoint,
		k->progs.on_kprobe, k->progs.on_kretprobe, k->progs.on_tracepoint_end,
	};
	struct bpf_program *begin = programs_of(k, config->begin->kind).begin, *end = NULL;

	if (config->end)
		end = programs_of(k, config->end->kind).end;
	else if (config->begin->kind == PROBE_FUNCTION)
		end = k->progs.on_uretprobe;
	else if (config->begin->kind == PROBE_KERNEL)
		end = k->progs.on_kretprobe;
	for (size_t i = 0; i < ARRAY_SIZE(all); i++)
		bpf_program__set_autoload(all[i], all[i] == begin || all[i] == end);
	c->has_end = end != NULL;
}

/* --- attaching -------------------------------------------------------------------------------- */

static struct bpf_link *attach_point(const struct bpf_program *program, const struct probe_point *p,
				     bool at_return)
{
	LIBBPF_OPTS(bpf_uprobe_opts, uprobe, .retprobe = at_return);
	LIBBPF_OPTS(bpf_kprobe_opts, kprobe, .retprobe = at_return);

	/* Of every process that maps the file: children have no other way to be followed. */
	switch (p->kind) {
	case PROBE_FUNCTION:
		return bpf_program__attach_uprobe_opts(program, -1, p->path, p->file_off, &uprobe);
	case PROBE_USDT:
		return bpf_program__attach_usdt(program, -1, p->path, p->category, p->name, NULL);
	case PROBE_TRACEPOINT:
		return bpf_program__attach_tracepoint(program, p->category, p->name);
	default:
		return bpf_program__attach_kprobe_opts(program, p->name, &kprobe);
	}
}

static int explain_attach(int err, const struct probe_point *p, const struct host *h,
			  struct diag *d)
{
	if (p->kind == PROBE_USDT && (err == -ENOENT || err == -ESRCH)) {
		diag_set(d, -ENOENT, "%s: the file has no USDT probe %s:%s", p->text, p->category,
			 p->name);
		diag_fix(d, "readelf -n %s | grep -A2 stapsdt      (those that it has)", p->path);
		return -ENOENT;
	}
	if (p->kind == PROBE_TRACEPOINT)
		return explain_tracepoint(err, strchr(p->text, ':') + 1, h, d);
	diag_errno(d, err, "%s: cannot attach", p->text);
	if (p->kind == PROBE_KERNEL)
		diag_why(d, "this kernel has no such function to attach to, or no kprobes "
			    "(CONFIG_KPROBES)");
	else if (err == -EPERM || err == -EACCES)
		diag_why(d, "uprobes need CAP_SYS_ADMIN besides CAP_BPF and CAP_PERFMON");
	return err;
}

static int attach_one(struct probe_counts *c, const struct bpf_program *program,
		      const struct probe_point *p, bool at_return, const struct host *h,
		      struct diag *d)
{
	int err = probe_core_keep(&c->core, attach_point(program, p, at_return));

	return err ? explain_attach(err, p, h, d) : 0;
}

/* The end first: what begins must not miss it. */
static int attach(struct probe_counts *c, const struct probe_counts_config *config,
		  const struct host *h, struct diag *d)
{
	const struct probes *k = c->skeleton;
	const struct probe_point *begin = config->begin, *end = config->end;
	int err = probe_core_follow(&c->core, d);

	if (!err && end)
		err = attach_one(c, programs_of(k, end->kind).end, end, false, h, d);
	else if (!err && begin->kind == PROBE_FUNCTION)
		err = attach_one(c, k->progs.on_uretprobe, begin, true, h, d);
	else if (!err && begin->kind == PROBE_KERNEL)
		err = attach_one(c, k->progs.on_kretprobe, begin, true, h, d);
	if (!err)
		err = attach_one(c, programs_of(k, begin->kind).begin, begin, false, h, d);
	return err ? err : probe_core_targets(&c->core, d);
}

/* --- opening ---------------------------------------------------------------------------------- */

static int open_counts(struct probe_counts *c, const struct probe_counts_config *config,
		       const struct host *h, struct diag *d)
{
	struct probes_setup *setup;
	int err = probe_core_init(&c->core, &config->target, false, h, d);

	if (err)
		return err;
	c->skeleton = probes__open();
	if (!c->skeleton)
		return probe_core_load(&c->core, NULL, h, d);
	choose_programs(c, config);
	setup = (struct probes_setup *)&c->skeleton->rodata->setup;
	*setup = config->setup;
	setup->has_end = c->has_end;
	memcpy(setup->begin_fields, config->begin->fields, sizeof(setup->begin_fields));
	if (config->end)
		memcpy(setup->end_fields, config->end->fields, sizeof(setup->end_fields));
	*(struct target_setup *)&c->skeleton->rodata->target_setup = c->core.setup;
	err = probe_core_load(&c->core, c->skeleton->skeleton, h, d);
	if (err)
		return err;
	c->core.shared = &c->skeleton->bss->target_shared;
	return attach(c, config, h, d);
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
	probe_core_stop(&c->core);
	c->stopped_ns = clock_now_ns();
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
