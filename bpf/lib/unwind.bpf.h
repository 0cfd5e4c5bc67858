/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The user stack of the current task: which process, which of its ranges, which row and rule, and
 * then the step that user space shares. The walk's state lies in a map, where global functions find
 * it: 5.10 hands them numbers only.
 */
#ifndef BPF_LIB_UNWIND_BPF_H
#define BPF_LIB_UNWIND_BPF_H

#ifdef BPF_LIB_TARGETS_BPF_H
#error "before targets.bpf.h, whose programs would not keep what this one reads"
#endif

#include "compat.bpf.h"
#include "stack.bpf.h"
#include "unwind.abi.h"
#include "unwind_check.bpf.h"

enum { UNWIND_OUT_WORDS = 1280 }; /* a program's own head, a kernel stack, and UNWIND_MAX_STACK */

struct unwind_read {
	__u64 user_va, word;
};

/* Includers that define UNWIND_READS, a number, get what was read. */
struct unwind_walk {
	struct unwind_state state;
	struct unwind_process process;
	struct unwind_range range; /* the last that was found */
	struct unwind_memory memory;
	struct pt_regs regs;
	__u32 pid;
	__u32 at; /* index in out of the next frame */
	__u32 stop;
	__u32 pad;
	__u64 hash; /* of the frames that were pushed, with what it was before */
#ifdef UNWIND_READS
	__u64 n_reads;
	struct unwind_read reads[UNWIND_READS];
#endif
	__u64 out[UNWIND_OUT_WORDS];
};

struct row_chunk {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1 << UNWIND_ROW_SHIFT);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, sizeof(struct unwind_row)); /* its type would be a forward declaration */
};

struct range_chunk {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1 << UNWIND_RANGE_SHIFT);
	__uint(key_size, sizeof(__u32));
	__uint(value_size,
	       sizeof(struct unwind_range)); /* its type would be a forward declaration */
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, UNWIND_ROW_CHUNKS);
	__type(key, __u32);
	__array(values, struct row_chunk);
} unwind_rows SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, UNWIND_RANGE_CHUNKS);
	__type(key, __u32);
	__array(values, struct range_chunk);
} unwind_ranges SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, UNWIND_RULES_MAX);
	__type(key, __u32);
	__type(value, struct unwind_rule);
} unwind_rules SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, UNWIND_PROCESSES_MAX);
	__type(key, __u32);
	__type(value, struct unwind_process);
} unwind_processes SEC(".maps");

/* Files that some process has mapped: a new process, or a file in another's place, need not wait
 * for ranges. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, UNWIND_KNOWN_MAX);
	__type(key, __u64);
	__type(value, struct unwind_known);
} unwind_known SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, UNWIND_REQUESTS_BYTES);
} unwind_requests SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct unwind_walk);
} unwind_walks SEC(".maps");

/* What has been found lately, by place in the rows: a place keeps its rule for good, and most
 * frames have been seen before. A search is 17 steps in libc. */
enum { UNWIND_FOUND = 1024 };
struct unwind_found {
	__u64 place; /* the file's first row, then the offset in the file; 0: none */
	__u32 rule;
	__u32 pad;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, UNWIND_FOUND);
	__type(key, __u32);
	__type(value, struct unwind_found);
} unwind_found SEC(".maps");

/* --- asking the tool for ranges --------------------------------------------------------------- */

static __always_inline bool unwind_request(__u32 pid)
{
	struct unwind_request request = {.pid = pid};

	return bpf_ringbuf_output(&unwind_requests, &request, sizeof(request), 0) == 0;
}

static __always_inline void unwind_ask(struct unwind_process *p, __u32 pid, __u64 not_before_ns)
{
	if (!p->waiting && bpf_ktime_get_ns() >= not_before_ns)
		p->waiting = unwind_request(pid);
}

/* No range covers an address, or one that was made of something else. */
static __noinline int unwind_miss(__u32 pid, bool is_code)
{
	struct unwind_process *p = bpf_map_lookup_elem(&unwind_processes, &pid);

	if (!p) {
		struct unwind_process none = {.waiting = 1};

		if (bpf_map_update_elem(&unwind_processes, &pid, &none, BPF_NOEXIST))
			return UNWIND_NO_MEMORY;
		if (!unwind_request(pid))
			bpf_map_delete_elem(&unwind_processes, &pid);
		return UNWIND_NEW_MAPPING;
	}
	unwind_ask(p, pid, is_code ? p->sure_until_ns : p->quiet_until_ns);
	return is_code || p->waiting || p->fresh ? UNWIND_NEW_MAPPING : UNWIND_NO_MAPPING;
}

