/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Who is measured: pids of the tool's own namespace, children followed exactly. */
#ifndef BPF_LIB_FILTER_BPF_H
#define BPF_LIB_FILTER_BPF_H

#include "compat.bpf.h"

/* pid and tid in the namespace of that inode; 0 where the task is not in it. */
static __always_inline int task_number(struct task_struct *task, __u64 pid_ns_inode)
{
	struct pid *pid = BPF_CORE_READ(task, thread_pid);
	unsigned int level = BPF_CORE_READ(pid, level);

	for (unsigned int i = 0; i < PID_LEVELS_MAX; i++) {
		struct upid *at = &pid->numbers[0];
		struct upid number = {};

		if (i > level)
			break;
		at = (void *)at + i * bpf_core_type_size(struct upid);
		bpf_core_read(&number.nr, sizeof(number.nr), &at->nr);
		bpf_core_read(&number.ns, sizeof(number.ns), &at->ns);
		if (BPF_CORE_READ(number.ns, ns.inum) == pid_ns_inode)
			return number.nr;
	}
	return 0;
}

static __always_inline __u32 task_tid(struct task_struct *task, __u64 pid_ns_inode)
{
	return pid_ns_inode ? task_number(task, pid_ns_inode) : BPF_CORE_READ(task, pid);
}

static __always_inline __u32 task_pid(struct task_struct *task, __u64 pid_ns_inode)
{
	return pid_ns_inode ? task_number(BPF_CORE_READ(task, group_leader), pid_ns_inode)
			    : BPF_CORE_READ(task, tgid);
}

#endif
