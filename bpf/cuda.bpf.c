/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Functions of CUDA's driver API, from entry to return: what the program waits for in the call, not
 * what the GPU does. One program for all; the probe's cookie says which function it is. */
#include "lib/kernel_types.h"

#include "cuda.abi.h"
#include "lib/targets.bpf.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

const volatile struct cuda_setup setup;
struct cuda_shared shared;

struct begun {
	__u64 ns, cookie, bytes, stream;
};

struct thread_state {
	__u32 depth, pad;
	struct begun calls[CUDA_DEPTH];
};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH); /* threads end without a word */
	__uint(max_entries, 8192);
	__type(key, __u32);
	__type(value, struct thread_state);
} thread_states SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct thread_state);
} new_thread SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 4096);
	__type(key, struct cuda_key);
	__type(value, struct cuda_row);
} rows SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct cuda_row);
} new_row SEC(".maps");

/* Argument n, from 1 on. */
static __always_inline __u64 argument(struct pt_regs *ctx, __u32 n)
{
#if defined(__TARGET_ARCH_x86)
	const __u64 registers[] = {0, ctx->di, ctx->si, ctx->dx, ctx->cx, ctx->r8, ctx->r9};
	__u64 at = ctx->sp + 8 * (n - 6);
#else
	const __u64 registers[] = {
		0,           ctx->regs[0], ctx->regs[1], ctx->regs[2], ctx->regs[3], ctx->regs[4],
		ctx->regs[5]};
	__u64 at = ctx->sp + 8 * (n - 9);
#endif
	__u64 value = 0;

	for (__u32 i = 1; i <= 6; i++)
		if (i == n)
			return registers[i];
#if defined(__TARGET_ARCH_arm64)
	if (n == 7)
		return ctx->regs[6];
	if (n == 8)
		return ctx->regs[7];
#endif
	if (n)
		bpf_probe_read_user(&value, sizeof(value), (void *)at);
	return value;
}

static __always_inline bool is_watched(void)
{
	struct task_struct *task = this_task();

	return target_shared.active && is_target(task, target_pid(task), target_tid(task));
}

SEC("uprobe")
int on_call(struct pt_regs *ctx)
{
	__u32 tid = (__u32)bpf_get_current_pid_tgid(), zero = 0, depth;
	__u64 cookie = bpf_get_attach_cookie(ctx);
	struct thread_state *state;
	struct begun *b;

	if (!is_watched())
		return 0;
	state = bpf_map_lookup_elem(&thread_states, &tid);
	if (!state) {
		state = bpf_map_lookup_elem(&new_thread, &zero);
		if (state)
			bpf_map_update_elem(&thread_states, &tid, state, BPF_NOEXIST);
		state = bpf_map_lookup_elem(&thread_states, &tid);
	}
	if (!state) {
		__sync_fetch_and_add(&shared.threads_full, 1);
		return 0;
	}
	depth = state->depth++;
	if (depth >= CUDA_DEPTH) {
		__sync_fetch_and_add(&shared.too_deep, 1);
		return 0;
	}
	b = &state->calls[depth & (CUDA_DEPTH - 1)];
	b->cookie = cookie;
	b->bytes = argument(ctx, cookie >> 16 & 0xff);
	b->stream = argument(ctx, cookie >> 24 & 0xff);
	b->ns = bpf_ktime_get_ns(); /* last: what we take is not the call's */
	return 0;
}

static __noinline struct cuda_row *row_of(const struct cuda_key *key)
{
	struct cuda_row *row = bpf_map_lookup_elem(&rows, key);
	__u32 zero = 0;

	if (row)
		return row;
	row = bpf_map_lookup_elem(&new_row, &zero);
	if (!row)
		return NULL;
	bpf_map_update_elem(&rows, key, row, BPF_NOEXIST);
	return bpf_map_lookup_elem(&rows, key); /* another CPU's may be there */
}

SEC("uretprobe")
int on_return(struct pt_regs *ctx)
{
	__u64 now_ns = bpf_ktime_get_ns(), latency_ns;
	__u32 tid = (__u32)bpf_get_current_pid_tgid(), depth, error = (__u32)PT_REGS_RC(ctx);
	struct thread_state *state;
	struct cuda_key key = {};
	struct cuda_row *row;
	struct begun *b;

	if (!is_watched())
		return 0;
	state = bpf_map_lookup_elem(&thread_states, &tid);
	if (!state || !state->depth) {
		__sync_fetch_and_add(&shared.ends_without_begin, 1);
		return 0;
	}
	depth = --state->depth;
	if (depth >= CUDA_DEPTH)
		return 0;
	b = &state->calls[depth & (CUDA_DEPTH - 1)];
	key.function = b->cookie & 0xffff;
	if (setup.by & CUDA_BY_THREAD) {
		key.pid = target_pid(this_task());
		key.tid = target_tid(this_task());
	}
	if (setup.by & CUDA_BY_COMM)
		bpf_get_current_comm(key.comm, sizeof(key.comm));
	if (setup.by & CUDA_BY_STREAM)
		key.stream = b->stream;
	row = row_of(&key);
	if (!row) {
		__sync_fetch_and_add(&shared.rows_full, 1);
		return 0;
	}
	latency_ns = now_ns - b->ns;
	__sync_fetch_and_add(&row->calls, 1);
	__sync_fetch_and_add(&row->total_ns, latency_ns);
	__sync_fetch_and_add(&row->slots[log_linear_slot(latency_ns)], 1);
	if (latency_ns > row->max_ns)
		row->max_ns = latency_ns;
	if (error && error != CUDA_NOT_READY) {
		__sync_fetch_and_add(&row->errors, 1);
		row->last_error = error;
	} else {
		__sync_fetch_and_add(&row->bytes, b->bytes);
	}
	return 0;
}
