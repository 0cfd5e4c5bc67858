/* SPDX-License-Identifier: BSD-2-Clause */
#include "cfi.h"

#include <dwarf.h>

/* --- expressions ------------------------------------------------------------------------------ */

/*
 * The few that compilers and hand-written code make are told by their operations; everything else
 * is unsupported. An operation is reduced to its opcode, a register (DW_OP_breg*), and a number.
 */
struct op {
	uint8_t code; /* DW_OP_breg0 for every breg, DW_OP_lit0 for every constant */
	uint64_t reg;
	int64_t n;
};

enum { OPS_MAX = 12 };

static bool read_op(struct cfi_cursor *c, struct op *ret)
{
	uint8_t code = *c->p++;
	struct op o = {.code = code};

	if (code >= DW_OP_breg0 && code <= DW_OP_breg31) {
		o = (struct op){DW_OP_breg0, code - DW_OP_breg0, cfi_sleb(c)};
	} else if (code == DW_OP_bregx) {
		o.code = DW_OP_breg0;
		o.reg = cfi_uleb(c);
		o.n = cfi_sleb(c);
	} else if (code >= DW_OP_lit0 && code <= DW_OP_lit31) {
		o = (struct op){DW_OP_lit0, 0, code - DW_OP_lit0};
	} else if (code == DW_OP_const1u) {
		o = (struct op){DW_OP_lit0, 0, (int64_t)cfi_fixed(c, 1)};
	} else if (code == DW_OP_const1s) {
		o = (struct op){DW_OP_lit0, 0, (int8_t)cfi_fixed(c, 1)};
	} else if (code == DW_OP_plus_uconst) {
		o.n = (int64_t)cfi_uleb(c);
	} else if (code != DW_OP_deref && code != DW_OP_plus && code != DW_OP_and &&
		   code != DW_OP_ge && code != DW_OP_shl && code != DW_OP_mul) {
		return false;
	}
	*ret = o;
	return !c->bad;
}

/* The number of operations, or 0. */
static size_t read_ops(const struct cfi_expr *e, struct op ops[OPS_MAX])
{
	struct cfi_cursor c = {e->p, e->p + e->n, false};
	size_t n = 0;

	while (c.p < c.end) {
		if (n == OPS_MAX || !read_op(&c, &ops[n]))
			return 0;
		n++;
	}
	return n;
}

static bool ops_are(const struct op *ops, size_t n, const uint8_t *codes, size_t n_codes)
{
	if (n != n_codes)
		return false;
	for (size_t i = 0; i < n; i++)
		if (ops[i].code != codes[i])
			return false;
	return true;
}

static bool set_cfa(enum unwind_arch arch, struct unwind_rule *r, enum unwind_rule_kind kind,
		    uint64_t reg, int64_t off, int64_t add)
{
	int slot = reg < 256 ? unwind_slot(arch, (unsigned)reg) : -1;

	if (slot < 0 || off != (int32_t)off || add != (int16_t)add)
		return false;
	r->kind = (uint8_t)kind;
	r->reg = (uint8_t)slot;
	r->off = (int32_t)off;
	r->add = (int16_t)add;
	return true;
}

/* breg7 8, breg16 0, lit15, and, lit11, ge, lit3, shl, plus: binutils, elfxx-x86.c, for .plt. */
static const uint8_t plt_ops[] = {DW_OP_breg0, DW_OP_breg0, DW_OP_lit0, DW_OP_and, DW_OP_lit0,
				  DW_OP_ge,    DW_OP_lit0,  DW_OP_shl,  DW_OP_plus};
static const uint8_t indexed_ops[] = {DW_OP_breg0, DW_OP_breg0, DW_OP_lit0,       DW_OP_mul,
				      DW_OP_plus,  DW_OP_deref, DW_OP_plus_uconst};
static const uint8_t deref_ops[] = {DW_OP_breg0, DW_OP_deref, DW_OP_plus_uconst};

static bool cfa_from_expression(enum unwind_arch arch, const struct cfi_expr *e,
				struct unwind_rule *r)
{
	struct op o[OPS_MAX];
	size_t n = read_ops(e, o);

	if (ops_are(o, n, deref_ops, 1))
		return set_cfa(arch, r, UNWIND_RULE_CFA, o[0].reg, o[0].n, 0);
	if (ops_are(o, n, deref_ops, 2))
		return set_cfa(arch, r, UNWIND_RULE_DEREF, o[0].reg, o[0].n, 0);
	if (ops_are(o, n, deref_ops, 3))
		return set_cfa(arch, r, UNWIND_RULE_DEREF, o[0].reg, o[0].n, o[2].n);
	if (ops_are(o, n, plt_ops, ARRAY_SIZE(plt_ops)))
		return arch == UNWIND_X86_64 && o[0].reg == 7 && o[0].n == 8 && o[1].reg == 16 &&
		       !o[1].n && o[2].n == 15 && o[6].n == 3 &&
		       set_cfa(arch, r, UNWIND_RULE_PLT, 7, o[4].n, 0);
	if (ops_are(o, n, indexed_ops, ARRAY_SIZE(indexed_ops)) && !o[1].n && o[2].n == 8 &&
	    o[1].reg < 256 && unwind_slot(arch, (unsigned)o[1].reg) >= 0) {
		r->index = (uint8_t)unwind_slot(arch, (unsigned)o[1].reg);
		return set_cfa(arch, r, UNWIND_RULE_INDEXED, o[0].reg, o[0].n, o[6].n);
	}
	return false;
}

