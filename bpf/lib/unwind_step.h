/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * One step of the unwinder: from the registers in a function to those in its caller, by a rule made
 * of .eh_frame. Pure C without maps or libc, compiled for BPF and for user space; the memory reader
 * is given. Both register sets use one numbering of 16 slots, so that the step is one function:
 *
 *   slot     0-2        3    4 5  6    7   8-11    12-15
 *   x86-64   rax rdx rcx rbx  rsi rdi rbp  rsp r8-r11  r12-r15   (the DWARF numbers)
 *   aarch64  x16 x17 lr  x19  -       x29  sp  x9-x12  x20-x23
 *
 * Sources: System V ABI (x86-64 psABI 3.4.1, 3.2.2), AAPCS64, DWARF 5 section 6.4,
 * arch/x86/include/uapi/asm/sigcontext.h, arch/arm64/kernel/signal.c.
 */
#ifndef BPF_LIB_UNWIND_STEP_H
#define BPF_LIB_UNWIND_STEP_H

#ifndef __VMLINUX_H__
#include <linux/types.h>
#endif

#define UNWIND_INLINE static inline __attribute__((always_inline))

/* --- what tables are made of ------------------------------------------------------------------ */

/* From `off` up to the next row's the rule holds. Sorted by off; the last row is a gap. */
struct unwind_row {
	__u32 off;  /* file offset of the code, less the table's base_off */
	__u32 rule; /* index among the table's rules; 0 is always a gap (UNWIND_RULE_NONE) */
};

enum unwind_rule_kind {
	UNWIND_RULE_NONE,    /* nothing is known of this code: unwind_step_fp is the fallback */
	UNWIND_RULE_CFA,     /* CFA = reg + off */
	UNWIND_RULE_DEREF,   /* CFA = *(reg + off) + add: realigned stacks, hand-written code */
	UNWIND_RULE_INDEXED, /* CFA = *(reg + off + index * 8) + add: libcrypto's bn_mul_mont */
	UNWIND_RULE_PLT,     /* CFA = sp + 8, and 8 more from byte `off` of a 16-byte entry on */
	UNWIND_RULE_SIGNAL,  /* the return from a signal handler; rt_sigframe lies at sp */
	UNWIND_RULE_END,     /* the outermost frame */
	UNWIND_RULE_FP,      /* code that keeps frame pointers (Go) */
	UNWIND_RULE_UNSUPPORTED, /* an expression that no compiler is known to make */
};

enum {
	UNWIND_REGS = 16,
	UNWIND_SLOT_FP = 6,
	UNWIND_SLOT_SP = 7,
	UNWIND_SAVED = 6, /* the callee-saved slots that rules follow: see unwind_saved_slot */
	UNWIND_CALLEE_SAVED = 0xf0c8, /* slots 3, 6, 7, 12-15 */

	UNWIND_SAME = -32768,      /* in saved[]: the caller's value is still in the register */
	UNWIND_UNDEFINED = -32767, /* in saved[]: it is lost, or somewhere that rules can't say */

	/* flags */
	UNWIND_RA_IN_REG = 1,   /* ra is a slot, not a place (vfork, aarch64 leaves) */
	UNWIND_SAVED_BY_FP = 2, /* saved[] counts from the frame pointer, not from the CFA */
	UNWIND_EH_RETURN = 4,   /* ends by overwriting what it saved: see unwind_state.in_flight */

	UNWIND_MAX_STACK = 1024, /* frames, the most that may be asked for */
};

struct unwind_rule {
	__s32 off;
	__s16 add;
	__u8 kind;
	__u8 reg;
	__u8 index;
	__u8 flags;
	__s16 ra;                  /* words of 8 bytes from the CFA, or a slot */
	__s16 saved[UNWIND_SAVED]; /* words of 8 bytes from the CFA (or frame pointer) */
};

_Static_assert(sizeof(struct unwind_row) == 8, "rows are shared with BPF");
_Static_assert(sizeof(struct unwind_rule) == 24, "rules are shared with BPF");

/* --- what a step works on --------------------------------------------------------------------- */

enum unwind_arch { UNWIND_X86_64, UNWIND_ARM64 };

