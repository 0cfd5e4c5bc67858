/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Numbers that are given once. */
#ifndef BPF_LIB_SERIAL_BPF_H
#define BPF_LIB_SERIAL_BPF_H

#include "compat.bpf.h"

struct serial {
	struct bpf_spin_lock lock;
	__u32 v;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct serial);
} last_serial SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} last_serials SEC(".maps");

/* From 1 on. Adding and having the sum at once is an instruction of 5.12; locks are for tracing
 * programs since then too: before, each CPU has numbers of its own. */
static __always_inline __u32 next_serial(__u32 n_cpus)
{
	__u32 zero = 0, serial = bpf_get_smp_processor_id();
	struct serial *last;
	__u32 *own;

	if (!HAS_TASK_STORAGE) {
		own = bpf_map_lookup_elem(&last_serials, &zero);
		return own ? n_cpus * (*own)++ + serial + 1 : 0;
	}
	last = bpf_map_lookup_elem(&last_serial, &zero);
	if (!last)
		return 0;
	bpf_spin_lock(&last->lock);
	serial = ++last->v;
	bpf_spin_unlock(&last->lock);
	return serial;
}

#endif
