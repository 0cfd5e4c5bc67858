/* SPDX-License-Identifier: BSD-2-Clause */
/* What follows from the metrics: ratios and rates, of medians. */
#include "stat.h"

#include <math.h>

bool stat_is_metric(const char *metric, const char *name)
{
	size_t n = strlen(name);

	/* On CPUs with two kinds of cores, the larger ones. */
	if (str_starts(metric, "cpu_core/") && str_starts(name, "cpu/"))
		return str_eq(strchr(metric, '/'), strchr(name, '/'));
	return str_eq(metric, name) ||
	       (strncmp(metric, name, n) == 0 && metric[n] == ':' &&
		strspn(metric + n + 1, "ukhGHpP") == strlen(metric + n + 1));
}

/* The first that is it: "cycles", or by -e "cycles:u". */
static double median_of(const struct stat_numbers *n, const char *name)
{
	const struct saved_metric *m = NULL;

	for (size_t i = 0; i < n->stat->metrics.n && !m; i++)
		if (stat_is_metric(n->stat->metrics.v[i].name, name))
			m = &n->stat->metrics.v[i];
	return m && m->runs.n ? series_median((struct series){m->runs.v, m->runs.n}) : NAN;
}

/* `factor` × the sum of up to two metrics by the sum of up to four. */
static const struct {
	const char *name;
	double factor;
	const char *above[2], *below[4];
} ratios[] = {
	{"ipc", 1, {"instructions"}, {"cycles"}},
	{"cache-miss-percent", 100, {"cache-misses"}, {"cache-references"}},
	{"cache-references-per-kinst", 1000, {"cache-references"}, {"instructions"}},
	{"branch-miss-percent", 100, {"branch-misses"}, {"branches"}},
	{"dtlb-misses-per-kinst", 1000, {"dTLB-load-misses"}, {"instructions"}},
	{"llc-misses-per-kinst", 1000, {"LLC-load-misses"}, {"instructions"}},
	{"frontend-stall-percent", 100, {"stalled-cycles-frontend"}, {"cycles"}},
	{"backend-stall-percent", 100, {"stalled-cycles-backend"}, {"cycles"}},
	{"sys-percent", 100, {"sys"}, {"user", "sys"}},
	{"cpu-ghz", 1, {"cycles"}, {"task-clock"}},
	{"cpus-per-thread", 1, {"cpus-used"}, {"threads"}},
	{"involuntary-per-cpu-second", 1e9, {"involuntary-switches"}, {"task-clock"}},
	{"faults-per-cpu-second", 1e9, {"page-faults"}, {"task-clock"}},
	{"major-faults-per-second", 1e9, {"major-faults"}, {"wall"}},
	{"disk-mb-per-second", 1e3, {"disk-read", "disk-written"}, {"wall"}},
	{"cpu-seconds", 1e-9, {"task-clock"}, {NULL}},
	{"wall-seconds", 1e-9, {"wall"}, {NULL}},
};

#define TOPDOWN_BELOW                                                                              \
	{                                                                                          \
		"cpu/topdown-retiring/", "cpu/topdown-bad-spec/", "cpu/topdown-fe-bound/",         \
			"cpu/topdown-be-bound/"                                                    \
	}
static const struct {
	const char *name, *above, *below[4];
} topdown[] = {
	{"topdown-retiring-percent", "cpu/topdown-retiring/", TOPDOWN_BELOW},
	{"topdown-bad-speculation-percent", "cpu/topdown-bad-spec/", TOPDOWN_BELOW},
	{"topdown-frontend-percent", "cpu/topdown-fe-bound/", TOPDOWN_BELOW},
	{"topdown-backend-percent", "cpu/topdown-be-bound/", TOPDOWN_BELOW},
};

static double sum_of(const struct stat_numbers *n, const char *const *names, size_t max)
{
	double sum = 0;

	for (size_t i = 0; i < max && names[i]; i++)
		sum += median_of(n, names[i]);
	return sum;
}

static double ratio_of(double factor, double above, double below)
{
	return below > 0 ? factor * above / below : NAN;
}

/* Without any switch at all nothing pushed it off. */
static double involuntary_share(const struct stat_numbers *n)
{
	double pushed = median_of(n, "involuntary-switches");
	double all = pushed + median_of(n, "voluntary-switches");

	return all > 0 ? 100 * pushed / all : isnan(all) ? NAN : 0;
}

