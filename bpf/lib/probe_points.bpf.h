/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * From one point in code to another in the same thread: the programs at the points, what is kept
 * between them, and the conditions. The includer has before it
 *
 *   is_watched   whether the current task is measured
 *   stack_at     where it is, for struct begun; 0: not wanted
 *   probe_finish what has ended, or needs no end
 */
#ifndef BPF_LIB_PROBE_POINTS_BPF_H
#define BPF_LIB_PROBE_POINTS_BPF_H

#include "probe_values.bpf.h"

#include <bpf/usdt.bpf.h>

/* Calls that a thread is in, the innermost last. */
struct thread_state {
	__u32 depth, pad;
	struct begun calls[PROBES_DEPTH];
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

/* --- begin and end ---------------------------------------------------------------------------- */

static __noinline struct thread_state *state_of(__u32 tid)
{
	struct thread_state *state = bpf_map_lookup_elem(&thread_states, &tid);
	__u32 zero = 0;

	if (state)
		return state;
	state = bpf_map_lookup_elem(&new_thread, &zero);
	if (!state || bpf_map_update_elem(&thread_states, &tid, state, BPF_NOEXIST)) {
		count_probe(PROBES_THREADS_FULL);
		return NULL;
	}
	return bpf_map_lookup_elem(&thread_states, &tid);
}

static __noinline int probe_begin(const struct begun *b)
{
	struct thread_state *state;
	__u32 depth;

	if (!probe_setup.has_end)
		return probe_finish(b, 0, 0);
	state = state_of((__u32)bpf_get_current_pid_tgid());
	if (!state)
		return 0;
	depth = state->depth++;
	if (depth >= PROBES_DEPTH) {
		count_probe(PROBES_TOO_DEEP);
		return 0;
	}
	__builtin_memcpy(&state->calls[depth & (PROBES_DEPTH - 1)], b, sizeof(*b));
	return 0;
}

static __noinline int probe_end(__s64 result, __u64 now_ns)
{
	__u32 tid = (__u32)bpf_get_current_pid_tgid(), depth;
	struct thread_state *state = bpf_map_lookup_elem(&thread_states, &tid);
	struct begun *b;

	if (!state || !state->depth) {
		count_probe(PROBES_END_WITHOUT_BEGIN);
		return 0;
	}
	depth = --state->depth;
	if (depth >= PROBES_DEPTH)
		return 0;
	b = &state->calls[depth & (PROBES_DEPTH - 1)];
	return probe_finish(b, result, now_ns - b->ns);
}

/* --- functions -------------------------------------------------------------------------------- */

static __always_inline int on_function(struct pt_regs *ctx)
{
	struct begun b = {};

	if (!is_watched())
		return 0;
	b.args[0] = PT_REGS_PARM1(ctx);
	b.args[1] = PT_REGS_PARM2(ctx);
	b.args[2] = PT_REGS_PARM3(ctx);
	b.args[3] = PT_REGS_PARM4(ctx);
	b.args[4] = PT_REGS_PARM5(ctx);
#if defined(__TARGET_ARCH_x86)
	b.args[5] = ctx->r9;
#else
	b.args[5] = ctx->regs[5];
#endif
	b.stack = stack_at(ctx);
	b.ns = bpf_ktime_get_ns(); /* last: what we take is not the function's */
	return probe_begin(&b);
}

static __always_inline int on_return(struct pt_regs *ctx)
{
	__u64 now_ns = bpf_ktime_get_ns();

	return is_watched() ? probe_end(PT_REGS_RC(ctx), now_ns) : 0;
}

SEC("uprobe")
int on_uprobe(struct pt_regs *ctx)
{
	return on_function(ctx);
}

SEC("uretprobe")
int on_uretprobe(struct pt_regs *ctx)
{
	return on_return(ctx);
}

/* A function whose entry ends what another probe began. */
SEC("uprobe")
int on_uprobe_end(struct pt_regs *ctx)
{
	__u64 now_ns = bpf_ktime_get_ns();

	return is_watched() ? probe_end(0, now_ns) : 0;
}

SEC("kprobe")
int on_kprobe(struct pt_regs *ctx)
{
	return on_function(ctx);
}

SEC("kretprobe")
int on_kretprobe(struct pt_regs *ctx)
{
	return on_return(ctx);
}

/* --- USDT and tracepoints --------------------------------------------------------------------- */

SEC("usdt")
int on_usdt(struct pt_regs *ctx)
{
	struct begun b = {};

	if (!is_watched())
		return 0;
	for (int i = 0; i < PROBES_ARGS; i++) {
		long value;

		if (bpf_usdt_arg(ctx, i, &value))
			break;
		b.args[i] = value;
	}
	b.stack = stack_at(ctx);
	b.ns = bpf_ktime_get_ns(); /* last: what we take is not the function's */
	return probe_begin(&b);
}

SEC("usdt")
int on_usdt_end(struct pt_regs *ctx)
{
	__u64 now_ns = bpf_ktime_get_ns();
	long value = 0;

	if (!is_watched())
		return 0;
	bpf_usdt_arg(ctx, 0, &value);
	return probe_end(value, now_ns);
}

static __always_inline __s64 field_of(void *ctx, const volatile struct probes_field *f)
{
	__u64 raw = 0;
	__u32 unused_bits = 64 - 8 * f->size_bytes;

	if (!f->size_bytes || f->size_bytes > 8)
		return 0;
	bpf_probe_read_kernel(&raw, f->size_bytes, ctx + f->offset);
	return f->is_signed ? (__s64)(raw << unused_bits) >> unused_bits : (__s64)raw;
}

static __always_inline int on_fields(void *ctx)
{
	struct begun b = {};

	if (!is_watched())
		return 0;
	for (int i = 0; i < PROBES_ARGS; i++)
		b.args[i] = field_of(ctx, &probe_setup.begin_fields[i]);
	b.stack = stack_at(ctx);
	b.ns = bpf_ktime_get_ns(); /* last: what we take is not the function's */
	return probe_begin(&b);
}

static __always_inline int on_fields_end(void *ctx)
{
	__u64 now_ns = bpf_ktime_get_ns();

	return is_watched() ? probe_end(field_of(ctx, &probe_setup.end_fields[0]), now_ns) : 0;
}

SEC("tp")
int on_tracepoint(void *ctx)
{
	return on_fields(ctx);
}

SEC("tp")
int on_tracepoint_end(void *ctx)
{
	return on_fields_end(ctx);
}

#endif
