/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Whether the mapping at an address is still the one that a range was made of. The tool reads
 * mappings a moment after they change, and until then the rules of what was there before would lead
 * nowhere, or to a stack that looks complete. What has been looked at holds while the kernel's
 * counter of changes to the process's memory stays the same.
 */
#ifndef BPF_LIB_UNWIND_CHECK_BPF_H
#define BPF_LIB_UNWIND_CHECK_BPF_H

#include "unwind.abi.h"
#include "vma.bpf.h"

/* Of the current task. */
struct unwind_memory {
	__u64 mm_va;
	__u64 seq; /* 0: not known */
};

struct unwind_checked {
	struct unwind_memory memory;
	__u64 user_va; /* the range's start, or a page of memory that has no file */
	__u64 generation;
};

enum { UNWIND_CHECKED = 128, UNWIND_PAGE = 4096 };
enum { VM_EXEC = 4 }; /* include/linux/mm.h */

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, UNWIND_CHECKED);
	__type(key, __u32);
	__type(value, struct unwind_checked);
} unwind_checked SEC(".maps");

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct timespec64___inode {
	__s64 tv_sec;
	long tv_nsec;
};

struct inode___version {
	unsigned long i_ino;
	struct super_block___file *i_sb;
	long long i_size;
	struct timespec64___inode i_ctime;
	struct timespec64___inode __i_ctime; /* 6.6 */
	__s64 i_ctime_sec;                   /* 6.11 */
	__u32 i_ctime_nsec;                  /* 6.13: the highest bit is a mark */
};

struct dentry___inode {
	struct inode___version *d_inode;
};

struct path___inode {
	struct dentry___inode *dentry;
};

/* 6.7: a file of an overlay is mapped by one that lies below it. */
struct backing_file {
	struct path___inode user_path;
};

#pragma clang attribute pop

/* Whether the kernel counts changes of a process's mappings. */
static __always_inline bool unwind_has_seq(void)
{
	struct mm_struct *mm = NULL;
	struct mm_struct___lock_seq *locked = NULL;

	return bpf_core_field_exists(mm->mm_lock_seq) ||
	       bpf_core_field_exists(locked->mm_lock_seq) ||
	       bpf_core_field_exists(mm->vmacache_seqnum);
}

static __always_inline void unwind_memory_of_task(struct unwind_memory *ret)
{
	struct mm_struct *mm = BPF_CORE_READ(this_task(), mm);
	struct mm_struct___lock_seq *locked = (void *)mm;

	ret->mm_va = (__u64)mm;
	ret->seq = 0;
	if (bpf_core_field_exists(mm->mm_lock_seq))
		ret->seq = BPF_CORE_READ(mm, mm_lock_seq.sequence) + 2ULL;
	else if (bpf_core_field_exists(locked->mm_lock_seq))
		ret->seq = 2 * ((__u32)BPF_CORE_READ(locked, mm_lock_seq) + 1ULL);
	else if (bpf_core_field_exists(mm->vmacache_seqnum))
		ret->seq = 2 * (BPF_CORE_READ(mm, vmacache_seqnum) + 1);
	if (ret->seq & 1)
		ret->seq = 0;
}

/* 0: nobody knows. */
static __always_inline __u64 unwind_vdso_va(const struct unwind_memory *memory)
{
	struct mm_struct *mm = (void *)memory->mm_va;

	return bpf_core_field_exists(mm->context.vdso) ? (__u64)BPF_CORE_READ(mm, context.vdso) : 0;
}

static __always_inline struct unwind_checked *
unwind_checked_at(const struct unwind_range *range, __u64 user_va, __u64 *ret_checked_va)
{
	__u64 va =
		range->kind == UNWIND_RANGE_FP ? user_va & ~(UNWIND_PAGE - 1ULL) : range->start_va;
	__u32 key = (va >> 12 ^ va >> 20) & (UNWIND_CHECKED - 1);

	*ret_checked_va = va;
	return bpf_map_lookup_elem(&unwind_checked, &key);
}

/* There is no need to look. */
static __always_inline bool unwind_is_checked(const struct unwind_memory *memory,
					      const struct unwind_range *range, __u64 user_va)
{
	struct unwind_checked *c;
	__u64 va;

	if (range->identity == UNWIND_UNKNOWN)
		return true;
	c = unwind_checked_at(range, user_va, &va);
	return c && memory->seq && c->memory.seq == memory->seq &&
	       c->memory.mm_va == memory->mm_va && c->user_va == va &&
	       c->generation == range->generation;
}