/* A mapping was entered without a range: who goes on doing so shall have ranges, which are found
 * faster. */
static __always_inline void unwind_entered(__u32 pid)
{
	struct unwind_process *p = bpf_map_lookup_elem(&unwind_processes, &pid);

	if (!p) {
		struct unwind_process first = {.entered = 1};

		/* unwind_exited may have been here already. */
		if (BPF_CORE_READ(this_task(), flags) & PF_EXITING)
			return;
		bpf_map_update_elem(&unwind_processes, &pid, &first, BPF_NOEXIST);
		return;
	}
	if (++p->entered < UNWIND_KNOWN_ENTERED)
		return;
	p->entered = 0;
	unwind_ask(p, pid, p->sure_until_ns);
}

/* --- searching -------------------------------------------------------------------------------- */

static __always_inline struct unwind_range *unwind_range_at(__u32 index)
{
	__u32 chunk = index >> UNWIND_RANGE_SHIFT, slot = index & ((1 << UNWIND_RANGE_SHIFT) - 1);
	void *ranges = bpf_map_lookup_elem(&unwind_ranges, &chunk);

	return ranges ? bpf_map_lookup_elem(ranges, &slot) : NULL;
}

static __always_inline struct unwind_row *unwind_row_at(__u32 index)
{
	__u32 chunk = index >> UNWIND_ROW_SHIFT, slot = index & ((1 << UNWIND_ROW_SHIFT) - 1);
	void *rows = bpf_map_lookup_elem(&unwind_rows, &chunk);

	return rows ? bpf_map_lookup_elem(rows, &slot) : NULL;
}

/* The first of n ranges that ends above the address, or first + n. Global, so that the verifier
 * looks at the loop once and not in every state that leads to it. */
