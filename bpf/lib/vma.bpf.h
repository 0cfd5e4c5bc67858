/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The file that lies at an address of a task, and the place in it. By what the kernel keeps: up to
 * 6.0 a tree (lib/rbtree.h), then a maple tree (lib/maple_tree.c). bpf_find_vma is of 5.17, and a
 * program that gives it the callback does not load before 5.13. There is no lock: while mappings
 * change, one may be missed.
 */
#ifndef BPF_LIB_VMA_BPF_H
#define BPF_LIB_VMA_BPF_H

#include "compat.bpf.h"
#include "file_types.h"

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct rb_node {
	struct rb_node *rb_right, *rb_left;
};

struct maple_range_64 {
	unsigned long pivot[15];
	void *slot[16];
};

struct maple_arange_64 {
	unsigned long pivot[9];
	void *slot[10];
};

struct vm_area_struct {
	unsigned long vm_start, vm_end, vm_pgoff, vm_flags;
	struct mm_struct *vm_mm;
	struct file___file *vm_file;
	struct rb_node vm_rb; /* up to 6.0 */
};

#pragma clang attribute pop

enum {
	PAGE_SHIFT = 12,
	VMA_RB_DEPTH = 40, /* twice the logarithm of 65,530 mappings, and some */
	VMA_MAPLE_DEPTH = 10,
	/* include/linux/maple_tree.h, lib/maple_tree.c */
	MAPLE_NODE_MASK = 255,
	MAPLE_TYPE_SHIFT = 3,
	MAPLE_TYPE_MASK = 15,
	MAPLE_LEAF_64 = 1,
	MAPLE_RANGE_64 = 2,
	MAPLE_ARANGE_64 = 3,
	MAPLE_ROOT_MASK = 3,
	MAPLE_ROOT_NODE = 2,
	MAPLE_ENTRIES_END = 4096,
	MAPLE_SLOTS = 16,
	MAPLE_ARANGE_SLOTS = 10,
};

/* Numbers, 0: none. Global, as all that follow, so that the verifier looks at a loop once. */
__noinline __u64 vma_in_rb_tree(__u64 mm_va, __u64 user_va)
{
	struct mm_struct *mm = (void *)mm_va;
	struct rb_node *node;

	if (!bpf_core_field_exists(struct mm_struct, mm_rb))
		return 0;
	node = BPF_CORE_READ(mm, mm_rb.rb_node);
	for (int i = 0; i < VMA_RB_DEPTH && node; i++) {
		struct vm_area_struct *vma =
			(void *)node - bpf_core_field_offset(struct vm_area_struct, vm_rb);

		if (user_va >= BPF_CORE_READ(vma, vm_end))
			node = BPF_CORE_READ(node, rb_right);
		else if (user_va < BPF_CORE_READ(vma, vm_start))
			node = BPF_CORE_READ(node, rb_left);
		else
			return (__u64)vma;
	}
	return 0;
}

/* The slot of a node that has the address: pivots are the last addresses of slots, 0 behind the
 * end. With `last_va`, the last address of the node: that of the slot. One by one: there is no room
 * for them on a program's stack. */
__noinline __u64 vma_maple_slot(__u64 entry, __u64 user_va, __u64 last_va)
{
	void *node = (void *)(entry & ~(__u64)MAPLE_NODE_MASK);
	__u64 *pivots, *slots, slot = 0, pivot, slot_last_va = last_va;
	int n = MAPLE_SLOTS - 1;

	if (!bpf_core_type_exists(struct maple_arange_64))
		return 0;
	if ((entry >> MAPLE_TYPE_SHIFT & MAPLE_TYPE_MASK) == MAPLE_ARANGE_64) {
		pivots = node + bpf_core_field_offset(struct maple_arange_64, pivot);
		slots = node + bpf_core_field_offset(struct maple_arange_64, slot);
		n = MAPLE_ARANGE_SLOTS - 1;
	} else {
		pivots = node + bpf_core_field_offset(struct maple_range_64, pivot);
		slots = node + bpf_core_field_offset(struct maple_range_64, slot);
	}
	for (int i = 0; i < MAPLE_SLOTS - 1 && i < n; i++, pivots++, slots++) {
		if (bpf_probe_read_kernel(&pivot, sizeof(pivot), pivots) || !pivot)
			break;
		if (pivot >= user_va) {
			slot_last_va = pivot;
			break;
		}
	}
	if (last_va)
		return slot_last_va;
	bpf_probe_read_kernel(&slot, sizeof(slot), slots);
	return slot;
}