/*
 * The time on a CPU and that waiting for one: what is below it waits for something else. Where the
 * delay is not known, as of threads and children that have ended, it may be long when most switches
 * were involuntary. Where nothing is known of the tasks, as with -C, neither is this.
 */
static double cpus_wanted_per_thread(const struct stat_numbers *n)
{
	/* Sharing a CPU with four others is taken for the worst. */
	static const double delay_by_cpu_time_max = 4;
	double cpu_ns = median_of(n, "task-clock");
	double delay = ratio_of(1, median_of(n, "run-delay"), cpu_ns);

	if (isnan(delay) && isnan(median_of(n, "user")))
		return NAN;
	if (isnan(delay))
		delay = involuntary_share(n) >= 50 ? delay_by_cpu_time_max : 0;
	return (1 + delay) * ratio_of(1, median_of(n, "cpus-used"), median_of(n, "threads"));
}

double stat_number(void *ctx, const char *name)
{
	const struct stat_numbers *n = ctx;

	if (str_eq(name, "involuntary-share-percent"))
		return involuntary_share(n);
	if (str_eq(name, "cpus-wanted-per-thread"))
		return cpus_wanted_per_thread(n);
	for (size_t i = 0; i < ARRAY_SIZE(ratios); i++) {
		double above, below;

		if (!str_eq(ratios[i].name, name))
			continue;
		above = sum_of(n, ratios[i].above, ARRAY_SIZE(ratios[i].above));
		below = sum_of(n, ratios[i].below, ARRAY_SIZE(ratios[i].below));
		return ratio_of(ratios[i].factor, above, ratios[i].below[0] ? below : 1);
	}
	for (size_t i = 0; i < ARRAY_SIZE(topdown); i++)
		if (str_eq(topdown[i].name, name))
			return ratio_of(100, median_of(n, topdown[i].above),
					sum_of(n, topdown[i].below, ARRAY_SIZE(topdown[i].below)));
	return median_of(n, name);
}

const struct stat_derived stat_derived[] = {
	{"sys-percent", "%.1f %% of the CPU time", UNIT_PERCENT, "sys"},
	{"cpus-per-thread", "%.2f for each thread", UNIT_NUMBER, "cpus-used"},
	{"cpu-ghz", "%.2f GHz", UNIT_NUMBER, "cycles"},
	{"ipc", "%.2f for each cycle", UNIT_NUMBER, "instructions"},
	{"cache-miss-percent", "%.1f %% of references", UNIT_PERCENT, "cache-misses"},
	{"branch-miss-percent", "%.2f %% of branches", UNIT_PERCENT, "branch-misses"},
	{"dtlb-misses-per-kinst", "%.2f in 1000 instructions", UNIT_NUMBER, "dTLB-load-misses"},
	{"llc-misses-per-kinst", "%.2f in 1000 instructions", UNIT_NUMBER, "LLC-load-misses"},
	{"frontend-stall-percent", "%.1f %% of cycles", UNIT_PERCENT, "stalled-cycles-frontend"},
	{"backend-stall-percent", "%.1f %% of cycles", UNIT_PERCENT, "stalled-cycles-backend"},
	{"topdown-retiring-percent", "%.1f %% of slots", UNIT_PERCENT, "cpu/topdown-retiring/"},
	{"topdown-bad-speculation-percent", "%.1f %% of slots", UNIT_PERCENT,
	 "cpu/topdown-bad-spec/"},
	{"topdown-frontend-percent", "%.1f %% of slots", UNIT_PERCENT, "cpu/topdown-fe-bound/"},
	{"topdown-backend-percent", "%.1f %% of slots", UNIT_PERCENT, "cpu/topdown-be-bound/"},
	{"involuntary-per-cpu-second", "%.0f for each second of CPU", UNIT_NUMBER,
	 "involuntary-switches"},
	{"involuntary-share-percent", "%.0f %% of switches", UNIT_PERCENT, "involuntary-switches"},
	{"faults-per-cpu-second", "%.0f for each second of CPU", UNIT_NUMBER, "page-faults"},
	{"disk-mb-per-second", "%.1f MB/s with disk-read", UNIT_NUMBER, "disk-written"},
};
const size_t n_stat_derived = ARRAY_SIZE(stat_derived);
