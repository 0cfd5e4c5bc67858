/* SPDX-License-Identifier: BSD-2-Clause */
#include <inspect/event.h>

/* The names are perf's (tools/perf/util/parse-events.c, evsel.c), indexed by attr.config. */
static const char *const hardware_names[] = {
	[PERF_COUNT_HW_CPU_CYCLES] = "cycles",
	[PERF_COUNT_HW_INSTRUCTIONS] = "instructions",
	[PERF_COUNT_HW_CACHE_REFERENCES] = "cache-references",
	[PERF_COUNT_HW_CACHE_MISSES] = "cache-misses",
	[PERF_COUNT_HW_BRANCH_INSTRUCTIONS] = "branches",
	[PERF_COUNT_HW_BRANCH_MISSES] = "branch-misses",
	[PERF_COUNT_HW_BUS_CYCLES] = "bus-cycles",
	[PERF_COUNT_HW_STALLED_CYCLES_FRONTEND] = "stalled-cycles-frontend",
	[PERF_COUNT_HW_STALLED_CYCLES_BACKEND] = "stalled-cycles-backend",
	[PERF_COUNT_HW_REF_CPU_CYCLES] = "ref-cycles",
};

static const char *const software_names[] = {
	[PERF_COUNT_SW_CPU_CLOCK] = "cpu-clock",
	[PERF_COUNT_SW_TASK_CLOCK] = "task-clock",
	[PERF_COUNT_SW_PAGE_FAULTS] = "page-faults",
	[PERF_COUNT_SW_CONTEXT_SWITCHES] = "context-switches",
	[PERF_COUNT_SW_CPU_MIGRATIONS] = "cpu-migrations",
	[PERF_COUNT_SW_PAGE_FAULTS_MIN] = "minor-faults",
	[PERF_COUNT_SW_PAGE_FAULTS_MAJ] = "major-faults",
	[PERF_COUNT_SW_ALIGNMENT_FAULTS] = "alignment-faults",
	[PERF_COUNT_SW_EMULATION_FAULTS] = "emulation-faults",
	[PERF_COUNT_SW_DUMMY] = "dummy",
	[PERF_COUNT_SW_BPF_OUTPUT] = "bpf-output",
	[PERF_COUNT_SW_CGROUP_SWITCHES] = "cgroup-switches",
};

static const char *const cache_names[] = {"L1-dcache", "L1-icache", "LLC", "dTLB",
					  "iTLB",      "branch",    "node"};
/* By operation, then by result (access, miss). */
static const char *const cache_suffixes[][2] = {
	{"loads", "load-misses"}, {"stores", "store-misses"}, {"prefetches", "prefetch-misses"}};

void event_table_release(struct event_table *t)
{
	for (size_t i = 0; i < t->events.n; i++) {
		free(t->events.v[i].name);
		array_release(&t->events.v[i].ids);
	}
	array_release(&t->events);
	hashmap_release(&t->by_id);
	array_release(&t->id_owner);
	array_release(&t->id_value);
	*t = (struct event_table){0};
}

/* Words before the id in a sample's body: identifier first, else ip, tid, time, addr, id. */
static int sample_id_word(uint64_t sample_type)
{
	static const uint64_t before =
		PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_ADDR;

	if (sample_type & PERF_SAMPLE_IDENTIFIER)
		return 0;
	return sample_type & PERF_SAMPLE_ID ? __builtin_popcountll(sample_type & before) : -1;
}

/* The id's word counted back from the end of a trailer (1 is the last). */
static int trailer_id_word(uint64_t sample_type)
{
	static const uint64_t after = PERF_SAMPLE_CPU | PERF_SAMPLE_STREAM_ID;

	if (sample_type & PERF_SAMPLE_IDENTIFIER)
		return 1;
	return sample_type & PERF_SAMPLE_ID ? 1 + __builtin_popcountll(sample_type & after) : -1;
}

int event_table_add(struct event_table *t, const struct perf_event_attr *attr, const char *name)
{
	struct event_desc e = {.attr = *attr};
	char buf[64];
	int sample_word = sample_id_word(attr->sample_type);
	int trailer_word = trailer_id_word(attr->sample_type);
	int err;

	e.name = strdup(name ? name : event_attr_name(attr, buf, sizeof(buf)));
	if (!e.name)
		return -ENOMEM;
	err = array_push(&t->events, e);
	if (err) {
		free(e.name);
		return err;
	}
	if (t->events.n == 1) {
		t->sample_id_word = sample_word;
		t->trailer_id_word = trailer_word;
	}
	if (sample_word != t->sample_id_word)
		t->sample_id_word = -1;
	if (trailer_word != t->trailer_id_word)
		t->trailer_id_word = -1;
	return 0;
}

