/* SPDX-License-Identifier: BSD-2-Clause */
#include "attach.h"

#include "open.h"

#include <inspect/explain.h>
#include <inspect/procfs.h>
#include <linux/capability.h>
#include <sys/resource.h>

#define RING_BYTES_USER (512u << 10) /* what perf_event_mlock_kb allows by default */
#define RING_BYTES_ROOT (2u << 20)
#define RING_BYTES_COPIES (8u << 20) /* for copies of stacks; more of all kinds of memory as well */
#define RINGS_BYTES_COPIES (256u << 20)
#define RINGS_BYTES_ROOT (64u << 20) /* all CPUs together, before they get RING_BYTES_USER */
#define RING_PAGES_MAX (1u << 16)

int opening_note_offline(struct opening *o, int cpu)
{
	char text[64];
	int err;

	snprintf(text, sizeof(text), "CPU %d is offline: not sampled", cpu);
	err = note_add_once(o->notes, text);
	return err ? diag_errno(o->d, err, "opening the events") : 0;
}

void raise_descriptor_limit(struct host *h)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur == limit.rlim_max)
		return;
	limit.rlim_cur = limit.rlim_max;
	if (setrlimit(RLIMIT_NOFILE, &limit) == 0)
		h->nofile_soft = limit.rlim_cur;
}

static unsigned default_ring_pages(const struct host *h, size_t n_cpus, bool copies)
{
	unsigned bytes = RING_BYTES_USER, page_bytes = (unsigned)sysconf(_SC_PAGESIZE);
	bool may_lock = h->euid == 0 && host_has_cap(h, CAP_IPC_LOCK);

	if (may_lock && n_cpus <= RINGS_BYTES_ROOT / RING_BYTES_ROOT)
		bytes = RING_BYTES_ROOT;
	if (may_lock && copies && n_cpus <= RINGS_BYTES_COPIES / RING_BYTES_COPIES)
		bytes = RING_BYTES_COPIES;
	return MAX(bytes / page_bytes, 1u);
}

static int choose_ring(struct opening *o)
{
	unsigned pages = o->config->ring_pages;

	if (pages > RING_PAGES_MAX || (pages & (pages - 1)))
		return diag_set(o->d, -EINVAL,
				"a ring of %u pages: it must be a power of two up to %u", pages,
				RING_PAGES_MAX);
	o->ring_pages =
		pages ? pages
		      : default_ring_pages(&o->host, o->s->slots.n, o->config->user_regs != 0);
	return 0;
}

static int add_slot(struct opening *o, const cpu_list *online, int cpu)
{
	int err;

	if (!cpu_list_has(online, cpu))
		return opening_note_offline(o, cpu);
	for (size_t i = 0; i < o->s->slots.n; i++)
		if (o->s->slots.v[i].cpu == cpu)
			return 0;
	err = array_push(&o->s->slots, (struct cpu_slot){.cpu = cpu, .ring_fd = -1});
	return err ? diag_errno(o->d, err, "listing the CPUs") : 0;
}

static int prepare_slots(struct opening *o)
{
	CLEANUP(cpu_list_release) cpu_list online = {0};
	const struct sampler_config *c = o->config;
	const int *cpus = c->cpus;
	size_t n = c->n_cpus;
	int err = cpu_list_online(&online);

	if (err)
		return diag_errno(o->d, err, "listing the CPUs");
	if (!cpus) {
		cpus = online.v;
		n = online.n;
	}
	for (size_t i = 0; !err && i < n; i++)
		err = add_slot(o, &online, cpus[i]);
	if (!err && !o->s->slots.n)
		err = diag_set(o->d, -ENODEV, "none of the CPUs asked for is online");
	return err;
}

static int prepare_attr(struct opening *o, const struct event_spec *spec)
{
	struct perf_event_attr attr;
	char *name;
	int err;

	attr_prepare(spec, o->config, o->freq_hz, o->ring_pages * (unsigned)sysconf(_SC_PAGESIZE),
		     !o->attrs.n, &attr);
	if (attr.exclude_user && attr.exclude_kernel)
		return diag_set(o->d, -EINVAL, "event '%s': nothing is left of it %s", spec->name,
				o->config->user_only ? "with --user-only" : "with --kernel-only");
	name = strdup(spec->name);
	err = name ? array_push(&o->names, name) : -ENOMEM;
	if (err)
		free(name);
	if (!err)
		err = array_push(&o->attrs, attr);
	if (!err)
		err = array_push(&o->negotiated, false);
	return err ? diag_errno(o->d, err, "opening the events") : 0;
}

/* The sysctls that would make every open fail, told by their names. */
static int check_limits(struct opening *o)
{
	const struct sampler_config *c = o->config;
	const struct host *h = &o->host;
	struct perf_attempt a = {
		.event = c->events->v[0].name,
		.command = c->command,
		.all_cpus = c->all,
		.cgroup = c->cgroup_fd >= 0,
		.pid = c->n_pids ? c->pids[0] : 0,
		.freq_hz = c->freq_hz,
	};
	char text[128];

	o->freq_hz = c->freq_hz;
	if (!c->period && h->perf_event_max_sample_rate != HOST_UNKNOWN &&
	    c->freq_hz > (uint64_t)h->perf_event_max_sample_rate) {
		if (c->freq_given)
			return explain_perf_open(-EINVAL, &a, h, o->d);
		o->freq_hz = (uint64_t)h->perf_event_max_sample_rate;
		snprintf(text, sizeof(text),
			 "sampling at %llu Hz: kernel.perf_event_max_sample_rate allows no more",
			 (unsigned long long)o->freq_hz);
		if (note_add_once(o->notes, text))
			return diag_errno(o->d, -ENOMEM, "opening the events");
	}
	if (c->callchain && h->perf_event_max_stack != HOST_UNKNOWN &&
	    kernel_max_stack(c) > (uint64_t)h->perf_event_max_stack)
		return explain_perf_open(-EOVERFLOW, &a, h, o->d);
	return 0;
}

int opening_prepare(struct opening *o)
{
	const struct sampler_config *c = o->config;
	int err;

	if (!c->events->n || (!config_is_cpu_wide(c) && !c->n_pids && !c->n_tids && !c->child))
		return diag_set(o->d, -EINVAL, "there is nothing to sample");
	raise_descriptor_limit(&o->host);
	err = check_limits(o);
	if (!err)
		err = prepare_slots(o);
	if (!err)
		err = choose_ring(o);
	for (size_t i = 0; !err && i < c->events->n; i++)
		err = prepare_attr(o, &c->events->v[i]);
	o->whom_wanted = config_is_cpu_wide(c) ? 1 : c->n_tids + !!c->child;
	for (size_t i = 0; !err && !config_is_cpu_wide(c) && i < c->n_pids; i++) {
		struct proc_stat stat;

		if (proc_stat_read(c->pids[i], 0, &stat) == 0)
			o->whom_wanted += stat.num_threads;
	}
	return err;
}

int sampler_attr(const struct sampler_config *config, size_t event, const struct host *host,
		 note_list *notes, struct perf_event_attr *ret, struct diag *d)
{
	struct opening o = {.config = config, .host = *host, .notes = notes, .d = d};
	int err = check_limits(&o);

	if (!err)
		attr_prepare(&config->events->v[event], config, o.freq_hz, 0, false, ret);
	return err;
}
