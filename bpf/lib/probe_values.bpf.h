/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What is known at a point in code: arguments, and whether it is wanted by them. */
#ifndef BPF_LIB_PROBE_VALUES_BPF_H
#define BPF_LIB_PROBE_VALUES_BPF_H

#include "filter.bpf.h"
#include "probes.abi.h"

const volatile struct probes_setup probe_setup;

struct begun {
	__u64 ns;
	__u64 stack;
	__s64 args[PROBES_ARGS];
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, PROBES_COUNTS);
	__type(key, __u32);
	__type(value, __u64);
} counts SEC(".maps");

static __noinline void count_probe(__u32 what)
{
	__u64 *at = bpf_map_lookup_elem(&counts, &what);

	if (at)
		++*at;
}

/* Values are compared as what they are most often: signed. */
static __always_inline bool holds(const volatile struct probes_condition *c, __s64 v)
{
	switch (c->is) {
	case PROBES_EQUAL:
		return v == c->value;
	case PROBES_NOT_EQUAL:
		return v != c->value;
	case PROBES_LESS:
		return v < c->value;
	case PROBES_LESS_EQUAL:
		return v <= c->value;
	case PROBES_GREATER:
		return v > c->value;
	default:
		return v >= c->value;
	}
}

static __always_inline __s64 value_of(__u32 what, const struct begun *b, __s64 result)
{
	if (what == PROBES_RESULT)
		return result;
	return b->args[what - 1 < PROBES_ARGS ? what - 1 : 0];
}

static __always_inline bool probe_is_wanted(const struct begun *b, __s64 result)
{
	for (__u32 i = 0; i < PROBES_CONDITIONS; i++) {
		if (i >= probe_setup.n_conditions)
			break;
		if (!holds(&probe_setup.conditions[i],
			   value_of(probe_setup.conditions[i].what, b, result)))
			return false;
	}
	return true;
}

#endif
