/* SPDX-License-Identifier: BSD-2-Clause */
#include "points.h"
#include "trampoline.h"

#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <inspect/explain.h>

/* --- functions of the kernel by their types --------------------------------------------------- */

/* An argument or result; its words follow each other. */
static struct probes_field field_of(const struct btf *btf, uint32_t type, uint32_t *word)
{
	int resolved = btf__resolve_type(btf, type);
	const struct btf_type *t = resolved > 0 ? btf__type_by_id(btf, (uint32_t)resolved) : NULL;
	int64_t bytes = btf__resolve_size(btf, type);
	struct probes_field f = {.offset = (uint16_t)(8 * *word)};

	if (bytes > 0 && bytes <= 8)
		f.size_bytes = (uint8_t)bytes;
	f.is_signed =
		t && (btf_is_enum(t) || (btf_is_int(t) && btf_int_encoding(t) & BTF_INT_SIGNED));
	*word += bytes > 8 ? (uint32_t)((bytes + 7) / 8) : 1;
	return f;
}

static void read_prototype(const struct btf *btf, uint32_t function, struct probes_setup *setup)
{
	const struct btf_type *t = btf__type_by_id(btf, function);
	const struct btf_type *prototype = btf__type_by_id(btf, t->type);
	uint32_t word = 0;

	for (uint16_t i = 0; i < btf_vlen(prototype); i++) {
		struct probes_field f = field_of(btf, btf_params(prototype)[i].type, &word);

		if (i < PROBES_ARGS)
			setup->begin_fields[i] = f;
	}
	setup->end_fields[0] = field_of(btf, prototype->type, &word);
}

/* From some nobody comes back: a trampoline would stay for ever. */
static bool may_not_return(const char *function)
{
	return strstr(function, "exit") || strstr(function, "task_dead");
}

/* Whether a function is timed by fentry and fexit: both then know it, and setup its types. */
static bool choose_trampoline(const struct point_programs *p,
			      const struct probe_counts_config *config, const struct host *h,
			      struct probes_setup *setup)
{
	const char *function = config->begin->name;
	struct btf *btf = NULL;
	int type = -1;
	bool works;

	if (p->fentry && config->begin->kind == PROBE_KERNEL && !config->end &&
	    !may_not_return(function))
		btf = btf__load_vmlinux_btf();
	if (btf)
		type = btf__find_by_name_kind(btf, function, BTF_KIND_FUNC);
	works = type > 0 && trampoline_works((uint32_t)type, h) &&
		!bpf_program__set_attach_target(p->fentry, 0, function) &&
		!bpf_program__set_attach_target(p->fexit, 0, function);
	if (works)
		read_prototype(btf, (uint32_t)type, setup);
	btf__free(btf);
	return works;
}

/* --- choosing --------------------------------------------------------------------------------- */

/* The program at the end; NULL: there is none. */
static struct bpf_program *end_of(const struct point_programs *p,
				  const struct probe_counts_config *config)
{
	return config->end ? p->end[config->end->kind] : p->at_return[config->begin->kind];
}

static void choose_points(const struct point_programs *p, const struct probe_counts_config *config)
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
}

void points_choose(struct point_programs *p, const struct probe_counts_config *config,
		   const struct host *h, struct probes_setup *setup)
{
	if (config) {
		*setup = config->setup;
		setup->has_end = end_of(p, config) != NULL;
		p->by_trampoline = choose_trampoline(p, config, h, setup);
	}
	if (p->fentry) {
		bpf_program__set_autoload(p->fentry, p->by_trampoline);
		bpf_program__set_autoload(p->fexit, p->by_trampoline);
	}
	choose_points(p, p->by_trampoline ? NULL : config);
	if (!config || p->by_trampoline)
		return;
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
	int err;

	if (p->by_trampoline) {
		err = probe_core_keep(c, bpf_program__attach(p->fexit));
		if (!err)
			err = probe_core_keep(c, bpf_program__attach(p->fentry));
		return err ? explain_attach(err, begin, h, d) : 0;
	}
	err = last ? attach_one(c, last, end ? end : begin, !end, h, d) : 0;
	return err ? err : attach_one(c, p->begin[begin->kind], begin, false, h, d);
}
