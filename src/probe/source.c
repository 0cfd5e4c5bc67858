/* SPDX-License-Identifier: BSD-2-Clause */
/* The BPF sampler as a source of records: starting, reading, ending, and what was lost. */
#include "kernel_types.h"
#include "sampler.h"

#include "sampler.skel.h"

#include <bpf/libbpf.h>
#include <poll.h>
#include <sys/ioctl.h>

enum { DEFAULT_USER_FRAMES = 127 };

static struct bpf_sampler *sampler_of(const struct source *s)
{
	return (struct bpf_sampler *)s;
}

/* --- start and stop --------------------------------------------------------------------------- */

static int ioctl_all(struct bpf_sampler *s, unsigned long request)
{
	int err = 0;

	for (size_t i = 0; i < s->event_fds.n; i++)
		if (ioctl(s->event_fds.v[i], request, 0) < 0 && !err)
			err = -errno;
	return err;
}

static int bpf_sampler_start(struct source *source, struct diag *d)
{
	struct bpf_sampler *s = sampler_of(source);
	int err = probe_core_start(&s->core);

	if (!err)
		err = ioctl_all(s, PERF_EVENT_IOC_ENABLE);
	return err ? diag_errno(d, err, "starting the events") : 0;
}

static int bpf_sampler_stop(struct source *source)
{
	struct bpf_sampler *s = sampler_of(source);
	int err = ioctl_all(s, PERF_EVENT_IOC_DISABLE);

	probe_core_stop(&s->core);
	return err;
}

static size_t bpf_sampler_fds(struct source *source, struct pollfd *v, size_t max)
{
	return probe_rings_fds(&sampler_of(source)->rings, v, max);
}

/* --- reading ---------------------------------------------------------------------------------- */

struct reading {
	struct bpf_sampler *s;
	record_fn *emit;
	void *ctx;
};

static int pass_sample(void *ctx, const struct probe_message *m)
{
	struct reading *r = ctx;
	size_t n;

	if (r->s->setup.with_copy && event_table_find_id(&r->s->events, m->id) != 0)
		return r->emit(r->ctx, m->record, m->record->size);
	n = probe_convert(r->s, m->raw, m->raw_bytes, m->time_ns, m->cpu);
	if (probe_is_early(m->raw, m->raw_bytes) && m->cpu < SAMPLER_EARLY_CPUS)
		__atomic_fetch_add(&r->s->skeleton->bss->early_room[m->cpu],
				   (int64_t)(m->raw_bytes / 8 * 8), __ATOMIC_RELAXED);
	return n ? r->emit(r->ctx, (const void *)r->s->record, n) : 0;
}

static int bpf_sampler_read(struct source *source, record_fn *emit, void *ctx, struct diag *d)
{
	struct bpf_sampler *s = sampler_of(source);
	struct reading r = {.s = s, .emit = emit, .ctx = ctx};
	/* Before the rings: whoever has ended by now has written his last. */
	bool alive = probe_core_alive(&s->core);
	int err = probe_rings_read(&s->rings, &s->core, pass_sample, &r, emit, ctx);

	if (err)
		return err == -ENOMEM ? diag_errno(d, err, "reading the samples") : err;
	err = probe_rings_losses(&s->rings, s->events.id_value.v[0], emit, ctx);
	if (err)
		return err;
	probe_forget_ended(&s->core);
	return alive;
}

int bpf_sampler_untold_losses(struct source *source, record_fn *emit, void *ctx)
{
	struct bpf_sampler *s = sampler_of(source);
	int err = probe_rings_losses(&s->rings, s->events.id_value.v[0], emit, ctx);

	probe_rings_side_losses(&s->rings);
	return err;
}

int bpf_sampler_notes(const struct source *source, note_list *notes)
{
	const struct bpf_sampler *s = sampler_of(source);
	int err = 0;

	if (s->rings.side_lost)
		err = note_add(notes,
			       "%llu records about processes and their mappings were lost beside "
			       "samples: some names may be missing",
			       (unsigned long long)s->rings.side_lost);
	return err ? err : probe_core_notes(&s->core, notes);
}

/* --- making and ending ------------------------------------------------------------------------ */

