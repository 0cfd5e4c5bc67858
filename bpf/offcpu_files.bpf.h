/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Names of the files that threads wait for, as they were at the first such switch: a process that
 * has ended when its waits are read has no descriptors any more.
 */
#ifndef OFFCPU_FILES_BPF_H
#define OFFCPU_FILES_BPF_H

#include "lib/file_name.bpf.h"

enum {
	KIND_FIFO = 0010000,
	KIND_NONE = 0, /* eventfd, epoll and their like: all have one inode */
	MAGIC_PIPE = 0x50495045,
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, OFFCPU_FILES_MAX);
	__type(key, struct offcpu_file_key);
	__type(value, struct offcpu_file);
} met_files SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct offcpu_file);
} new_file SEC(".maps");

static __always_inline void keep_ends(struct offcpu_file *to, struct file___file *file)
{
	struct socket___name *socket = BPF_CORE_READ((struct file___name *)file, private_data);
	struct sock___name *sk = socket ? BPF_CORE_READ(socket, sk) : NULL;

	if (!sk)
		return;
	to->family = BPF_CORE_READ(sk, __sk_common.skc_family);
	to->protocol = BPF_CORE_READ(sk, sk_protocol);
	to->local_port = BPF_CORE_READ(sk, __sk_common.skc_num);
	to->remote_port = __builtin_bswap16(BPF_CORE_READ(sk, __sk_common.skc_dport));
	if (to->family == AF_INET) {
		BPF_CORE_READ_INTO((__u32 *)to->local, sk, __sk_common.skc_rcv_saddr);
		BPF_CORE_READ_INTO((__u32 *)to->remote, sk, __sk_common.skc_daddr);
	} else if (to->family == AF_INET6) {
		BPF_CORE_READ_INTO(&to->local, sk, __sk_common.skc_v6_rcv_saddr);
		BPF_CORE_READ_INTO(&to->remote, sk, __sk_common.skc_v6_daddr);
	}
}

/* Of what `wait` is at. At a switch alone: the room is the CPU's. */
static __noinline int keep_file(struct file___file *file, const struct offcpu_key *wait)
{
	struct offcpu_file_key key = {.inode = wait->inode,
				      .device = wait->arg >> OFFCPU_DEVICE_SHIFT};
	__u32 zero = 0, kind = wait->file_mode & S_IFMT;
	struct offcpu_file *to;
	struct file_walk *walk;

	if (kind == KIND_NONE || bpf_map_lookup_elem(&met_files, &key) ||
	    (kind == KIND_FIFO && BPF_CORE_READ(file, f_inode, i_sb, s_magic) == MAGIC_PIPE))
		return 0;
	to = bpf_map_lookup_elem(&new_file, &zero);
	if (!to)
		return 0;
	__builtin_memset(to, 0, offsetof(struct offcpu_file, part));
	if (kind == S_IFSOCK) {
		keep_ends(to, file);
	} else {
		walk = file_walk(file);
		if (!walk)
			return 0;
		to->parts = walk->n;
		__builtin_memcpy(to->part, walk->part, sizeof(to->part));
	}
	bpf_map_update_elem(&met_files, &key, to, BPF_NOEXIST);
	return 0;
}

#endif
