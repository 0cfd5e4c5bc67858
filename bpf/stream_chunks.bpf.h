/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What a call in progress has gathered: a head, and chunks of what its pointers pointed to. */
#ifndef STREAM_CHUNKS_BPF_H
#define STREAM_CHUNKS_BPF_H

#include "lib/file_name.bpf.h"
#include "stream.abi.h"

const volatile struct stream_setup setup;

struct stream_state {
	struct stream_head head;
	__u8 data[STREAM_STATE_DATA];
	/* With stacks: where it last slept in the call. */
	__u64 n_kernel, kernel[STREAM_KERNEL_FRAMES];
};

/* --- chunks ----------------------------------------------------------------------------------- */

/* Bounds are tested on 64 bits: what the compiler makes of narrower ones hides them from the
 * verifier. */

/* Where the next chunk begins, or NULL: there is no room for one. */
static __always_inline __u8 *chunk_begin(struct stream_state *st)
{
	__u64 at = st->head.n_bytes;

	if (at > STREAM_DATA_BYTES)
		return NULL;
	barrier_var(at); /* the sum must come behind the test */
	return &st->data[at];
}

static __always_inline void chunk_end(struct stream_state *st, __u8 *begin, __u32 arg_kind,
				      __u64 n_bytes, bool truncated)
{
	struct stream_chunk *c = (struct stream_chunk *)begin;

	c->arg = arg_kind & 0xff;
	c->kind = arg_kind >> 8;
	c->truncated = truncated;
	c->pad = 0;
	c->n_bytes = n_bytes;
	c->pad2 = 0;
	st->head.n_bytes += sizeof(*c) + ((n_bytes + 7) & ~7ull);
}

enum { TRUNCATED = 1u << 31 }; /* in a number of bytes */

/* Functions that are not static are looked at once by the verifier, whoever calls them; it takes
 * their pointers for ones that may be NULL. */

/* 0, or -1: nothing could be read. */
__noinline int put_memory(struct stream_state *st, __u32 arg_kind, __u64 user_va, __u32 n_bytes)
{
	__u8 *at = st ? chunk_begin(st) : NULL;
	__u64 take = n_bytes & ~TRUNCATED;
	bool truncated = n_bytes & TRUNCATED;

	if (!at)
		return 0; /* told by the argument being without its contents */
	if (take > STREAM_CHUNK_BYTES) {
		take = STREAM_CHUNK_BYTES;
		truncated = true;
	}
	barrier_var(take);
	if (take > STREAM_CHUNK_BYTES)
		return 0;
	if (bpf_probe_read_user(at + sizeof(struct stream_chunk), take, (void *)user_va))
		return -1;
	chunk_end(st, at, arg_kind, take, truncated);
	return 0;
}

__noinline int put_string(struct stream_state *st, __u32 arg_kind, __u64 user_va, __u64 max_bytes)
{
	__u8 *at = st ? chunk_begin(st) : NULL;
	long n;

	if (!at)
		return 0;
	barrier_var(max_bytes);
	if (max_bytes > STREAM_CHUNK_BYTES)
		return 0;
	n = bpf_probe_read_user_str(at + sizeof(struct stream_chunk), max_bytes, (void *)user_va);
	if (n < 0)
		return -1;
	chunk_end(st, at, arg_kind, n, n >= max_bytes);
	return 0;
}

static __always_inline void put_number(struct stream_state *st, __u8 arg, __u64 value,
				       bool truncated)
{
	__u8 *at = st ? chunk_begin(st) : NULL;

	if (!at)
		return;
	*(__u64 *)(at + sizeof(struct stream_chunk)) = value;
	chunk_end(st, at, arg | STREAM_CHUNK_COUNT << 8, sizeof(value), truncated);
}

/* --- names of descriptors --------------------------------------------------------------------- */

/* The room of a chunk. */
struct file_room {
	struct stream_chunk chunk;
	struct stream_file file;
	__u8 names[STREAM_CHUNK_BYTES];
};

/* The state of a walk up a path: in a map, where put_component finds it. */
struct name_walk {
	struct name_cursor cursor;
	__u64 used; /* bytes of names */
	__u64 above;
	__u8 names[STREAM_CHUNK_BYTES];
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct name_walk);
} name_walks SEC(".maps");

/* Not 0: it is over. */
__noinline int put_component(__u32 i)
{
	__u32 zero = 0;
	struct name_walk *w = bpf_map_lookup_elem(&name_walks, &zero);
	const unsigned char *name;
	__u64 at;
	long n;

	if (!w || !name_step(&w->cursor, &name))
		return 1;
	w->above = i == STREAM_FILE_PARTS - 1;
	if (!name)
		return 0;
	at = w->used;
	barrier_var(at); /* one register for the test and the sum */
	if (at > STREAM_CHUNK_BYTES - sizeof(struct stream_file) - NAME_BYTES_MAX) {
		w->above = 1;
		return 1;
	}
	barrier_var(at);
	n = bpf_probe_read_kernel_str(&w->names[at], NAME_BYTES_MAX, name);
	if (n > 0)
		w->used = at + n;
	return 0;
}

