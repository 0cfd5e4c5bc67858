/* SPDX-License-Identifier: BSD-2-Clause */
#include "cfi.h"

#include <dwarf.h>

/* Compilers nest one deep; hand-written code a few. */
enum { REMEMBERED_MAX = 16 };

struct program {
	const struct cfi_cie *cie;
	cfi_emit_fn *emit;
	void *ctx;
	uint64_t at, end; /* ELF vaddrs */
	bool changed;     /* state differs from what was emitted last */
	struct cfi_state state, initial;
	unsigned n_remembered;
	struct cfi_state remembered[REMEMBERED_MAX];
};

static int flush(struct program *p)
{
	int err;

	if (!p->changed)
		return 0;
	err = p->emit(p->ctx, p->at, &p->state);
	p->changed = err != 0;
	return err;
}

static int advance_to(struct program *p, uint64_t at)
{
	int err;

	if (at == p->at)
		return 0;
	if (at < p->at || at > p->end)
		return -EBADMSG;
	err = flush(p);
	p->at = at;
	return err;
}

static int advance(struct program *p, uint64_t units)
{
	uint64_t bytes;

	if (__builtin_mul_overflow(units, p->cie->cie.code_alignment_factor, &bytes) ||
	    bytes > p->end - p->at)
		return -EBADMSG;
	return advance_to(p, p->at + bytes);
}

static void set_reg(struct program *p, uint64_t reg, struct cfi_reg value)
{
	if (reg >= CFI_REGS)
		return;
	p->state.regs[reg] = value;
	if (value.where == CFI_AT_CFA && reg < 32)
		p->state.saved |= 1U << reg;
	p->changed = true;
}

static void set_offset(struct program *p, uint64_t reg, enum cfi_where where, int64_t units)
{
	int64_t bytes;

	if (__builtin_mul_overflow(units, p->cie->cie.data_alignment_factor, &bytes))
		where = CFI_OTHER;
	set_reg(p, reg, (struct cfi_reg){.where = where, .value = bytes});
}

static void set_cfa(struct program *p, uint64_t reg, int64_t off_bytes)
{
	p->state.cfa_expr = (struct cfi_expr){0};
	p->state.cfa_reg = reg;
	p->state.cfa_off = off_bytes;
	p->changed = true;
}

static int restore(struct program *p, uint64_t reg)
{
	if (reg < CFI_REGS)
		set_reg(p, reg, p->initial.regs[reg]);
	return 0;
}

static int remember_state(struct program *p)
{
	if (p->n_remembered == REMEMBERED_MAX)
		return -EBADMSG;
	p->remembered[p->n_remembered++] = p->state;
	return 0;
}

static int restore_state(struct program *p)
{
	if (!p->n_remembered)
		return -EBADMSG;
	p->n_remembered--;
	p->remembered[p->n_remembered].saved |= p->state.saved;
	p->state = p->remembered[p->n_remembered];
	p->changed = true;
	return 0;
}

static int64_t factored(const struct program *p, int64_t units)
{
	return (int64_t)((uint64_t)units * (uint64_t)p->cie->cie.data_alignment_factor);
}

/* Where registers are. 1: not one of these instructions. */
static int register_op(struct program *p, uint8_t op, struct cfi_cursor *c)
{
	uint64_t reg = cfi_uleb(c);

	switch (op) {
	case DW_CFA_offset_extended:
		set_offset(p, reg, CFI_AT_CFA, (int64_t)cfi_uleb(c));
		return 0;
	case DW_CFA_offset_extended_sf:
		set_offset(p, reg, CFI_AT_CFA, cfi_sleb(c));
		return 0;
	case DW_CFA_GNU_negative_offset_extended:
		set_offset(p, reg, CFI_AT_CFA, -(int64_t)cfi_uleb(c));
		return 0;
	case DW_CFA_val_offset:
		set_offset(p, reg, CFI_VALUE, (int64_t)cfi_uleb(c));
		return 0;
	case DW_CFA_val_offset_sf:
		set_offset(p, reg, CFI_VALUE, cfi_sleb(c));
		return 0;
	case DW_CFA_restore_extended:
		return restore(p, reg);
	case DW_CFA_undefined:
		set_reg(p, reg, (struct cfi_reg){.where = CFI_UNDEFINED});
		return 0;
	case DW_CFA_same_value:
		set_reg(p, reg, (struct cfi_reg){.where = CFI_SAME});
		return 0;
	case DW_CFA_register:
		set_reg(p, reg,
			(struct cfi_reg){.where = CFI_REGISTER, .value = (int64_t)cfi_uleb(c)});
		return 0;
	case DW_CFA_expression:
		set_reg(p, reg, (struct cfi_reg){.where = CFI_EXPRESSION, .expr = cfi_block(c)});
		return 0;
	case DW_CFA_val_expression:
		cfi_block(c);
		set_reg(p, reg, (struct cfi_reg){.where = CFI_OTHER});
		return 0;
	default:
		return -EBADMSG;
	}
}

