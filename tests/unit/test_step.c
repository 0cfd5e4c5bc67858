/* SPDX-License-Identifier: BSD-2-Clause */
/* One step of the unwinder, for each kind of rule and each way to stop, on a made-up stack. */
#include <inspect/unwind.h>

/* cmocka.h needs these first. */
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#define STACK 0x7f0000001000ULL
#define NOT_SAVED                                                                                  \
	{                                                                                          \
		UNWIND_SAME, UNWIND_SAME, UNWIND_SAME, UNWIND_SAME, UNWIND_SAME, UNWIND_SAME       \
	}

struct memory {
	uint64_t word[64]; /* from STACK on */
	size_t reads;
};

static int read_memory(void *ctx, __u64 user_va, __u64 *ret)
{
	struct memory *m = ctx;

	m->reads++;
	if (user_va < STACK || user_va % 8 || (user_va - STACK) / 8 >= ARRAY_SIZE(m->word))
		return UNWIND_UNREADABLE;
	*ret = m->word[(user_va - STACK) / 8];
	return 0;
}

/* Word i of the stack holds 0x1000 + i, a return address where one is wanted. */
static void fill(struct memory *m)
{
	*m = (struct memory){0};
	for (size_t i = 0; i < ARRAY_SIZE(m->word); i++)
		m->word[i] = 0x1000 + i;
}

static struct unwind_state state_at(uint64_t sp, uint64_t fp)
{
	struct unwind_state s = {.pc = 0x400100, .exact = 1};

	for (unsigned i = 0; i < UNWIND_REGS; i++)
		unwind_set(&s, i, 0x100 + i);
	unwind_set(&s, UNWIND_SLOT_SP, sp);
	unwind_set(&s, UNWIND_SLOT_FP, fp);
	return s;
}

static uint64_t value_of(struct unwind_state *s, unsigned slot, struct memory *m)
{
	__u64 v = 0;

	assert_int_equal(unwind_get(s, slot, read_memory, m, &v), 0);
	return v;
}

static const struct unwind_rule sp_16 = {
	.kind = UNWIND_RULE_CFA, .reg = UNWIND_SLOT_SP, .off = 16, .ra = -1, .saved = NOT_SAVED};

static void cfa_from_a_register(void **state UNUSED)
{
	struct memory m;
	struct unwind_state s = state_at(STACK + 32, 0);
	struct unwind_rule r = sp_16;

	fill(&m);
	r.saved[0] = -2; /* rbp */
	r.saved[2] = -4; /* r12 */
	assert_int_equal(unwind_step(UNWIND_X86_64, &r, &s, read_memory, &m), UNWIND_CONTINUE);
	/* Only the return address was read: the others wait until someone asks. */
	assert_int_equal(m.reads, 1);
	assert_int_equal(s.pc, 0x1005);
	assert_int_equal(unwind_lookup_pc(&s), 0x1004);
	assert_int_equal(s.r[UNWIND_SLOT_SP], STACK + 48);
	assert_int_equal(value_of(&s, UNWIND_SLOT_FP, &m), 0x1004);
	assert_int_equal(value_of(&s, 12, &m), 0x1002);
	assert_int_equal(value_of(&s, 3, &m), 0x103);
	/* rax and its like do not outlive a call. */
	assert_false(s.known & 1);
	assert_false(s.known >> 10 & 1);
}

