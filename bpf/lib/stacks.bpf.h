/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The stack of the current task in a tracepoint, kernel and user part, as an id. Includers have
 * output.bpf.h before; unwind.bpf.h comes with it.
 *
 * Threads wait at the same few places again and again, and a stack costs microseconds. So what the
 * last walks have used is kept for each thread: the same user registers and the same words on the
 * user's stack give the same frames again. Of the kernel's stack, the words that equal a frame are
 * kept by their distance from the program: return addresses are among them. The outermost frames
 * lie beyond an offset that is another one in each syscall (CONFIG_RANDOMIZE_KSTACK_OFFSET): they
 * are the same in all syscalls, and no others are remembered.
 */
#ifndef BPF_LIB_STACKS_BPF_H
#define BPF_LIB_STACKS_BPF_H

#include "stacks.abi.h"

#define UNWIND_READS 24
#include "unwind.bpf.h"

const volatile struct stack_setup stack_setup;

/* Ids that the tool has. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, STACKS_MAX);
	__type(key, __u64);
	__type(value, __u8);
} stacks_sent SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct stack_losses);
} stacks_lost SEC(".maps");

enum {
	STACK_HEAD_WORDS = STACK_HEAD_BYTES / 8,
	STACK_OWN_FRAMES = 2, /* the program, and bpf_trace_runN, which calls it */
};

enum {
	STACK_MEMOS = 4, /* of a thread */
	STACK_MEMO_WORDS = 48,
	STACK_MEMO_FRAMES = 32,
	STACK_COPY_WORDS = 512,
	STACK_REGISTERS = 7,
#if defined(__TARGET_ARCH_x86)
	STACK_OUTER_FRAMES = 1, /* entry_SYSCALL_64_after_hwframe */
#else
	STACK_OUTER_FRAMES = 5, /* from invoke_syscall on */
#endif
};

/* What may be return addresses on the kernel's stack. */
struct stack_words {
	__u16 index[STACK_MEMO_WORDS]; /* in the copy */
	__u64 word[STACK_MEMO_WORDS];
};

/* A stack, and all that it was found from. */
struct stack_memo {
	__u64 id; /* 0: none */
	__u64 pc, registers[STACK_REGISTERS];
	__u16 n_kernel, n_user;
	__u16 used;                  /* registers, by slot */
	__u16 n_words;               /* of the kernel's stack, up to the last that is kept */
	struct unwind_memory memory; /* what was mapped then */
	/* All that was read of the user's stack lies here, whole words from its beginning; 0 bytes:
	 * too far apart to be copied at once. */
	__u64 user_from_va, user_bytes;
	struct stack_words kernel;
	struct unwind_read user[UNWIND_READS];
};

struct stack_memos {
	struct stack_memo v[STACK_MEMOS];
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct stack_memos);
} stack_memos SEC(".maps");

struct stack_copy {
	__u64 word[STACK_COPY_WORDS];
	__u32 n_kept;   /* above STACK_MEMO_WORDS: not all of them are */
	__u32 n_met;    /* frames of the chain, one after the other, … */
	__u32 n_frames; /* … of so many */
	__u32 n_words;  /* up to the last that is kept */
	struct stack_words kept;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct stack_copy);
} stack_copies SEC(".maps");

/* Where memory may be asked for: without memos for it, a task's stacks are walked each time. */
static __always_inline void stack_expect(struct task_struct *task)
{
	if (HAS_TASK_STORAGE)
		bpf_task_storage_get(&stack_memos, task, NULL, BPF_LOCAL_STORAGE_GET_F_CREATE);
}

/* --- what was the same the last time ---------------------------------------------------------- */

/* The slots whose registers a caller still has (UNWIND_CALLEE_SAVED). */
static __always_inline __u32 stack_register(__u32 i)
{
	return i == 0 ? 3 : i < 3 ? 5 + i : 9 + i;
}