static int other_op(struct program *p, uint8_t op, struct cfi_cursor *c)
{
	uint64_t reg;

	switch (op) {
	case DW_CFA_nop:
	case DW_CFA_GNU_window_save: /* aarch64: the return address is signed; see unwind_strip */
		return 0;
	case DW_CFA_set_loc:
		/* Compilers never make it; relative to itself, it would need its place. */
		if (p->cie->encoding != DW_EH_PE_absptr)
			return -EBADMSG;
		return advance_to(p, cfi_fixed(c, p->cie->address_bytes));
	case DW_CFA_advance_loc1:
		return advance(p, cfi_fixed(c, 1));
	case DW_CFA_advance_loc2:
		return advance(p, cfi_fixed(c, 2));
	case DW_CFA_advance_loc4:
		return advance(p, cfi_fixed(c, 4));
	case DW_CFA_remember_state:
		return remember_state(p);
	case DW_CFA_restore_state:
		return restore_state(p);
	case DW_CFA_def_cfa:
		reg = cfi_uleb(c);
		set_cfa(p, reg, (int64_t)cfi_uleb(c));
		return 0;
	case DW_CFA_def_cfa_sf:
		reg = cfi_uleb(c);
		set_cfa(p, reg, factored(p, cfi_sleb(c)));
		return 0;
	case DW_CFA_def_cfa_register:
		set_cfa(p, cfi_uleb(c), p->state.cfa_off);
		return 0;
	case DW_CFA_def_cfa_offset:
		set_cfa(p, p->state.cfa_reg, (int64_t)cfi_uleb(c));
		return 0;
	case DW_CFA_def_cfa_offset_sf:
		set_cfa(p, p->state.cfa_reg, factored(p, cfi_sleb(c)));
		return 0;
	case DW_CFA_def_cfa_expression:
		p->state.cfa_expr = cfi_block(c);
		p->changed = true;
		return 0;
	case DW_CFA_GNU_args_size:
		cfi_uleb(c);
		return 0;
	default:
		return register_op(p, op, c);
	}
}

static int run(struct program *p, const uint8_t *from, const uint8_t *to)
{
	struct cfi_cursor c = {from, to, false};
	int err = 0;

	while (c.p < c.end && !err) {
		uint8_t op = *c.p++, low = op & 0x3f;

		switch (op & 0xc0) {
		case DW_CFA_advance_loc:
			err = advance(p, low);
			break;
		case DW_CFA_offset:
			set_offset(p, low, CFI_AT_CFA, (int64_t)cfi_uleb(&c));
			break;
		case DW_CFA_restore:
			err = restore(p, low);
			break;
		default:
			err = other_op(p, op, &c);
		}
		if (c.bad && !err)
			err = -EBADMSG;
	}
	return err;
}

int cfi_run(const struct cfi_cie *cie, const struct cfi_fde *fde, cfi_emit_fn *emit, void *ctx)
{
	struct program p;
	int err;

	/* The remembered states are big and seldom used. */
	memset(&p, 0, offsetof(struct program, remembered));
	p.cie = cie;
	p.emit = emit;
	p.ctx = ctx;
	p.at = fde->start;
	p.end = fde->end;
	err = run(&p, cie->cie.initial_instructions, cie->cie.initial_instructions_end);
	p.initial = p.state;
	p.changed = true;
	if (!err)
		err = run(&p, fde->program, fde->program_end);
	return err ? err : flush(&p);
}
