/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The sampler in the kernel: on every tick of a perf event, whom it hit, the kernel's stack and the
 * user's, unwound here. One small record goes into the ring that also carries the kernel's own
 * MMAP2, COMM, FORK and EXIT records.
 */
#include "lib/kernel_types.h"

#include <stddef.h>

#include "lib/output.bpf.h"
#include "lib/unwind.bpf.h"

#include "lib/targets.bpf.h"
#include "sampler.abi.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

const volatile struct sampler_setup setup;

/* One for each CPU; the tool makes room for them when it wants early samples. More than what a
 * per-CPU map takes. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct sampler_early);
} earlies SEC(".maps");

/* By CPU: bytes of early samples that may be sent until the tool has read some. They are large, and
 * the ring is also for what others need. */
__s64 early_room[SAMPLER_EARLY_CPUS];

/* The registers of the user code into the walk. Whether there are any, or why not. */
static __always_inline int take_registers(struct bpf_perf_event_data *ctx, struct unwind_walk *w,
					  struct task_struct *task, bool in_user)
{
	if (in_user) {
		STATE_FROM_REGS(&w->state, &ctx->regs);
		return REGS_ARE_32_BIT(&ctx->regs) ? UNWIND_32_BIT : UNWIND_CONTINUE;
	}
	if (BPF_CORE_READ(task, flags) & PF_KTHREAD || !BPF_CORE_READ(task, mm))
		return UNWIND_END; /* there is no user code */
	if (read_user_regs(&w->regs) || !regs_are_user(&w->regs))
		return UNWIND_NO_REGISTERS;
	STATE_FROM_REGS(&w->state, &w->regs);
	return REGS_ARE_32_BIT(&w->regs) ? UNWIND_32_BIT : UNWIND_CONTINUE;
}

static __always_inline __u32 user_frames(const struct unwind_walk *w)
{
	__u32 kernel = w->at - SAMPLER_HEAD_BYTES / 8, most = setup.max_user_frames;

	if (!setup.both_limited)
		return most;
	return kernel < most ? most - kernel : 0;
}

static __always_inline void add_user(struct bpf_perf_event_data *ctx, struct unwind_walk *w,
				     struct task_struct *task, bool in_user, __u32 pid)
{
	__u32 first = w->at;

	w->state.guessed = 0;
	w->stop = take_registers(ctx, w, task, in_user);
	if (w->stop == UNWIND_CONTINUE)
		unwind_user(w, pid, user_frames(w));
	else if (w->stop == UNWIND_32_BIT)
		unwind_push(w, w->state.pc);
	if (!in_user && unwind_is_between_programs(w, task)) {
		w->at = first;
		w->stop = UNWIND_END;
	}
}

static __always_inline void add_kernel(struct bpf_perf_event_data *ctx, struct unwind_walk *w)
{
	long bytes =
		bpf_get_stack(ctx, &w->out[SAMPLER_HEAD_BYTES / 8], SAMPLER_KERNEL_FRAMES * 8, 0);

	__u32 n = bytes > 0 ? (__u32)bytes / 8 : 0;

	if (setup.both_limited && n > setup.max_user_frames)
		n = setup.max_user_frames;
	w->at += n;
}

/* What can be read of the stack from sp up to end (0: not known), into this CPU's sampler_early.
 * Its pieces. What sp has only passed is not there yet, and nothing has been written there. */
__noinline __u32 copy_stack(__u64 sp, __u64 end)
{
	__u32 cpu = bpf_get_smp_processor_id(), i;
	struct sampler_early *early = bpf_map_lookup_elem(&earlies, &cpu);
	bool empty = true;

	if (!early)
		return 0;
	for (i = 0; i < SAMPLER_STACK_PIECES; i++, sp += SAMPLER_STACK_PIECE) {
		void *piece = &early->stack[i * SAMPLER_STACK_PIECE];

		if (end && sp >= end)
			break;
		if (!bpf_probe_read_user(piece, SAMPLER_STACK_PIECE, (void *)sp))
			empty = false;
		else if (end || (empty && i < SAMPLER_ABSENT_PIECES))
			__builtin_memset(piece, 0, SAMPLER_STACK_PIECE);
		else
			break;
	}
	return i;
}

