/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Call frame information: entries (cfi_read.c), their programs (cfi_program.c), and rules made of
 * the state between two instructions (cfi_rule.c).
 * Sources: DWARF 5 section 6.4; LSB core 5.0, section 10.6 (.eh_frame).
 */
#ifndef UNWIND_CFI_H
#define UNWIND_CFI_H

#include <elfutils/libdw.h>
#include <inspect/unwind.h>

/* DWARF numbers that programs may name on both architectures; higher ones (vector registers) are
 * no concern of an unwinder. */
enum { CFI_REGS = 33 };

enum cfi_where {
	CFI_UNSPECIFIED,
	CFI_SAME,
	CFI_UNDEFINED,
	CFI_AT_CFA,     /* saved at CFA + value */
	CFI_VALUE,      /* is CFA + value */
	CFI_REGISTER,   /* is in register value */
	CFI_EXPRESSION, /* saved where expr says */
	CFI_OTHER,      /* computed */
};

struct cfi_expr {
	const uint8_t *p;
	uint64_t n;
};

struct cfi_reg {
	enum cfi_where where;
	int64_t value;
	struct cfi_expr expr;
};

/* What the program says holds from one address on. */
struct cfi_state {
	struct cfi_expr cfa_expr; /* p NULL: cfa_reg + cfa_off */
	uint64_t cfa_reg;
	int64_t cfa_off;
	struct cfi_reg regs[CFI_REGS];
	uint32_t saved; /* bits: registers that have been saved so far, now or before */
};

/* One kind of entry; `cie` points into the section. */
struct cfi_cie {
	Dwarf_CIE cie;
	uint64_t section_off;
	uint8_t encoding; /* DW_EH_PE_* of the addresses in its FDEs */
	uint8_t address_bytes;
	bool signal, usable;
};

struct cfi_fde {
	uint64_t start, end; /* ELF vaddrs */
	const uint8_t *program, *program_end;
	uint32_t cie;
	bool debug_frame;
};

/* All entries of a file, by start; those of .eh_frame before those of .debug_frame. Programs point
 * into the sections of the file. */
struct cfi {
	enum unwind_arch arch;
	ARRAY(struct cfi_cie) cies;
	ARRAY(struct cfi_fde) fdes;
};

/* The entries of .eh_frame and .debug_frame. Damaged ones are left out. 0 or -ENOMEM. */
int cfi_read(struct elf_file *f, enum unwind_arch arch, struct cfi *ret);
void cfi_release(struct cfi *c);
/* Whether an entry describes the code at elf_vaddr. */
bool cfi_covers(const struct cfi *c, uint64_t elf_vaddr);

/* A bounded reader of what DWARF is made of; `bad` once something did not fit. */
struct cfi_cursor {
	const uint8_t *p, *end;
	bool bad;
};

uint64_t cfi_fixed(struct cfi_cursor *c, unsigned bytes); /* 1, 2, 4 or 8 */
uint64_t cfi_uleb(struct cfi_cursor *c);
int64_t cfi_sleb(struct cfi_cursor *c);
struct cfi_expr cfi_block(struct cfi_cursor *c);
/* An encoded pointer whose place is vaddr at. */
uint64_t cfi_pointer(struct cfi_cursor *c, uint8_t encoding, unsigned address_bytes,
		     uint64_t at_vaddr);

/* Runs an FDE's program; emit is called with each address (ELF vaddr, rising) from which a state
 * holds. A program that makes no sense ends early with -EBADMSG. Or what emit returned. */
typedef int cfi_emit_fn(void *ctx, uint64_t elf_vaddr, const struct cfi_state *s);
int cfi_run(const struct cfi_cie *cie, const struct cfi_fde *fde, cfi_emit_fn *emit, void *ctx);

/* The rule for a state; ra_reg is the CIE's return address column. */
void cfi_rule(enum unwind_arch arch, const struct cfi_state *s, uint64_t ra_reg, bool signal,
	      struct unwind_rule *ret);

#endif
