/* SPDX-License-Identifier: BSD-2-Clause */
/* The spellings are those of tools/perf/util/parse-events.c and evsel.c (evsel__hw_cache). */
#include "event_names.h"

#include <ctype.h>

struct generic_event {
	const char *name, *alias;
	uint32_t type;
	uint64_t config;
};

#define HW(id, ...)                                                                                \
	{                                                                                          \
		__VA_ARGS__, .type = PERF_TYPE_HARDWARE, .config = PERF_COUNT_HW_##id              \
	}
#define SW(id, ...)                                                                                \
	{                                                                                          \
		__VA_ARGS__, .type = PERF_TYPE_SOFTWARE, .config = PERF_COUNT_SW_##id              \
	}
static const struct generic_event generic_events[] = {
	HW(CPU_CYCLES, "cpu-cycles", "cycles"),
	HW(INSTRUCTIONS, "instructions"),
	HW(CACHE_REFERENCES, "cache-references"),
	HW(CACHE_MISSES, "cache-misses"),
	HW(BRANCH_INSTRUCTIONS, "branch-instructions", "branches"),
	HW(BRANCH_MISSES, "branch-misses"),
	HW(BUS_CYCLES, "bus-cycles"),
	HW(STALLED_CYCLES_FRONTEND, "stalled-cycles-frontend", "idle-cycles-frontend"),
	HW(STALLED_CYCLES_BACKEND, "stalled-cycles-backend", "idle-cycles-backend"),
	HW(REF_CPU_CYCLES, "ref-cycles"),
	SW(CPU_CLOCK, "cpu-clock"),
	SW(TASK_CLOCK, "task-clock"),
	SW(PAGE_FAULTS, "page-faults", "faults"),
	SW(CONTEXT_SWITCHES, "context-switches", "cs"),
	SW(CPU_MIGRATIONS, "cpu-migrations", "migrations"),
	SW(PAGE_FAULTS_MIN, "minor-faults"),
	SW(PAGE_FAULTS_MAJ, "major-faults"),
	SW(ALIGNMENT_FAULTS, "alignment-faults"),
	SW(EMULATION_FAULTS, "emulation-faults"),
	SW(DUMMY, "dummy"),
	SW(BPF_OUTPUT, "bpf-output"),
	SW(CGROUP_SWITCHES, "cgroup-switches"),
};
#undef HW
#undef SW

/* A cache event is TYPE[-OP][-RESULT]. The first spelling is perf's own, and of an op the second
 * is its plural, which stands alone ("LLC-loads"). */
struct word_set {
	const char *words[5];
};

static const struct word_set cache_types[PERF_COUNT_HW_CACHE_MAX] = {
	[PERF_COUNT_HW_CACHE_L1D] = {{"L1-dcache", "l1-d", "l1d", "L1-data"}},
	[PERF_COUNT_HW_CACHE_L1I] = {{"L1-icache", "l1-i", "l1i", "L1-instruction"}},
	[PERF_COUNT_HW_CACHE_LL] = {{"LLC", "L2"}},
	[PERF_COUNT_HW_CACHE_DTLB] = {{"dTLB", "d-tlb", "Data-TLB"}},
	[PERF_COUNT_HW_CACHE_ITLB] = {{"iTLB", "i-tlb", "Instruction-TLB"}},
	[PERF_COUNT_HW_CACHE_BPU] = {{"branch", "branches", "bpu", "btb", "bpc"}},
	[PERF_COUNT_HW_CACHE_NODE] = {{"node"}},
};

static const struct word_set cache_ops[PERF_COUNT_HW_CACHE_OP_MAX] = {
	[PERF_COUNT_HW_CACHE_OP_READ] = {{"load", "loads", "read"}},
	[PERF_COUNT_HW_CACHE_OP_WRITE] = {{"store", "stores", "write"}},
	[PERF_COUNT_HW_CACHE_OP_PREFETCH] = {{"prefetch", "prefetches", "speculative-read",
					      "speculative-load"}},
};

static const struct word_set cache_results[PERF_COUNT_HW_CACHE_RESULT_MAX] = {
	[PERF_COUNT_HW_CACHE_RESULT_ACCESS] = {{"refs", "Reference", "ops", "access"}},
	[PERF_COUNT_HW_CACHE_RESULT_MISS] = {{"misses", "miss"}},
};

