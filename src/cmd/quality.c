/* SPDX-License-Identifier: BSD-2-Clause */
#include "quality.h"

#include <inspect/clock.h>
#include <inspect/strbuf.h>
#include <inspect/term.h>
#include <inspect/unwind.h>

enum { UNKNOWN_SHOWN = 3, EVENTS_SHOWN = 3 };

static double percent(uint64_t part, uint64_t whole)
{
	return whole ? 100.0 * (double)part / (double)whole : 0;
}

static void samples_line(struct result *r, const struct profile *p)
{
	const struct losses *l = &p->losses;
	CLEANUP(strbuf_release) struct strbuf b = {0};
	char time[32];

	strbuf_printf(&b, "%llu", (unsigned long long)l->samples);
	if (p->duration_ns)
		strbuf_printf(&b, " in %s", duration_format(p->duration_ns, time, sizeof(time)));
	for (size_t i = 0; i < MIN(p->events.n, (size_t)EVENTS_SHOWN); i++) {
		const struct profile_event *e = &p->events.v[i];

		strbuf_printf(&b, "%s%s", i ? ", " : " of ", e->name);
		if (e->freq_hz)
			strbuf_printf(&b, " at %llu Hz", (unsigned long long)e->freq_hz);
		else if (e->period > 1)
			strbuf_printf(&b, " every %llu", (unsigned long long)e->period);
	}
	if (p->events.n > EVENTS_SHOWN)
		strbuf_printf(&b, " and %zu more", p->events.n - EVENTS_SHOWN);
	result_fact(r, "", "samples", cell_text(r, strbuf_str(&b)));
}

/* Waits and calls that were added up: their losses are of several kinds. */
static bool is_added_up(const struct profile *p)
{
	return p->events.n && !p->events.v[0].is_time && str_eq(p->events.v[0].unit, "ns");
}

static void lost_line(struct result *r, const struct profile *p)
{
	const struct losses *l = &p->losses;
	CLEANUP(strbuf_release) struct strbuf b = {0};

	strbuf_printf(&b, "%llu", (unsigned long long)l->lost);
	if (l->lost && is_added_up(p)) {
		strbuf_puts(&b, ": the notes say of what");
		result_fact(r, "", "lost", cell_text(r, strbuf_str(&b)));
		return;
	}
	if (l->lost)
		strbuf_printf(&b, " (%.1f %% of what there was",
			      percent(l->lost, l->lost + l->samples));
	for (size_t cpu = 0; cpu < l->lost_by_cpu.n; cpu++)
		if (l->lost_by_cpu.v[cpu])
			strbuf_printf(&b, ", CPU %zu: %llu", cpu,
				      (unsigned long long)l->lost_by_cpu.v[cpu]);
	if (l->lost)
		strbuf_puts(&b, "); a larger ring helps: record -m PAGES");
	result_fact(r, "", "lost", cell_text(r, strbuf_str(&b)));
}

/* Why stacks are cut, most frequent first. */
static void truncated_reasons(struct strbuf *b, const struct losses *l)
{
	uint64_t known = 0;
	bool told[UNWIND_STOPS] = {0};

	for (;;) {
		size_t most = 0;

		for (size_t i = 1; i < UNWIND_STOPS; i++)
			if (!told[i] && l->truncated_by[i] > (most ? l->truncated_by[most] : 0))
				most = i;
		if (!most)
			break;
		told[most] = true;
		strbuf_printf(b, "%s%llu %s", known ? ", " : ": ",
			      (unsigned long long)l->truncated_by[most],
			      unwind_stop_text((enum unwind_stop)most));
		known += l->truncated_by[most];
	}
	if (known && l->truncated > known)
		strbuf_printf(b, ", %llu with no entry point at their root",
			      (unsigned long long)(l->truncated - known));
}

static void stacks_line(struct result *r, const struct profile *p)
{
	const struct losses *l = &p->losses;
	const struct {
		const char *what;
		uint64_t n;
	} rest[] = {
		{"with a frame guessed by frame pointer", l->guessed},
		{"without a stack", l->without_stack},
		{"throttled", l->throttled},
		{"late records", l->late},
		{"damaged records", l->damaged},
		{"left out by filters", l->filtered},
	};
	CLEANUP(strbuf_release) struct strbuf b = {0};

	if (p->no_stacks) {
		strbuf_puts(&b, "none were recorded (record -g)");
	} else {
		strbuf_printf(&b, "%llu truncated (%.1f %%", (unsigned long long)l->truncated,
			      percent(l->truncated, l->samples));
		truncated_reasons(&b, l);
		strbuf_puts(&b, ")");
	}
	for (size_t i = 0; i < ARRAY_SIZE(rest); i++)
		if (rest[i].n)
			strbuf_printf(&b, ", %llu %s", (unsigned long long)rest[i].n, rest[i].what);
	result_fact(r, "", "stacks", cell_text(r, strbuf_str(&b)));
}