/* Of what was read of the user's stack. One copy of it all costs less than one of each word. */
static __always_inline bool stack_same_words(const struct stack_memo *m, struct stack_copy *copy)
{
	__u64 size_bytes = m->user_bytes;

	barrier_var(
		size_bytes); /* the compiler may not forget the bound, which the verifier needs */
	if (size_bytes > sizeof(copy->word) ||
	    bpf_probe_read_user(copy->word, size_bytes, (void *)m->user_from_va))
		return false;
	for (__u32 i = 0; i < UNWIND_READS; i++) {
		__u64 at;

		if (i >= m->n_user)
			break;
		at = (m->user[i].user_va - m->user_from_va) / 8;
		barrier_var(at);
		if (at >= STACK_COPY_WORDS || copy->word[at] != m->user[i].word)
			return false;
	}
	return true;
}

static __always_inline bool stack_same_reads(const struct stack_memo *m)
{
	for (__u32 i = 0; i < UNWIND_READS; i++) {
		__u64 word;

		if (i >= m->n_user)
			break;
		if (bpf_probe_read_user(&word, sizeof(word), (void *)m->user[i].user_va) ||
		    word != m->user[i].word)
			return false;
	}
	return true;
}

static __always_inline bool stack_same_user(const struct stack_memo *m, const struct unwind_walk *w,
					    struct stack_copy *copy)
{
	if (m->pc != w->state.pc || m->memory.seq != w->memory.seq ||
	    m->memory.mm_va != w->memory.mm_va)
		return false;
	for (__u32 i = 0; i < STACK_REGISTERS; i++)
		if (m->used >> stack_register(i) & 1 &&
		    m->registers[i] != w->state.r[stack_register(i)])
			return false;
	return m->user_bytes ? stack_same_words(m, copy) : stack_same_reads(m);
}

/* The first words of what lies above the program on the kernel's stack, up to the last of the memo:
 * beyond it are a gap of random length and the registers. */
static __always_inline bool stack_copy_kept(struct stack_copy *copy, void *ctx,
					    const struct stack_memo *m)
{
	__u64 size_bytes = (__u64)m->n_words * 8;

	barrier_var(
		size_bytes); /* the compiler may not forget the bound, which the verifier needs */
	return size_bytes <= sizeof(copy->word) &&
	       !bpf_probe_read_kernel(copy->word, size_bytes, ctx);
}

/* Copies what lies above the program on the kernel's stack. Words; 0: more than is room for. */
static __always_inline __u32 stack_copy_kernel(struct stack_copy *copy, void *ctx,
					       struct task_struct *task)
{
	__u64 size_bytes = (__u64)task_user_regs(task) - (__u64)ctx;

	barrier_var(size_bytes);
	if (size_bytes > sizeof(copy->word) || bpf_probe_read_kernel(copy->word, size_bytes, ctx))
		return 0;
	return size_bytes / 8;
}

static __always_inline bool stack_same_kernel(const struct stack_memo *m, struct stack_copy *copy,
					      void *ctx)
{
	if (!stack_copy_kept(copy, ctx, m))
		return false;
	for (__u32 i = 0; i < STACK_MEMO_WORDS; i++) {
		__u32 at;

		if (i >= m->n_kernel)
			break;
		at = m->kernel.index[i];
		barrier_var(at);
		if (at >= STACK_COPY_WORDS || copy->word[at] != m->kernel.word[i])
			return false;
	}
	return true;
}

static __always_inline bool stack_is_text(__u64 word)
{
#if defined(__TARGET_ARCH_x86)
	return word >= 0xffffffff80000000ULL; /* the kernel and its modules */
#else
	return word >> 48 == 0xffff;
#endif
}

/* Keeps what equals a frame of the chain, up to the last frame below the random offset; not 0: that
 * was met. Global, as the walk's step. */
