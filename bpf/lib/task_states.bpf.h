/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A state for each task that is watched: in task storage, which tracing programs have since 5.13;
 * before, in a hash by the task's address, made ahead. The tool makes one of the two maps
 * (probe_core_load, by the name that ends with _by_task).
 */
#ifndef BPF_LIB_TASK_STATES_BPF_H
#define BPF_LIB_TASK_STATES_BPF_H

#include "compat.bpf.h"

enum {
	TASK_STATES_MAX = 32768, /* in a hash */
};

/* TASK_STATES(states, struct x) makes
 *   struct x *states_of(task)    NULL: it has none
 *   struct x *states_new(task)   its own if there is one; zeros; NULL: there is no room
 *   void states_end(task)        it ends: a hash would keep it for the next at this address */
#define TASK_STATES(states, state)                                                                 \
	struct {                                                                                   \
		__uint(type, BPF_MAP_TYPE_TASK_STORAGE);                                           \
		__uint(map_flags, BPF_F_NO_PREALLOC);                                              \
		__type(key, int);                                                                  \
		__type(value, state);                                                              \
	} states SEC(".maps");                                                                     \
	struct {                                                                                   \
		__uint(type, BPF_MAP_TYPE_HASH);                                                   \
		__uint(max_entries, TASK_STATES_MAX);                                              \
		__type(key, __u64);                                                                \
		__type(value, state);                                                              \
	} states##_by_task SEC(".maps");                                                           \
	const __u8 states##_zeros[sizeof(state)] = {};                                             \
                                                                                                   \
	static __always_inline state *states##_of(struct task_struct *task)                        \
	{                                                                                          \
		__u64 key = (__u64)task;                                                           \
                                                                                                   \
		if (HAS_TASK_STORAGE)                                                              \
			return bpf_task_storage_get(&states, task, NULL, 0);                       \
		return bpf_map_lookup_elem(&states##_by_task, &key);                               \
	}                                                                                          \
                                                                                                   \
	static __always_inline state *states##_new(struct task_struct *task)                       \
	{                                                                                          \
		__u64 key = (__u64)task;                                                           \
                                                                                                   \
		if (HAS_TASK_STORAGE)                                                              \
			return bpf_task_storage_get(&states, task, NULL,                           \
						    BPF_LOCAL_STORAGE_GET_F_CREATE);               \
		bpf_map_update_elem(&states##_by_task, &key, &states##_zeros, BPF_NOEXIST);        \
		return bpf_map_lookup_elem(&states##_by_task, &key);                               \
	}                                                                                          \
                                                                                                   \
	static __always_inline void states##_end(struct task_struct *task)                         \
	{                                                                                          \
		__u64 key = (__u64)task;                                                           \
                                                                                                   \
		if (!HAS_TASK_STORAGE)                                                             \
			bpf_map_delete_elem(&states##_by_task, &key);                              \
	}

/* It has ended, or will not come back from its call: what it leaves behind is none of ours. */
static __always_inline bool task_is_over(struct task_struct *task)
{
	return BPF_CORE_READ(task, flags) & PF_EXITING;
}

#endif
