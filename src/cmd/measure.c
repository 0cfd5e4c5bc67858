/* SPDX-License-Identifier: BSD-2-Clause */
#include "measure.h"

#include <inspect/strbuf.h>

enum { DEFAULT_FREQ_HZ = 99 };

static int choose_events(struct measure *m, const struct sampling_options *o, struct diag *d)
{
	const char *text = o->events;
	struct perf_event_attr cycles = {.type = PERF_TYPE_HARDWARE,
					 .config = PERF_COUNT_HW_CPU_CYCLES,
					 .size = sizeof(cycles),
					 .exclude_kernel = 1,
					 .exclude_hv = 1};

	if (!text && perf_event_available(&cycles)) {
		text = "cycles";
	} else if (!text) {
		text = "cpu-clock";
		if (note_add(&m->notes, "no hardware counters here: cpu-clock, a timer, is sampled "
					"instead of cycles"))
			return diag_errno(d, -ENOMEM, "-e");
	}
	return event_specs_parse(text, &m->host, &m->events, d);
}

static int choose_rate(struct recording_config *c, const struct sampling_options *o,
		       const struct host *host, struct diag *d)
{
	if (o->freq_hz && o->period)
		return diag_set(d, -EINVAL, "-F and -c exclude each other");
	c->period = o->period;
	c->freq_given = o->freq_hz != 0;
	c->freq_hz = o->period ? 0 : o->freq_hz ? o->freq_hz : DEFAULT_FREQ_HZ;
	/* -F max, as in perf: whatever the kernel allows. */
	if (o->freq_hz == UINT64_MAX)
		c->freq_hz = host->perf_event_max_sample_rate > 0
				     ? (uint64_t)host->perf_event_max_sample_rate
				     : DEFAULT_FREQ_HZ;
	return 0;
}

/* The kernel's timers do not go faster, and say nothing. */
static int limit_period(struct measure *m, const struct sampling_options *o)
{
	enum { CLOCK_PERIOD_MIN_NS = 10000 };

	for (size_t i = 0; i < m->events.n; i++)
		if (!event_is_clock(&m->events.v[i].attr))
			return 0;
	if (!o->period || o->period >= CLOCK_PERIOD_MIN_NS)
		return 0;
	m->config.period = CLOCK_PERIOD_MIN_NS;
	return note_add(&m->notes,
			"-c %llu is %llu ns: the clocks go no faster than every 10 µs, "
			"which is taken",
			(unsigned long long)o->period, (unsigned long long)o->period);
}

/* A thread's wall time has one unit, and its stacks one way to be had. */
static int choose_wall(struct measure *m, const struct sampling_options *o, struct diag *d)
{
	int err = options_conflict("--wall", true, "-e", o->events != NULL, d);

	if (!err)
		err = options_conflict("--wall", true, "-c", o->period != 0, d);
	if (!err)
		err = options_conflict(
			"--wall", true, "--call-graph fp or dwarf",
			o->call_graph == CALL_GRAPH_FP || o->call_graph == CALL_GRAPH_DWARF, d);
	m->waits.wall = true;
	m->config.waits = &m->waits;
	return err;
}

int measure_prepare(struct measure *m, const char *command, const struct measure_options *o,
		    const struct operands *operands, struct diag *d)
{
	int err;

	*m = (struct measure){.target = {.cgroup_fd = -1}};
	host_read(&m->host, "");
	host_open_tracefs(&m->host);
	if (o->sampling.user_only && o->sampling.kernel_only)
		return diag_set(d, -EINVAL, "--user-only and --kernel-only exclude each other");
	m->config = (struct recording_config){
		.command = command,
		.target = &m->target,
		.host = &m->host,
		.events = &m->events,
		.notes = &m->notes,
		.sampling = &o->sampling,
		.duration_ns = o->duration.duration_ns,
		.delay_ns = o->duration.delay_ns,
		.naming = o->naming,
	};
	err = choose_rate(&m->config, &o->sampling, &m->host, d);
	if (!err)
		err = target_resolve(&o->target, operands, &m->host, &m->notes, &m->target, d);
	if (!err && o->sampling.wall)
		err = choose_wall(m, &o->sampling, d);
	else if (!err)
		err = choose_events(m, &o->sampling, d);
	if (!err && limit_period(m, &o->sampling))
		err = diag_errno(d, -ENOMEM, "-c");
	return err;
}

void measure_release(struct measure *m)
{
	target_release(&m->target);
	event_specs_release(&m->events);
	note_list_release(&m->notes);
}

char *command_line_of(int argc, char **argv)
{
	struct strbuf b = {0};
	char *line;

	strbuf_puts(&b, "inspect");
	for (int i = 0; i < argc; i++) {
		strbuf_putc(&b, ' ');
		strbuf_puts(&b, argv[i]);
	}
	return strbuf_take(&b, &line) ? NULL : line;
}
