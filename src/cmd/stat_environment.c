/* SPDX-License-Identifier: BSD-2-Clause */
/* The machine in the report, and what made it noisy. */
#include "stat.h"

static struct cell text_or_null(struct result *r, const char *text, const char *reason)
{
	return *text ? cell_text(r, text) : cell_null(r, reason);
}

static void note_noise(const struct stat_session *s, const struct noise *n, struct result *r)
{
	if (n->load_per_cpu > NOISE_LOAD_PER_CPU)
		result_note(r,
			    "noisy machine: load %.2f on %u CPUs at the start, so others ran too",
			    s->start.load_1m, s->host.cpus_online);
	if (n->steal_percent > NOISE_STEAL_PERCENT)
		result_note(r, "noisy machine: the hypervisor took %.1f %% of the CPU time (steal)",
			    n->steal_percent);
	if (n->freq_percent > NOISE_FREQ_PERCENT)
		result_note(r, "noisy machine: the CPU frequency changed by %.0f %% meanwhile",
			    n->freq_percent);
	else if (s->start.governor[0] && !str_eq(s->start.governor, "performance") &&
		 (s->runs.n > 1 || stat_is_gate(s->v)))
		result_note(r, "the CPU frequency is governed by '%s' and may change between runs",
			    s->start.governor);
}

void stat_environment_facts(const struct stat_session *s, struct result *r)
{
	const struct environment *e = &s->start;
	struct noise n;

	environment_noise(&s->start, &s->end, s->host.cpus_online, &n);
	result_fact(r, "environment_cpu", "", text_or_null(r, e->cpu, "not in /proc/cpuinfo"));
	result_fact(r, "environment_cpus", "", cell_u64(CELL_COUNT, s->host.cpus_online));
	result_fact(r, "environment_kernel", "",
		    text_or_null(r, s->host.kernel_release, "unknown"));
	result_fact(r, "environment_machine", "", text_or_null(r, s->host.machine, "unknown"));
	result_fact(r, "environment_virtual_machine", "", cell_bool(s->host.virtual_machine));
	result_fact(r, "environment_container", "",
		    text_or_null(r, s->host.container, "none recognised"));
	result_fact(r, "environment_governor", "",
		    text_or_null(r, e->governor, "no frequency control here"));
	result_fact(r, "environment_smt", "",
		    e->smt < 0 ? cell_null(r, "unknown") : cell_bool(e->smt == 1));
	result_fact(r, "environment_load_1m", "",
		    e->load_1m < 0 ? cell_null(r, "unknown")
				   : cell_double(CELL_NUMBER, e->load_1m));
	result_fact(r, "environment_steal_percent", "", cell_double(CELL_PERCENT, n.steal_percent));
	result_fact(r, "environment_frequency_change_percent", "",
		    e->freq_khz > 0 ? cell_double(CELL_PERCENT, n.freq_percent)
				    : cell_null(r, "no frequency control here"));
	result_fact(r, "environment_levels", "", cell_text(r, stat_levels(s)));
	result_fact(r, "environment_per", "", cell_text(r, s->v->per ? s->v->per : "run"));
	result_fact(r, "noisy", "",
		    cell_bool(n.load_per_cpu > NOISE_LOAD_PER_CPU ||
			      n.steal_percent > NOISE_STEAL_PERCENT ||
			      n.freq_percent > NOISE_FREQ_PERCENT));
	note_noise(s, &n, r);
}
