/* SPDX-License-Identifier: BSD-2-Clause */
/* What is measured: the table of metrics, and the value of each after a run. */
#include "stat.h"

#include <inspect/procfs.h>
#include <math.h>

#define NONE SIZE_MAX
#define USAGE(field) offsetof(struct task_usage, field)

/* Pairs whose ratio is shown are counted together. */
static const char hardware_set[] =
	"{cycles,instructions},{cache-references,cache-misses},{branches,branch-misses},"
	"dTLB-load-misses,LLC-load-misses";
static const char detail_set[] =
	",{L1-dcache-loads,L1-dcache-load-misses},L1-icache-load-misses,LLC-loads,dTLB-loads,"
	"iTLB-load-misses,stalled-cycles-frontend,stalled-cycles-backend,ref-cycles";
/* Slots lead the group; the kernel turns the metrics into slots (Intel, Ice Lake and newer). Of two
 * kinds of cores the larger ones have it. */
static const struct {
	const char *slots, *retiring, *set;
} topdown_sets[] = {
#define TOPDOWN(pmu)                                                                               \
	{                                                                                          \
		"/sys/bus/event_source/devices/" pmu "/events/slots",                              \
			"/sys/bus/event_source/devices/" pmu "/events/topdown-retiring",           \
			",{" pmu "/slots/," pmu "/topdown-retiring/," pmu                          \
			"/topdown-bad-spec/," pmu "/topdown-fe-bound/," pmu "/topdown-be-bound/}"  \
	}
	TOPDOWN("cpu"),
	TOPDOWN("cpu_core"),
#undef TOPDOWN
};

/* The set that needs no counters. An event is stood in for by what the kernel accounts. */
static const struct {
	const char *name;
	enum unit unit;
	enum metric_source source;
	size_t offset, second;
	bool undivided;
} software_set[] = {
	{"wall", UNIT_NS, FROM_WALL, NONE, NONE, true},
	{"user", UNIT_NS, FROM_USAGE, USAGE(user_ns), NONE, false},
	{"sys", UNIT_NS, FROM_USAGE, USAGE(sys_ns), NONE, false},
	{"task-clock", UNIT_NS, FROM_EVENT, USAGE(user_ns), USAGE(sys_ns), false},
	{"cpus-used", UNIT_NUMBER, FROM_CPUS, NONE, NONE, true},
	{"context-switches", UNIT_COUNT, FROM_EVENT, USAGE(voluntary), USAGE(involuntary), false},
	{"voluntary-switches", UNIT_COUNT, FROM_USAGE, USAGE(voluntary), NONE, false},
	{"involuntary-switches", UNIT_COUNT, FROM_USAGE, USAGE(involuntary), NONE, false},
	{"run-delay", UNIT_NS, FROM_USAGE, USAGE(run_delay_ns), NONE, false},
	{"cpu-migrations", UNIT_COUNT, FROM_EVENT, NONE, NONE, false},
	{"page-faults", UNIT_COUNT, FROM_EVENT, USAGE(minor_faults), USAGE(major_faults), false},
	{"minor-faults", UNIT_COUNT, FROM_EVENT, USAGE(minor_faults), NONE, false},
	{"major-faults", UNIT_COUNT, FROM_EVENT, USAGE(major_faults), NONE, false},
	{"max-rss", UNIT_BYTES, FROM_USAGE, USAGE(max_rss_bytes), NONE, true},
	{"read", UNIT_BYTES, FROM_USAGE, USAGE(read_bytes), NONE, false},
	{"written", UNIT_BYTES, FROM_USAGE, USAGE(written_bytes), NONE, false},
	{"disk-read", UNIT_BYTES, FROM_USAGE, USAGE(disk_read_bytes), NONE, false},
	{"disk-written", UNIT_BYTES, FROM_USAGE, USAGE(disk_written_bytes), NONE, false},
	{"threads", UNIT_COUNT, FROM_USAGE, USAGE(threads), NONE, true},
};

/* --- preparing -------------------------------------------------------------------------------- */

static int add_metric(struct stat_session *s, const char *name, const struct stat_metric *like)
{
	struct stat_metric m = *like;
	int err;

	m.name = strdup(name);
	err = m.name ? array_push(&s->metrics, m) : -ENOMEM;
	if (err)
		free(m.name);
	return err;
}

