/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the program that adds up system calls keeps: a state for each watched thread, and maps. */
#ifndef BPF_SYSCALLS_STATE_BPF_H
#define BPF_SYSCALLS_STATE_BPF_H

#include "lib/task_states.bpf.h"
#include "syscalls_stacks.bpf.h"

struct syscalls_shared shared;

/* What a futex call is about. */
struct futex_call {
	__u64 user_va;
	__u64 to_va;  /* the second futex: where a requeue moves waiters to; 0: none */
	__u32 op;     /* as of futex(2), whichever call it is */
	__u32 n;      /* how many are to be woken; of futex_waitv, are waited for */
	__u32 holder; /* of the lock, at the beginning of a wait; 0 not known */
	__u8 is_private, to_is_private;
	__u8 several;   /* futex_waitv, of more than one or not read: which, its end says */
	__u8 moves_all; /* that are not woken */
};

/* What a watched thread is doing. */
struct call_state {
	__u64 enter_ns; /* 0: not in a call */
	__u64 since_ns; /* watched since */
	struct syscalls_file_key file;
	__u32 code, rdev;
	__s32 fd;
	__u8 at_exec;         /* counts from its exec on */
	__u8 born;            /* an exit without enter is to come: of the call that made it */
	__u8 running;         /* … or of a call that it was in at the start, awake */
	__u8 from_before;     /* its call began before the start */
	__u8 stack_is_cut;    /* for want of what was mapped a moment ago */
	const void *stranger; /* not watched, as long as it is in this set of cgroups */
	/* By lock. */
	struct futex_call futex;
	__u64 stack;
	struct syscalls_key lock, moved_to; /* `stack` 0: not moved */
};

TASK_STATES(states, struct call_state)

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

/* By thread: what those that have ended were called at last. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, KEYS_MAX);
	__type(key, __u32);
	__type(value, char[SYSCALLS_COMM]);
} ended_names SEC(".maps");

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

/* --- files ------------------------------------------------------------------------------------ */

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
	struct pt_regs *regs; /* NULL: not handed to the program */
	struct call_state *st;
	__s64 result;
	__u64 latency_ns;
	__u32 traits;
};

#endif