static void cfa_from_memory(void **state UNUSED)
{
	struct memory m;
	struct unwind_state s = state_at(STACK, STACK + 80);
	const struct unwind_rule deref = {.kind = UNWIND_RULE_DEREF,
					  .reg = UNWIND_SLOT_FP,
					  .off = -8,
					  .add = 8,
					  .ra = -1,
					  .flags = UNWIND_SAVED_BY_FP,
					  .saved = {0, -1, UNWIND_SAME, UNWIND_SAME, UNWIND_SAME,
						    UNWIND_UNDEFINED}};
	const struct unwind_rule indexed = {.kind = UNWIND_RULE_INDEXED,
					    .reg = UNWIND_SLOT_SP,
					    .off = 8,
					    .index = 9,
					    .add = 8,
					    .ra = -1,
					    .saved = NOT_SAVED};

	fill(&m);
	m.word[9] = STACK + 160;
	assert_int_equal(unwind_step(UNWIND_X86_64, &deref, &s, read_memory, &m), UNWIND_CONTINUE);
	assert_int_equal(s.r[UNWIND_SLOT_SP], STACK + 168);
	assert_int_equal(s.pc, 0x1000 + 20);
	assert_int_equal(value_of(&s, UNWIND_SLOT_FP, &m), 0x1000 + 10);
	assert_int_equal(value_of(&s, 3, &m), STACK + 160);
	assert_false(s.known >> 15 & 1);

	s = state_at(STACK, 0);
	unwind_set(&s, 9, 4);
	m.word[5] = STACK + 240;
	assert_int_equal(unwind_step(UNWIND_X86_64, &indexed, &s, read_memory, &m),
			 UNWIND_CONTINUE);
	assert_int_equal(s.r[UNWIND_SLOT_SP], STACK + 248);
	assert_int_equal(s.pc, 0x1000 + 30);
}

static void plt_entries(void **state UNUSED)
{
	static const struct {
		uint64_t pc, pc_after;
	} cases[] = {
		{0x401020, 0x1000}, {0x40102a, 0x1000}, {0x40102b, 0x1001}, {0x40102f, 0x1001}};
	struct unwind_rule r = sp_16;
	struct memory m;

	fill(&m);
	r.kind = UNWIND_RULE_PLT;
	r.off = 11;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct unwind_state s = state_at(STACK, 0);

		s.pc = cases[i].pc;
		assert_int_equal(unwind_step(UNWIND_X86_64, &r, &s, read_memory, &m), 0);
		assert_int_equal(s.pc, cases[i].pc_after);
	}
}

static void return_address_in_a_register(void **state UNUSED)
{
	struct memory m;
	struct unwind_state s = state_at(STACK, 0);
	struct unwind_rule r = sp_16;

	fill(&m);
	r.off = 0;
	r.flags = UNWIND_RA_IN_REG;
	r.ra = 5; /* rdi, as in vfork */
	assert_int_equal(unwind_step(UNWIND_X86_64, &r, &s, read_memory, &m), UNWIND_CONTINUE);
	assert_int_equal(s.pc, 0x105);
	assert_int_equal(s.r[UNWIND_SLOT_SP], STACK);
	assert_int_equal(m.reads, 0);
	/* A second time nobody knows what was in it. */
	assert_int_equal(unwind_step(UNWIND_X86_64, &r, &s, read_memory, &m), UNWIND_LOST_REGISTER);
}

static void signal_frames(void **state UNUSED)
{
	static const struct unwind_rule r = {.kind = UNWIND_RULE_SIGNAL};
	struct memory m;
	struct unwind_state s = state_at(STACK, 0);

	fill(&m);
	s.exact = 0;
	/* struct sigcontext: r8 is word 5 of the ucontext; sp word 20, ip 21, rbp 15, rbx 16. */
	m.word[20] = STACK - 4096;
	assert_int_equal(unwind_step(UNWIND_X86_64, &r, &s, read_memory, &m), UNWIND_CONTINUE);
	assert_int_equal(s.pc, 0x1000 + 21);
	assert_int_equal(unwind_lookup_pc(&s), s.pc);
	assert_int_equal(unwind_chain_entry(&s, 0), s.pc + 1);
	assert_int_equal(s.r[UNWIND_SLOT_SP], STACK - 4096);
	assert_int_equal(value_of(&s, UNWIND_SLOT_FP, &m), 0x1000 + 15);
	assert_int_equal(value_of(&s, 3, &m), 0x1000 + 16);
	assert_int_equal(value_of(&s, 8, &m), 0x1000 + 5);
	assert_int_equal(value_of(&s, 15, &m), 0x1000 + 12);
	assert_int_equal(value_of(&s, 0, &m), 0x1000 + 18);
	assert_int_equal(value_of(&s, 1, &m), 0x1000 + 17);
	assert_int_equal(value_of(&s, 2, &m), 0x1000 + 19);
	assert_int_equal(value_of(&s, 4, &m), 0x1000 + 14);
	assert_int_equal(value_of(&s, 5, &m), 0x1000 + 13);
}