static const struct column unknown_columns[] = {
	{"module", "module", CELL_TEXT, COLUMN_DATA_ONLY},
	{"samples", "samples", CELL_COUNT, COLUMN_DATA_ONLY},
};

static void unknown_line(struct result *r, const struct profile *p)
{
	CLEANUP(strbuf_release) struct strbuf b = {0};
	unknown_modules list = {0};
	size_t section;

	if (profile_unknown(p, &list)) {
		r->failed = true;
		return;
	}
	section = result_section(r, "unknown_by_module", "", unknown_columns,
				 ARRAY_SIZE(unknown_columns));
	for (size_t i = 0; i < list.n; i++) {
		const char *module = intern_str(&p->strings, list.v[i].module);

		result_row(r, section,
			   (const struct cell[]){cell_text(r, module),
						 cell_u64(CELL_COUNT, list.v[i].count)});
		if (i >= UNKNOWN_SHOWN)
			continue;
		strbuf_printf(&b, "%s%.1f %% in ", i ? ", " : "",
			      percent(list.v[i].count, p->losses.samples));
		strbuf_puts(&b, *module ? module : "no module");
	}
	if (list.n > UNKNOWN_SHOWN)
		strbuf_printf(&b, ", and %zu more", list.n - UNKNOWN_SHOWN);
	if (list.n)
		result_fact(r, "", "without a name", cell_text(r, strbuf_str(&b)));
	array_release(&list);
}

static const struct column truncated_columns[] = {
	{"reason", "reason", CELL_TEXT, COLUMN_DATA_ONLY},
	{"samples", "samples", CELL_COUNT, COLUMN_DATA_ONLY},
};

static void truncated_data(struct result *r, const struct losses *l)
{
	size_t section = result_section(r, "truncated_by_reason", "", truncated_columns,
					ARRAY_SIZE(truncated_columns));

	for (size_t i = 0; i < UNWIND_STOPS; i++)
		if (l->truncated_by[i])
			result_row(r, section,
				   (const struct cell[]){
					   cell_text(r, unwind_stop_text((enum unwind_stop)i)),
					   cell_u64(CELL_COUNT, l->truncated_by[i])});
}

static const struct column lost_columns[] = {
	{"cpu", "cpu", CELL_COUNT, COLUMN_DATA_ONLY},
	{"lost", "lost", CELL_COUNT, COLUMN_DATA_ONLY},
};

static void data(struct result *r, const struct profile *p)
{
	const struct losses *l = &p->losses;
	const struct {
		const char *key;
		uint64_t n;
	} counts[] = {
		{"samples", l->samples},        {"lost", l->lost},
		{"throttled", l->throttled},    {"truncated", l->truncated},
		{"guessed_frames", l->guessed}, {"without_stack", l->without_stack},
		{"late_records", l->late},      {"damaged_records", l->damaged},
		{"filtered", l->filtered},
	};
	size_t section;

	for (size_t i = 0; i < ARRAY_SIZE(counts); i++)
		result_fact(r, counts[i].key, "", cell_u64(CELL_COUNT, counts[i].n));
	result_fact(r, "duration_ns", "",
		    p->duration_ns ? cell_u64(CELL_NS, p->duration_ns)
				   : cell_null(r, "the input does not say how long it took"));
	result_fact(r, "own_cpu_ns", "",
		    p->own_cpu_ns ? cell_u64(CELL_NS, p->own_cpu_ns)
				  : cell_null(r, "the recorder did not say what it cost"));
	truncated_data(r, l);
	if (p->naming_cpu_ns)
		result_fact(r, "naming_cpu_ns", "", cell_u64(CELL_NS, p->naming_cpu_ns));
	section = result_section(r, "lost_by_cpu", "", lost_columns, ARRAY_SIZE(lost_columns));
	for (size_t cpu = 0; cpu < l->lost_by_cpu.n; cpu++)
		result_row(r, section,
			   (const struct cell[]){cell_u64(CELL_COUNT, cpu),
						 cell_u64(CELL_COUNT, l->lost_by_cpu.v[cpu])});
}

static void cost_line(struct result *r, const struct profile *p)
{
	char own[32], naming[32];

	if (!p->own_cpu_ns || !p->duration_ns)
		return;
	result_fact(
		r, "", "cost",
		cell_text(r,
			  result_text(r,
				      "%s of CPU while measuring (%.2f %% of a CPU), then %s "
				      "to look up names",
				      duration_format(p->own_cpu_ns, own, sizeof(own)),
				      percent(p->own_cpu_ns, p->duration_ns),
				      duration_format(p->naming_cpu_ns, naming, sizeof(naming)))));
}

void quality_facts(struct result *r, const struct profile *p)
{
	samples_line(r, p);
	lost_line(r, p);
	stacks_line(r, p);
	unknown_line(r, p);
	cost_line(r, p);
	data(r, p);
}