__noinline int stack_keep_word(__u32 i)
{
	__u32 zero = 0;
	struct stack_copy *copy = bpf_map_lookup_elem(&stack_copies, &zero);
	struct unwind_walk *w = bpf_map_lookup_elem(&unwind_walks, &zero);
	__u64 from = i, at, word, expected;
	bool found = false;

	barrier_var(from); /* the compiler may not forget the bounds, which the verifier needs */
	if (!copy || !w || from >= STACK_COPY_WORDS)
		return 1;
	word = copy->word[from];
	if (!stack_is_text(word))
		return 0;
	for (__u32 j = 0; j < STACK_MEMO_FRAMES; j++)
		found |= w->out[STACK_HEAD_WORDS + j] == word;
	if (!found)
		return 0;
	at = copy->n_kept++;
	barrier_var(at);
	if (at >= STACK_MEMO_WORDS)
		return 1;
	copy->kept.index[at] = from;
	copy->n_words = from + 1;
	copy->kept.word[at] = word;
	expected = copy->n_met;
	barrier_var(expected);
	if (expected < STACK_MEMO_FRAMES && w->out[STACK_HEAD_WORDS + expected] == word)
		copy->n_met++;
	return copy->n_met >= copy->n_frames;
}

/* Whether what is above the program on the kernel's stack could be kept. */
static __always_inline bool stack_keep_kernel(struct stack_copy *copy, __u32 n_copied,
					      __u32 n_frames)
{
	copy->n_kept = copy->n_words = 0;
	if (!stack_setup.with_kernel)
		return true;
	if (n_frames > STACK_MEMO_FRAMES || n_frames <= STACK_OUTER_FRAMES)
		return false;
	copy->n_met = 0;
	copy->n_frames = n_frames - STACK_OUTER_FRAMES;
	for (__u32 i = 0; i < STACK_COPY_WORDS && i < n_copied; i++)
		if (stack_keep_word(i))
			break;
	return copy->n_met == copy->n_frames && copy->n_kept <= STACK_MEMO_WORDS;
}

/* What the walk has read, and whether it can be copied at once. */
static __always_inline void stack_keep_user(struct stack_memo *m, const struct unwind_walk *w)
{
	__u64 from_va = w->reads[0].user_va, to_va = 0, odd = 0;

	m->n_user = w->n_reads;
	for (__u32 i = 0; i < UNWIND_READS; i++) {
		m->user[i] = w->reads[i];
		if (i >= m->n_user)
			continue;
		if (w->reads[i].user_va < from_va)
			from_va = w->reads[i].user_va;
		if (w->reads[i].user_va >= to_va)
			to_va = w->reads[i].user_va + 8;
		odd |= (w->reads[i].user_va ^ w->reads[0].user_va) & 7;
	}
	m->user_from_va = from_va;
	m->user_bytes = odd || to_va - from_va > STACK_COPY_WORDS * 8 ? 0 : to_va - from_va;
}

static __always_inline void stack_keep(struct stack_memo *m, struct unwind_walk *w,
				       struct stack_copy *copy, __u32 n_copied, __u64 id)
{
	struct stack_record *record = (struct stack_record *)w->out;

	m->id = 0;
	/* Somebody was changing the mappings. */
	if (stack_setup.with_user && unwind_has_seq() && !w->memory.seq)
		return;
	m->memory = w->memory;
	if (w->n_reads > UNWIND_READS || !stack_keep_kernel(copy, n_copied, record->n_kernel))
		return;
	m->n_kernel = copy->n_kept;
	m->n_words = copy->n_words;
	m->kernel = copy->kept;
	stack_keep_user(m, w);
	m->used = w->state.used | 1 << UNWIND_SLOT_SP;
	STATE_FROM_REGS(&w->state, &w->regs); /* as they were before the walk */
	m->pc = w->state.pc;
	for (__u32 i = 0; i < STACK_REGISTERS; i++)
		m->registers[i] = w->state.r[stack_register(i)];
	m->id = id;
}

/* --- taking a stack --------------------------------------------------------------------------- */

/* Of the kernel's frames; unwind_push adds the others. Global, so that the verifier looks at its
 * loop once. */
__noinline __u64 stack_hash(__u64 hash, __u32 n)
{
	__u32 zero = 0;
	struct unwind_walk *w = bpf_map_lookup_elem(&unwind_walks, &zero);

	if (!w)
		return hash;
	for (__u32 i = 0; i < STACK_KERNEL_FRAMES; i++) {
		if (i >= n)
			break;
		hash = unwind_mix(hash, w->out[STACK_HEAD_WORDS + i]);
	}
	return hash;
}

/* The registers that the user code had when it entered the kernel, into w->regs: UNWIND_CONTINUE,
 * or why there are none. */