static void bpf_sampler_free(struct source *source)
{
	struct bpf_sampler *s = sampler_of(source);

	probe_close(s);
	probe_rings_release(&s->rings);
	probe_core_release(&s->core);
	sampler__destroy(s->skeleton);
	free(s->record);
	free(s);
}

static const struct source_ops bpf_sampler_ops = {
	.name = "bpf",
	.start = bpf_sampler_start,
	.fds = bpf_sampler_fds,
	.read = bpf_sampler_read,
	.stop = bpf_sampler_stop,
	.free = bpf_sampler_free,
};

static struct sampler_setup setup_of(const struct bpf_sampler_config *c)
{
	return (struct sampler_setup){
		.max_user_frames = c->max_stack ? MIN(c->max_stack, (unsigned)SAMPLER_USER_FRAMES)
						: DEFAULT_USER_FRAMES,
		.both_limited = c->max_stack != 0,
		.with_chain = c->callchain,
		.with_kernel = !c->user_only,
		.with_copy = c->copy_bytes != 0,
		.with_early = c->early_regs != 0,
	};
}

static int load(struct bpf_sampler *s, const struct host *h, struct diag *d)
{
	CLEANUP(kernel_types_release) struct kernel_types types = KERNEL_TYPES_INIT;
	int err = 0;

	s->skeleton = KERNEL_TYPES_OPEN(sampler, &types);
	if (s->skeleton) {
		*(struct sampler_setup *)&s->skeleton->rodata->setup = s->setup;
		*(struct target_setup *)&s->skeleton->rodata->target_setup = s->core.setup;
	}
	if (s->skeleton && s->setup.with_early)
		err = bpf_map__set_max_entries(s->skeleton->maps.earlies,
					       (uint32_t)MAX(libbpf_num_possible_cpus(), 1));
	if (err)
		return diag_errno(d, err, "opening the events");
	err = probe_core_load(&s->core, s->skeleton ? s->skeleton->skeleton : NULL, h, d);
	if (!err)
		s->core.shared = &s->skeleton->bss->target_shared;
	return err;
}

/* Half of a ring: no less than one that is not small holds. */
static void allow_early(struct bpf_sampler *s)
{
	for (size_t i = 0; i < s->rings.slots.n; i++) {
		const struct probe_slot *slot = &s->rings.slots.v[i];

		if (slot->cpu < SAMPLER_EARLY_CPUS)
			s->skeleton->bss->early_room[slot->cpu] =
				(int64_t)slot->ring.data_bytes / 2 -
				(int64_t)sizeof(struct sampler_early);
	}
}

static int open_sampler(struct bpf_sampler *s, const struct probe_target *target,
			const struct host *h, note_list *notes, struct diag *d)
{
	int err;

	s->source.ops = &bpf_sampler_ops;
	s->source.events = &s->events;
	s->record = malloc(RECORD_WORDS * sizeof(*s->record));
	if (!s->record)
		return diag_errno(d, -ENOMEM, "opening the events");
	err = probe_core_init(&s->core, target, true, h, d);
	s->core.setup.with_idle = s->config->idle_cpus;
	s->setup = setup_of(s->config);
	s->early_regs = s->config->early_regs;
	for (int i = 0; i < __builtin_popcountll(s->early_regs); i++)
		s->early_slots[i] = s->config->early_slots[i];
	if (!err)
		err = load(s, h, d);
	if (!err)
		err = probe_open(s, h, notes, d);
	if (!err)
		allow_early(s);
	if (!err)
		err = probe_core_follow(&s->core, d);
	return err ? err : probe_core_targets(&s->core, d);
}

int bpf_sampler_new(const struct bpf_sampler_config *c, const struct host *h, note_list *notes,
		    struct source **ret, struct diag *d)
{
	struct bpf_sampler *s = calloc(1, sizeof(*s));
	struct probe_target target = c->target;
	int err;

	if (!s)
		return diag_errno(d, -ENOMEM, "opening the events");
	if (!c->callchain || c->kernel_only)
		target.rows = NULL;
	s->config = c;
	err = open_sampler(s, &target, h, notes, d);
	s->config = NULL;
	if (err) {
		bpf_sampler_free(&s->source);
		return err;
	}
	*ret = &s->source;
	return 0;
}
