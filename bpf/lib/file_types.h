/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* From a descriptor to its file, its inode and its path: the kernel's types, as kernel_types.h. */
#ifndef BPF_LIB_FILE_TYPES_H
#define BPF_LIB_FILE_TYPES_H

#include "kernel_types.h"

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct qstr___file {
	const unsigned char *name;
};

struct super_block___file {
	unsigned int s_dev;
	unsigned long s_magic;
};

struct inode___file {
	unsigned short i_mode;
	unsigned int i_rdev;
	unsigned long i_ino;
	unsigned int i_generation;
	struct super_block___file *i_sb;
};

struct dentry___file {
	struct dentry___file *d_parent;
	struct qstr___file d_name;
};

struct vfsmount___file {
	struct dentry___file *mnt_root;
};

struct mount___file {
	struct mount___file *mnt_parent;
	struct dentry___file *mnt_mountpoint;
	struct vfsmount___file mnt;
};

struct path___file {
	struct vfsmount___file *mnt;
	struct dentry___file *dentry;
};

struct file___file {
	struct path___file f_path;
	struct inode___file *f_inode;
	unsigned int f_flags;
	const struct file_operations *f_op;
	void *private_data;
};

struct fdtable___file {
	unsigned int max_fds;
	struct file___file **fd;
};

struct files_struct___file {
	struct fdtable___file *fdt;
};

struct task_struct___file {
	struct files_struct___file *files;
};

#pragma clang attribute pop

#endif
