/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The way from a program to the tool: into the ring of its CPU, which also carries the kernel's own
 * MMAP2, COMM, FORK and EXIT records (src/probe/rings.c).
 */
#ifndef BPF_LIB_OUTPUT_BPF_H
#define BPF_LIB_OUTPUT_BPF_H

#include "compat.bpf.h"

struct {
	__uint(type, BPF_MAP_TYPE_PERF_EVENT_ARRAY);
	__uint(key_size, 4);
	__uint(value_size, 4);
} output SEC(".maps");

/* What the ring of a CPU did not take: exact, where the kernel's own count has the records of
 * everybody's processes in it too. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);
} failed SEC(".maps");

/* max_bytes is a constant, the size of what `data` points at. Whether the ring took it. */
static __always_inline bool output_try(void *ctx, void *data, __u64 size_bytes, __u64 max_bytes)
{
	barrier_var(size_bytes); /* the bound must come right before the call */
	if (size_bytes > max_bytes)
		return false;
	return !bpf_perf_event_output(ctx, &output, BPF_F_CURRENT_CPU, data, size_bytes);
}

/* The same, and what the ring does not take is counted. */
static __always_inline bool output_send(void *ctx, void *data, __u64 size_bytes, __u64 max_bytes)
{
	__u32 zero = 0;
	__u64 *n;

	if (output_try(ctx, data, size_bytes, max_bytes))
		return true;
	n = bpf_map_lookup_elem(&failed, &zero);
	if (n)
		++*n;
	return false;
}

#endif