/* struct rt_sigframe of aarch64: siginfo 128 bytes, ucontext with its mcontext at 176. */
static void signal_frames_of_aarch64(void **state UNUSED)
{
	static const struct unwind_rule r = {.kind = UNWIND_RULE_SIGNAL};
	struct memory m = {0};
	struct unwind_state s = state_at(STACK, 0);
	uint64_t big[128];
	size_t x0 = (128 + 176 + 8) / 8;

	for (size_t i = 0; i < ARRAY_SIZE(big); i++)
		big[i] = 0x2000 + i;
	/* Only what is asked for lies in the window of 64 words. */
	memcpy(m.word, big, sizeof(m.word));
	assert_int_equal(unwind_step(UNWIND_ARM64, &r, &s, read_memory, &m), UNWIND_UNREADABLE);
	s = state_at(STACK - 24 * 8, 0);
	for (size_t i = 0; i < ARRAY_SIZE(m.word); i++)
		m.word[i] = 0x2000 + i + 24;
	assert_int_equal(unwind_step(UNWIND_ARM64, &r, &s, read_memory, &m), UNWIND_CONTINUE);
	assert_int_equal(s.pc, 0x2000 + x0 + 32);
	assert_int_equal(s.r[UNWIND_SLOT_SP], 0x2000 + x0 + 31);
	assert_int_equal(value_of(&s, UNWIND_SLOT_FP, &m), 0x2000 + x0 + 29);
	assert_int_equal(value_of(&s, 2, &m), 0x2000 + x0 + 30);
	assert_int_equal(value_of(&s, 3, &m), 0x2000 + x0 + 19);
}

static void leaves_of_aarch64(void **state UNUSED)
{
	struct unwind_rule r = sp_16;
	struct unwind_state s = state_at(STACK, 0);
	struct memory m;

	fill(&m);
	r.off = 0;
	r.flags = UNWIND_RA_IN_REG;
	r.ra = 2;                                 /* lr */
	unwind_set(&s, 2, 0x0023000000401234ULL); /* signed */
	assert_int_equal(unwind_step(UNWIND_ARM64, &r, &s, read_memory, &m), UNWIND_CONTINUE);
	assert_int_equal(s.pc, 0x401234);
}

static void frame_pointers(void **state UNUSED)
{
	static const struct unwind_rule fp = {.kind = UNWIND_RULE_FP}, none = {0};
	struct memory m;
	struct unwind_state s = state_at(STACK, STACK + 16);

	fill(&m);
	m.word[2] = 0;
	assert_int_equal(unwind_step(UNWIND_X86_64, &fp, &s, read_memory, &m), UNWIND_CONTINUE);
	assert_int_equal(s.pc, 0x1003);
	assert_int_equal(s.r[UNWIND_SLOT_SP], STACK + 32);
	assert_false(s.guessed);
	assert_int_equal(s.known, 1 << UNWIND_SLOT_FP | 1 << UNWIND_SLOT_SP);
	/* 0 marks the outermost frame where frame pointers are kept, and nothing elsewhere. */
	assert_int_equal(unwind_step(UNWIND_X86_64, &fp, &s, read_memory, &m), UNWIND_END);
	assert_int_equal(unwind_step(UNWIND_X86_64, &none, &s, read_memory, &m), UNWIND_NO_ROW);
	s = state_at(STACK, STACK + 16);
	assert_int_equal(unwind_step(UNWIND_X86_64, &none, &s, read_memory, &m), UNWIND_CONTINUE);
	assert_true(s.guessed);
	/* Below sp, or no address at all. */
	s = state_at(STACK + 64, STACK + 16);
	assert_int_equal(unwind_step(UNWIND_X86_64, &fp, &s, read_memory, &m),
			 UNWIND_NO_FRAME_POINTER);
	s = state_at(STACK, UINT64_MAX - 7);
	assert_int_equal(unwind_step(UNWIND_X86_64, &none, &s, read_memory, &m), UNWIND_NO_ROW);
}

