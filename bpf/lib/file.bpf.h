/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* From a descriptor of a task to its file, and from a file to its path, at the time of a call. */
#ifndef BPF_LIB_FILE_BPF_H
#define BPF_LIB_FILE_BPF_H

#include "compat.bpf.h"
#include "file_types.h"

static __always_inline struct file___file *file_of_fd(const void *task, __u32 fd)
{
	struct fdtable___file *table =
		BPF_CORE_READ((const struct task_struct___file *)task, files, fdt);
	struct file___file **all, *file = NULL;

	if (!table || fd >= BPF_CORE_READ(table, max_fds))
		return NULL;
	all = BPF_CORE_READ(table, fd);
	bpf_probe_read_kernel(&file, sizeof(file), all + fd);
	return file;
}

enum { FILE_PATH_PARTS = 16, FILE_PART_BYTES = 64 };

/* A walk from a file to the root of the outermost mount, mounts crossed. In a map, where the step
 * finds it. */
struct file_walk {
	struct dentry___file *dentry;
	struct mount___file *mount;
	__u32 n; /* parts; one more than there is room for when the path is longer */
	__u32 pad;
	char part[FILE_PATH_PARTS][FILE_PART_BYTES]; /* from the leaf up */
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct file_walk);
} file_walks SEC(".maps");

/* Not 0: it is over. Global, so that the verifier looks at it once, and the loop around it costs it
 * nothing. */
__noinline int file_walk_step(void)
{
	__u32 zero = 0;
	struct file_walk *w = bpf_map_lookup_elem(&file_walks, &zero);
	struct dentry___file *dentry, *parent;
	struct mount___file *mount, *above;

	if (!w)
		return 1;
	dentry = w->dentry;
	mount = w->mount;
	parent = BPF_CORE_READ(dentry, d_parent);
	if (dentry == BPF_CORE_READ(mount, mnt.mnt_root) || dentry == parent) {
		above = BPF_CORE_READ(mount, mnt_parent);
		if (above == mount || !above)
			return 1;
		w->dentry = BPF_CORE_READ(mount, mnt_mountpoint);
		w->mount = above;
		return 0;
	}
	if (w->n >= FILE_PATH_PARTS) {
		w->n = FILE_PATH_PARTS + 1;
		return 1;
	}
	bpf_probe_read_kernel_str(w->part[w->n & (FILE_PATH_PARTS - 1)], FILE_PART_BYTES,
				  BPF_CORE_READ(dentry, d_name.name));
	w->n++;
	w->dentry = parent;
	return 0;
}

/* The components of a file's path; NULL never happens. */
static __always_inline struct file_walk *file_walk(struct file___file *file)
{
	__u32 zero = 0;
	struct file_walk *w = bpf_map_lookup_elem(&file_walks, &zero);

	if (!w)
		return NULL;
	w->dentry = BPF_CORE_READ(file, f_path.dentry);
	w->mount = (void *)BPF_CORE_READ(file, f_path.mnt) -
		   bpf_core_field_offset(struct mount___file, mnt);
	w->n = 0;
	/* A mount's root costs a turn too. */
	for (__u32 i = 0; i < 2 * FILE_PATH_PARTS; i++)
		if (file_walk_step())
			break;
	return w;
}

#endif