/* --- registers -------------------------------------------------------------------------------- */

static const uint8_t dwarf_of_saved[2][UNWIND_SAVED] = {
	[UNWIND_X86_64] = {6, 3, 12, 13, 14, 15},
	[UNWIND_ARM64] = {29, 19, 20, 21, 22, 23},
};

static bool in_words(int64_t bytes, int16_t *ret)
{
	if (bytes % 8 || bytes / 8 <= UNWIND_UNDEFINED || bytes / 8 > INT16_MAX)
		return false;
	*ret = (int16_t)(bytes / 8);
	return true;
}

/* DW_CFA_expression of a register saved at a fixed place from the frame pointer, as in functions
 * that realign the stack. */
static bool saved_by_fp(enum unwind_arch arch, const struct cfi_reg *reg, int16_t *ret)
{
	struct op o[OPS_MAX];

	return reg->where == CFI_EXPRESSION && read_ops(&reg->expr, o) == 1 &&
	       o[0].code == DW_OP_breg0 && o[0].reg < 256 &&
	       unwind_slot(arch, (unsigned)o[0].reg) == UNWIND_SLOT_FP && in_words(o[0].n, ret);
}

static void saved_registers(enum unwind_arch arch, const struct cfi_state *s, struct unwind_rule *r)
{
	const uint8_t *dwarf = dwarf_of_saved[arch];
	int16_t words;
	bool by_fp = saved_by_fp(arch, &s->regs[dwarf[0]], &words);

	if (by_fp)
		r->flags |= UNWIND_SAVED_BY_FP;
	for (unsigned i = 0; i < UNWIND_SAVED; i++) {
		const struct cfi_reg *reg = &s->regs[dwarf[i]];

		if (reg->where == CFI_UNSPECIFIED || reg->where == CFI_SAME)
			r->saved[i] = UNWIND_SAME;
		else if (by_fp ? saved_by_fp(arch, reg, &words)
			       : reg->where == CFI_AT_CFA && in_words(reg->value, &words))
			r->saved[i] = words;
		else
			r->saved[i] = UNWIND_UNDEFINED;
	}
}

/*
 * A function that calls __builtin_eh_return (the unwinder of libgcc) restores the registers in
 * which a landing pad gets its data, so that it has saved them; nothing else does. GCC's
 * EH_RETURN_DATA_REGNO names them. Where the next register is saved too, all are, as in mcount.
 */
static bool is_eh_return(enum unwind_arch arch, const struct cfi_state *s)
{
	return arch == UNWIND_ARM64 ? (s->saved & 0x1f) == 0xf : (s->saved & 7) == 3;
}

static bool return_address(enum unwind_arch arch, const struct cfi_reg *ra, uint64_t ra_reg,
			   struct unwind_rule *r)
{
	uint64_t in = ra->where == CFI_REGISTER ? (uint64_t)ra->value : ra_reg;

	if (ra->where == CFI_AT_CFA)
		return in_words(ra->value, &r->ra);
	/* x86-64 has no register for it: that nothing is said of it is no statement. */
	if (ra->where != CFI_REGISTER &&
	    (arch == UNWIND_X86_64 || (ra->where != CFI_UNSPECIFIED && ra->where != CFI_SAME)))
		return false;
	if (in >= 256 || unwind_slot(arch, (unsigned)in) < 0)
		return false;
	r->flags |= UNWIND_RA_IN_REG;
	r->ra = (int16_t)unwind_slot(arch, (unsigned)in);
	return true;
}

/* The caller's sp is the CFA unless something else is said (longjmp, signal frames). */
static bool sp_is_cfa(enum unwind_arch arch, const struct cfi_state *s)
{
	const struct cfi_reg *sp = &s->regs[arch == UNWIND_ARM64 ? 31 : 7];

	return sp->where == CFI_UNSPECIFIED || sp->where == CFI_SAME ||
	       (sp->where == CFI_VALUE && !sp->value);
}

void cfi_rule(enum unwind_arch arch, const struct cfi_state *s, uint64_t ra_reg, bool signal,
	      struct unwind_rule *ret)
{
	struct unwind_rule r = {0};
	const struct cfi_reg *ra = ra_reg < CFI_REGS ? &s->regs[ra_reg] : NULL;
	bool understood;

	if (signal) {
		*ret = (struct unwind_rule){.kind = UNWIND_RULE_SIGNAL};
		return;
	}
	if (ra && ra->where == CFI_UNDEFINED) {
		*ret = (struct unwind_rule){.kind = UNWIND_RULE_END};
		return;
	}
	understood =
		ra && sp_is_cfa(arch, s) &&
		(s->cfa_expr.p ? cfa_from_expression(arch, &s->cfa_expr, &r)
			       : set_cfa(arch, &r, UNWIND_RULE_CFA, s->cfa_reg, s->cfa_off, 0)) &&
		return_address(arch, ra, ra_reg, &r);
	if (!understood) {
		*ret = (struct unwind_rule){.kind = UNWIND_RULE_UNSUPPORTED};
		return;
	}
	saved_registers(arch, s, &r);
	if (is_eh_return(arch, s))
		r.flags |= UNWIND_EH_RETURN;
	*ret = r;
}