/* Ops that exist for each type: bit OP. */
#define R (1U << PERF_COUNT_HW_CACHE_OP_READ)
#define W (1U << PERF_COUNT_HW_CACHE_OP_WRITE)
#define P (1U << PERF_COUNT_HW_CACHE_OP_PREFETCH)
static const unsigned cache_type_ops[PERF_COUNT_HW_CACHE_MAX] = {
	[PERF_COUNT_HW_CACHE_L1D] = R | W | P,  [PERF_COUNT_HW_CACHE_L1I] = R | P,
	[PERF_COUNT_HW_CACHE_LL] = R | W | P,   [PERF_COUNT_HW_CACHE_DTLB] = R | W | P,
	[PERF_COUNT_HW_CACHE_ITLB] = R,         [PERF_COUNT_HW_CACHE_BPU] = R,
	[PERF_COUNT_HW_CACHE_NODE] = R | W | P,
};
#undef R
#undef W
#undef P

/* The set with a word that the text is or begins with (before a '-'): its index, the longest word
 * winning, and the rest of the text; or -1. */
static int word_match(const struct word_set *sets, size_t n_sets, const char *text,
		      const char **ret_rest)
{
	size_t best_len = 0;
	int best = -1;

	for (size_t i = 0; i < n_sets; i++) {
		for (size_t j = 0; j < ARRAY_SIZE(sets[i].words) && sets[i].words[j]; j++) {
			const char *word = sets[i].words[j];
			size_t len = strlen(word);

			if (len <= best_len || strncasecmp(text, word, len) != 0)
				continue;
			if (text[len] && text[len] != '-')
				continue;
			best_len = len;
			best = (int)i;
		}
	}
	if (best >= 0)
		*ret_rest = text + best_len + (text[best_len] == '-');
	return best;
}

static int cache_event_find(const char *name, struct perf_event_attr *attr)
{
	const char *rest = name;
	int type = word_match(cache_types, ARRAY_SIZE(cache_types), name, &rest);
	int op = -1, result = -1;

	if (type < 0 || str_ends(name, "-"))
		return -ENOENT;
	for (int i = 0; i < 2 && *rest; i++) {
		int found = op < 0 ? word_match(cache_ops, ARRAY_SIZE(cache_ops), rest, &rest) : -1;

		if (found >= 0) {
			op = found;
			continue;
		}
		if (result < 0)
			result = word_match(cache_results, ARRAY_SIZE(cache_results), rest, &rest);
		if (result < 0)
			return -ENOENT;
	}
	if (op < 0)
		op = PERF_COUNT_HW_CACHE_OP_READ;
	if (result < 0)
		result = PERF_COUNT_HW_CACHE_RESULT_ACCESS;
	if (*rest || !(cache_type_ops[type] & 1U << op))
		return -ENOENT;
	attr->type = PERF_TYPE_HW_CACHE;
	attr->config = (uint64_t)type | (uint64_t)op << 8 | (uint64_t)result << 16;
	return 0;
}

static int raw_event_find(const char *name, struct perf_event_attr *attr)
{
	size_t digits = strspn(name + 1, "0123456789abcdefABCDEF");

	if (name[0] != 'r' || !digits || digits > 16 || name[1 + digits])
		return -ENOENT;
	attr->type = PERF_TYPE_RAW;
	attr->config = strtoull(name + 1, NULL, 16);
	return 0;
}

int event_name_find(const char *name, struct perf_event_attr *attr)
{
	for (size_t i = 0; i < ARRAY_SIZE(generic_events); i++) {
		const struct generic_event *e = &generic_events[i];

		if (!str_eq(name, e->name) && !(e->alias && str_eq(name, e->alias)))
			continue;
		attr->type = e->type;
		attr->config = e->config;
		return 0;
	}
	if (raw_event_find(name, attr) == 0)
		return 0;
	return cache_event_find(name, attr);
}

const char *event_name_canonical(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(generic_events); i++)
		if (generic_events[i].alias && str_eq(name, generic_events[i].alias))
			return generic_events[i].name;
	return name;
}

void event_names_near(struct near_misses *m)
{
	char name[NEAR_MISS_NAME_MAX];

	for (size_t i = 0; i < ARRAY_SIZE(generic_events); i++) {
		near_misses_add(m, generic_events[i].name);
		if (generic_events[i].alias)
			near_misses_add(m, generic_events[i].alias);
	}
	for (size_t type = 0; type < ARRAY_SIZE(cache_types); type++) {
		for (size_t op = 0; op < ARRAY_SIZE(cache_ops); op++) {
			const char *const *words = cache_ops[op].words;

			if (!(cache_type_ops[type] & 1U << op))
				continue;
			snprintf(name, sizeof(name), "%s-%s", cache_types[type].words[0], words[1]);
			near_misses_add(m, name);
			snprintf(name, sizeof(name), "%s-%s-misses", cache_types[type].words[0],
				 words[0]);
			near_misses_add(m, name);
		}
	}
}
