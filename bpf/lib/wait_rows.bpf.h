/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Where waits are added up: two maps in turns, one of which the tool reads and empties. */
#ifndef BPF_LIB_WAIT_ROWS_BPF_H
#define BPF_LIB_WAIT_ROWS_BPF_H

#include "compat.bpf.h"
#include "offcpu.abi.h"

const struct offcpu_row no_row = {};
__u64 rows_added; /* the tool looks into the maps when it has changed */

struct rows {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, OFFCPU_ROWS_MAX);
	__uint(key_size, sizeof(struct offcpu_key));
	__uint(value_size, sizeof(struct offcpu_row));
} rows_even SEC(".maps"), rows_odd SEC(".maps");

/* Where rows are counted now. The tool puts the other map there, and the kernel returns when no
 * program has the old one any more: what it then reads from the old one is whole. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, 1);
	__type(key, __u32);
	__array(values, struct rows);
} rows_now SEC(".maps") = {.values = {(void *)&rows_even}};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct offcpu_losses);
} lost SEC(".maps");

static __always_inline struct offcpu_losses *losses(void)
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(&lost, &zero);
}

/* Global, so that the verifier looks at it apart. */
__noinline __u32 bucket_of(__u64 ns)
{
	__u32 log2 = 0, at;
	__u64 v = ns >> OFFCPU_BUCKET_FIRST_LOG2;

	if (!v)
		return 0;
	for (__u32 step = 32; step; step >>= 1) {
		if (v >> step) {
			v >>= step;
			log2 += step;
		}
	}
	at = 1 + log2 * 4 + ((ns >> (log2 + OFFCPU_BUCKET_FIRST_LOG2 - 2)) & 3);
	return at < OFFCPU_BUCKETS ? at : OFFCPU_BUCKETS - 1;
}

/* The row of a key, added if new; NULL: there is no room. pid and tid are those of its thread. */
static __always_inline struct offcpu_row *row_of(const struct offcpu_key *key, __u32 pid, __u32 tid)
{
	__u32 zero = 0;
	void *rows = bpf_map_lookup_elem(&rows_now, &zero);
	struct offcpu_row *row;

	if (!rows)
		return NULL;
	row = bpf_map_lookup_elem(rows, key);
	if (row)
		return row;
	if (bpf_map_update_elem(rows, key, &no_row, BPF_NOEXIST))
		return NULL;
	row = bpf_map_lookup_elem(rows, key);
	__sync_fetch_and_add(&rows_added, 1);
	if (row) {
		row->pid = pid;
		row->tid = tid;
	}
	return row;
}

#endif
