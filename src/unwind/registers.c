/* SPDX-License-Identifier: BSD-2-Clause */
#include <inspect/unwind.h>

/*
 * Register numbers: DWARF (psABI 3.6.2; AADWARF64 4.1) and perf_regs.h
 * (arch/{x86,arm64}/include/uapi/asm/perf_regs.h) to slots.
 */

enum { NONE = -1, PC = -2 };

static const int8_t dwarf_arm64[] = {
	NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE, 8,  9,
	10,   11,   NONE, NONE, NONE, 0,    1,    NONE, 3,    12, 13,
	14,   15,   NONE, NONE, NONE, NONE, NONE, 6,    2,    7,
};

/* ax bx cx dx si di bp sp ip flags cs ss ds es fs gs r8…r15 */
static const int8_t perf_x86_64[] = {0,    3,    2,    1,    4, 5, 6,  7,  PC, NONE, NONE, NONE,
				     NONE, NONE, NONE, NONE, 8, 9, 10, 11, 12, 13,   14,   15};

int unwind_slot(enum unwind_arch arch, unsigned dwarf_reg)
{
	if (arch == UNWIND_X86_64)
		return dwarf_reg < UNWIND_REGS ? (int)dwarf_reg : NONE;
	return dwarf_reg < ARRAY_SIZE(dwarf_arm64) ? dwarf_arm64[dwarf_reg] : NONE;
}

/* x0…x29, lr, sp as in DWARF, then pc. */
static int perf_slot(enum unwind_arch arch, unsigned perf_reg)
{
	if (arch == UNWIND_ARM64)
		return perf_reg == 32 ? PC : unwind_slot(arch, perf_reg);
	return perf_reg < ARRAY_SIZE(perf_x86_64) ? perf_x86_64[perf_reg] : NONE;
}

uint64_t unwind_perf_regs(enum unwind_arch arch)
{
	uint64_t mask = 0;

	for (unsigned i = 0; i < 64; i++)
		if (perf_slot(arch, i) != NONE)
			mask |= 1ULL << i;
	return mask;
}

size_t unwind_perf_slots(enum unwind_arch arch, uint8_t ret[64])
{
	size_t n = 0;

	for (unsigned i = 0; i < 64; i++)
		if (perf_slot(arch, i) != NONE)
			ret[n++] = perf_slot(arch, i) == PC ? UNWIND_REGS
							    : (uint8_t)perf_slot(arch, i);
	return n;
}

int unwind_state_from_perf(enum unwind_arch arch, const struct user_regs *regs,
			   struct unwind_state *ret)
{
	struct unwind_state s = {.exact = 1};
	const uint64_t *v = regs->v;
	bool have_pc = false;

	if (regs->abi == PERF_SAMPLE_REGS_ABI_NONE || !v)
		return UNWIND_NO_REGISTERS;
	for (unsigned i = 0; i < 64; i++) {
		int slot = perf_slot(arch, i);

		if (!(regs->mask >> i & 1))
			continue;
		if (slot == PC) {
			s.pc = *v;
			have_pc = true;
		} else if (slot >= 0) {
			unwind_set(&s, (unsigned)slot, *v);
		}
		v++;
	}
	if (!have_pc || !(s.known >> UNWIND_SLOT_SP & 1))
		return UNWIND_NO_REGISTERS;
	*ret = s;
	return regs->abi == PERF_SAMPLE_REGS_ABI_64 ? 0 : UNWIND_32_BIT;
}
