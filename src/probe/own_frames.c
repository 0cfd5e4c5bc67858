/* SPDX-License-Identifier: BSD-2-Clause */
#include "own_frames.h"

#include <inspect/array.h>
#include <stdio.h>

/* Programs lie above them: a few, one for each of our functions that is no part of another. */
enum { DEPTH_MAX = 8 };

void own_frames_find(struct own_frames *ret)
{
	/* bpf_trace_runN by the number of a tracepoint's arguments: those of the two. */
	static const char *const names[OWN_FRAME_RANGES] = {
		[OWN_FRAMES_SWITCH_ITERATOR] = "__traceiter_sched_switch",
		"__traceiter_sched_waking",
		"__bpf_trace_sched_switch",
		"__bpf_trace_sched_wakeup_template",
		"bpf_trace_run1",
		"bpf_trace_run3",
		"bpf_trace_run4",
	};
	CLEANUP(fclosep) FILE *file = fopen("/proc/kallsyms", "re");
	char line[512], symbol[128];
	int last = -1;

	*ret = (struct own_frames){0};
	while (file && fgets(line, sizeof(line), file)) {
		unsigned long long va;

		if (last < 0 && !strstr(line, "_trace"))
			continue;
		if (sscanf(line, "%llx %*c %127s", &va, symbol) != 2)
			continue;
		if (last >= 0)
			ret->v[last].to_va =
				va > ret->v[last].from_va ? va : ret->v[last].from_va + 1;
		last = -1;
		for (int i = 0; i < OWN_FRAME_RANGES && va; i++)
			if (names[i] && str_eq(symbol, names[i])) {
				ret->v[i].from_va = va;
				last = i;
			}
	}
}

static bool is_own(const struct own_frames *f, uint64_t va)
{
	for (size_t i = 0; i < OWN_FRAME_RANGES; i++)
		if (va >= f->v[i].from_va && va < f->v[i].to_va)
			return true;
	return false;
}

size_t own_frames_count(const struct own_frames *f, const __u64 *chain, size_t n)
{
	size_t own = 0;

	for (size_t i = 0; i < MIN(n, (size_t)DEPTH_MAX); i++)
		if (is_own(f, chain[i]))
			own = i + 1;
	return own < n ? own : 0;
}
