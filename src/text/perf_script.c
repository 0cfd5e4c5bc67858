/* SPDX-License-Identifier: BSD-2-Clause */
/* The output of `perf script`, sample by sample. */
#include "text.h"

/* Different events are looked for one by one. */
#define EVENTS_MAX 256U

/* An event with and one without periods are two: their weights cannot be added. */
struct script_event {
	struct span name;
	bool has_period;
	uint32_t event;
};

struct script {
	struct text_reader *r;
	ARRAY(struct script_event) events;
	size_t last_event;
	bool in_sample;
	struct sample_header header; /* of the sample at hand */
};

static void script_release(struct script *s)
{
	array_release(&s->events);
}

/* Without the modifiers: "cpu-clock:u" is cpu-clock, "sched:sched_switch" is itself. */
static struct span base_name(struct span name)
{
	const char *colon = name.n ? memrchr(name.s, ':', name.n) : NULL;

	if (!colon)
		return name;
	for (const char *s = colon + 1; s < name.s + name.n; s++)
		if (!strchr("ukhGHpPSDIeWb", *s))
			return name;
	return (struct span){name.s, (size_t)(colon - name.s)};
}

static bool is_tracepoint(struct span event)
{
	struct span base = base_name(event);

	return base.n && memchr(base.s, ':', base.n);
}

static bool is_clock(struct span base)
{
	return (base.n == 9 && memcmp(base.s, "cpu-clock", 9) == 0) ||
	       (base.n == 10 && memcmp(base.s, "task-clock", 10) == 0);
}

static int add_event(struct script *s, const struct sample_header *h, uint32_t *ret_event)
{
	struct profile *p = s->r->p;
	struct span base = base_name(h->event);
	CLEANUP(freep) char *name = NULL, *unit = NULL;
	uint32_t event;
	int err;

	name = h->event.n ? strndup(h->event.s, h->event.n) : strdup("samples");
	if (!h->has_period)
		unit = strdup("samples");
	else
		unit = is_clock(base) ? strdup("ns") : strndup(base.s, base.n);
	if (!name || !unit)
		return -ENOMEM;
	err = profile_add_event(p, name, unit, &event);
	if (err)
		return err;
	p->events.v[event].is_time = is_clock(base) && h->has_period;
	p->events.v[event].is_tracepoint = is_tracepoint(h->event);
	err = array_push(&s->events, (struct script_event){h->event, h->has_period, event});
	if (err)
		return err;
	*ret_event = event;
	return 0;
}

/* -E2BIG: more events than anyone records. */
static int find_event(struct script *s, const struct sample_header *h, uint32_t *ret_event)
{
	size_t n = s->events.n;

	/* Mostly that of the sample before. */
	for (size_t k = 0; k < n; k++) {
		size_t i = (s->last_event + k) % n;
		const struct script_event *e = &s->events.v[i];

		if (e->has_period == h->has_period && e->name.n == h->event.n &&
		    (!e->name.n || memcmp(e->name.s, h->event.s, e->name.n) == 0)) {
			s->last_event = i;
			*ret_event = e->event;
			return 0;
		}
	}
	if (n >= EVENTS_MAX)
		return -E2BIG;
	s->last_event = n;
	return add_event(s, h, ret_event);
}

static void widen_time(struct profile *p, const struct sample_header *h)
{
	if (!h->has_time)
		return;
	if (!p->start_ns || h->time_ns < p->start_ns)
		p->start_ns = h->time_ns;
	p->end_ns = MAX(p->end_ns, h->time_ns);
}

static int add_sample(struct script *s)
{
	const struct sample_header *h = &s->header;
	uint32_t stack, thread, event;
	int err = text_take_stack(s->r, true, &stack);

	if (!err)
		err = find_event(s, h, &event);
	if (!err)
		err = profile_thread(s->r->p, h->pid, h->tid, h->comm.s, h->comm.n, &thread);
	if (!err)
		err = text_add(s->r, stack, thread, event, h->has_period ? h->period : 1, 1);
	if (!err)
		widen_time(s->r->p, h);
	return err;
}

/* A sample ends with a blank line, with the next one, or with the text. */
static int end_sample(struct script *s)
{
	int err;

	if (!s->in_sample)
		return 0;
	s->in_sample = false;
	err = add_sample(s);
	if (err != -EOVERFLOW && err != -E2BIG)
		return err;
	text_bad_line(s->r);
	s->r->frames.n = 0;
	return 0;
}

/* Side-band records, shown with --show-mmap-events and the like, are no samples. */
static bool is_record(const struct sample_header *h)
{
	static const char prefix[] = "PERF_RECORD_";
	const char *s = h->event.n ? h->event.s : h->rest.s;

	return (size_t)(h->rest.s + h->rest.n - s) >= sizeof(prefix) - 1 &&
	       memcmp(s, prefix, sizeof(prefix) - 1) == 0;
}

static int begin_sample(struct script *s, const struct sample_header *h)
{
	struct span tail;
	int err = end_sample(s);

	if (err || is_record(h))
		return err;
	s->in_sample = true;
	s->header = *h;
	/* A sample without a chain has its one frame here; a tracepoint has its fields. */
	if (is_tracepoint(h->event) || !frame_line_split(h->rest, &tail) || !tail.n)
		return 0;
	err = text_push_frame(s->r, tail);
	return err ? err : end_sample(s);
}

static int read_frame(struct script *s, struct span line)
{
	struct span tail;

	if (!s->in_sample || !frame_line_split(line, &tail)) {
		text_bad_line(s->r);
		return 0;
	}
	if (s->r->frames.n > TEXT_FRAMES_MAX)
		return 0; /* text_take_stack sees that it is cut */
	return text_push_frame(s->r, tail);
}

static bool is_blank_line(struct span line)
{
	for (size_t i = 0; i < line.n; i++)
		if (!is_blank(line.s[i]))
			return false;
	return true;
}

static int read_line(struct script *s, struct span line)
{
	struct sample_header h;
	bool is_indented = line.n && is_blank(line.s[0]);

	/* What perf indents with a tab is a frame; a comm set to the right begins with spaces. */
	if (is_indented && (line.s[0] == '\t' || (s->in_sample && s->r->frames.n))) {
		struct span tail;

		if (s->in_sample && frame_line_split(line, &tail))
			return read_frame(s, line);
	}
	if (is_blank_line(line))
		return end_sample(s);
	if (line.s[0] == '\t')
		return read_frame(s, line);
	if (sample_header_parse(line, &h) && (h.is_sure || (!is_indented && line.s[0] != '#')))
		return begin_sample(s, &h);
	if (is_indented)
		return read_frame(s, line);
	if (line.s[0] != '#')
		text_bad_line(s->r);
	return 0;
}

int perf_script_read(struct text_reader *r)
{
	CLEANUP(script_release) struct script s = {.r = r};
	struct span line;
	int err = 0;

	r->make_frame = perf_frame_make;
	while (!err && text_next_line(r, &line))
		err = read_line(&s, line);
	return err ? err : end_sample(&s);
}
