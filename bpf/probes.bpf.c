/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Functions and events timed: what begins at one (a function's entry, a USDT probe, a tracepoint)
 * and ends at another (its return, a second probe) in the same thread, added up by key.
 */
#include "lib/kernel_types.h"

#include "lib/probe_values.bpf.h"
#include "lib/targets.bpf.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

enum { KEYS_MAX = 4096 };

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, KEYS_MAX);
	__type(key, struct syscalls_key);
	__type(value, struct syscalls_row);
} rows SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct syscalls_row);
} new_row SEC(".maps");

static __noinline struct syscalls_row *row_of(const struct syscalls_key *key)
{
	struct task_struct *task = this_task();
	struct syscalls_row *row = bpf_map_lookup_elem(&rows, key);
	__u32 zero = 0;

	if (row)
		return row;
	row = bpf_map_lookup_elem(&new_row, &zero);
	if (!row)
		return NULL;
	row->pid = target_pid(task);
	row->own_tid = target_own_tid(task);
	bpf_get_current_comm(row->comm, sizeof(row->comm));
	bpf_map_update_elem(&rows, key, row, BPF_NOEXIST);
	row = bpf_map_lookup_elem(&rows, key); /* another CPU's may be there */
	if (!row)
		count_probe(PROBES_KEYS_FULL);
	return row;
}

static __noinline int probe_finish(const struct begun *b, __s64 result, __u64 latency_ns)
{
	struct task_struct *task = this_task();
	struct syscalls_key key = {.fd = -1};
	struct syscalls_row *row;
	__u64 value;

	if (!probe_is_wanted(b, result))
		return 0;
	count_probe(PROBES_EVENTS);
	if (probe_setup.by & SYSCALLS_BY_THREAD)
		key.tid = target_tid(task);
	if (probe_setup.by & SYSCALLS_BY_COMM)
		bpf_get_current_comm(key.comm, sizeof(key.comm));
	if (probe_setup.by & SYSCALLS_BY_VALUE)
		key.inode = value_of(probe_setup.by_value, b, result);
	row = row_of(&key);
	if (!row)
		return 0;
	value = probe_setup.measured ? (__u64)value_of(probe_setup.measured, b, result)
				     : latency_ns;
	__sync_fetch_and_add(&row->calls, 1);
	/* An event without an end has no length. */
	if (!probe_setup.measured && !probe_setup.has_end)
		return 0;
	/* A negative value is a failure, as far as a histogram goes. */
	if (probe_setup.measured && (__s64)value < 0) {
		__sync_fetch_and_add(&row->errors, 1);
		return 0;
	}
	__sync_fetch_and_add(&row->total_ns, value);
	__sync_fetch_and_add(&row->slots[log_linear_slot(value)], 1);
	if (value > row->max)
		row->max = value;
	return 0;
}

static __always_inline bool is_watched(void)
{
	struct task_struct *task = this_task();

	return target_shared.active && is_target(task, target_pid(task), target_tid(task));
}

static __always_inline __u64 stack_at(void *ctx)
{
	(void)ctx;
	return 0;
}

#include "lib/probe_points.bpf.h" /* uses these */

/* Functions of the kernel, whose arguments and result are words in a row. */
SEC("fentry")
int on_fentry(void *ctx)
{
	return on_fields(ctx);
}

SEC("fexit")
int on_fexit(void *ctx)
{
	return on_fields_end(ctx);
}
