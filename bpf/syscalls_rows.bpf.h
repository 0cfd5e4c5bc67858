/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The rows of the table: by call for each CPU, by anything else in one map. */
#ifndef BPF_SYSCALLS_ROWS_BPF_H
#define BPF_SYSCALLS_ROWS_BPF_H

#include "syscalls_state.bpf.h"

static __noinline bool owns_row(__u32 row, __u32 code)
{
	__u32 *owner;

	if (!bpf_map_update_elem(&row_owners, &row, &code, BPF_NOEXIST)) {
		shared.row_of[MASKED(code, SYSCALLS_CODES)] = row;
		return true;
	}
	owner = bpf_map_lookup_elem(&row_owners, &row);
	return owner && *owner == code;
}

/* Two CPUs that meet a call at once try the same rows in the same order, and agree. */
static __noinline __u32 claim_row(__u32 code)
{
	for (__u32 i = 0; i < 64; i++) {
		__u32 row = (code + i) & setup.rows_mask;

		if (row && owns_row(row, code))
			return row;
		/* Before 6.8 a loop may not end in what is no jump (check_cfg: "back-edge"). */
		asm volatile("goto +0" : "+r"(i));
	}
	count(SYSCALLS_KEYS_FULL, 1);
	return 0;
}

static __always_inline struct syscalls_row *row_of_call(__u32 code)
{
	__u32 row = shared.row_of[MASKED(code, SYSCALLS_CODES)];

	if (!row)
		row = claim_row(code);
	return bpf_map_lookup_elem(&rows, &row);
}

static __noinline int fill_key(struct syscalls_key *key, struct call_state *st, __u32 code,
			       struct task_struct *task)
{
	if (setup.by & SYSCALLS_BY_CALL)
		key->code = code;
	else if (code == SYSCALLS_FUTEX_IDLE || traits_of(code) & SYSCALLS_IS_WAIT)
		key->code = 1;
	if (setup.by & SYSCALLS_BY_THREAD)
		key->tid = target_tid(task);
	if (setup.by & SYSCALLS_BY_COMM)
		bpf_core_read_str(key->comm, sizeof(key->comm),
				  &((struct task_struct___call *)task)->comm);
	if (setup.by & SYSCALLS_BY_CGROUP)
		key->cgroup = BPF_CORE_READ(task, cgroups, dfl_cgrp, kn, id);
	if (setup.by & SYSCALLS_BY_FILE) {
		key->device = st->file.device;
		key->inode = st->file.inode;
		key->stack = st->file.generation;
		if (setup.by & SYSCALLS_BY_FD) {
			key->fd = st->fd;
			key->pid = st->fd < 0 ? 0 : target_pid(task);
		}
		if (setup.by & SYSCALLS_BY_DEVICE && st->rdev) {
			key->device = st->rdev;
			key->inode = key->stack = 0;
		}
	}
	return 0;
}

static __noinline struct syscalls_row *row_of_key(const struct syscalls_key *key,
						  struct task_struct *task, __s32 fd)
{
	struct syscalls_row *row = bpf_map_lookup_elem(&keyed_rows, key);
	__u32 zero = 0;

	if (row)
		return row;
	row = bpf_map_lookup_elem(&new_row, &zero);
	if (!row)
		return NULL;
	row->pid = target_pid(task);
	row->own_tid = target_own_tid(task);
	row->own_pid = target_own_pid(task);
	row->fd = fd;
	bpf_get_current_comm(row->comm, sizeof(row->comm));
	bpf_map_update_elem(&keyed_rows, key, row, BPF_NOEXIST);
	row = bpf_map_lookup_elem(&keyed_rows, key); /* another CPU's may be there */
	if (row)
		return row;
	count(SYSCALLS_KEYS_FULL, 1);
	return bpf_map_lookup_elem(&rows, &zero);
}

static __noinline int add_to_row(struct finished *f, struct syscalls_row *row, __u64 value,
				 bool has_value)
{
	bool failed = f->result < 0 && f->result >= -4095;

	__sync_fetch_and_add(&row->calls, 1);
	__sync_fetch_and_add(&row->total_ns, f->latency_ns);
	if (failed)
		__sync_fetch_and_add(&row->errors, 1);
	if (f->traits & SYSCALLS_BYTES && !failed) {
		__sync_fetch_and_add(&row->bytes, f->result);
		__sync_fetch_and_add(&row->io, 1);
	}
	if (!has_value)
		return 0;
	__sync_fetch_and_add(&row->slots[log_linear_slot(value)], 1);
	if (value > row->max) /* of two at once the smaller may stay: the slots know better */
		row->max = value;
	return 0;
}

static __noinline int add_keyed(struct finished *f, __u64 value, bool has_value)
{
	struct syscalls_key key = {.fd = -1};
	struct syscalls_row *row;

	if (f->traits & SYSCALLS_FD_RESULT && setup.by & SYSCALLS_BY_FILE)
		note_file(f->st, f->task, f->result);
	fill_key(&key, f->st, f->st->code, f->task);
	if (setup.by & SYSCALLS_BY_ERRNO)
		key.error = f->result < 0 && f->result >= -4095 ? -f->result : 0;
	row = row_of_key(&key, f->task, f->st->fd);
	return row ? add_to_row(f, row, value, has_value) : 0;
}

static __always_inline void add_by_call(struct finished *f, __u64 value, bool has_value)
{
	struct syscalls_row *row = row_of_call(f->st->code);
	bool failed = f->result < 0 && f->result >= -4095;

	if (!row)
		return;
	row->calls++;
	row->total_ns += f->latency_ns;
	if (failed)
		row->errors++;
	if (f->traits & SYSCALLS_BYTES && !failed) {
		row->bytes += f->result;
		row->io++;
	}
	if (!has_value)
		return;
	row->slots[log_linear_slot(value)]++;
	if (value > row->max)
		row->max = value;
}

#endif
