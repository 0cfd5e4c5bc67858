/* SPDX-License-Identifier: BSD-2-Clause */
#include "quality_gate.h"

#include <inspect/command.h>

static uint64_t lost(const struct profile *p)
{
	return p->losses.lost;
}

static uint64_t truncated(const struct profile *p)
{
	return p->losses.truncated;
}

static uint64_t without_stack(const struct profile *p)
{
	return p->losses.without_stack;
}

static uint64_t throttled(const struct profile *p)
{
	return p->losses.throttled;
}

static uint64_t unknown(const struct profile *p)
{
	unknown_modules list = {0};
	uint64_t n = 0;

	if (profile_unknown(p, &list))
		return UINT64_MAX;
	for (size_t i = 0; i < list.n; i++)
		n += list.v[i].count;
	array_release(&list);
	return n;
}

static const struct {
	const char *name;
	uint64_t (*count)(const struct profile *p);
} metrics[] = {
	{"lost", lost},       {"truncated", truncated}, {"without-stack", without_stack},
	{"unknown", unknown}, {"throttled", throttled},
};

static int parse_limit(struct quality_gate *g, const char **at)
{
	for (unsigned i = 0; i < ARRAY_SIZE(metrics); i++) {
		size_t n = strlen(metrics[i].name);
		char *end;
		double limit;

		if (strncmp(*at, metrics[i].name, n) != 0 || (*at)[n] != '>')
			continue;
		limit = strtod(*at + n + 1, &end);
		if (end == *at + n + 1 || !(limit >= 0) || g->n == ARRAY_SIZE(g->v))
			return -EINVAL;
		g->v[g->n].metric = i;
		g->v[g->n].limit = limit;
		g->v[g->n++].percent = *end == '%';
		*at = end + (*end == '%');
		return 0;
	}
	return -EINVAL;
}

static int parse(void *value, const char *arg, struct diag *d)
{
	struct quality_gate *g = value;
	const char *at = arg;

	do {
		if (parse_limit(g, &at) || (*at && *at != ',')) {
			diag_set(d, -EINVAL, "not limits such as lost>1%%,unknown>100");
			diag_why(d,
				 "they are on lost, truncated, without-stack, unknown, throttled");
			return -EINVAL;
		}
	} while (*at++);
	return 0;
}

int quality_gate_check(const struct quality_gate *g, const struct profile *p, struct diag *d)
{
	uint64_t all = p->losses.samples + p->losses.lost;

	for (size_t i = 0; i < g->n; i++) {
		const char *name = metrics[g->v[i].metric].name;
		uint64_t n = metrics[g->v[i].metric].count(p);
		double share = all ? 100.0 * (double)n / (double)all : 0;

		if ((g->v[i].percent ? share : (double)n) <= g->v[i].limit)
			continue;
		diag_set(d, -ERANGE, "--fail-if: %s is %llu of %llu samples (%.2f %%), above %g%s",
			 name, (unsigned long long)n, (unsigned long long)all, share, g->v[i].limit,
			 g->v[i].percent ? " %" : "");
		return EXIT_GATE;
	}
	return 0;
}

static const struct option options[] = {
	{.name = "fail-if",
	 .arg = "LIMITS",
	 .type = OPTION_CUSTOM,
	 .help = "exit code 3 above a limit: 'lost>1%,truncated>5%,unknown>100'",
	 .parse = parse},
	{0},
};
const struct option_group quality_option_group = {"Quality", options};
