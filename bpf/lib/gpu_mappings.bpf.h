/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Mappings of watched devices: how they come, and how they go, by munmap, under another mapping, to
 * another address. Included by gpu_calls.bpf.h.
 */
#ifndef BPF_LIB_GPU_MAPPINGS_BPF_H
#define BPF_LIB_GPU_MAPPINGS_BPF_H

enum {
	UNMAPPED_PARTS = 64, /* mappings looked at in a range */
	MAP_IS_FIXED = 0x10, /* MAP_FIXED */
	REMAP_IS_FIXED = 2,  /* MREMAP_FIXED */
};

/* A range of memory, from its begin on; of programs that nothing of the same CPU interrupts. */
struct unmapped {
	__u64 at, end;
	__u64 device_bytes;
	struct found_device device; /* the first */
	__u32 has_device;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct unmapped);
} gpu_unmapped SEC(".maps");

/* One mapping of it, or what lies between two. Not 0: it is over. Global: see file_walk_step. */
__noinline int gpu_unmapped_step(void)
{
	__u64 mm_va = (__u64)BPF_CORE_READ(this_task(), mm), end;
	struct found_device device = {};
	struct vm_area_struct *vma;
	struct file___file *file;
	struct unmapped *u;
	__u32 zero = 0;

	u = bpf_map_lookup_elem(&gpu_unmapped, &zero);
	if (!u)
		return 1;
	vma = (void *)vma_find(mm_va, u->at);
	end = vma ? BPF_CORE_READ(vma, vm_end) : vma_gap_end(mm_va, u->at);
	if (end > u->end || end <= u->at)
		end = u->end;
	file = vma ? BPF_CORE_READ(vma, vm_file) : NULL;
	if (file && find_device(file, &device)) {
		u->device_bytes += end - u->at;
		if (!u->has_device)
			u->device = device;
		u->has_device = 1;
	}
	u->at = end;
	return u->at >= u->end;
}

static __always_inline __u64 whole_pages(__u64 n_bytes)
{
	return (n_bytes + gpu_setup.page_bytes - 1) & ~(gpu_setup.page_bytes - 1);
}

/* What is mapped there, and will not be: a mapping of before the start, a part of one, several. */
static __noinline bool enter_unmap(struct gpu_call *st, __u64 begin, __u64 n_bytes)
{
	struct unmapped *u;
	__u32 zero = 0;

	u = bpf_map_lookup_elem(&gpu_unmapped, &zero);
	if (!u)
		return false;
	u->at = begin;
	u->end = u->at + whole_pages(n_bytes);
	u->device_bytes = u->has_device = 0;
	for (__u32 i = 0; i < UNMAPPED_PARTS; i++)
		if (gpu_unmapped_step())
			break;
	if (u->at < u->end)
		gpu_count(GPU_RANGES_CUT);
	if (!u->has_device)
		return false;
	set_device(&st->key, &u->device);
	st->arg = begin;
	st->range_bytes = whole_pages(n_bytes);
	st->length_bytes = u->device_bytes;
	return true;
}

static __always_inline bool enter_map_over(struct gpu_call *st, __u64 begin, __u64 n_bytes)
{
	st->key.kind = GPU_MAP_OVER;
	return enter_unmap(st, begin, n_bytes);
}

static __noinline bool enter_mmap(struct gpu_call *st, struct task_struct *task,
				  const struct call_args *args)
{
	struct found_device device = {};

	if (!find_device_of_fd(task, (__s32)args->v[4], &device))
		return args->v[3] & MAP_IS_FIXED && enter_map_over(st, args->v[0], args->v[1]);
	set_device(&st->key, &device);
	st->length_bytes = whole_pages(args->v[1]);
	return true;
}

/* Since 6.17 a move may be of several mappings, of which some are of devices. */
static __noinline bool enter_mremap(struct gpu_call *st, const struct call_args *args)
{
	/* A length of 0 maps the same once more. */
	if (!enter_unmap(st, args->v[0], args->v[1] ? args->v[1] : 1))
		return args->v[3] & REMAP_IS_FIXED && enter_map_over(st, args->v[4], args->v[2]);
	st->range_bytes = whole_pages(args->v[1]);
	st->length_bytes = whole_pages(args->v[2]);
	st->remap_flags = args->v[3];
	return true;
}

#endif
