/* SPDX-License-Identifier: BSD-2-Clause */
#include "points.h"

#include <bpf/libbpf.h>
#include <inspect/explain.h>

/* The program at the end; NULL: there is none. */
static struct bpf_program *end_of(const struct point_programs *p,
				  const struct probe_counts_config *config)
{
	return config->end ? p->end[config->end->kind] : p->at_return[config->begin->kind];
}

void points_choose(const struct point_programs *p, const struct probe_counts_config *config,
		   struct probes_setup *setup)
{
	struct bpf_program *begin = config ? p->begin[config->begin->kind] : NULL;
	struct bpf_program *end = config ? end_of(p, config) : NULL;

	for (size_t kind = 0; kind < PROBE_KINDS; kind++) {
		struct bpf_program *const all[] = {p->begin[kind], p->end[kind],
						   p->at_return[kind]};

		for (size_t i = 0; i < ARRAY_SIZE(all); i++)
			if (all[i])
				bpf_program__set_autoload(all[i], all[i] == begin || all[i] == end);
	}
	if (!config)
		return;
	*setup = config->setup;
	setup->has_end = end != NULL;
	memcpy(setup->begin_fields, config->begin->fields, sizeof(setup->begin_fields));
	if (config->end)
		memcpy(setup->end_fields, config->end->fields, sizeof(setup->end_fields));
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

static int attach_one(struct probe_core *c, const struct bpf_program *program,
		      const struct probe_point *p, bool at_return, const struct host *h,
		      struct diag *d)
{
	int err = probe_core_keep(c, attach_point(program, p, at_return));

	return err ? explain_attach(err, p, h, d) : 0;
}

/* The end first: what begins must not miss it. */
int points_attach(struct probe_core *c, const struct point_programs *p,
		  const struct probe_counts_config *config, const struct host *h, struct diag *d)
{
	const struct probe_point *begin = config->begin, *end = config->end;
	const struct bpf_program *last = end_of(p, config);
	int err = last ? attach_one(c, last, end ? end : begin, !end, h, d) : 0;

	return err ? err : attach_one(c, p->begin[begin->kind], begin, false, h, d);
}
