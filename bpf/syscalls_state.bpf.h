/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the program that adds up system calls keeps: a state for each watched thread, and maps. */
#ifndef BPF_SYSCALLS_STATE_BPF_H
#define BPF_SYSCALLS_STATE_BPF_H

#include "lib/file.bpf.h"
#include "lib/targets.bpf.h"
#include "lib/task_call.bpf.h"
#include "syscalls.abi.h"

const volatile struct syscalls_setup setup;
struct syscalls_shared shared;

enum { KEYS_MAX = 16384 };

/* What a watched thread is doing. */
struct call_state {
	__u64 enter_ns; /* 0: not in a call */
	__u64 since_ns; /* watched since */
	struct syscalls_file_key file;
	__u32 code, rdev;
	__s32 fd;             /* by lock: the thread that holds it */
	__u8 at_exec;         /* counts from its exec on */
	__u8 born;            /* an exit without enter is to come: of the call that made it */
	__u8 running;         /* … or of a call that it was in at the start, awake */
	__u8 from_before;     /* its call began before the start */
	const void *stranger; /* not watched, as long as it is in this set of cgroups */
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct call_state);
} states SEC(".maps");

/* By call: a row for each that occurs, claimed by the first. Row 0 has what found none. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 256);
	__type(key, __u32);
	__type(value, struct syscalls_row);
} rows SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 256);
	__type(key, __u32);
	__type(value, __u32);
} row_owners SEC(".maps");

/* By anything else. Made ahead: allocating in a tracepoint can fail when many come at once. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, KEYS_MAX);
	__type(key, struct syscalls_key);
	__type(value, struct syscalls_row);
} keyed_rows SEC(".maps");

/* A new row before it is in the map: too large for the stack. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct syscalls_row);
} new_row SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, KEYS_MAX);
	__type(key, struct syscalls_detail_key);
	__type(value, struct syscalls_detail);
} details SEC(".maps");

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

/* By thread: what those that have ended were called at last. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, KEYS_MAX);
	__type(key, __u32);
	__type(value, char[SYSCALLS_COMM]);
} ended_names SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, SYSCALLS_COUNTS);
	__type(key, __u32);
	__type(value, __u64);
} counts SEC(".maps");

/* The compiler knows how large a code can be and drops the mask; the verifier does not know it. */
#define MASKED(index, n)                                                                           \
	({                                                                                         \
		__u32 masked_ = (index);                                                           \
		barrier_var(masked_);                                                              \
		masked_ &((n)-1);                                                                  \
	})

static __always_inline bool is_wanted(__u32 code)
{
	return !setup.chosen_only ||
	       setup.wanted[MASKED(code / 64, SYSCALLS_CODES / 64)] >> (code & 63) & 1;
}

static __always_inline __u32 traits_of(__u32 code)
{
	return code < SYSCALLS_NUMBERS ? setup.traits[MASKED(code, SYSCALLS_NUMBERS)] : 0;
}

static __noinline void count(__u32 what, __u64 n)
{
	__u64 *at = bpf_map_lookup_elem(&counts, &what);

	if (at)
		*at += n;
}

/* --- files ------------------------------------------------------------------------------------ */

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

/* The file of a descriptor, now: at the exit of a close it is gone. */
static __noinline int note_file(struct call_state *st, struct task_struct *task, __s32 fd)
{
	struct file___file *file;
	struct inode___file *inode;

	st->fd = fd;
	st->file = (struct syscalls_file_key){};
	st->rdev = 0;
	if (fd < 0)
		return 0;
	file = file_of_fd(task, fd);
	inode = file ? BPF_CORE_READ(file, f_inode) : NULL;
	if (!inode)
		return 0;
	st->file.inode = BPF_CORE_READ(inode, i_ino);
	st->file.device = BPF_CORE_READ(inode, i_sb, s_dev);
	st->file.generation = BPF_CORE_READ(inode, i_generation);
	st->rdev = BPF_CORE_READ(inode, i_rdev);
	keep_file_name(&st->file, file);
	return 0;
}

static __noinline int note_call_file(struct call_state *st, struct task_struct *task)
{
	__u32 traits = traits_of(st->code);
	struct call_args args;
	__s32 fd = -1;

	if (traits & (SYSCALLS_FD_ARG0 | SYSCALLS_FD_ARG4) && !call_args_read(task, &args))
		fd = (__s32)(traits & SYSCALLS_FD_ARG0 ? args.v[0] : args.v[4]);
	return note_file(st, task, fd);
}

/* A finished call. */
struct finished {
	struct task_struct *task;
	struct call_state *st;
	__s64 result;
	__u64 latency_ns;
	__u32 traits;
};

#endif