/* The main thread's stack ends there, below arguments and environment; another one's is not known,
 * and read as far as it goes. */
static __always_inline __u64 end_of_stack(struct task_struct *task, __u64 sp)
{
	__u64 start = BPF_CORE_READ(task, mm, start_stack);

	return start >= sp && start - sp < SAMPLER_STACK_PIECES * SAMPLER_STACK_PIECE ? start + 8
										      : 0;
}

/* The sample in w->out as an early one. Whether the ring took it. */
static __always_inline bool send_early(struct bpf_perf_event_data *ctx, struct unwind_walk *w,
				       struct task_struct *task, bool in_user)
{
	__u32 cpu = bpf_get_smp_processor_id(), pieces;
	struct sampler_early *early = bpf_map_lookup_elem(&earlies, &cpu);
	struct sampler_record *head = (struct sampler_record *)w->out;
	__u64 sp, size_bytes;

	if (cpu >= SAMPLER_EARLY_CPUS || early_room[cpu & (SAMPLER_EARLY_CPUS - 1)] <= 0)
		return false;
	if (!early || take_registers(ctx, w, task, in_user) != UNWIND_CONTINUE)
		return false;
	head->early = 1;
	__builtin_memcpy(early->head, head, SAMPLER_HEAD_BYTES);
	head->early = 0;
	early->pc = w->state.pc;
	__builtin_memcpy(early->r, w->state.r, sizeof(early->r));
	bpf_probe_read_kernel(early->kernel, sizeof(early->kernel), head->chain);
	sp = w->state.r[UNWIND_SLOT_SP];
	pieces = copy_stack(sp, end_of_stack(task, sp));
	size_bytes = offsetof(struct sampler_early, stack) + (__u64)pieces * SAMPLER_STACK_PIECE;
	if (!output_try(ctx, early, size_bytes, sizeof(*early)))
		return false;
	__sync_fetch_and_add(&early_room[cpu & (SAMPLER_EARLY_CPUS - 1)], -(__s64)size_bytes);
	return true;
}

SEC("perf_event")
int sample(struct bpf_perf_event_data *ctx)
{
	struct task_struct *task = this_task();
	__u32 zero = 0, pid, tid;
	bool in_user = context_is_user(ctx);
	struct sampler_record *record;
	struct unwind_walk *w;

	if (!target_shared.active)
		return 0;
	pid = target_pid(task);
	tid = target_tid(task);
	if (!is_target(task, pid, tid))
		return 0;
	w = bpf_map_lookup_elem(&unwind_walks, &zero);
	if (!w)
		return 0;
	record = (struct sampler_record *)w->out;
	record->event_id = current_event_id(ctx);
	if (setup.with_copy)
		record->event_id |= SAMPLER_COPIED;
	record->period = ctx->sample_period;
	record->ip = REGS_IP(&ctx->regs);
	record->pid = pid;
	record->tid = tid;
	record->in_user = in_user;
	w->at = SAMPLER_HEAD_BYTES / 8;
	w->stop = UNWIND_CONTINUE;
	if (setup.with_chain && setup.with_kernel && !in_user)
		add_kernel(ctx, w);
	record->n_kernel = w->at - SAMPLER_HEAD_BYTES / 8;
	if (setup.with_chain && target_setup.unwinds)
		add_user(ctx, w, task, in_user, pid);
	record->n_user = w->at - SAMPLER_HEAD_BYTES / 8 - record->n_kernel;
	record->stop = w->stop;
	record->guessed = w->state.guessed;
	record->early = 0;
	if (setup.with_early && w->stop == UNWIND_NEW_MAPPING && send_early(ctx, w, task, in_user))
		return setup.with_copy;
	output_send(ctx, w->out, (__u64)w->at * 8, sizeof(w->out));
	return setup.with_copy;
}