/* Why there are no more frames. Texts: unwind_stop_text(). Travels in records: only append. */
enum unwind_stop {
	UNWIND_CONTINUE,         /* there is a caller */
	UNWIND_END,              /* the outermost frame: the stack is complete */
	UNWIND_NO_ROW,           /* code without rows, and no frame pointer that could be right */
	UNWIND_NO_MAPPING,       /* the address lies in no mapping */
	UNWIND_NEW_MAPPING,      /* the rows of the mapping are not loaded yet */
	UNWIND_NO_FRAME_POINTER, /* JIT code whose frame pointer does not lead up the stack */
	UNWIND_UNREADABLE,       /* the stack could not be read there */
	UNWIND_COPY_TOO_SHORT,   /* the copy of the stack ends below */
	UNWIND_UNSUPPORTED,      /* a rule that is not understood */
	UNWIND_LOST_REGISTER,    /* the rule needs a register whose value is not known */
	UNWIND_BAD_CFA,          /* the caller's frame would not lie above */
	UNWIND_DEPTH,            /* more frames than --max-stack */
	UNWIND_32_BIT,           /* 32-bit processes are not unwound */
	UNWIND_NO_REGISTERS,     /* the sample has no user registers */
	UNWIND_NO_FILE,          /* the mapped file could not be read */
	UNWIND_NO_MEMORY,        /* no room for more rows */
	UNWIND_OTHER_STACK,      /* the copy is of a signal handler's own stack alone */
	UNWIND_ZERO_RETURN,      /* a signal came at address 0: that of the caller is not known */
	UNWIND_IN_FLIGHT,        /* an exception's landing is being prepared: frames do not fit */
	UNWIND_FILE_CHANGED, /* what was mapped can't be read: the file holds something else now */
	UNWIND_STOPS
};

struct unwind_state {
	__u64 pc;
	__u64 r[UNWIND_REGS]; /* the value, or the address of the word that holds it */
	__u64 stack_low;      /* what lies below can't be read (a copy begins here); 0: all can */
	__u16 known;          /* by slot: r says something */
	__u16 in_memory;      /* by slot: r is an address */
	__u8 exact;           /* pc is an instruction to run next, not a return address */
	__u8 guessed;         /* a frame was found by frame pointer where there is no row */
	__u8 in_flight;       /* by a rule with UNWIND_EH_RETURN: the frame may be half another's */
	__u16 used; /* by slot: registers, not memory, that were asked for; only added to */
};

/* Reads a word of the stack: 0, or an unwind_stop (UNWIND_UNREADABLE, UNWIND_COPY_TOO_SHORT). */
typedef int unwind_read_fn(void *ctx, __u64 user_va, __u64 *ret_word);

/* The address whose row and function are meant: a return address may be that of the next one. */
UNWIND_INLINE __u64 unwind_lookup_pc(const struct unwind_state *s)
{
	return s->pc - !s->exact;
}

/* What stands for the frame in a chain, whose readers take one off every entry but the first: an
 * instruction interrupted by a signal is no return address. */
UNWIND_INLINE __u64 unwind_chain_entry(const struct unwind_state *s, int is_leaf)
{
	return is_leaf ? s->pc : s->pc + s->exact;
}

UNWIND_INLINE void unwind_set(struct unwind_state *s, unsigned slot, __u64 value)
{
	s->r[slot & (UNWIND_REGS - 1)] = value;
	s->known |= (__u16)(1U << slot);
	s->in_memory &= (__u16) ~(1U << slot);
}

UNWIND_INLINE int unwind_get(struct unwind_state *s, unsigned slot, unwind_read_fn *read, void *ctx,
			     __u64 *ret)
{
	slot &= UNWIND_REGS - 1;
	if (!(s->known >> slot & 1))
		return UNWIND_LOST_REGISTER;
	if (s->in_memory >> slot & 1)
		return read(ctx, s->r[slot], ret);
	s->used |= (__u16)(1U << slot);
	*ret = s->r[slot];
	return 0;
}

/* Which slot saved[i] is about. */
UNWIND_INLINE unsigned unwind_saved_slot(unsigned i)
{
	return i == 0 ? UNWIND_SLOT_FP : i == 1 ? 3 : 10 + i;
}

/* Return addresses may be signed (pointer authentication); user addresses have 48 bits. */
UNWIND_INLINE __u64 unwind_strip(enum unwind_arch arch, __u64 pc)
{
	return arch == UNWIND_ARM64 ? pc & 0xffffffffffffULL : pc;
}

/* Why there are no more frames where no code lies at the address: what led there was wrong. */
UNWIND_INLINE int unwind_astray(const struct unwind_state *s)
{
	if (s->guessed)
		return UNWIND_NO_ROW;
	return s->in_flight ? UNWIND_IN_FLIGHT : UNWIND_NO_MAPPING;
}

