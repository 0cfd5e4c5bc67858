/* SPDX-License-Identifier: BSD-2-Clause */
#include "unwinding.h"

/* So much code takes too long while rings are to be read. */
#define LARGE_BYTES (2u << 20)

struct unwinder {
	struct unwinding config;
	struct unwind_walk walk;
	size_t dsos_known; /* that have got the build-ids of the file's header */
	uint64_t chain[UNWIND_MAX_STACK];
	uint64_t record[(UINT16_MAX + 1) / sizeof(uint64_t)];
};

int unwinder_new(const struct unwinding *config, struct process_table *processes,
		 struct unwinder **ret)
{
	struct unwinder *u = calloc(1, sizeof(*u));
	int err;

	if (!u)
		return -ENOMEM;
	u->config = *config;
	u->walk.processes = processes;
	err = unwind_tables_new(!config->no_cache, &u->walk.tables);
	if (err) {
		free(u);
		return err;
	}
	if (config->leave_large)
		unwind_tables_leave_large(u->walk.tables, LARGE_BYTES);
	*ret = u;
	return 0;
}

void unwinder_free(struct unwinder *u)
{
	if (!u)
		return;
	unwind_tables_free(u->walk.tables);
	free(u);
}

enum unwind_arch unwinding_host_arch(void)
{
#if defined(__aarch64__)
	return UNWIND_ARM64;
#else
	return UNWIND_X86_64;
#endif
}

static bool has_user_part(const struct sample *s)
{
	for (size_t i = 0; i < s->n_chain; i++)
		if (s->chain[i] == (uint64_t)PERF_CONTEXT_USER)
			return true;
	return false;
}

bool unwinder_wants(const struct sample *s)
{
	return s->regs.abi != PERF_SAMPLE_REGS_ABI_NONE && !has_user_part(s);
}

/* perf lists build-ids in the header, not with the mappings: without them, a file that was replaced
 * since would be taken for the one that ran. */
static void learn_build_ids(struct unwinder *u)
{
	const struct perfdata_info *info = u->config.info;
	struct dso_table *dsos = &u->walk.processes->dsos;

	if (!info || u->dsos_known == dsos->dsos.n)
		return;
	u->dsos_known = dsos->dsos.n;
	for (size_t i = 0; i < info->build_ids.n; i++) {
		const struct perfdata_build_id *b = &info->build_ids.v[i];

		if (!b->kernel && b->size)
			dso_table_set_build_id(dsos, b->path, b->id, b->size);
	}
}

/* Registers of the machine that recorded. A file says which it was; without a word, ours. */
static enum unwind_arch arch_of(const struct unwinder *u)
{
	const struct perfdata_info *info = u->config.info;

	if (info && info->arch)
		return str_starts(info->arch, "aarch64") || str_starts(info->arch, "arm64")
			       ? UNWIND_ARM64
			       : UNWIND_X86_64;
	return unwinding_host_arch();
}

/* What is left for user frames of a limit that is for the kernel's too. */
static size_t user_frames(unsigned max_stack, const struct sample *s)
{
	size_t kernel = 0;

	if (!max_stack)
		return UNWIND_MAX_STACK;
	for (size_t i = 0; i < s->n_chain; i++)
		kernel += s->chain[i] < (uint64_t)PERF_CONTEXT_MAX;
	return kernel < max_stack ? MIN(max_stack - kernel, (size_t)UNWIND_MAX_STACK) : 0;
}

size_t unwinder_chain(struct unwinder *u, struct sample *s, const uint64_t **ret_chain)
{
	learn_build_ids(u);
	u->walk.arch = arch_of(u);
	u->walk.local_host = u->config.local_host;
	*ret_chain = u->chain;
	return unwind_sample(&u->walk, s, u->chain, user_frames(u->config.max_stack, s), &s->stop,
			     &s->guessed);
}

int unwinding_events(const struct event_table *events, struct event_table *ret)
{
	int err = 0;

	for (size_t i = 0; i < events->events.n && !err; i++) {
		const struct event_desc *e = &events->events.v[i];
		struct perf_event_attr attr = e->attr;

		attr.sample_type &= ~(uint64_t)(PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER);
		attr.sample_regs_user = 0;
		attr.sample_stack_user = 0;
		attr.exclude_callchain_user = 0;
		err = event_table_add(ret, &attr, e->name);
		for (size_t j = 0; j < e->ids.n && !err; j++)
			err = event_table_add_id(ret, (uint32_t)i, e->ids.v[j]);
	}
	return err;
}

/* --- the record ------------------------------------------------------------------------------- */

struct out {
	uint8_t *p;
	size_t n, max;
};

static void put(struct out *o, const void *v, size_t n)
{
	if (n && n <= o->max - o->n) /* v may be NULL when there is nothing */
		memcpy(o->p + o->n, v, n);
	/* Counted all the same: too much shows at the end. */
	o->n = n <= o->max - o->n ? o->n + n : o->max;
}

static void put_u64(struct out *o, uint64_t v)
{
	put(o, &v, sizeof(v));
}

int unwinder_rewrite(struct unwinder *u, const struct perf_event_header *record,
		     const struct sample *s, const uint64_t *chain, size_t n,
		     const struct perf_event_header **ret)
{
	const uint8_t *start = (const uint8_t *)record, *end = start + record->size;
	const uint8_t *before, *between, *registers;
	struct out o = {(uint8_t *)u->record, 0, sizeof(u->record) - 8};
	struct perf_event_header *header = (struct perf_event_header *)u->record;

	if (!s->chain)
		return -EBADMSG;
	before = (const uint8_t *)(s->chain - 1);
	between = (const uint8_t *)(s->chain + s->n_chain);
	/* Registers and the stack copy come last: ABI and registers, then the stack. With no
	 * registers both are one word. */
	registers = s->regs.abi ? (const uint8_t *)(s->regs.v - 1) : end - 16;
	if (registers < between || registers > end)
		return -EBADMSG;
	put(&o, start, (size_t)(before - start));
	put_u64(&o, s->n_chain + (n ? n + 1 : 0));
	put(&o, s->chain, s->n_chain * sizeof(*s->chain));
	if (n)
		put_u64(&o, (uint64_t)PERF_CONTEXT_USER);
	put(&o, chain, n * sizeof(*chain));
	put(&o, between, (size_t)(registers - between));
	if (o.n == o.max)
		return -EBADMSG;
	header->size = (uint16_t)o.n;
	header->misc |= sample_misc_of_stop(s->stop, s->guessed);
	*ret = header;
	return 0;
}