/* `named` is the inode by whose numbers the file goes; its content is that of `inode`. */
static __always_inline __u64 unwind_file_identity(const struct inode___version *named,
						  const struct inode___version *inode,
						  bool is_memory, __u64 page)
{
	__u64 number = BPF_CORE_READ(named, i_ino), ctime_s = 0, ctime_ns = 0;
	__u32 device = BPF_CORE_READ(named, i_sb, s_dev);

	if (is_memory)
		return unwind_memory_identity(number, device);
	if (bpf_core_field_exists(inode->i_ctime_sec)) {
		ctime_s = BPF_CORE_READ(inode, i_ctime_sec);
		ctime_ns = BPF_CORE_READ(inode, i_ctime_nsec) & 0x7fffffff;
	} else if (bpf_core_field_exists(inode->__i_ctime)) {
		ctime_s = BPF_CORE_READ(inode, __i_ctime.tv_sec);
		ctime_ns = BPF_CORE_READ(inode, __i_ctime.tv_nsec);
	} else if (bpf_core_field_exists(inode->i_ctime)) {
		ctime_s = BPF_CORE_READ(inode, i_ctime.tv_sec);
		ctime_ns = BPF_CORE_READ(inode, i_ctime.tv_nsec);
	}
	return unwind_identity(number, device, page, BPF_CORE_READ(inode, i_size), ctime_s,
			       ctime_ns);
}

/* The inode that /proc shows of a file which lies below an overlay; of another file anything, or
 * NULL: the mark of such files is another bit in each kernel. */
static __always_inline struct inode___version *unwind_named_inode(struct file___file *file)
{
	struct backing_file *backing = (void *)file;

	if (!bpf_core_type_exists(struct backing_file) ||
	    !bpf_core_field_exists(backing->user_path))
		return NULL;
	return BPF_CORE_READ(backing, user_path.dentry, d_inode);
}

/* Of an ELF file's mapping; `by_name` as /proc has it: 0, where there is no such inode. */
static __always_inline __u64 unwind_mapped_identity(struct vm_area_struct *vma,
						    struct file___file *file, bool by_name)
{
	struct inode___version *inode = (void *)BPF_CORE_READ(file, f_inode);
	struct inode___version *named = by_name ? unwind_named_inode(file) : inode;

	return named ? unwind_file_identity(named, inode, false, BPF_CORE_READ(vma, vm_pgoff)) : 0;
}

/* Under which the tool notes that it knows a program: its numbers alone. */
static __always_inline __u64 unwind_program_identity(struct file___file *file)
{
	struct inode___version *inode = (void *)BPF_CORE_READ(file, f_inode);

	return unwind_file_identity(inode, inode, true, 0);
}

static __always_inline bool unwind_same_mapping(struct vm_area_struct *vma,
						const struct unwind_range *range)
{
	bool is_memory = range->kind == UNWIND_RANGE_FP;
	struct file___file *file = BPF_CORE_READ(vma, vm_file);
	struct inode___version *inode, *named;
	__u64 page;

	if (!is_memory && (BPF_CORE_READ(vma, vm_start) != range->start_va ||
			   BPF_CORE_READ(vma, vm_end) != range->end_va))
		return false;
	if (!file)
		return !range->identity;
	page = BPF_CORE_READ(vma, vm_pgoff);
	inode = (void *)BPF_CORE_READ(file, f_inode);
	if (unwind_file_identity(inode, inode, is_memory, page) == range->identity)
		return true;
	named = unwind_named_inode(file);
	return named && unwind_file_identity(named, inode, is_memory, page) == range->identity;
}

static __always_inline struct vm_area_struct *unwind_vma(const struct unwind_memory *memory,
							 __u64 user_va)
{
	return (void *)(bpf_core_field_exists(struct mm_struct, mm_mt)
				? vma_in_maple_tree(memory->mm_va, user_va)
				: vma_in_rb_tree(memory->mm_va, user_va));
}

/* There is code, or will be. */
static __always_inline bool unwind_is_code(struct vm_area_struct *vma)
{
	return vma && BPF_CORE_READ(vma, vm_flags) & VM_EXEC;
}

/* Whether a mapping is that of the range; noted when it is. It calls nothing: the chain of calls up
 * to here may have eight frames. */
static __noinline bool unwind_check(struct vm_area_struct *vma, const struct unwind_memory *memory,
				    const struct unwind_range *range, __u64 user_va)
{
	struct unwind_checked *c;
	__u64 va;

	if (!unwind_same_mapping(vma, range))
		return false;
	c = unwind_checked_at(range, user_va, &va);
	if (c) {
		c->memory = *memory;
		c->user_va = va;
		c->generation = range->generation;
	}
	return true;
}

#endif