/* --- the steps -------------------------------------------------------------------------------- */

/* Where the kernel put the registers of the interrupted code, in bytes from sp. */
UNWIND_INLINE unsigned unwind_sigframe_at(enum unwind_arch arch, unsigned slot)
{
	/* x86-64: uc_mcontext, from r8, is 40 bytes into the ucontext that sp points at.
	 * aarch64: siginfo (128), ucontext up to uc_mcontext (176), fault_address (8), then x0. */
	static const __u8 x86_64[] = {13, 12, 14, 11, 9, 8, 10, 15, 0, 1, 2, 3, 4, 5, 6, 7};
	static const __u8 arm64[] = {16, 17, 30, 19, 0, 0, 29, 31, 9, 10, 11, 12, 20, 21, 22, 23};

	slot &= UNWIND_REGS - 1;
	return arch == UNWIND_ARM64 ? 312 + 8U * arm64[slot] : 40 + 8U * x86_64[slot];
}

/* Where the kernel put what it knew of the handler's own stack (uc_stack of struct ucontext), in
 * bytes from sp: its start, flags, its size. */
UNWIND_INLINE unsigned unwind_sigstack_at(enum unwind_arch arch)
{
	return arch == UNWIND_ARM64 ? 128 + 16 : 16;
}

UNWIND_INLINE int unwind_step_signal(enum unwind_arch arch, struct unwind_state *s,
				     unwind_read_fn *read, void *ctx)
{
	unsigned pc_at = arch == UNWIND_ARM64 ? 312 + 8 * 32 : 40 + 8 * 16;
	__u64 frame, pc, sp;
	int stop = unwind_get(s, UNWIND_SLOT_SP, read, ctx, &frame);

	if (!stop)
		stop = read(ctx, frame + pc_at, &pc);
	if (!stop)
		stop = read(ctx, frame + unwind_sigframe_at(arch, UNWIND_SLOT_SP), &sp);
	if (stop)
		return stop;
	for (unsigned i = 0; i < UNWIND_REGS; i++)
		s->r[i] = frame + unwind_sigframe_at(arch, i);
	s->known = s->in_memory = 0xffff;
	/* Slots 4 and 5 stand for nothing on aarch64. */
	if (arch == UNWIND_ARM64)
		s->known = 0xffcf;
	unwind_set(s, UNWIND_SLOT_SP, sp);
	s->pc = pc;
	s->exact = 1;
	return pc ? UNWIND_CONTINUE : UNWIND_ZERO_RETURN;
}

UNWIND_INLINE int unwind_cfa(const struct unwind_rule *rule, struct unwind_state *s,
			     unwind_read_fn *read, void *ctx, __u64 *ret_cfa)
{
	__u64 cfa, index;
	int stop = unwind_get(s, rule->reg, read, ctx, &cfa);

	if (stop)
		return stop;
	if (rule->kind == UNWIND_RULE_PLT) {
		*ret_cfa = cfa + 8 + ((__s32)(s->pc & 15) >= rule->off ? 8 : 0);
		return 0;
	}
	cfa += (__u64)(__s64)rule->off;
	if (rule->kind == UNWIND_RULE_INDEXED) {
		stop = unwind_get(s, rule->index, read, ctx, &index);
		if (stop)
			return stop;
		cfa += index * 8;
	}
	if (rule->kind != UNWIND_RULE_CFA) {
		stop = read(ctx, cfa, &cfa);
		if (stop)
			return stop;
		cfa += (__u64)(__s64)rule->add;
	}
	*ret_cfa = cfa;
	return 0;
}

/* Where the caller's registers are: only noted, and read when a later rule asks for one. */
UNWIND_INLINE void unwind_restore(const struct unwind_rule *rule, struct unwind_state *s,
				  __u64 saved_at)
{
#pragma GCC unroll 6
	for (unsigned i = 0; i < UNWIND_SAVED; i++) {
		unsigned slot = unwind_saved_slot(i);
		__u64 at;

		if (rule->saved[i] == UNWIND_SAME)
			continue;
		if (rule->saved[i] == UNWIND_UNDEFINED) {
			s->known &= (__u16) ~(1U << slot);
			continue;
		}
		at = saved_at + (__u64)(__s64)rule->saved[i] * 8;
		/* Below sp: popped, which is not described; the register has it again. */
		if (at < s->stack_low)
			continue;
		s->r[slot] = at;
		s->known |= (__u16)(1U << slot);
		s->in_memory |= (__u16)(1U << slot);
	}
}

