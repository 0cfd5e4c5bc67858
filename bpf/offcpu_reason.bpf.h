/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What a thread waits for: how it lost the CPU, and the system call that it is in with its
 * arguments, from the registers at its entry; nothing is attached to calls.
 */
#ifndef OFFCPU_REASON_BPF_H
#define OFFCPU_REASON_BPF_H

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

/* include/linux/mm.h */
struct vm_fault {
	struct vm_area_struct *vma;
	unsigned long address; /* of the page */
};

#pragma clang attribute pop

static __always_inline struct file *look_at_file(struct task_struct *task, bool is_current,
						 struct offcpu_key *wait)
{
	struct files_struct *files = task->files;
	struct file *file = NULL;
	struct inode *inode;

	if (!files || wait->arg >= files->fdt->max_fds)
		return NULL;
	bpf_probe_read_kernel(&file, sizeof(file), files->fdt->fd + wait->arg);
	if (!file)
		return NULL;
	inode = BPF_CORE_READ(file, f_inode);
	wait->inode = BPF_CORE_READ(inode, i_ino);
	wait->file_mode = BPF_CORE_READ(inode, i_mode);
	wait->arg |= (BPF_CORE_READ((struct inode___file *)inode, i_sb, s_dev) &
		      (__u64)OFFCPU_DEVICE_MASK)
		     << OFFCPU_DEVICE_SHIFT;
	if (is_current)
		keep_file((void *)file, wait);
	return file;
}

/* poll(2) of one descriptor waits for that. Memory is the current task's alone. */
static __always_inline void look_at_poll(struct task_struct *task, const struct unwind_walk *w,
					 __u64 from_va, bool is_current, struct offcpu_key *wait)
{
	__u64 n = REGS_ARG2(&w->regs);
	__u32 fd;

	wait->arg = OFFCPU_POLL_SEVERAL | (__u32)n;
	if (n == 1)
		wait->arg = OFFCPU_POLL_AT | from_va;
	if (n == 1 && is_current && !bpf_probe_read_user(&fd, sizeof(fd), (void *)from_va)) {
		wait->arg = fd;
		look_at_file(task, is_current, wait);
	}
	if (setup.with_gpus && is_current)
		gpu_note_wait(wait, gpu_polled_number(task, from_va, (__u32)n));
}

enum { WAITER_ADDRESS_BYTE = 8 }; /* struct futex_waitv, include/uapi/linux/futex.h */

/* futex_waitv(2) of one futex waits for that. */
static __always_inline void look_at_waitv(const struct unwind_walk *w, __u64 from_va,
					  bool is_current, struct offcpu_key *wait)
{
	__u32 n = (__u32)REGS_ARG2(&w->regs);
	__u64 user_va;

	wait->arg = n == 1 ? OFFCPU_POLL_AT | from_va : OFFCPU_POLL_SEVERAL | n;
	if (n == 1 && is_current &&
	    !bpf_probe_read_user(&user_va, sizeof(user_va), (void *)from_va + WAITER_ADDRESS_BYTE))
		wait->arg = user_va;
}

enum { FAULT_WORDS = 192 };

/* The mapping (struct vm_area_struct) in which the thread has a page fault: the kernel's struct
 * vm_fault is among the outermost frames (__handle_mm_fault, mm/memory.c), of which there is a
 * copy. Any word may be its beginning: it is where the mapping is one of this process, and has the
 * page. Global, so that the verifier looks at its loop once. */
__noinline __u64 fault_mapping(__u64 mm)
{
	__u32 zero = 0;
	struct stack_copy *copy = bpf_map_lookup_elem(&stack_copies, &zero);
	__u32 to_vma = bpf_core_field_offset(struct vm_fault, vma) / 8;
	__u32 to_page = bpf_core_field_offset(struct vm_fault, address) / 8;

	if (!copy)
		return 0;
	for (__u32 i = 0; i < FAULT_WORDS; i++) {
		__u32 vma_at = i + to_vma, page_at = i + to_page;
		struct vm_area_struct *vma;
		__u64 page;

		if (vma_at >= STACK_COPY_WORDS || page_at >= STACK_COPY_WORDS)
			break;
		vma = (void *)copy->word[vma_at];
		page = copy->word[page_at];
		if ((__s64)vma >= 0 || !page || page & (OFFCPU_PAGE_BYTES - 1) || (__s64)page < 0)
			continue;
		if ((__u64)BPF_CORE_READ(vma, vm_mm) == mm &&
		    page >= BPF_CORE_READ(vma, vm_start) && page < BPF_CORE_READ(vma, vm_end))
			return (__u64)vma;
	}
	return 0;
}

