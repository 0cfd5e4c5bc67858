/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Who is measured: the map of targets, and the programs that keep it exact over forks, execs and
 * exits. A program that unwinds includes unwind.bpf.h first: its ranges are then kept by the same
 * programs. The tool's side is src/probe/core.c.
 */
#ifndef BPF_LIB_TARGETS_BPF_H
#define BPF_LIB_TARGETS_BPF_H

#include "filter.bpf.h"
#include "targets.abi.h"

const volatile struct target_setup target_setup;
struct target_shared target_shared;

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16384);
	__type(key, __u32);
	__type(value, __u8);
} targets SEC(".maps");

static __always_inline __u32 target_pid(struct task_struct *task)
{
	return task_pid(task, target_setup.pid_ns_inode);
}

static __always_inline __u32 target_tid(struct task_struct *task)
{
	return task_tid(task, target_setup.pid_ns_inode);
}

/* Where the measurement ends: what goes on is counted up to then, whenever it is read. */
static __always_inline __u64 measured_until(void)
{
	return target_shared.stopped_ns ? target_shared.stopped_ns : bpf_ktime_get_ns();
}

/* As the innermost pid namespace of the task numbers it. */
static __always_inline __u32 target_own_tid(struct task_struct *task)
{
	struct pid *pid = BPF_CORE_READ(task, thread_pid);
	__u32 level = BPF_CORE_READ(pid, level);
	struct upid *at = &pid->numbers[0];
	__u32 nr = 0;

	if (level >= PID_LEVELS_MAX)
		return 0;
	at = (void *)at + level * bpf_core_type_size(struct upid);
	bpf_core_read(&nr, sizeof(nr), &at->nr);
	return nr;
}

static __always_inline __u32 target_own_pid(struct task_struct *task)
{
	return target_own_tid(BPF_CORE_READ(task, group_leader));
}

/* The task's cgroup or one above it is the one that is measured. */
static __always_inline bool is_in_cgroup(struct task_struct *task)
{
	struct cgroup *cgroup;

	if (target_setup.cgroup_v1) {
		int id = bpf_core_enum_value(enum cgroup_subsys_id, perf_event_cgrp_id);
		struct css_set *set = BPF_CORE_READ(task, cgroups);
		struct cgroup_subsys_state **at = &set->subsys[0];
		struct cgroup_subsys_state *css;

		if (bpf_probe_read_kernel(&css, sizeof(css), (void *)at + id * sizeof(css)))
			return false;
		cgroup = BPF_CORE_READ(css, cgroup);
	} else {
		cgroup = BPF_CORE_READ(task, cgroups, dfl_cgrp);
	}
	for (int i = 0; i < TARGET_CGROUP_DEPTH && cgroup; i++) {
		struct cgroup_subsys_state *parent;

		if (BPF_CORE_READ(cgroup, kn, id) == target_setup.cgroup_id)
			return true;
		parent = BPF_CORE_READ(cgroup, self.parent);
		cgroup = parent ? BPF_CORE_READ(parent, cgroup) : NULL;
	}
	return false;
}

/* pid and tid are those of the task: target_pid, target_tid. */
static __always_inline bool is_target(struct task_struct *task, __u32 pid, __u32 tid)
{
	__u32 key = target_setup.filter == TARGET_THREADS ? tid : pid;
	__u8 *state;

	if (target_setup.filter == TARGET_ALL)
		return tid || target_setup.with_idle;
	if (target_setup.filter == TARGET_CGROUP)
		return is_in_cgroup(task);
	state = bpf_map_lookup_elem(&targets, &key);
	return state && *state == TARGET_LIVE;
}

/* --- processes -------------------------------------------------------------------------------- */

static __always_inline void follow(__u32 parent, __u32 child)
{
	__u8 *state = bpf_map_lookup_elem(&targets, &parent), value = TARGET_LIVE;

	if (!state || *state == TARGET_ENDED) {
		/* The number of one that has ended, used again by a stranger. */
		bpf_map_delete_elem(&targets, &child);
		return;
	}
	value = *state;
	if (bpf_map_update_elem(&targets, &child, &value, BPF_ANY))
		__sync_fetch_and_add(&target_shared.unfollowed, 1);
	else
		__sync_fetch_and_add(&target_shared.live, 1);
}

SEC("tp_btf/sched_process_fork")
int BPF_PROG(on_fork, struct task_struct *parent, struct task_struct *child)
{
	__u32 parent_pid = target_pid(parent), child_pid = target_pid(child);

	if (!child_pid || parent_pid == child_pid)
		return 0;
	if (target_setup.filter == TARGET_PROCESSES)
		follow(parent_pid, child_pid);
#ifdef BPF_LIB_UNWIND_BPF_H
	if (target_setup.unwinds)
		unwind_forked(parent_pid, child_pid);
#endif
	return 0;
}

SEC("tp_btf/sched_process_exec")
int BPF_PROG(on_exec, struct task_struct *task, int old_pid, struct linux_binprm *binprm)
{
	__u32 pid = target_pid(task);
	__u8 *state = bpf_map_lookup_elem(&targets, &pid);
	bool wanted = target_setup.filter == TARGET_PROCESSES && state && *state != TARGET_ENDED;

	if (wanted)
		*state = TARGET_LIVE;
#ifdef BPF_LIB_UNWIND_BPF_H
	if (pid && target_setup.unwinds)
		unwind_execed(task, pid, wanted);
#endif
	return 0;
}

SEC("tp_btf/sched_process_exit")
int BPF_PROG(on_exit, struct task_struct *task)
{
	bool last = !BPF_CORE_READ(task, signal, live.counter);
	__u32 pid = target_pid(task);
	__u32 key = target_setup.filter == TARGET_THREADS ? target_tid(task) : pid;
	__u8 *state;

#ifdef BPF_LIB_UNWIND_BPF_H
	if (last && pid)
		unwind_exited(pid);
#endif
	if (!last && target_setup.filter != TARGET_THREADS)
		return 0;
	state = bpf_map_lookup_elem(&targets, &key);
	if (state && *state != TARGET_ENDED) {
		*state = TARGET_ENDED;
		__sync_fetch_and_add(&target_shared.live, -1);
	}
	return 0;
}

#endif