static void ways_to_stop(void **state UNUSED)
{
	struct memory m;
	struct unwind_rule r = sp_16;
	struct unwind_state s = state_at(STACK, 0);

	fill(&m);
	r.kind = UNWIND_RULE_END;
	assert_int_equal(unwind_step(UNWIND_X86_64, &r, &s, read_memory, &m), UNWIND_END);
	r.kind = UNWIND_RULE_UNSUPPORTED;
	assert_int_equal(unwind_step(UNWIND_X86_64, &r, &s, read_memory, &m), UNWIND_UNSUPPORTED);
	r.kind = 200;
	assert_int_equal(unwind_step(UNWIND_X86_64, &r, &s, read_memory, &m), UNWIND_UNSUPPORTED);
	/* No progress, backwards, or not aligned. */
	for (int off = -8; off <= 12; off += off == 0 ? 12 : 8) {
		r = sp_16;
		r.off = off;
		assert_int_equal(unwind_step(UNWIND_X86_64, &r, &s, read_memory, &m),
				 UNWIND_BAD_CFA);
	}
	s = state_at(STACK + 8 * ARRAY_SIZE(m.word), 0);
	assert_int_equal(unwind_step(UNWIND_X86_64, &sp_16, &s, read_memory, &m),
			 UNWIND_UNREADABLE);
	/* A return address of 0: whoever made the stack says that this is all. */
	s = state_at(STACK, 0);
	m.word[1] = 0;
	assert_int_equal(unwind_step(UNWIND_X86_64, &sp_16, &s, read_memory, &m), UNWIND_END);
	s = state_at(STACK, STACK + 64);
	assert_int_equal(unwind_step(UNWIND_X86_64, &sp_16, &s, read_memory, &m), UNWIND_END);
	/* Unless an exception's landing is being prepared there, or further down. */
	r = sp_16;
	r.flags = UNWIND_EH_RETURN;
	s = state_at(STACK, 0);
	assert_int_equal(unwind_step(UNWIND_X86_64, &r, &s, read_memory, &m), UNWIND_IN_FLIGHT);
	s = state_at(STACK + 16, 0);
	assert_int_equal(unwind_step(UNWIND_X86_64, &r, &s, read_memory, &m), UNWIND_CONTINUE);
	m.word[5] = 0;
	assert_int_equal(unwind_step(UNWIND_X86_64, &sp_16, &s, read_memory, &m), UNWIND_IN_FLIGHT);
	r = sp_16;
	/* Of a guess nothing. */
	r.kind = UNWIND_RULE_NONE;
	s = state_at(STACK, STACK);
	assert_int_equal(unwind_step(UNWIND_X86_64, &r, &s, read_memory, &m), UNWIND_NO_ROW);
}

/* No code lies at the address: the first thing that may have led there is to blame. */
static void astray(void **state UNUSED)
{
	struct unwind_state s = {0};

	assert_int_equal(unwind_astray(&s), UNWIND_NO_MAPPING);
	s.in_flight = 1;
	assert_int_equal(unwind_astray(&s), UNWIND_IN_FLIGHT);
	s.guessed = 1;
	assert_int_equal(unwind_astray(&s), UNWIND_NO_ROW);
}

static void what_was_popped_is_in_its_register(void **state UNUSED)
{
	struct memory m;
	struct unwind_rule r = sp_16;
	struct unwind_state s = state_at(STACK + 32, 0);

	fill(&m);
	s.stack_low = STACK + 32;
	r.saved[1] = -3; /* rbx, 8 below sp */
	r.saved[2] = -2;
	assert_int_equal(unwind_step(UNWIND_X86_64, &r, &s, read_memory, &m), UNWIND_CONTINUE);
	assert_int_equal(value_of(&s, 3, &m), 0x103);
	assert_int_equal(value_of(&s, 12, &m), 0x1004);
}