static __always_inline int stack_registers(struct unwind_walk *w, struct task_struct *task)
{
	if (TASK_READ(task, flags) & PF_KTHREAD || !TASK_READ(task, mm))
		return UNWIND_END; /* there is no user code */
	if (bpf_probe_read_kernel(&w->regs, sizeof(w->regs), task_user_regs(task)))
		return UNWIND_NO_REGISTERS;
	if (!regs_are_user(&w->regs))
		return UNWIND_NO_REGISTERS;
	STATE_FROM_REGS(&w->state, &w->regs);
	return REGS_ARE_32_BIT(&w->regs) ? UNWIND_32_BIT : UNWIND_CONTINUE;
}

/* The same of those alone that say which system call it is, with what arguments: loads, where the
 * kernel says what is behind the pointer. w->state is not filled in. */
static __always_inline int stack_call_registers(struct unwind_walk *w, struct task_struct *task)
{
#if defined(__TARGET_ARCH_x86)
	const struct pt_regs *r;

	if (!HAS_TASK_REGS)
		return stack_registers(w, task);
	if (TASK_READ(task, flags) & PF_KTHREAD || !TASK_READ(task, mm))
		return UNWIND_END;
	r = (const struct pt_regs *)bpf_task_pt_regs(task);
	w->regs.cs = *(const volatile __u16 *)&r->cs; /* beside what FRED keeps there (6.9) */
	w->regs.orig_ax = r->orig_ax;
	w->regs.di = r->di;
	w->regs.si = r->si;
	if (!regs_are_user(&w->regs))
		return UNWIND_NO_REGISTERS;
	return REGS_ARE_32_BIT(&w->regs) ? UNWIND_32_BIT : UNWIND_CONTINUE;
#else
	return stack_registers(w, task);
#endif
}

/* w->stop is what the registers say. */
static __always_inline void stack_add_user(struct unwind_walk *w, __u32 pid)
{
	if (w->stop == UNWIND_CONTINUE)
		unwind_user(w, pid, stack_setup.max_user_frames);
	else if (w->stop == UNWIND_32_BIT)
		unwind_push(w, w->state.pc);
}

static __always_inline void stack_add_kernel(void *ctx, struct unwind_walk *w)
{
	__u64 *chain = &w->out[STACK_HEAD_WORDS];
	long bytes = bpf_get_stack(ctx, chain, STACK_KERNEL_FRAMES * 8, STACK_OWN_FRAMES);

	if (bytes > 0 && *chain >= stack_setup.iterator_from_va &&
	    *chain < stack_setup.iterator_to_va)
		bytes = bpf_get_stack(ctx, chain, STACK_KERNEL_FRAMES * 8, STACK_OWN_FRAMES + 1);
	w->at += bytes > 0 ? (__u32)bytes / 8 : 0;
}

static __always_inline void stack_count_lost(bool full)
{
	__u32 zero = 0;
	struct stack_losses *lost = bpf_map_lookup_elem(&stacks_lost, &zero);

	if (lost)
		*(full ? &lost->full : &lost->unsent) += 1;
}

/* Whether the tool has it, or will. */
static __always_inline bool stack_send(void *ctx, struct unwind_walk *w, __u64 id)
{
	__u8 value = 1;

	if (bpf_map_update_elem(&stacks_sent, &id, &value, BPF_NOEXIST)) {
		/* Another CPU may have been quicker. */
		if (bpf_map_lookup_elem(&stacks_sent, &id))
			return true;
		stack_count_lost(true);
		return false;
	}
	if (output_send(ctx, w->out, (__u64)w->at * 8, sizeof(w->out)))
		return true;
	stack_count_lost(false);
	bpf_map_delete_elem(&stacks_sent, &id);
	return false;
}

