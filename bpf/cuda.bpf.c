/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Functions of CUDA's driver API, from entry to return: what the program waits for in the call, not
 * what the GPU does. One program for all; the probe's cookie says which function it is. */
#include "lib/kernel_types.h"

#include "cuda.abi.h"
#include "lib/targets.bpf.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

const volatile struct cuda_setup setup;
struct cuda_shared shared;

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 8192);
	__type(key, __u32);
	__type(value, struct cuda_thread);
} thread_states SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct cuda_thread);
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

/* The product of numbers in a struct of the program. */
static __noinline __u64 product_of_fields(__u64 at, __u32 n, bool narrow)
{
	__u32 width = narrow ? sizeof(__u32) : sizeof(__u64);
	__u64 product = 1;

	for (__u32 i = 0; i < CUDA_FIELDS_MAX; i++) {
		__u64 value = 0;

		if (i >= n)
			break;
		if (bpf_probe_read_user(&value, width, (void *)(at + i * width)))
			return 0;
		product *= value;
	}
	return product;
}

static __noinline __u64 bytes_of(struct pt_regs *ctx, __u64 cookie)
{
	bool narrow = cookie >> CUDA_AT_NARROW & 1;
	__u64 bytes = argument(ctx, cookie >> CUDA_AT_BYTES & 15);
	__u32 times = cookie >> CUDA_AT_TIMES & 15, fields = cookie >> CUDA_AT_FIELDS & 3;
	__u64 factor = 1;

	if (fields)
		return product_of_fields(bytes + (cookie >> CUDA_AT_OFFSET & 0xff), fields, narrow);
	if (times)
		factor = argument(ctx, times);
	if (narrow) {
		bytes = (__u32)bytes;
		factor = (__u32)factor;
	}
	return bytes * factor << (cookie >> CUDA_AT_SHIFT & 3);
}

static __noinline __u64 stream_of(struct pt_regs *ctx, __u64 cookie)
{
	__u64 stream = argument(ctx, cookie >> CUDA_AT_STREAM & 15);
	__u32 off = cookie >> CUDA_AT_STREAM_OFFSET & 0xff;

	if (off && bpf_probe_read_user(&stream, sizeof(stream), (void *)(stream + off)))
		return 0;
	return stream;
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
	struct cuda_thread *state;
	struct cuda_begun *b;

	if (!is_watched())
		return 0;
	state = bpf_map_lookup_elem(&thread_states, &tid);
	if (!state) {
		state = bpf_map_lookup_elem(&new_thread, &zero);
		if (state)
			bpf_map_update_elem(&thread_states, &tid, state, BPF_NOEXIST);
		state = bpf_map_lookup_elem(&thread_states, &tid);
		if (state) {
			state->pid = target_pid(this_task());
			state->tid = target_tid(this_task());
		}
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
	if (setup.by & CUDA_BY_COMM)
		bpf_get_current_comm(state->comm, sizeof(state->comm));
	b->cookie = cookie;
	b->bytes = bytes_of(ctx, cookie);
	b->stream = stream_of(ctx, cookie);
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

static __always_inline struct cuda_row *row_of_call(const struct cuda_thread *state,
						    const struct cuda_begun *b)
{
	struct cuda_key key = {.function = b->cookie & 0xffff};
	struct cuda_row *row;

	if (setup.by & CUDA_BY_THREAD) {
		key.pid = state->pid;
		key.tid = state->tid;
	}
	if (setup.by & CUDA_BY_COMM)
		__builtin_memcpy(key.comm, state->comm, sizeof(key.comm));
	if (setup.by & CUDA_BY_STREAM)
		key.stream = b->stream;
	row = row_of(&key);
	if (!row)
		__sync_fetch_and_add(&shared.rows_full, 1);
	return row;
}

SEC("uretprobe")
int on_return(struct pt_regs *ctx)
{
	__u64 now_ns = bpf_ktime_get_ns(), latency_ns;
	__u32 tid = (__u32)bpf_get_current_pid_tgid(), depth, error = (__u32)PT_REGS_RC(ctx);
	struct cuda_thread *state;
	struct cuda_row *row;
	struct cuda_begun *b;

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
	row = row_of_call(state, b);
	if (!row)
		return 0;
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

/* Calls that the current thread will not return from. */
static __always_inline int end_calls(void)
{
	__u32 tid = (__u32)bpf_get_current_pid_tgid();
	struct cuda_thread *state = bpf_map_lookup_elem(&thread_states, &tid);
	__u64 now_ns = bpf_ktime_get_ns();

	if (!state)
		return 0;
	for (__u32 i = 0; i < CUDA_DEPTH && target_shared.active; i++) {
		struct cuda_begun *b = &state->calls[i];
		struct cuda_row *row;

		if (i >= state->depth)
			break;
		row = row_of_call(state, b);
		if (!row)
			continue;
		__sync_fetch_and_add(&row->unreturned, 1);
		__sync_fetch_and_add(&row->unreturned_ns, now_ns > b->ns ? now_ns - b->ns : 0);
	}
	bpf_map_delete_elem(&thread_states, &tid);
	return 0;
}

SEC("tp_btf/sched_process_exit")
int BPF_PROG(calls_on_exit, struct task_struct *task)
{
	return end_calls();
}

SEC("tp_btf/sched_process_exec")
int BPF_PROG(calls_on_exec, struct task_struct *task, int old_pid, struct linux_binprm *binprm)
{
	return end_calls();
}
