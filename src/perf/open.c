/* SPDX-License-Identifier: BSD-2-Clause */
#include "open.h"

#include <time.h>

bool perf_event_available(const struct perf_event_attr *attr)
{
	struct perf_event_attr probe = {
		.type = attr->type,
		.size = sizeof(probe),
		.config = attr->config,
		.config1 = attr->config1,
		.config2 = attr->config2,
		.disabled = 1,
		.exclude_kernel = 1,
		.exclude_hv = 1,
	};
	CLEANUP(closep) int fd = perf_open(&probe, 0, -1, 0);

	return fd != -ENOENT && fd != -ENODEV && fd != -EOPNOTSUPP;
}

static void set_rate(const struct event_spec *spec, const struct sampler_config *c,
		     uint64_t freq_hz, struct perf_event_attr *a)
{
	/* cpu/…,period=…/ says it for this event alone. */
	if (spec->attr.sample_period)
		return;
	a->freq = 0;
	if (c->period) {
		a->sample_period = c->period;
	} else if (spec->is_tracepoint && !c->freq_given) {
		a->sample_period = 1;
	} else {
		a->freq = 1;
		a->sample_freq = freq_hz;
	}
}

static void set_levels(const struct event_spec *spec, const struct sampler_config *c,
		       struct perf_event_attr *a)
{
	a->exclude_callchain_kernel = c->callchain && c->user_only;
	a->exclude_callchain_user = c->callchain && (c->kernel_only || c->user_regs);
	/* A tracepoint happens in the kernel: excluding that would leave nothing of it. */
	if (spec->is_tracepoint)
		return;
	if (c->user_only)
		a->exclude_kernel = a->exclude_hv = 1;
	if (c->kernel_only)
		a->exclude_user = 1;
}

unsigned kernel_max_stack(const struct sampler_config *c)
{
	/* Of stacks that are copied the kernel walks its own part. */
	return c->user_regs && c->max_stack > PERF_MAX_STACK_DEPTH ? 0 : c->max_stack;
}

void attr_prepare(const struct event_spec *spec, const struct sampler_config *c, uint64_t freq_hz,
		  unsigned ring_bytes, bool first, struct perf_event_attr *ret)
{
	struct perf_event_attr a = spec->attr;

	a.size = sizeof(a);
	a.sample_type = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID |
			PERF_SAMPLE_TIME | PERF_SAMPLE_CPU | PERF_SAMPLE_PERIOD;
	if (c->callchain) {
		a.sample_type |= PERF_SAMPLE_CALLCHAIN;
		a.sample_max_stack = (uint16_t)MIN(kernel_max_stack(c), UINT16_MAX);
	}
	if (c->callchain && c->user_regs && !c->kernel_only) {
		a.sample_type |= PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER;
		a.sample_regs_user = c->user_regs;
		a.sample_stack_user = c->stack_bytes;
	}
	if (spec->is_tracepoint)
		a.sample_type |= PERF_SAMPLE_RAW;
	a.read_format = PERF_FORMAT_ID | PERF_FORMAT_LOST;
	a.disabled = 1;
	a.sample_id_all = 1;
	a.use_clockid = 1;
	a.clockid = CLOCK_MONOTONIC;
	a.watermark = 1;
	a.wakeup_watermark = ring_bytes / 4;
	/* Not build_id: while a system-wide event has it, kernel 6.18 marks other recordings' MMAP2
	 * too as having one, and an unrelated perf record aborts. The files are read instead. */
	a.mmap = a.mmap2 = a.comm = a.comm_exec = a.task = a.ksymbol = first;
	/* Only the software clocks tick in an idle CPU; others take the flag for an error. */
	a.exclude_idle = spec->attr.type == PERF_TYPE_SOFTWARE && !c->idle_cpus;
	set_rate(spec, c, freq_hz, &a);
	set_levels(spec, c, &a);
	*ret = a;
}

/* --- what may be taken away ------------------------------------------------------------------- */

/* Lowers what it is about; false when there is nothing left of it. */
typedef bool lower_fn(struct perf_event_attr *a);

static bool lower_precision(struct perf_event_attr *a)
{
	if (!a->precise_ip)
		return false;
	a->precise_ip--;
	return true;
}

static bool lower_lost_count(struct perf_event_attr *a)
{
	bool had = a->read_format & PERF_FORMAT_LOST;

	a->read_format &= ~(uint64_t)PERF_FORMAT_LOST;
	return had;
}

static bool lower_ksymbol(struct perf_event_attr *a)
{
	bool had = a->ksymbol;

	a->ksymbol = 0;
	return had;
}

static bool lower_guest(struct perf_event_attr *a)
{
	bool had = a->exclude_guest && !a->exclude_host;

	a->exclude_guest = 0;
	return had;
}

/* In the order of trying: what is missing most often first. */
static const struct {
	int err;
	lower_fn *lower;
} ladder[] = {
	{EOPNOTSUPP, lower_precision}, {EINVAL, lower_lost_count}, /* before 6.0 */
	{EINVAL, lower_ksymbol},                                   /* before 5.1 */
	{EINVAL, lower_precision},     {EINVAL, lower_guest},      {EOPNOTSUPP, lower_guest},
};

static bool lower(int err, struct perf_event_attr *a)
{
	for (size_t i = 0; i < ARRAY_SIZE(ladder); i++)
		if (ladder[i].err == -err && ladder[i].lower(a))
			return true;
	return false;
}

/* perf's own way of saying that only user code was sampled: "cycles" becomes "cycles:u". */
static int name_user_only(char **name)
{
	bool has_modifiers = strchr(*name, ':') || str_ends(*name, "/");
	char *changed;

	if (asprintf(&changed, "%s%su", *name, has_modifiers ? "" : ":") < 0)
		return -ENOMEM;
	free(*name);
	*name = changed;
	return 0;
}

static int note_user_only(const struct host *host, note_list *notes)
{
	char text[128];

	if (host->perf_event_paranoid == HOST_UNKNOWN)
		snprintf(text, sizeof(text), "kernel samples not allowed: user code only");
	else
		snprintf(text, sizeof(text),
			 "kernel samples not allowed (perf_event_paranoid=%lld): user code only",
			 (long long)host->perf_event_paranoid);
	return note_add_once(notes, text);
}

int perf_open_negotiated(struct perf_event_attr *attr, char **name, pid_t pid, int cpu,
			 unsigned long flags, bool may_drop_kernel, const struct host *host,
			 note_list *notes)
{
	struct perf_event_attr a = *attr;
	bool kernel_dropped = false;
	int fd, err = 0;

	for (;;) {
		fd = perf_open(&a, pid, cpu, flags);
		if (fd >= 0)
			break;
		if ((fd == -EACCES || fd == -EPERM) && may_drop_kernel && !a.exclude_kernel &&
		    !a.exclude_user && a.type != PERF_TYPE_TRACEPOINT) {
			a.exclude_kernel = a.exclude_hv = 1;
			a.exclude_callchain_kernel = !!(a.sample_type & PERF_SAMPLE_CALLCHAIN);
			kernel_dropped = true;
		} else if (!lower(fd, &a)) {
			return fd;
		}
	}
	if (a.precise_ip != attr->precise_ip)
		err = note_add(notes, "%s: precise level %u is the most this CPU offers here",
			       *name, (unsigned)a.precise_ip);
	if (!err && kernel_dropped)
		err = note_user_only(host, notes);
	if (!err && kernel_dropped)
		err = name_user_only(name);
	if (err) {
		close(fd);
		return err;
	}
	*attr = a;
	return fd;
}