static void registers_of_perf(void **state UNUSED)
{
	static const uint64_t x86_64[] = {0xa, 0xb, 0xc, 0xd, 0x51, 0xd1, 0xb9, 0x59, 0x19,
					  8,   9,   10,  11,  12,   13,   14,   15};
	struct user_regs regs = {.abi = PERF_SAMPLE_REGS_ABI_64, .mask = 0xff01ff, .v = x86_64};
	uint64_t arm64[33];
	struct unwind_state s;

	assert_int_equal(unwind_perf_regs(UNWIND_X86_64), 0xff01ff);
	assert_int_equal(unwind_state_from_perf(UNWIND_X86_64, &regs, &s), 0);
	assert_int_equal(s.pc, 0x19);
	assert_int_equal(s.r[UNWIND_SLOT_SP], 0x59);
	assert_int_equal(s.r[UNWIND_SLOT_FP], 0xb9);
	assert_int_equal(s.r[3], 0xb);
	assert_int_equal(s.r[1], 0xd);
	assert_int_equal(s.r[15], 15);
	assert_int_equal(s.known, 0xffff);
	regs.abi = PERF_SAMPLE_REGS_ABI_32;
	assert_int_equal(unwind_state_from_perf(UNWIND_X86_64, &regs, &s), UNWIND_32_BIT);
	regs.abi = PERF_SAMPLE_REGS_ABI_NONE;
	assert_int_equal(unwind_state_from_perf(UNWIND_X86_64, &regs, &s), UNWIND_NO_REGISTERS);
	/* Without the instruction pointer the rest is of no use. */
	regs = (struct user_regs){.abi = PERF_SAMPLE_REGS_ABI_64, .mask = 0xff00ff, .v = x86_64};
	assert_int_equal(unwind_state_from_perf(UNWIND_X86_64, &regs, &s), UNWIND_NO_REGISTERS);

	for (size_t i = 0; i < ARRAY_SIZE(arm64); i++)
		arm64[i] = i;
	regs = (struct user_regs){
		.abi = PERF_SAMPLE_REGS_ABI_64, .mask = (1ULL << 33) - 1, .v = arm64};
	assert_int_equal(unwind_state_from_perf(UNWIND_ARM64, &regs, &s), 0);
	assert_int_equal(s.pc, 32);
	assert_int_equal(s.r[UNWIND_SLOT_SP], 31);
	assert_int_equal(s.r[UNWIND_SLOT_FP], 29);
	assert_int_equal(s.r[2], 30);
	assert_int_equal(s.r[3], 19);
	/* What is asked of perf is what a state is made of. */
	assert_int_equal(unwind_perf_regs(UNWIND_ARM64) >> 29, 0xf);
	assert_int_equal(unwind_slot(UNWIND_ARM64, 0), -1);
	assert_int_equal(unwind_slot(UNWIND_X86_64, 16), -1);
}

static void every_stop_has_a_text(void **state UNUSED)
{
	for (int i = 0; i < UNWIND_STOPS; i++)
		assert_true(strlen(unwind_stop_text((enum unwind_stop)i)) > 3);
	assert_string_equal(unwind_stop_text((enum unwind_stop)UNWIND_STOPS), "unknown");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(cfa_from_a_register),
		cmocka_unit_test(cfa_from_memory),
		cmocka_unit_test(plt_entries),
		cmocka_unit_test(return_address_in_a_register),
		cmocka_unit_test(signal_frames),
		cmocka_unit_test(signal_frames_of_aarch64),
		cmocka_unit_test(leaves_of_aarch64),
		cmocka_unit_test(frame_pointers),
		cmocka_unit_test(ways_to_stop),
		cmocka_unit_test(astray),
		cmocka_unit_test(what_was_popped_is_in_its_register),
		cmocka_unit_test(registers_of_perf),
		cmocka_unit_test(every_stop_has_a_text),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