static __always_inline void look_at_fault(struct task_struct *task, struct offcpu_key *wait)
{
	__u32 zero = 0;
	struct stack_copy *copy = bpf_map_lookup_elem(&stack_copies, &zero);
	const void *end = task_user_regs(task);
	struct vm_area_struct *vma;
	struct inode___file *inode;

	if (!copy || !bpf_core_field_exists(struct vm_fault, vma) ||
	    bpf_probe_read_kernel(copy->word, FAULT_WORDS * 8, end - FAULT_WORDS * 8))
		return;
	vma = (void *)fault_mapping((__u64)BPF_CORE_READ(task, mm));
	if (!vma)
		return;
	wait->arg = BPF_CORE_READ(vma, vm_start);
	inode = BPF_CORE_READ(vma, vm_file, f_inode);
	wait->inode = inode ? BPF_CORE_READ(inode, i_ino) : 0;
}

/* By the registers in w, of which stack_registers said `stop`. */
static __always_inline void look_at_syscall(struct task_struct *task, const struct unwind_walk *w,
					    int stop, bool is_current, struct offcpu_key *wait)
{
	__u8 kind = OFFCPU_ARG_NONE;
	struct file *file = NULL;
	__u64 arg;

	wait->nr = OFFCPU_NR_UNKNOWN;
	if (stop != UNWIND_CONTINUE)
		return;
	wait->nr = regs_syscall(task, &w->regs, &arg);
	if (wait->nr >= 0 && wait->nr < OFFCPU_SYSCALLS)
		kind = syscall_argument[wait->nr & (OFFCPU_SYSCALLS - 1)];
	if (kind == OFFCPU_ARG_POLL)
		look_at_poll(task, w, arg, is_current, wait);
	if (kind == OFFCPU_ARG_WAITV)
		look_at_waitv(w, arg, is_current, wait);
	if (wait->nr == OFFCPU_NO_SYSCALL && wait->how == OFFCPU_BLOCKED && is_current)
		look_at_fault(task, wait);
	if (kind == OFFCPU_ARG_NONE || kind == OFFCPU_ARG_POLL || kind == OFFCPU_ARG_SELECT ||
	    kind == OFFCPU_ARG_WAITV)
		return;
	wait->arg = kind == OFFCPU_ARG_ADDRESS ? arg : (__u32)arg;
	if (kind == OFFCPU_ARG_FD || kind == OFFCPU_ARG_IOCTL || kind == OFFCPU_ARG_EPOLL)
		file = look_at_file(task, is_current, wait);
	if (!setup.with_gpus || !file)
		return;
	if (kind == OFFCPU_ARG_IOCTL)
		gpu_note_wait(wait,
			      gpu_wait_number((void *)file, GPU_IOCTL, (__u32)REGS_ARG2(&w->regs),
					      REGS_ARG3(&w->regs), is_current));
	else if (kind == OFFCPU_ARG_EPOLL)
		gpu_note_wait(wait, gpu_watched_number((void *)file, is_current));
}

static __always_inline __u8 how_of(struct task_struct *task, bool preempt, __u32 state)
{
	if ((preempt || !state) && is_throttled(task))
		return OFFCPU_THROTTLED;
	if (preempt)
		return OFFCPU_PREEMPTED;
	if (!state)
		return OFFCPU_YIELDED;
	if (state & TASK_STOPPED_OR_TRACED)
		return OFFCPU_STOPPED;
	return task_is_frozen(task, state) ? OFFCPU_FROZEN : OFFCPU_BLOCKED;
}

static __always_inline void begin_wait(struct thread *t, struct task_struct *task,
				       const struct unwind_walk *w, int stop, __u8 how, __u32 state,
				       bool is_current)
{
	struct offcpu_key *wait = &t->wait;

	wait->stack = wait->chain = wait->arg = wait->inode = 0;
	wait->file_mode = 0;
	wait->waker = OFFCPU_WAKER_NONE;
	wait->how = how;
	wait->flags = 0;
	if (how == OFFCPU_THROTTLED)
		t->throttled_ns = throttled_ns(task);
	if (task->flags & PF_KTHREAD)
		wait->flags |= OFFCPU_KTHREAD;
	if (how == OFFCPU_BLOCKED && state & TASK_UNINTERRUPTIBLE)
		wait->flags |= OFFCPU_UNINTERRUPTIBLE;
	if (how == OFFCPU_BLOCKED && BPF_CORE_READ_BITFIELD(task, in_iowait))
		wait->flags |= OFFCPU_IO;
	look_at_syscall(task, w, stop, is_current, wait);
}

#endif
