/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The whole name of a file, as the process knows it, or the ends of a socket, into a buffer. */
#ifndef BPF_LIB_FILE_NAME_BPF_H
#define BPF_LIB_FILE_NAME_BPF_H

#include "file.bpf.h"

enum {
	S_IFMT = 0170000,
	S_IFSOCK = 0140000,
	AF_UNIX = 1,
	AF_INET = 2,
	AF_INET6 = 10,
	UNIX_PATH_BYTES = 108, /* sizeof(sun_path) */
	NAME_BYTES_MAX = 256,  /* of one component, with its NUL */
};

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct hlist_bl_node___name {
	void *pprev;
};

struct dentry___name {
	struct hlist_bl_node___name d_hash;
};

struct fs_struct___name {
	struct path___file root, pwd;
};

struct task_struct___name {
	struct fs_struct___name *fs;
};

struct in6_addr___name {
	__u8 s6_addr[16];
};

struct sock_common___name {
	unsigned short skc_family, skc_num;
	__u16 skc_dport;
	__u32 skc_daddr, skc_rcv_saddr;
	struct in6_addr___name skc_v6_daddr, skc_v6_rcv_saddr;
};

struct sock___name {
	struct sock_common___name __sk_common;
	__u16 sk_type, sk_protocol;
};

struct socket___name {
	struct sock___name *sk;
};

struct file___name {
	void *private_data;
};

struct unix_address___name {
	int len; /* right before the struct sockaddr_un */
};

struct unix_sock___name {
	struct unix_address___name *addr;
	struct sock___name *peer;
};

#pragma clang attribute pop

struct name_cursor {
	struct dentry___file *dentry;
	struct mount___file *mount;
	struct dentry___file *root;
	struct vfsmount___file *root_mnt;
};

static __always_inline struct mount___file *mount_of(struct vfsmount___file *mnt)
{
	return (void *)mnt - bpf_core_field_offset(struct mount___file, mnt);
}

/* One component: 1 and the cursor goes up; 0 at the root of the process or of all mounts. */
static __always_inline int name_step(struct name_cursor *c, const unsigned char **ret_name)
{
	/* In variables: an access through the cursor would be taken for one of the kernel's. */
	struct dentry___file *dentry = c->dentry, *parent = BPF_CORE_READ(dentry, d_parent);
	struct mount___file *mount = c->mount, *above;
	struct dentry___file *top = BPF_CORE_READ(mount, mnt.mnt_root);
	struct vfsmount___file *mnt =
		(void *)mount + bpf_core_field_offset(struct mount___file, mnt);

	*ret_name = NULL;
	if (dentry == c->root && mnt == c->root_mnt)
		return 0;
	if (dentry == top) {
		above = BPF_CORE_READ(mount, mnt_parent);
		if (above == mount || !above)
			return 0;
		c->dentry = BPF_CORE_READ(mount, mnt_mountpoint);
		c->mount = above;
		return 1;
	}
	*ret_name = BPF_CORE_READ(dentry, d_name.name);
	/* Files of eventfd, memfd_create and their like lie in no folder. */
	c->dentry = parent == dentry ? top : parent;
	return 1;
}

static __always_inline struct unix_address___name *unix_address(struct sock___name *sk)
{
	return sk ? BPF_CORE_READ((struct unix_sock___name *)sk, addr) : NULL;
}

#endif
