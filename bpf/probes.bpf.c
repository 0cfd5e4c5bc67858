/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Functions and events timed: what begins at one (a function's entry, a USDT probe, a tracepoint)
 * and ends at another (its return, a second probe) in the same thread, added up by key.
 */
#include "lib/kernel_types.h"

#include "lib/targets.bpf.h"
#include "probes.abi.h"

#include <bpf/usdt.bpf.h>

char LICENSE[] SEC("license") = "Dual BSD/GPL";

const volatile struct probes_setup setup;

enum { KEYS_MAX = 4096 };

struct begun {
	__u64 ns;
	__s64 args[PROBES_ARGS];
};

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

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, KEYS_MAX);
	__type(key, struct syscalls_key);
	__type(value, struct syscalls_row);
} rows SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct syscalls_row);
} new_row SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, PROBES_COUNTS);
	__type(key, __u32);
	__type(value, __u64);
} counts SEC(".maps");

static __noinline void count(__u32 what)
{
	__u64 *at = bpf_map_lookup_elem(&counts, &what);

	if (at)
		++*at;
}

/* --- what is counted -------------------------------------------------------------------------- */

/* Values are compared as what they are most often: signed. */
static __always_inline bool holds(const volatile struct probes_condition *c, __s64 v)
{
	switch (c->is) {
	case PROBES_EQUAL:
		return v == c->value;
	case PROBES_NOT_EQUAL:
		return v != c->value;
	case PROBES_LESS:
		return v < c->value;
	case PROBES_LESS_EQUAL:
		return v <= c->value;
	case PROBES_GREATER:
		return v > c->value;
	default:
		return v >= c->value;
	}
}

static __always_inline __s64 value_of(__u32 what, const struct begun *b, __s64 result)
{
	if (what == PROBES_RESULT)
		return result;
	return b->args[what - 1 < PROBES_ARGS ? what - 1 : 0];
}

static __always_inline bool wanted(const struct begun *b, __s64 result)
{
	for (__u32 i = 0; i < PROBES_CONDITIONS; i++) {
		if (i >= setup.n_conditions)
			break;
		if (!holds(&setup.conditions[i], value_of(setup.conditions[i].what, b, result)))
			return false;
	}
	return true;
}

static __noinline struct syscalls_row *row_of(const struct syscalls_key *key)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct syscalls_row *row = bpf_map_lookup_elem(&rows, key);
	__u32 zero = 0;

	if (row)
		return row;
	row = bpf_map_lookup_elem(&new_row, &zero);
	if (!row)
		return NULL;
	row->pid = target_pid(task);
	row->own_tid = target_own_tid(task);
	bpf_get_current_comm(row->comm, sizeof(row->comm));
	bpf_map_update_elem(&rows, key, row, BPF_NOEXIST);
	row = bpf_map_lookup_elem(&rows, key); /* another CPU's may be there */
	if (!row)
		count(PROBES_KEYS_FULL);
	return row;
}

static __noinline int finish(const struct begun *b, __s64 result, __u64 latency_ns)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct syscalls_key key = {.fd = -1};
	struct syscalls_row *row;
	__u64 value;

	if (!wanted(b, result))
		return 0;
	count(PROBES_EVENTS);
	if (setup.by & SYSCALLS_BY_THREAD)
		key.tid = target_tid(task);
	if (setup.by & SYSCALLS_BY_COMM)
		bpf_get_current_comm(key.comm, sizeof(key.comm));
	if (setup.by & SYSCALLS_BY_VALUE)
		key.inode = value_of(setup.by_value, b, result);
	row = row_of(&key);
	if (!row)
		return 0;
	value = setup.measured ? (__u64)value_of(setup.measured, b, result) : latency_ns;
	__sync_fetch_and_add(&row->calls, 1);
	/* An event without an end has no length. */
	if (!setup.measured && !setup.has_end)
		return 0;
	/* A negative value is a failure, as far as a histogram goes. */
	if (setup.measured && (__s64)value < 0) {
		__sync_fetch_and_add(&row->errors, 1);
		return 0;
	}
	__sync_fetch_and_add(&row->total_ns, value);
	__sync_fetch_and_add(&row->slots[log_linear_slot(value)], 1);
	if (value > row->max)
		row->max = value;
	return 0;
}

/* --- begin and end ---------------------------------------------------------------------------- */

static __always_inline bool is_watched(void)
{
	struct task_struct *task = bpf_get_current_task_btf();

	return target_shared.active && is_target(task, target_pid(task), target_tid(task));
}

static __noinline struct thread_state *state_of(__u32 tid)
{
	struct thread_state *state = bpf_map_lookup_elem(&thread_states, &tid);
	__u32 zero = 0;

	if (state)
		return state;
	state = bpf_map_lookup_elem(&new_thread, &zero);
	if (!state || bpf_map_update_elem(&thread_states, &tid, state, BPF_NOEXIST)) {
		count(PROBES_THREADS_FULL);
		return NULL;
	}
	return bpf_map_lookup_elem(&thread_states, &tid);
}

static __noinline int begin(const struct begun *b)
{
	struct thread_state *state;
	__u32 depth;

	if (!setup.has_end)
		return finish(b, 0, 0);
	state = state_of((__u32)bpf_get_current_pid_tgid());
	if (!state)
		return 0;
	depth = state->depth++;
	if (depth >= PROBES_DEPTH) {
		count(PROBES_TOO_DEEP);
		return 0;
	}
	__builtin_memcpy(&state->calls[depth & (PROBES_DEPTH - 1)], b, sizeof(*b));
	return 0;
}

static __noinline int end(__s64 result, __u64 now_ns)
{
	__u32 tid = (__u32)bpf_get_current_pid_tgid(), depth;
	struct thread_state *state = bpf_map_lookup_elem(&thread_states, &tid);
	struct begun *b;

	if (!state || !state->depth) {
		count(PROBES_END_WITHOUT_BEGIN);
		return 0;
	}
	depth = --state->depth;
	if (depth >= PROBES_DEPTH)
		return 0;
	b = &state->calls[depth & (PROBES_DEPTH - 1)];
	return finish(b, result, now_ns - b->ns);
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
	b.ns = bpf_ktime_get_ns();
	return begin(&b);
}

static __always_inline int on_return(struct pt_regs *ctx)
{
	__u64 now_ns = bpf_ktime_get_ns();

	return is_watched() ? end(PT_REGS_RC(ctx), now_ns) : 0;
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

	return is_watched() ? end(0, now_ns) : 0;
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
	b.ns = bpf_ktime_get_ns();
	return begin(&b);
}

SEC("usdt")
int on_usdt_end(struct pt_regs *ctx)
{
	__u64 now_ns = bpf_ktime_get_ns();
	long value = 0;

	if (!is_watched())
		return 0;
	bpf_usdt_arg(ctx, 0, &value);
	return end(value, now_ns);
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

SEC("tp")
int on_tracepoint(void *ctx)
{
	struct begun b = {};

	if (!is_watched())
		return 0;
	for (int i = 0; i < PROBES_ARGS; i++)
		b.args[i] = field_of(ctx, &setup.begin_fields[i]);
	b.ns = bpf_ktime_get_ns();
	return begin(&b);
}

SEC("tp")
int on_tracepoint_end(void *ctx)
{
	__u64 now_ns = bpf_ktime_get_ns();

	return is_watched() ? end(field_of(ctx, &setup.end_fields[0]), now_ns) : 0;
}