/* An event that -e names again would only take a counter from the others. */
static void drop_repeated(struct counter_events *e, size_t first)
{
	size_t kept = first;

	for (size_t i = first; i < e->specs.n; i++) {
		bool repeated = false;

		for (size_t k = 0; k < kept; k++)
			repeated |= str_eq(e->specs.v[k].name, e->specs.v[i].name);
		if (repeated) {
			free(e->specs.v[i].name);
			continue;
		}
		e->specs.v[kept] = e->specs.v[i];
		e->groups.v[kept++] = e->groups.v[i];
	}
	e->specs.n = e->groups.n = kept;
}

static void find_stand_in(const char *name, struct stat_metric *m)
{
	for (size_t i = 0; i < ARRAY_SIZE(software_set); i++)
		if (software_set[i].source == FROM_EVENT && str_eq(software_set[i].name, name)) {
			m->offset = software_set[i].offset;
			m->second = software_set[i].second;
		}
}

/* Those of the events that have no metric yet get one. */
static int add_event_metrics(struct stat_session *s)
{
	int err = 0;

	for (size_t i = 0; i < s->events.specs.n && !err; i++) {
		const struct event_spec *spec = &s->events.specs.v[i];
		size_t known = stat_metric_find(s, spec->name);
		struct stat_metric m = {
			.unit = event_is_clock(&spec->attr) ? UNIT_NS : UNIT_COUNT,
			.source = FROM_EVENT,
			.offset = NONE,
			.second = NONE,
			.event = i,
		};

		find_stand_in(spec->name, &m);
		if (known == NONE)
			err = add_metric(s, spec->name, &m);
		else if (s->metrics.v[known].event == NONE)
			s->metrics.v[known].event = i;
	}
	return err;
}

/* With -e the list says which events there are. Times stay, and what limits are about. */
static bool is_wanted(const struct stat_session *s, const char *name)
{
	static const char *const always[] = {"wall",       "user",      "sys",
					     "task-clock", "cpus-used", "max-rss"};
	const text_list *lists[] = {&s->v->fail_on, &s->v->budgets};
	size_t n = strlen(name);

	for (size_t i = 0; i < ARRAY_SIZE(always); i++)
		if (str_eq(always[i], name))
			return true;
	for (size_t i = 0; i < ARRAY_SIZE(lists); i++)
		for (size_t k = 0; k < lists[i]->n; k++)
			if (str_starts(lists[i]->v[k], name) && strchr(":<>", lists[i]->v[k][n]))
				return true;
	return s->v->per && str_eq(s->v->per, name);
}

static int add_software(struct stat_session *s, struct diag *d)
{
	CLEANUP(strbuf_release) struct strbuf names = {0};
	int err = 0;

	for (size_t i = 0; i < ARRAY_SIZE(software_set) && !err; i++) {
		const struct stat_metric m = {
			.unit = software_set[i].unit,
			.source = software_set[i].source,
			.offset = software_set[i].offset,
			.second = software_set[i].second,
			.event = NONE,
			.undivided = software_set[i].undivided,
		};

		if (s->v->events && !is_wanted(s, software_set[i].name))
			continue;
		err = add_metric(s, software_set[i].name, &m);
		if (m.source == FROM_EVENT)
			strbuf_printf(&names, "%s%s", names.n ? "," : "", software_set[i].name);
	}
	if (err || names.failed)
		return diag_errno(d, -ENOMEM, "listing what is measured");
	return counter_events_parse(strbuf_str(&names), &s->host, &s->events, d);
}

static const char *topdown_set(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(topdown_sets); i++)
		if (access(topdown_sets[i].slots, R_OK) == 0 &&
		    access(topdown_sets[i].retiring, R_OK) == 0)
			return topdown_sets[i].set;
	return "";
}

static int add_events(struct stat_session *s, struct diag *d)
{
	CLEANUP(strbuf_release) struct strbuf names = {0};
	size_t first = s->events.specs.n;
	int err;

	if (s->v->events) {
		strbuf_puts(&names, s->v->events);
	} else {
		strbuf_puts(&names, hardware_set);
		strbuf_puts(&names, s->v->detail ? detail_set : "");
		strbuf_puts(&names, topdown_set());
	}
	if (names.failed)
		return diag_errno(d, -ENOMEM, "-e");
	err = counter_events_parse(strbuf_str(&names), &s->host, &s->events, d);
	/* A name that nothing has is a wrong option; without tracefs that is not known. */
	if (err == -ENOENT && s->host.tracefs[0])
		err = d->err = -EINVAL;
	if (!err)
		drop_repeated(&s->events, first);
	if (!err && add_event_metrics(s))
		err = diag_errno(d, -ENOMEM, "-e");
	return err;
}

