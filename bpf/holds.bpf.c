/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * How long mutexes are held: from the C library's USDT probe behind taking one to that behind
 * giving it back, in the same thread. Rows are those of system calls, a mutex each.
 */
#include "lib/kernel_types.h"

#include "holds.abi.h"
#include "lib/targets.bpf.h"

#include <bpf/usdt.bpf.h>

char LICENSE[] SEC("license") = "Dual BSD/GPL";

struct holds_shared shared;

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, HOLDS_MAX);
	__type(key, struct hold_key);
	__type(value, struct hold);
} holds SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, HOLDS_ROWS_MAX);
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
	struct syscalls_row *row = bpf_map_lookup_elem(&rows, key);
	__u32 zero = 0;

	if (row)
		return row;
	row = bpf_map_lookup_elem(&new_row, &zero);
	if (!row)
		return NULL;
	row->pid = key->pid;
	bpf_get_current_comm(row->comm, sizeof(row->comm));
	bpf_map_update_elem(&rows, key, row, BPF_NOEXIST);
	row = bpf_map_lookup_elem(&rows, key); /* another CPU's may be there */
	if (!row)
		__sync_fetch_and_add(&shared.rows_full, 1);
	return row;
}

/* The mutex is the probe's argument. False: not of the target. */
static __always_inline bool key_of(struct pt_regs *ctx, struct task_struct *task,
				   struct hold_key *ret)
{
	long mutex;

	if (!target_shared.active || !is_target(task, target_pid(task), target_tid(task)) ||
	    bpf_usdt_arg(ctx, 0, &mutex))
		return false;
	*ret = (struct hold_key){.user_va = mutex, .tid = (__u32)bpf_get_current_pid_tgid()};
	return true;
}

SEC("usdt")
int on_acquired(struct pt_regs *ctx)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct hold hold = {};
	struct hold_key key;

	if (!key_of(ctx, task, &key))
		return 0;
	hold.pid = target_pid(task);
	hold.tid = target_tid(task);
	hold.since_ns = bpf_ktime_get_ns();
	if (bpf_map_update_elem(&holds, &key, &hold, BPF_ANY))
		__sync_fetch_and_add(&shared.holds_full, 1);
	return 0;
}

SEC("usdt")
int on_released(struct pt_regs *ctx)
{
	__u64 now_ns = bpf_ktime_get_ns(), held_ns;
	struct task_struct *task = bpf_get_current_task_btf();
	struct syscalls_key key = {.fd = -1};
	struct syscalls_row *row;
	struct hold_key of;
	struct hold *hold;

	if (!key_of(ctx, task, &of))
		return 0;
	hold = bpf_map_lookup_elem(&holds, &of);
	if (!hold) {
		__sync_fetch_and_add(&shared.held_from_before, 1);
		return 0;
	}
	held_ns = now_ns - hold->since_ns;
	key.pid = hold->pid;
	key.inode = of.user_va;
	bpf_map_delete_elem(&holds, &of);
	row = row_of(&key);
	if (!row)
		return 0;
	__sync_fetch_and_add(&row->calls, 1);
	__sync_fetch_and_add(&row->total_ns, held_ns);
	__sync_fetch_and_add(&row->slots[log_linear_slot(held_ns)], 1);
	if (held_ns > row->max) /* of two at once the smaller may stay: the slots know better */
		row->max = held_ns;
	return 0;
}