__noinline __u64 vma_in_maple_tree(__u64 mm_va, __u64 user_va)
{
	struct mm_struct *mm = (void *)mm_va;
	struct vm_area_struct *vma;
	__u64 entry;

	if (!bpf_core_field_exists(struct mm_struct, mm_mt))
		return 0;
	entry = (__u64)BPF_CORE_READ(mm, mm_mt.ma_root);
	if ((entry & MAPLE_ROOT_MASK) != MAPLE_ROOT_NODE)
		return 0; /* an entry in place of a tree */
	for (int i = 0; i < VMA_MAPLE_DEPTH; i++) {
		__u64 type = entry >> MAPLE_TYPE_SHIFT & MAPLE_TYPE_MASK;

		if (entry < MAPLE_ENTRIES_END || type < MAPLE_LEAF_64 || type > MAPLE_ARANGE_64)
			return 0;
		entry = vma_maple_slot(entry, user_va, 0);
		if (type == MAPLE_LEAF_64)
			break;
	}
	vma = (void *)entry;
	if (!vma || user_va < BPF_CORE_READ(vma, vm_start) || user_va >= BPF_CORE_READ(vma, vm_end))
		return 0;
	return entry;
}

/* Where no mapping is at the address, an address up to which there is none; 0: to the end. */
__noinline __u64 vma_gap_in_rb_tree(__u64 mm_va, __u64 user_va)
{
	struct mm_struct *mm = (void *)mm_va;
	struct rb_node *node;
	__u64 next_va = 0;

	if (!bpf_core_field_exists(struct mm_struct, mm_rb))
		return 0;
	node = BPF_CORE_READ(mm, mm_rb.rb_node);
	for (int i = 0; i < VMA_RB_DEPTH && node; i++) {
		struct vm_area_struct *vma =
			(void *)node - bpf_core_field_offset(struct vm_area_struct, vm_rb);
		__u64 start_va = BPF_CORE_READ(vma, vm_start);

		if (start_va > user_va)
			next_va = start_va;
		node = start_va > user_va ? BPF_CORE_READ(node, rb_left)
					  : BPF_CORE_READ(node, rb_right);
	}
	return next_va;
}

__noinline __u64 vma_gap_in_maple_tree(__u64 mm_va, __u64 user_va)
{
	struct mm_struct *mm = (void *)mm_va;
	__u64 entry, last_va = ~(__u64)0;

	if (!bpf_core_field_exists(struct mm_struct, mm_mt))
		return 0;
	entry = (__u64)BPF_CORE_READ(mm, mm_mt.ma_root);
	if ((entry & MAPLE_ROOT_MASK) != MAPLE_ROOT_NODE)
		return 0;
	for (int i = 0; i < VMA_MAPLE_DEPTH; i++) {
		__u64 type = entry >> MAPLE_TYPE_SHIFT & MAPLE_TYPE_MASK;

		if (entry < MAPLE_ENTRIES_END || type < MAPLE_LEAF_64 || type > MAPLE_ARANGE_64)
			return 0;
		last_va = vma_maple_slot(entry, user_va, last_va);
		if (type == MAPLE_LEAF_64)
			return last_va + 1;
		entry = vma_maple_slot(entry, user_va, 0);
	}
	return 0;
}

static __always_inline __u64 vma_gap_end(__u64 mm_va, __u64 user_va)
{
	return bpf_core_field_exists(struct mm_struct, mm_mt)
		       ? vma_gap_in_maple_tree(mm_va, user_va)
		       : vma_gap_in_rb_tree(mm_va, user_va);
}

/* The mapping at an address; 0: none, or the mappings were being changed. */
static __always_inline __u64 vma_find(__u64 mm_va, __u64 user_va)
{
	return bpf_core_field_exists(struct mm_struct, mm_mt) ? vma_in_maple_tree(mm_va, user_va)
							      : vma_in_rb_tree(mm_va, user_va);
}

struct vma_place {
	__u64 user_va;
	__u64 file_va; /* the struct file; 0: none, or the mappings were being changed */
	__u64 file_off;
	__u64 inode;
	__u32 device, generation;
};

static __always_inline void vma_find_place(struct task_struct *task, __u64 user_va,
					   struct vma_place *ret)
{
	struct vm_area_struct *vma = (void *)vma_find((__u64)BPF_CORE_READ(task, mm), user_va);
	struct inode___file *inode;
	struct file___file *file;

	*ret = (struct vma_place){.user_va = user_va};
	file = vma ? BPF_CORE_READ(vma, vm_file) : NULL;
	inode = file ? BPF_CORE_READ(file, f_inode) : NULL;
	if (!inode)
		return;
	ret->file_va = (__u64)file;
	ret->inode = BPF_CORE_READ(inode, i_ino);
	ret->device = BPF_CORE_READ(inode, i_sb, s_dev);
	ret->generation = BPF_CORE_READ(inode, i_generation);
	ret->file_off = user_va - BPF_CORE_READ(vma, vm_start) +
			(BPF_CORE_READ(vma, vm_pgoff) << PAGE_SHIFT);
}

#endif