int event_table_add_id(struct event_table *t, uint32_t event, uint64_t id)
{
	int err;

	if (event >= t->events.n)
		return -EINVAL;
	if (event_table_find_id(t, id) >= 0)
		return 0;
	err = array_reserve(&t->events.v[event].ids, t->events.v[event].ids.n + 1);
	if (!err)
		err = array_reserve(&t->id_owner, t->id_owner.n + 1);
	if (!err)
		err = array_reserve(&t->id_value, t->id_value.n + 1);
	if (!err)
		err = hashmap_insert(&t->by_id, hash_u64(id), (uint32_t)t->id_value.n);
	if (err)
		return err;
	t->events.v[event].ids.v[t->events.v[event].ids.n++] = id;
	t->id_owner.v[t->id_owner.n++] = event;
	t->id_value.v[t->id_value.n++] = id;
	return 0;
}

int event_table_rename(struct event_table *t, uint32_t event, const char *name)
{
	char *copy;

	if (event >= t->events.n)
		return -EINVAL;
	copy = strdup(name);
	if (!copy)
		return -ENOMEM;
	free(t->events.v[event].name);
	t->events.v[event].name = copy;
	return 0;
}

int event_table_find_id(const struct event_table *t, uint64_t id)
{
	uint32_t at, i;

	hashmap_each_candidate(&t->by_id, hash_u64(id), at, i)
		if (t->id_value.v[i] == id)
			return (int)t->id_owner.v[i];
	return -ENOENT;
}

/* The generic name of a hardware or software event, or NULL. On hybrid CPUs the upper half of a
 * hardware config is the PMU's number. */
static const char *generic_name(const struct perf_event_attr *attr)
{
	uint64_t hardware = attr->config & UINT32_MAX;

	if (attr->type == PERF_TYPE_HARDWARE && hardware < ARRAY_SIZE(hardware_names))
		return hardware_names[hardware];
	if (attr->type == PERF_TYPE_SOFTWARE && attr->config < ARRAY_SIZE(software_names))
		return software_names[attr->config];
	return NULL;
}

const char *event_attr_name(const struct perf_event_attr *attr, char *buf, size_t size)
{
	unsigned long long config = attr->config;
	unsigned cache = config & 0xff, op = config >> 8 & 0xff, result = config >> 16 & 0xff;
	const char *name = generic_name(attr);

	if (name)
		snprintf(buf, size, "%s", name);
	else if (attr->type == PERF_TYPE_HW_CACHE && cache < ARRAY_SIZE(cache_names) &&
		 op < ARRAY_SIZE(cache_suffixes) && result < 2)
		snprintf(buf, size, "%s-%s", cache_names[cache], cache_suffixes[op][result]);
	else if (attr->type == PERF_TYPE_RAW)
		snprintf(buf, size, "raw 0x%llx", config);
	else if (attr->type == PERF_TYPE_TRACEPOINT)
		snprintf(buf, size, "tracepoint %llu", config);
	else if (attr->type == PERF_TYPE_BREAKPOINT)
		snprintf(buf, size, "mem:0x%llx", (unsigned long long)attr->bp_addr);
	else
		snprintf(buf, size, "type %u config 0x%llx", attr->type, config);
	return buf;
}

bool event_is_clock(const struct perf_event_attr *attr)
{
	return attr->type == PERF_TYPE_SOFTWARE && (attr->config == PERF_COUNT_SW_CPU_CLOCK ||
						    attr->config == PERF_COUNT_SW_TASK_CLOCK);
}

const char *event_unit(const struct event_desc *e)
{
	const struct perf_event_attr *attr = &e->attr;
	const char *name = generic_name(attr);

	if (event_is_clock(attr))
		return "ns";
	/* Time that threads waited: ours, and that of perf record --off-cpu. */
	if (attr->type == PERF_TYPE_SOFTWARE && attr->config == PERF_COUNT_SW_BPF_OUTPUT &&
	    (str_eq(e->name, OFFCPU_EVENT) || str_eq(e->name, WALL_EVENT) ||
	     str_eq(e->name, CALLS_EVENT) || str_eq(e->name, LOOPS_EVENT) ||
	     str_eq(e->name, PROBE_EVENT) || str_eq(e->name, GPU_EVENT) ||
	     str_eq(e->name, "offcpu-time")))
		return "ns";
	if (attr->type == PERF_TYPE_SOFTWARE &&
	    (attr->config == PERF_COUNT_SW_DUMMY || attr->config == PERF_COUNT_SW_BPF_OUTPUT))
		return "count";
	if (name)
		return name;
	return attr->type == PERF_TYPE_HW_CACHE ? e->name : "count";
}