/* NAME=REGEX, an extended regular expression. */
static int add_output_metric(struct stat_session *s, const char *text, struct diag *d)
{
	static const char name_bytes[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-";
	size_t n = strspn(text, name_bytes);
	struct stat_metric m = {
		.unit = UNIT_NUMBER, .source = FROM_OUTPUT, .event = NONE, .undivided = true};
	CLEANUP(freep) char *name = strndup(text, n);
	char why[256];
	int err;

	if (!name)
		return diag_errno(d, -ENOMEM, "--metric");
	if (!n || text[n] != '=' || !text[n + 1]) {
		diag_set(d, -EINVAL, "--metric %s: not NAME=REGEX", text);
		diag_fix(d, "--metric 'ttft_p99=p99: ([0-9.]+) ms'");
		return -EINVAL;
	}
	if (stat_metric_find(s, name) != NONE)
		return diag_set(d, -EINVAL, "--metric %s: there is a metric of that name", name);
	m.pattern = malloc(sizeof(*m.pattern));
	if (!m.pattern)
		return diag_errno(d, -ENOMEM, "--metric");
	err = regcomp(m.pattern, text + n + 1, REG_EXTENDED);
	if (err) {
		regerror(err, m.pattern, why, sizeof(why));
		free(m.pattern);
		return diag_set(d, -EINVAL, "--metric %s: %s", text, why);
	}
	err = add_metric(s, name, &m);
	if (err) {
		regfree(m.pattern);
		free(m.pattern);
	}
	return diag_errno(d, err, "--metric");
}

int stat_metrics_prepare(struct stat_session *s, struct diag *d)
{
	int err = add_software(s, d);

	if (!err)
		err = add_events(s, d);
	for (size_t i = 0; i < s->v->metrics.n && !err; i++)
		err = add_output_metric(s, s->v->metrics.v[i], d);
	if (!err && s->v->per && stat_metric_find(s, s->v->per) == NONE) {
		err = diag_set(d, -EINVAL, "--per %s: there is no metric of that name", s->v->per);
		diag_fix(d, "--metric '%s=REGEX'      (a number in CMD's output)", s->v->per);
	}
	if (err)
		return err;
	s->line_values = calloc(s->metrics.n, sizeof(*s->line_values));
	return s->line_values ? 0 : diag_errno(d, -ENOMEM, "listing what is measured");
}

void stat_metrics_release(stat_metrics *list)
{
	for (size_t i = 0; i < list->n; i++) {
		struct stat_metric *m = &list->v[i];

		if (m->pattern)
			regfree(m->pattern);
		free(m->pattern);
		free(m->name);
		free(m->event_name);
		free(m->reason);
	}
	array_release(list);
}

size_t stat_metric_find(const struct stat_session *s, const char *name)
{
	for (size_t i = 0; i < s->metrics.n; i++)
		if (str_eq(s->metrics.v[i].name, name))
			return i;
	return NONE;
}

/* --- values ----------------------------------------------------------------------------------- */

void stat_metrics_line(void *ctx, const char *line)
{
	struct stat_session *s = ctx;

	for (size_t i = 0; i < s->metrics.n; i++) {
		const struct stat_metric *m = &s->metrics.v[i];
		regmatch_t match[2];
		const char *from;
		char *end;
		double v;

		if (m->source != FROM_OUTPUT || regexec(m->pattern, line, 2, match, 0) != 0)
			continue;
		from = line + (match[1].rm_so >= 0 ? match[1].rm_so : match[0].rm_so);
		v = strtod(from, &end);
		if (end != from && isfinite(v))
			s->line_values[i] = v;
	}
}

static double usage_at(const struct task_usage *u, size_t offset)
{
	double v;

	if (offset == NONE)
		return NAN;
	memcpy(&v, (const char *)u + offset, sizeof(v));
	return v;
}

static double usage_of(const struct stat_metric *m, const struct task_usage *u)
{
	double v = usage_at(u, m->offset);

	return m->second == NONE ? v : v + usage_at(u, m->second);
}

/* Time on all CPUs says nothing of work: a CPU-wide clock runs while the CPU is idle. */
static bool clock_is_idle_too(const struct stat_session *s, const struct counter_event *e)
{
	return s->target.all && event_is_clock(&e->attr);
}

static double event_value(struct stat_session *s, struct stat_metric *m, const struct counting *c,
			  const char **ret_why)
{
	const struct counter_event *e = counters_event(c->counters, m->event);
	struct count sum;
	double v = counters_total(c->counters, m->event, &sum);
	double stand_in = usage_of(m, &c->usage), ignored;

	free(m->event_name);
	m->event_name = strdup(e->name);
	m->running_percent = 100;
	if (e->missing || clock_is_idle_too(s, e)) {
		*ret_why = e->missing ? e->missing : "CPU-wide it runs in idle CPUs too";
		return stand_in;
	}
	if (!counters_value(c->counters, m->event, &sum, &ignored)) {
		*ret_why = "it never got a counter: others hold them (such as the NMI watchdog), "
			   "or the target did not run";
		return NAN;
	}
	if (sum.enabled_ns && sum.running_ns)
		m->running_percent = 100.0 * (double)sum.running_ns / (double)sum.enabled_ns;
	return v;
}

static double cpus_used(const struct stat_session *s, const struct stat_run *run,
			const struct counting *c)
{
	size_t clock = stat_metric_find(s, "task-clock");
	double cpu_ns = clock == NONE ? NAN : run->values[clock];

	if (isnan(cpu_ns))
		cpu_ns = c->usage.user_ns + c->usage.sys_ns;
	return c->wall_ns ? cpu_ns / (double)c->wall_ns : NAN;
}

static const char *usage_reason(const struct stat_session *s, const struct stat_metric *m,
				const struct task_usage *u)
{
	const struct target *t = &s->target;
	bool is_switches = m->offset == USAGE(voluntary) || m->offset == USAGE(involuntary) ||
			   m->offset == USAGE(run_delay_ns);

	if (t->all)
		return "not accounted by CPU, only by task";
	if (t->cpus.n)
		return "accounted on all CPUs together, not on those of -C";
	if (t->cgroup_fd >= 0)
		return "not accounted for a cgroup";
	if (is_switches && !isnan(u->user_ns))
		return "not known of threads and children that ended";
	return "the target has ended, or its /proc files may not be read";
}

static double metric_value(struct stat_session *s, struct stat_metric *m,
			   const struct stat_run *run, const struct counting *c,
			   const char **ret_why)
{
	switch (m->source) {
	case FROM_WALL:
		return (double)c->wall_ns;
	case FROM_USAGE:
		*ret_why = usage_reason(s, m, &c->usage);
		return usage_of(m, &c->usage);
	case FROM_EVENT:
		return event_value(s, m, c, ret_why);
	case FROM_CPUS:
		*ret_why = "no CPU time is known";
		return cpus_used(s, run, c);
	default:
		*ret_why = "no line of CMD's output has it";
		return s->line_values[m - s->metrics.v];
	}
}

static int set_reason(struct stat_metric *m, const char *why)
{
	free(m->reason);
	m->reason = why ? strdup(why) : NULL;
	return why && !m->reason ? -ENOMEM : 0;
}

static int divide(struct stat_session *s, struct stat_run *run)
{
	size_t by = s->v->per ? stat_metric_find(s, s->v->per) : NONE;
	double divisor = by == NONE ? 1 : run->values[by];
	int err = 0;

	for (size_t i = 0; i < s->metrics.n && by != NONE && !err; i++) {
		struct stat_metric *m = &s->metrics.v[i];

		if (m->undivided || i == by || isnan(run->values[i]))
			continue;
		run->values[i] = divisor > 0 ? run->values[i] / divisor : NAN;
		if (!(divisor > 0))
			err = set_reason(m, "what it is divided by is not known, or 0");
	}
	return err;
}

int stat_metrics_take(struct stat_session *s, const struct counting *c, struct stat_run *run)
{
	int err = 0;

	run->values = calloc(s->metrics.n, sizeof(*run->values));
	if (!run->values)
		return -ENOMEM;
	for (size_t i = 0; i < s->metrics.n && !err; i++) {
		struct stat_metric *m = &s->metrics.v[i];
		const char *why = NULL;
		double v = metric_value(s, m, run, c, &why);

		run->values[i] = v;
		err = set_reason(m, isnan(v) ? why : NULL);
		if (!err && m->source == FROM_EVENT && !m->event_name)
			err = -ENOMEM;
	}
	return err ? err : divide(s, run);
}

int stat_metric_series(const struct stat_session *s, size_t metric, unsigned side,
		       struct series *ret)
{
	double *v = malloc((s->runs.n + 1) * sizeof(*v));
	size_t n = 0;

	if (!v)
		return -ENOMEM;
	for (size_t i = 0; i < s->runs.n; i++) {
		const struct stat_run *run = &s->runs.v[i];

		if (run->judged && run->side == side && !isnan(run->values[metric]))
			v[n++] = run->values[metric];
	}
	*ret = (struct series){v, n};
	return 0;
}