/* The components of a path from the leaf up. How many bytes. dentry and mount: pointers. */
__noinline __u64 put_components(struct file_room *out, __u64 dentry, __u64 mnt)
{
	struct task_struct___name *task = (void *)this_task();
	__u32 zero = 0;
	struct name_walk *w = bpf_map_lookup_elem(&name_walks, &zero);
	__u64 used;

	if (!out || !w)
		return 0;
	w->cursor.dentry = (void *)dentry;
	w->cursor.mount = mount_of((void *)mnt);
	w->cursor.root = BPF_CORE_READ(task, fs, root.dentry);
	w->cursor.root_mnt = BPF_CORE_READ(task, fs, root.mnt);
	w->used = 0;
	w->above = 0;
	for (__u32 i = 0; i < STREAM_FILE_PARTS; i++)
		if (put_component(i))
			break;
	used = w->used;
	barrier_var(used);
	if (used > STREAM_CHUNK_BYTES)
		return 0;
	barrier_var(used);
	bpf_probe_read_kernel(out->names, used, w->names);
	out->file.above = w->above;
	return used;
}

static __always_inline __u64 put_unix(struct stream_socket *out, struct sock___name *sk)
{
	struct unix_address___name *address = unix_address(sk);
	__u64 bytes;

	if (!bpf_core_type_exists(struct unix_sock___name))
		return 0;
	if (!address) {
		address = unix_address(BPF_CORE_READ((struct unix_sock___name *)sk, peer));
		out->peers_path = 1;
	}
	bytes = address ? BPF_CORE_READ(address, len) - sizeof(__u16) : 0; /* the family */
	barrier_var(bytes);
	if (!bytes || bytes > UNIX_PATH_BYTES)
		return 0;
	if (bpf_probe_read_kernel(out + 1, bytes,
				  (void *)&address->len + sizeof(address->len) + sizeof(__u16)))
		return 0;
	out->path_bytes = bytes;
	return bytes;
}

__noinline __u64 put_socket(struct file_room *room, __u64 socket_va)
{
	struct socket___name *socket = (void *)socket_va;
	struct sock___name *sk = BPF_CORE_READ(socket, sk);
	struct stream_socket *out;

	if (!room)
		return 0;
	out = (struct stream_socket *)room->names;
	__builtin_memset(out, 0, sizeof(*out));
	if (!sk)
		return sizeof(*out);
	out->family = BPF_CORE_READ(sk, __sk_common.skc_family);
	out->type = BPF_CORE_READ(sk, sk_type);
	out->protocol = BPF_CORE_READ(sk, sk_protocol);
	if (out->family == AF_UNIX)
		return sizeof(*out) + put_unix(out, sk);
	if (out->family == AF_INET) {
		*(__u32 *)out->local = BPF_CORE_READ(sk, __sk_common.skc_rcv_saddr);
		*(__u32 *)out->remote = BPF_CORE_READ(sk, __sk_common.skc_daddr);
	} else if (out->family == AF_INET6) {
		BPF_CORE_READ_INTO(&out->local, sk, __sk_common.skc_v6_rcv_saddr);
		BPF_CORE_READ_INTO(&out->remote, sk, __sk_common.skc_v6_daddr);
	}
	out->local_port = BPF_CORE_READ(sk, __sk_common.skc_num);
	out->remote_port = __builtin_bswap16(BPF_CORE_READ(sk, __sk_common.skc_dport));
	return sizeof(*out);
}

static __always_inline int end_file(struct stream_state *st, struct file_room *out, __u32 arg_kind,
				    __u64 bytes)
{
	bytes += sizeof(out->file);
	if (bytes <= STREAM_CHUNK_BYTES)
		chunk_end(st, (__u8 *)out, arg_kind, bytes, false);
	return 0;
}

__noinline int put_file(struct stream_state *st, __u32 arg_kind, __u64 file_va)
{
	struct file___file *file = (void *)file_va;
	struct dentry___file *dentry = BPF_CORE_READ(file, f_path.dentry);
	struct file_room *out = st ? (struct file_room *)chunk_begin(st) : NULL;

	if (!out)
		return 0;
	out->file.inode = BPF_CORE_READ(file, f_inode, i_ino);
	out->file.magic = BPF_CORE_READ(file, f_inode, i_sb, s_magic);
	out->file.mode = BPF_CORE_READ(file, f_inode, i_mode);
	out->file.deleted = !BPF_CORE_READ((struct dentry___name *)dentry, d_hash.pprev) &&
			    BPF_CORE_READ(dentry, d_parent) != dentry;
	out->file.above = 0;
	out->file.pad = 0;
	if ((out->file.mode & S_IFMT) == S_IFSOCK)
		return end_file(st, out, arg_kind,
				put_socket(out, (__u64)BPF_CORE_READ((struct file___name *)file,
								     private_data)));
	return end_file(st, out, arg_kind,
			put_components(out, (__u64)dentry, (__u64)BPF_CORE_READ(file, f_path.mnt)));
}

__noinline int put_fd(struct stream_state *st, __u32 arg_kind, __s32 fd)
{
	struct file___file *file = NULL;

	if (fd >= 0 && setup.with_names)
		file = file_of_fd(this_task(), fd);
	return st && file ? put_file(st, arg_kind, (__u64)file) : 0;
}

__noinline int put_cwd(struct stream_state *st, __u32 arg_kind)
{
	struct task_struct___name *task = (void *)this_task();
	struct file_room *out = st ? (struct file_room *)chunk_begin(st) : NULL;

	if (!out)
		return 0;
	__builtin_memset(&out->file, 0, sizeof(out->file));
	return end_file(st, out, arg_kind,
			put_components(out, (__u64)BPF_CORE_READ(task, fs, pwd.dentry),
				       (__u64)BPF_CORE_READ(task, fs, pwd.mnt)));
}

#endif
