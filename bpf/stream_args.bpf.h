/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Taking what arguments point to, as the tool's plan says (src/probe/stream_plan.c). */
#ifndef STREAM_ARGS_BPF_H
#define STREAM_ARGS_BPF_H

#include "stream_chunks.bpf.h"

/* --- arguments -------------------------------------------------------------------------------- */

static __always_inline __u32 limited(__u64 n, __u32 most)
{
	return n > most ? most | TRUNCATED : n;
}

__noinline int put_argv(struct stream_state *st, __u32 arg, __u64 user_va)
{
	__u64 n = 0;
	bool more = true;

	if (!st)
		return 0;
	for (__u32 i = 0; i < STREAM_ITEMS; i++) {
		__u64 text = 0;

		if (bpf_probe_read_user(&text, sizeof(text), (void *)(user_va + 8 * i)))
			return i ? 0 : -1;
		if (!text) {
			more = false;
			break;
		}
		if (put_string(st, arg | STREAM_CHUNK_ITEM << 8, text, STREAM_CHUNK_BYTES / 2))
			break;
		n++;
	}
	put_number(st, arg, n, more);
	return 0;
}

__noinline int put_pointers(struct stream_state *st, __u32 arg, __u64 user_va)
{
	__u64 n = 0, pointer;

	if (!st)
		return 0;
	for (__u32 i = 0; i < STREAM_ENVP_MAX; i++) {
		if (bpf_probe_read_user(&pointer, sizeof(pointer), (void *)(user_va + 8 * i)))
			return i ? 0 : -1;
		if (!pointer)
			break;
		n++;
	}
	put_number(st, arg, n, n == STREAM_ENVP_MAX);
	return 0;
}

/* The list, then the bytes of the first of it; at the exit no more than the call has moved. */
__noinline int put_iovecs(struct stream_state *st, __u32 arg_kind, __u64 user_va, __u64 n,
			  __s64 moved)
{
	__u64 most = setup.string_bytes, left = moved;
	struct {
		__u64 base, bytes;
	} v;

	if (n > STREAM_IOVECS)
		n = STREAM_IOVECS;
	if (!st || put_memory(st, arg_kind, user_va, n * sizeof(v)))
		return -1;
	for (__u32 i = 0; i < STREAM_IOVECS; i++) {
		if (i >= n || !left)
			break;
		if (bpf_probe_read_user(&v, sizeof(v), (void *)(user_va + i * sizeof(v))))
			break;
		if (v.bytes > left)
			v.bytes = left;
		left -= v.bytes;
		if (put_memory(st, (arg_kind & 0xff) | STREAM_CHUNK_ITEM << 8, v.base,
			       limited(v.bytes, most)))
			break;
	}
	return 0;
}

__noinline int put_message(struct stream_state *st, __u32 arg, __u64 user_va, __s64 moved)
{
	/* struct msghdr of 64 bits */
	struct {
		__u64 name;
		__u32 name_bytes, pad;
		__u64 iov, n_iov;
	} m;

	if (!st || put_memory(st, arg, user_va, 56) ||
	    bpf_probe_read_user(&m, sizeof(m), (void *)user_va))
		return -1;
	if (!m.name || put_memory(st, arg | STREAM_CHUNK_INNER << 8, m.name,
				  m.name_bytes > 128 ? 128 : m.name_bytes))
		put_memory(st, arg | STREAM_CHUNK_INNER << 8, 0, 0);
	return put_iovecs(st, arg | STREAM_CHUNK_INNER << 8, m.iov, m.n_iov, moved);
}

static __always_inline __u64 count_of(const struct stream_state *st, const struct stream_arg *a)
{
	__u64 i = a->count;

	if (i == STREAM_COUNT_RESULT)
		return st->head.result > 0 ? st->head.result : 0;
	if (i >= STREAM_ARGS)
		return 0;
	barrier_var(i);
	return st->head.args[i];
}