__noinline __u32 unwind_find_range(__u32 first, __u32 n, __u64 user_va)
{
	__u32 low = first, high = first + n;

	for (int i = 0; i < UNWIND_RANGE_STEPS && low < high; i++) {
		__u32 middle = low + (high - low) / 2;
		struct unwind_range *range = unwind_range_at(middle);

		if (!range)
			break;
		if (range->end_va <= user_va)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* The rule of the last row at or below off; 0, for no rule, below all of them. */
__noinline __u32 unwind_find_rule(__u32 first, __u32 n, __u32 off)
{
	__u32 low = first, high = first + n, rule = 0;

	for (int i = 0; i < UNWIND_ROW_STEPS && low < high; i++) {
		__u32 middle = low + (high - low) / 2;
		struct unwind_row *row = unwind_row_at(middle);

		if (!row)
			break;
		if (row->off <= off) {
			rule = row->rule;
			low = middle + 1;
		} else {
			high = middle;
		}
	}
	return rule;
}

static __always_inline __u32 unwind_rule_of(__u32 first, __u32 n, __u32 off)
{
	__u64 place = (__u64)(first + 1) << 32 | off;
	__u32 key = (off ^ off >> 10 ^ first) & (UNWIND_FOUND - 1);
	struct unwind_found *found = bpf_map_lookup_elem(&unwind_found, &key);
	__u32 rule;

	if (found && found->place == place)
		return found->rule;
	rule = unwind_find_rule(first, n, off);
	if (found) {
		found->rule = rule;
		found->place = place;
	}
	return rule;
}

/* The range that the tool has made of what lies at an address, into w->range. Whether there is one;
 * it may have been made of something else. */
static __always_inline bool unwind_copy_range(struct unwind_walk *w, __u64 user_va)
{
	__u32 index, first = w->process.first, n = w->process.n;
	struct unwind_range *range;

	index = unwind_find_range(first, n, user_va);
	range = index - first < n ? unwind_range_at(index) : NULL;
	if (!range || range->generation != w->process.generation || user_va < range->start_va ||
	    user_va >= range->end_va)
		return false;
	w->range = *range;
	return true;
}

static __always_inline const struct unwind_known *unwind_find_known(__u64 identity)
{
	return bpf_map_lookup_elem(&unwind_known, &identity);
}

/* A mapping of code into w->range without the tool: of a file that is known, or of memory without
 * file, which holds code made at run time. Whether it could be. It calls nothing, as
 * unwind_check. */
static __noinline bool unwind_enter_mapping(struct unwind_walk *w, struct vm_area_struct *vma)
{
	struct file___file *file = BPF_CORE_READ(vma, vm_file);
	const struct unwind_known *known;
	__u64 identity = 0;

	w->range.start_va = BPF_CORE_READ(vma, vm_start);
	w->range.end_va = BPF_CORE_READ(vma, vm_end);
	w->range.bias = w->range.identity = 0;
	w->range.generation = 0;
	w->range.stop = 0;
	w->range.kind = UNWIND_RANGE_FP;
	if (!file && w->range.start_va != unwind_vdso_va(&w->memory))
		return true;
	w->range.kind = UNWIND_RANGE_ROWS;
	if (file)
		w->range.identity = identity = unwind_mapped_identity(vma, file, false);
	else
		identity = unwind_vdso_identity(w->range.end_va - w->range.start_va);
	known = unwind_find_known(identity);
	if (!known && file) {
		identity = unwind_mapped_identity(vma, file, true);
		w->range.identity = identity;
		known = identity ? unwind_find_known(identity) : NULL;
	}
	if (!known)
		return false;
	w->range.bias = known->bias - w->range.start_va;
	w->range.first_row = known->first_row;
	w->range.n_rows = known->n_rows;
	return known->identity == identity;
}

/* The range of an address into w->range. 0 or why there is none. */
static __noinline int unwind_enter_range(struct unwind_walk *w, __u64 user_va)
{
	bool found = unwind_copy_range(w, user_va), is_code;
	struct vm_area_struct *vma;

	if (found && unwind_is_checked(&w->memory, &w->range, user_va))
		return 0;
	vma = unwind_vma(&w->memory, user_va);
	if (found && vma && unwind_check(vma, &w->memory, &w->range, user_va))
		return 0;
	is_code = unwind_is_code(vma);
	if (is_code && unwind_enter_mapping(w, vma)) {
		unwind_entered(w->pid);
		return 0;
	}
	w->range.end_va = 0;
	return unwind_miss(w->pid, found || is_code);
}

/* --- walking ---------------------------------------------------------------------------------- */

#ifdef UNWIND_READS
/* What a walk has read decides, with the registers, how it went: noted, it need not be done again
 * while all of that is the same. */
static __noinline int unwind_read_noted(struct unwind_walk *w, __u64 user_va, __u64 *ret_word)
{
	__u32 n = w->n_reads;

	if (bpf_probe_read_user(ret_word, sizeof(*ret_word), (void *)user_va))
		return UNWIND_UNREADABLE;
	w->n_reads = n + 1;
	barrier_var(n);
	if (n < UNWIND_READS) {
		w->reads[n].user_va = user_va;
		w->reads[n].word = *ret_word;
	}
	return 0;
}
#endif

static __always_inline int unwind_read_user(void *ctx, __u64 user_va, __u64 *ret_word)
{
#ifdef UNWIND_READS
	return unwind_read_noted(ctx, user_va, ret_word);
#else
	(void)ctx;
	return bpf_probe_read_user(ret_word, sizeof(*ret_word), (void *)user_va) ? UNWIND_UNREADABLE
										 : 0;
#endif
}

#if defined(__TARGET_ARCH_arm64)
#define UNWIND_BPF_ARCH UNWIND_ARM64
#else
#define UNWIND_BPF_ARCH UNWIND_X86_64
#endif

/* From the frame in w->state to its caller. */
static __always_inline int unwind_frame(struct unwind_walk *w)
{
	__u64 user_va = unwind_lookup_pc(&w->state), off;
	struct unwind_rule *rule;
	__u32 index = UNWIND_RULE_INDEX_NONE;
	int stop = 0;

	if (user_va < w->range.start_va || user_va >= w->range.end_va) {
		stop = unwind_enter_range(w, user_va);
		if (stop == UNWIND_NO_MAPPING)
			return unwind_astray(&w->state);
		if (stop)
			return stop;
		/* The same addresses are another stack where other code lies. */
		w->hash = unwind_mix(w->hash, w->range.identity + w->range.bias);
	}
	if (w->range.kind == UNWIND_RANGE_STOP && w->range.stop == UNWIND_NEW_MAPPING)
		return UNWIND_NEW_MAPPING; /* better in a moment: no guess now */
	off = user_va + w->range.bias;
	if (w->range.kind == UNWIND_RANGE_FP)
		index = UNWIND_RULE_INDEX_FP;
	else if (w->range.kind == UNWIND_RANGE_ROWS && off <= 0xffffffff)
		index = unwind_rule_of(w->range.first_row, w->range.n_rows, off);
	rule = bpf_map_lookup_elem(&unwind_rules, &index);
	if (!rule)
		return UNWIND_UNSUPPORTED;
	stop = unwind_step(UNWIND_BPF_ARCH, rule, &w->state, unwind_read_user, w);
	return stop == UNWIND_NO_ROW && w->range.kind == UNWIND_RANGE_STOP ? w->range.stop : stop;
}

static __always_inline bool unwind_push(struct unwind_walk *w, __u64 word)
{
	__u32 at = w->at;

	barrier_var(at); /* the compiler may not forget the bound, which the verifier needs */
	if (at >= UNWIND_OUT_WORDS)
		return false;
	w->out[at] = word;
	w->at = at + 1;
	w->hash = unwind_mix(w->hash, word);
	return true;
}

/* The frame in the walk's state into its chain, then its caller into the state. Global, so that the
 * verifier looks at it once, and the loop around it costs it nothing: 5.10 has no bpf_loop. */
__noinline int unwind_next(__u32 i)
{
	__u32 zero = 0;
	struct unwind_walk *w = bpf_map_lookup_elem(&unwind_walks, &zero);

	if (!w || !unwind_push(w, unwind_chain_entry(&w->state, !i)))
		return UNWIND_DEPTH;
	w->stop = unwind_frame(w);
	return w->stop;
}

/* Appends the frames from w->state on to w->out. Why it ended is in w->stop. */
static __always_inline void unwind_user(struct unwind_walk *w, __u32 pid, __u32 max_frames)
{
	struct unwind_process *p = bpf_map_lookup_elem(&unwind_processes, &pid);

	w->pid = pid;
	w->process.n = 0;
	if (p)
		w->process = *p;
	w->range.end_va = 0;
	unwind_memory_of_task(&w->memory);
	w->state.in_memory = 0;
	w->state.exact = 1;
	w->state.guessed = 0;
	w->state.in_flight = 0;
	w->stop = UNWIND_CONTINUE;
	for (__u32 i = 0; i < UNWIND_MAX_STACK && i < max_frames; i++)
		if (unwind_next(i) != UNWIND_CONTINUE)
			break;
	if (w->stop == UNWIND_CONTINUE)
		w->stop = UNWIND_DEPTH;
}

/* The walk could not end well: the registers are those of a program whose memory is gone, as
 * another one is being executed in its place. */
static __always_inline bool unwind_is_between_programs(const struct unwind_walk *w,
						       struct task_struct *task)
{
	return w->stop > UNWIND_END && BPF_CORE_READ_BITFIELD_PROBED(task, in_execve);
}

/* --- processes -------------------------------------------------------------------------------- */

static __always_inline void unwind_forked(__u32 parent, __u32 child)
{
	struct unwind_process *p = bpf_map_lookup_elem(&unwind_processes, &parent);
	struct unwind_process copy;

	if (!p || !p->generation) {
		bpf_map_delete_elem(&unwind_processes, &child); /* of an earlier one's number */
		return;
	}
	copy = *p;
	copy.waiting = 0;
	copy.quiet_until_ns = 0;
	bpf_map_update_elem(&unwind_processes, &child, &copy, BPF_ANY);
}

/* The process has ended. */
static __always_inline void unwind_exited(__u32 pid)
{
	bpf_map_delete_elem(&unwind_processes, &pid);
}

/* Of a program that is not known the tool hears at once, and may be ahead of its first sample. */
static __always_inline void unwind_execed(struct task_struct *task, __u32 pid, bool wanted)
{
	struct unwind_process none = {.waiting = 1};
	struct file___file *file = (void *)BPF_CORE_READ(task, mm, exe_file);

	bpf_map_delete_elem(&unwind_processes, &pid);
	if (!wanted || unwind_find_known(unwind_program_identity(file)) ||
	    bpf_map_update_elem(&unwind_processes, &pid, &none, BPF_NOEXIST))
		return;
	if (!unwind_request(pid))
		bpf_map_delete_elem(&unwind_processes, &pid);
}

#endif
