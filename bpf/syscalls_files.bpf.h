/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Names of the files that are met, kept once; and the counts of what found no room. */
#ifndef BPF_SYSCALLS_FILES_BPF_H
#define BPF_SYSCALLS_FILES_BPF_H

#include "lib/file.bpf.h"
#include "lib/task_call.bpf.h"
#include "lib/vma.bpf.h"
#include "syscalls.abi.h"

const volatile struct syscalls_setup setup;

enum { KEYS_MAX = 16384 };

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, SYSCALLS_COUNTS);
	__type(key, __u32);
	__type(value, __u64);
} counts SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, KEYS_MAX);
	__type(key, struct syscalls_file_key);
	__type(value, struct syscalls_file);
} files SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct syscalls_file);
} new_file SEC(".maps");

static __noinline void count(__u32 what, __u64 n)
{
	__u64 *at = bpf_map_lookup_elem(&counts, &what);

	if (at)
		*at += n;
}

static __noinline int keep_file_name(struct syscalls_file_key *key, struct file___file *file)
{
	__u32 zero = 0;
	struct syscalls_file *name;
	struct file_walk *walk;

	if (bpf_map_lookup_elem(&files, key))
		return 0;
	name = bpf_map_lookup_elem(&new_file, &zero);
	if (!name)
		return 0;
	name->mode = BPF_CORE_READ(file, f_inode, i_mode);
	name->rdev = BPF_CORE_READ(file, f_inode, i_rdev);
	name->magic = (__u32)BPF_CORE_READ(file, f_inode, i_sb, s_magic);
	walk = file_walk(file);
	if (!walk)
		return 0;
	name->parts = walk->n;
	__builtin_memcpy(name->part, walk->part, sizeof(name->part));
	/* Without memory right now it is kept with the next call. */
	if (bpf_map_update_elem(&files, key, name, BPF_ANY) == -E_TOO_BIG)
		count(SYSCALLS_FILES_FULL, 1);
	return 0;
}

#endif