static __always_inline int put_folder(struct stream_state *st, __u32 arg, __u64 folder)
{
	__u64 i = folder - 1;

	if (!st)
		return 0;
	if (folder == STREAM_FOLDER_CWD)
		return put_cwd(st, arg | STREAM_CHUNK_FOLDER << 8);
	if (i >= STREAM_ARGS)
		return 0;
	barrier_var(i);
	if ((__s32)st->head.args[i] == -100) /* AT_FDCWD */
		return put_cwd(st, arg | STREAM_CHUNK_FOLDER << 8);
	return put_fd(st, arg | STREAM_CHUNK_FOLDER << 8, st->head.args[i]);
}

static __always_inline int put_path(struct stream_state *st, const struct stream_arg *a, __u32 arg,
				    __u64 user_va)
{
	__u8 *at = st ? chunk_begin(st) : NULL;

	if (!at || !a || put_string(st, arg, user_va, STREAM_CHUNK_BYTES))
		return -1;
	if (!a->folder || !setup.with_names || at[sizeof(struct stream_chunk)] == '/')
		return 0;
	return put_folder(st, arg, a->folder);
}

static __always_inline int put_sockaddr_out(struct stream_state *st, const struct stream_arg *a,
					    __u32 arg, __u64 user_va)
{
	__u64 at = st && a ? count_of(st, a) : 0;
	__u32 n = 0;

	if (!at || bpf_probe_read_user(&n, sizeof(n), (void *)at))
		return 0;
	return put_memory(st, arg, user_va, n > 128 ? 128 : n);
}

/* Blocks of what the simple kinds have: where, and how many bytes. */
static __always_inline __u32 bytes_of(const struct stream_state *st, const struct stream_arg *a)
{
	switch (a->op) {
	case STREAM_BYTES:
		return limited(count_of(st, a), setup.string_bytes);
	case STREAM_STRUCT:
		return a->size_bytes;
	case STREAM_ARRAY:
		if (count_of(st, a) > STREAM_CHUNK_BYTES / 2 / (a->size_bytes ?: 1))
			return STREAM_CHUNK_BYTES / 2 / (a->size_bytes ?: 1) * a->size_bytes |
			       TRUNCATED;
		return count_of(st, a) * a->size_bytes;
	case STREAM_FD_SET:
		return st->head.args[0] > 1024 ? 128 : (st->head.args[0] + 63) / 64 * 8;
	default: /* STREAM_SOCKADDR */
		return count_of(st, a) > 128 ? 128 : count_of(st, a);
	}
}

static __always_inline int put_arg(struct stream_state *st, const struct stream_arg *a, __u32 arg,
				   __u64 v)
{
	__s64 moved;

	if (!st || !a || a->op == STREAM_NOTHING)
		return 0;
	moved = a->at_exit ? st->head.result : 1ll << 62;
	if (a->op == STREAM_FD)
		return put_fd(st, arg | STREAM_CHUNK_FD << 8, v);
	if (!v)
		return 0;
	if (a->op == STREAM_STRING)
		return put_path(st, a, arg, v);
	if (a->op == STREAM_ARGV)
		return put_argv(st, arg, v);
	if (a->op == STREAM_POINTERS)
		return put_pointers(st, arg, v);
	if (a->op == STREAM_IOV)
		return put_iovecs(st, arg, v, count_of(st, a), moved);
	if (a->op == STREAM_MSG)
		return put_message(st, arg, v, moved);
	if (a->op == STREAM_SOCKADDR_OUT)
		return put_sockaddr_out(st, a, arg, v);
	return put_memory(st, arg, v, bytes_of(st, a));
}

/* Those that are given, or those that the call has filled; what could not be read at the entry, as
 * its page was not there, is tried again at the exit. */
__noinline int put_args(struct stream_state *st, const struct stream_call *call, __u32 at_exit)
{
	if (!st || !call)
		return 0;
	for (__u32 i = 0; i < STREAM_ARGS; i++) {
		const struct stream_arg *a = &call->args[i];
		bool again = at_exit && st->head.missing >> i & 1;

		if (a->at_exit != at_exit && !again)
			continue;
		if (put_arg(st, a, i, st->head.args[i]) && !at_exit)
			st->head.missing |= 1u << i;
	}
	return 0;
}

#endif
