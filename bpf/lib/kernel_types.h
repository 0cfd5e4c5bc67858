/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Of the kernel's types only the fields that are used, at whatever offset the running kernel has
 * them (CO-RE). The mark tells bpf_tracing.h that names of registers are the kernel's.
 */
#ifndef BPF_LIB_KERNEL_TYPES_H
#define BPF_LIB_KERNEL_TYPES_H

#define __VMLINUX_H__

#include <linux/bpf.h>
#include <linux/types.h>
#include <stdbool.h>

#if defined(__TARGET_ARCH_x86)
/* arch/x86/include/asm/ptrace.h; also what a perf_event program gets (bpf_user_pt_regs_t). */
struct pt_regs {
	unsigned long r15, r14, r13, r12, bp, bx, r11, r10, r9, r8, ax, cx, dx, si, di, orig_ax, ip,
		cs, flags, sp, ss;
};
#elif defined(__TARGET_ARCH_arm64)
/* arch/arm64/include/uapi/asm/ptrace.h: user_pt_regs, with which the kernel's pt_regs begins. */
struct pt_regs {
	__u64 regs[31], sp, pc, pstate;
};
/* By this name PT_REGS_PARM1 and its kind (bpf_tracing.h) read them. */
struct user_pt_regs {
	__u64 regs[31], sp, pc, pstate;
};
/* arch/arm64/include/asm/ptrace.h: what follows. */
struct pt_regs___syscall {
	__u64 orig_x0;
	__s32 syscallno;
} __attribute__((preserve_access_index));
#endif

/* include/uapi/linux/bpf_perf_event.h: the program's context, at fixed offsets. */
struct bpf_perf_event_data {
	struct pt_regs regs;
	__u64 sample_period;
	__u64 addr;
};

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct ns_common {
	unsigned int inum;
};

struct pid_namespace {
	struct ns_common ns;
};

struct upid {
	int nr;
	struct pid_namespace *ns;
};

struct pid {
	unsigned int level;
	struct upid numbers[1];
};

typedef struct {
	int counter;
} atomic_t;

struct signal_struct {
	atomic_t live;
};

struct rb_node;

struct rb_root {
	struct rb_node *rb_node;
};

struct maple_tree {
	void *ma_root;
};

struct seqcount {
	unsigned int sequence;
};

/* One struct, and not one for each kernel: libbpf looks through all of the kernel's types for each
 * that is read, 2 ms each. */
struct mm_struct {
	unsigned long start_stack;
	struct rb_root mm_rb;    /* up to 6.0: its mappings, then … */
	struct maple_tree mm_mt; /* … from 6.1 on */
	__u64 vmacache_seqnum;   /* up to 6.0: counts what is unmapped, also by mapping over it */
	struct seqcount mm_lock_seq; /* 6.13: odd while the mappings are being changed */
	struct file *exe_file;
	struct {
		void *vdso;
	} context;
};

/* 6.4 */
struct mm_struct___lock_seq {
	int mm_lock_seq;
};

struct rq {
	__u64 clock, clock_task;
};

struct cfs_rq {
	struct rq *rq;
	int throttle_count;
};

struct sched_entity {
	__u64 sum_exec_runtime;
	__u64 exec_start;
	struct cfs_rq *cfs_rq;
};

struct sched_info {
	unsigned long long last_queued;
};

struct perf_event {
	__u64 id;
};

struct bpf_perf_event_data_kern {
	struct perf_event *event;
};

struct kernfs_node {
	__u64 id;
};

struct cgroup;

struct cgroup_subsys_state {
	struct cgroup *cgroup;
	struct cgroup_subsys_state *parent;
};

struct cgroup {
	struct cgroup_subsys_state self;
	struct kernfs_node *kn;
};

struct css_set {
	struct cgroup_subsys_state *subsys[1];
	struct cgroup *dfl_cgrp;
};

/* Their values differ by configuration. */
enum cgroup_subsys_id {
	perf_event_cgrp_id,
	pids_cgrp_id,
};

struct thread_info {
	unsigned int status; /* x86 */
};

/* include/linux/fs.h, fdtable.h: from a descriptor to its inode. */
struct inode {
	unsigned short i_mode;
	unsigned long i_ino;
};

struct file {
	struct inode *f_inode;
};

struct fdtable {
	unsigned int max_fds;
	struct file **fd;
};

struct files_struct {
	struct fdtable *fdt;
};

struct task_struct {
	struct thread_info thread_info;
	unsigned int __state;
	int on_cpu, exit_state;
	unsigned int flags;
	unsigned int in_execve : 1;
	unsigned int in_iowait : 1;
	unsigned int frozen : 1;
	void *stack;
	struct sched_entity se;
	struct sched_info sched_info;
	struct mm_struct *mm;
	struct files_struct *files;
	int pid, tgid;
	struct task_struct *group_leader;
	struct pid *thread_pid;
	int *clear_child_tid;
	struct signal_struct *signal;
	struct css_set *cgroups;
	char comm[16];
};

struct seq_file;

struct bpf_iter_meta {
	struct seq_file *seq;
	__u64 session_id, seq_num;
};

struct bpf_iter__task {
	struct bpf_iter_meta *meta;
	struct task_struct *task;
};

/* Before 5.14. */
struct task_struct___old_state {
	volatile long state;
};

/* 6.18: a flavour, so that kernels without it can be told. */
struct task_struct___quota {
	bool throttled;
};

/* 6.6 */
struct cfs_rq___quota {
	__u64 throttled_clock_self_time;
};

struct linux_binprm;

#pragma clang attribute pop

#endif