UNWIND_INLINE int unwind_step_cfa(enum unwind_arch arch, const struct unwind_rule *rule,
				  struct unwind_state *s, unwind_read_fn *read, void *ctx)
{
	int ra_in_reg = rule->flags & UNWIND_RA_IN_REG;
	__u64 cfa, pc, saved_at;
	int stop = unwind_cfa(rule, s, read, ctx, &cfa);

	if (stop)
		return stop;
	/* Only a frame that has pushed nothing, not even a return address, is empty. */
	if (cfa & 7 || cfa < s->r[UNWIND_SLOT_SP] || (cfa == s->r[UNWIND_SLOT_SP] && !ra_in_reg))
		return UNWIND_BAD_CFA;
	saved_at = cfa;
	if (rule->flags & UNWIND_SAVED_BY_FP) {
		stop = unwind_get(s, UNWIND_SLOT_FP, read, ctx, &saved_at);
		if (stop)
			return stop;
	}
	stop = ra_in_reg ? unwind_get(s, (unsigned)rule->ra, read, ctx, &pc)
			 : read(ctx, cfa + (__u64)(__s64)rule->ra * 8, &pc);
	if (stop)
		return stop;
	unwind_restore(rule, s, saved_at);
	s->known &= UNWIND_CALLEE_SAVED;
	unwind_set(s, UNWIND_SLOT_SP, cfa);
	s->pc = unwind_strip(arch, pc);
	s->exact = 0;
	s->in_flight |= !!(rule->flags & UNWIND_EH_RETURN);
	if (s->pc)
		return UNWIND_CONTINUE;
	/* Whoever made the stack says that this is all: a coroutine, a goroutine. */
	return s->in_flight ? UNWIND_IN_FLIGHT : UNWIND_END;
}

/*
 * By frame pointer, where there are no rows: JIT code and Go (trusted: they keep one, and 0 marks
 * the outermost frame), or a gap in a file's rows (a guess). Other registers may have changed.
 */
UNWIND_INLINE int unwind_step_fp(enum unwind_arch arch, int trusted, struct unwind_state *s,
				 unwind_read_fn *read, void *ctx)
{
	int bad = trusted ? UNWIND_NO_FRAME_POINTER : UNWIND_NO_ROW;
	__u64 fp, pc;

	if (unwind_get(s, UNWIND_SLOT_FP, read, ctx, &fp))
		return bad;
	if (!fp && trusted)
		return UNWIND_END;
	if (fp & 7 || fp < s->r[UNWIND_SLOT_SP] || fp + 16 < fp || read(ctx, fp + 8, &pc))
		return bad;
	s->r[UNWIND_SLOT_FP] = fp;
	s->in_memory = s->known = 1U << UNWIND_SLOT_FP;
	unwind_set(s, UNWIND_SLOT_SP, fp + 16);
	s->pc = unwind_strip(arch, pc);
	s->exact = 0;
	s->guessed |= !trusted;
	if (s->pc)
		return UNWIND_CONTINUE;
	return trusted ? UNWIND_END : UNWIND_NO_ROW;
}

/*
 * From the frame in s to its caller, by the rule of the row that covers unwind_lookup_pc(s).
 * UNWIND_CONTINUE: s is the caller. Any other unwind_stop: s may be changed, and there is no more.
 */
UNWIND_INLINE int unwind_step(enum unwind_arch arch, const struct unwind_rule *rule,
			      struct unwind_state *s, unwind_read_fn *read, void *ctx)
{
	switch (rule->kind) {
	case UNWIND_RULE_CFA:
	case UNWIND_RULE_DEREF:
	case UNWIND_RULE_INDEXED:
	case UNWIND_RULE_PLT:
		return unwind_step_cfa(arch, rule, s, read, ctx);
	case UNWIND_RULE_SIGNAL:
		return unwind_step_signal(arch, s, read, ctx);
	case UNWIND_RULE_END:
		return UNWIND_END;
	case UNWIND_RULE_NONE:
		return unwind_step_fp(arch, 0, s, read, ctx);
	case UNWIND_RULE_FP:
		return unwind_step_fp(arch, 1, s, read, ctx);
	default:
		return UNWIND_UNSUPPORTED;
	}
}

#endif