/* From the kernel's frames in w->out on. Whether the stack is to be remembered: *ret_sure. */
static __always_inline __u64 stack_finish(void *ctx, struct unwind_walk *w, __u32 pid, __u32 tid,
					  bool *ret_sure)
{
	struct stack_record *record = (struct stack_record *)w->out;
	__u32 first = w->at;
	__u64 id, hash;

	w->n_reads = 0;
	w->state.guessed = 0;
	w->state.used = 0;
	record->n_kernel = first - STACK_HEAD_WORDS;
	w->hash = hash = stack_hash(pid, record->n_kernel);
	if (stack_setup.with_user)
		stack_add_user(w, pid);
	if (unwind_is_between_programs(w, this_task())) {
		w->at = first;
		w->hash = hash;
		w->stop = UNWIND_END;
	}
	record->n_user = w->at - STACK_HEAD_WORDS - record->n_kernel;
	record->stop = w->stop;
	record->guessed = w->state.guessed;
	record->pad[0] = record->pad[1] = record->pad[2] = 0;
	record->mark = STACK_MARK;
	record->pid = pid;
	record->tid = tid;
	id = unwind_mix(w->hash, record->n_kernel << 8 | w->stop);
	id = id ? id : 1;
	record->id = id;
	*ret_sure = (bpf_map_lookup_elem(&stacks_sent, &id) || stack_send(ctx, w, id)) &&
		    (w->stop == UNWIND_END || !stack_setup.with_user);
	return id;
}

static __always_inline __u64 stack_walk(void *ctx, struct unwind_walk *w, __u32 pid, __u32 tid,
					bool *ret_sure)
{
	w->at = STACK_HEAD_WORDS;
	if (stack_setup.with_kernel)
		stack_add_kernel(ctx, w);
	return stack_finish(ctx, w, pid, tid, ret_sure);
}

/* The stack that a tick of a perf event has hit. */
static __always_inline __u64 stack_of_tick(struct bpf_perf_event_data *ctx, struct unwind_walk *w,
					   struct task_struct *task, __u32 pid, __u32 tid)
{
	bool in_user = context_is_user(ctx), sure;
	long bytes = 0;

	if (in_user) {
		STATE_FROM_REGS(&w->state, &ctx->regs);
		w->stop = REGS_ARE_32_BIT(&ctx->regs) ? UNWIND_32_BIT : UNWIND_CONTINUE;
	} else {
		w->stop = stack_registers(w, task);
	}
	w->at = STACK_HEAD_WORDS;
	if (stack_setup.with_kernel && !in_user)
		bytes = bpf_get_stack(ctx, &w->out[STACK_HEAD_WORDS], STACK_KERNEL_FRAMES * 8, 0);
	w->at += bytes > 0 ? (__u32)bytes / 8 : 0;
	return stack_finish(ctx, w, pid, tid, &sure);
}

/* The current task's stack, after stack_registers, which said `stop`; 0: none could be taken.
 * in_syscall: what registers hold beside those that are saved for callers does not matter to the
 * walk. */
static __always_inline __u64 stack_take(void *ctx, struct unwind_walk *w, struct task_struct *task,
					__u32 pid, __u32 tid, int stop, bool in_syscall)
{
	__u32 zero = 0, at, n_copied = 0;
	struct stack_copy *copy = bpf_map_lookup_elem(&stack_copies, &zero);
	struct stack_memos *memos = NULL;
	struct stack_memo *m;
	bool sure;
	__u64 id;

	if (!copy)
		return 0;
	w->stop = stop;
	if (HAS_TASK_STORAGE && w->stop == UNWIND_CONTINUE && in_syscall)
		memos = bpf_task_storage_get(&stack_memos, task, NULL, 0);
	if (!memos)
		return stack_walk(ctx, w, pid, tid, &sure);
	if (stack_setup.with_user)
		unwind_memory_of_task(&w->memory);
	at = (w->state.pc >> 1 ^ w->state.r[UNWIND_SLOT_SP] >> 4) & (STACK_MEMOS - 1);
	m = &memos->v[at];
	if (m->id && (!stack_setup.with_kernel || stack_same_kernel(m, copy, ctx)) &&
	    (!stack_setup.with_user || stack_same_user(m, w, copy)))
		return m->id;
	if (stack_setup.with_kernel)
		n_copied = stack_copy_kernel(copy, ctx, task);
	id = stack_walk(ctx, w, pid, tid, &sure);
	if (sure)
		stack_keep(m, w, copy, n_copied, id);
	return id;
}

#endif
