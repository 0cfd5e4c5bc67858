/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The file that lies at an address of a task, and the place in it. bpf_find_vma: 5.17. */
#ifndef BPF_LIB_VMA_BPF_H
#define BPF_LIB_VMA_BPF_H

#include "file.bpf.h"

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct vm_area_struct {
	unsigned long vm_start, vm_pgoff;
	struct file___file *vm_file;
};

#pragma clang attribute pop

enum { PAGE_SHIFT = 12 };

struct vma_place {
	__u64 user_va;
	__u64 file_va; /* the struct file; 0: none, or the mappings were being changed */
	__u64 file_off;
	__u64 inode;
	__u32 device, generation;
};

static long vma_note_place(struct task_struct *task, struct vm_area_struct *vma, void *ctx)
{
	struct vma_place *at = ctx;
	struct file___file *file = BPF_CORE_READ(vma, vm_file);
	struct inode___file *inode = file ? BPF_CORE_READ(file, f_inode) : NULL;

	(void)task;
	if (!inode)
		return 0;
	at->file_va = (__u64)file;
	at->inode = BPF_CORE_READ(inode, i_ino);
	at->device = BPF_CORE_READ(inode, i_sb, s_dev);
	at->generation = BPF_CORE_READ(inode, i_generation);
	at->file_off = at->user_va - BPF_CORE_READ(vma, vm_start) +
		       (BPF_CORE_READ(vma, vm_pgoff) << PAGE_SHIFT);
	return 0;
}

static __always_inline void vma_find_place(struct task_struct *task, __u64 user_va,
					   struct vma_place *ret)
{
	*ret = (struct vma_place){.user_va = user_va};
	bpf_find_vma(task, user_va, vma_note_place, ret, 0);
}

#endif
