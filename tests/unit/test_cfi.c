/* SPDX-License-Identifier: BSD-2-Clause */
/* The rows of installed files against what libdw says of the same addresses. */
#include <inspect/unwind.h>

/* cmocka.h needs these first. */
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include "skip.h"
#include <dwarf.h>
#include <elfutils/libdw.h>
#include <fcntl.h>
#include <gelf.h>

enum { ADDRESSES = 4000 };

struct subject {
	struct elf_file *file;
	struct unwind_table *table;
	Dwarf *dwarf;
	Dwarf_CFI *cfi;
	uint64_t to_vaddr; /* file offset + this = ELF vaddr of code */
	uint64_t bias;
};

static bool open_subject(const char *path, struct subject *s)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	uint64_t vaddr;

	memset(s, 0, sizeof(*s));
	if (fd < 0 || elf_file_open_fd(fd, &s->file)) {
		print_message("# %s is not there\n", path);
		return false;
	}
	assert_int_equal(unwind_table_build(s->file, &s->table), 0);
	s->cfi = dwarf_getcfi_elf(elf_file_elf(s->file));
	assert_non_null(s->cfi);
	assert_int_equal(elf_file_off_to_vaddr(s->file, s->table->base_off, &vaddr), 0);
	s->to_vaddr = vaddr - s->table->base_off;
	return true;
}

static void close_subject(struct subject *s)
{
	dwarf_cfi_end(s->cfi);
	unwind_table_free(s->table);
	elf_file_free(s->file);
}

static void describe(const char *path, uint64_t vaddr, const struct unwind_rule *r)
{
	fail_msg("%s at %#llx: rule kind %u reg %u off %d add %d ra %d flags %u, saved %d %d", path,
		 (unsigned long long)vaddr, r->kind, r->reg, r->off, r->add, r->ra, r->flags,
		 r->saved[0], r->saved[1]);
}

static int64_t breg_of(const Dwarf_Op *op, uint64_t *ret_reg)
{
	if (op->atom == DW_OP_bregx) {
		*ret_reg = op->number;
		return (int64_t)op->number2;
	}
	*ret_reg = op->atom - DW_OP_breg0;
	return (int64_t)op->number;
}

static bool is_slot(enum unwind_arch arch, uint64_t reg, int slot)
{
	return reg < 256 && unwind_slot(arch, (unsigned)reg) == slot;
}

static bool same_cfa(enum unwind_arch arch, const struct unwind_rule *r, Dwarf_Frame *frame)
{
	Dwarf_Op *ops;
	size_t n;
	uint64_t reg;
	int64_t off;

	assert_int_equal(dwarf_frame_cfa(frame, &ops, &n), 0);
	off = breg_of(&ops[0], &reg);
	switch (r->kind) {
	case UNWIND_RULE_CFA:
		return n == 1 && is_slot(arch, reg, r->reg) && off == r->off;
	case UNWIND_RULE_DEREF:
		return (n == 2 || n == 3) && is_slot(arch, reg, r->reg) && off == r->off &&
		       ops[1].atom == DW_OP_deref && (n == 2) == !r->add &&
		       (n == 2 || (int64_t)ops[2].number == r->add);
	case UNWIND_RULE_INDEXED:
		return n == 7 && is_slot(arch, reg, r->reg) && off == r->off &&
		       ops[1].atom == DW_OP_breg0 + r->index && ops[5].atom == DW_OP_deref &&
		       (int64_t)ops[6].number == r->add;
	case UNWIND_RULE_PLT:
		return n == 9 && reg == 7 && off == 8 && ops[1].atom == DW_OP_breg16 &&
		       ops[4].atom == DW_OP_lit0 + r->off;
	default:
		return false;
	}
}

/* What libdw says of a register, in the words of a rule. */
static int saved_of(Dwarf_Frame *frame, int reg, int fp)
{
	Dwarf_Op mem[3], *ops;
	size_t n;
	int64_t off;
	uint64_t base;

	assert_int_equal(dwarf_frame_register(frame, reg, mem, &ops, &n), 0);
	if (n == 0)
		return ops ? UNWIND_UNDEFINED : UNWIND_SAME;
	if (ops[n - 1].atom == DW_OP_stack_value || ops[0].atom == DW_OP_regx ||
	    ops[0].atom < DW_OP_breg0)
		return UNWIND_UNDEFINED;
	if (fp) {
		off = breg_of(&ops[0], &base);
		return n == 1 && (int)base == fp && off % 8 == 0 ? (int)(off / 8)
								 : UNWIND_UNDEFINED;
	}
	if (ops[0].atom != DW_OP_call_frame_cfa)
		return UNWIND_UNDEFINED;
	off = n > 1 ? (int64_t)ops[1].number : 0;
	return off % 8 == 0 ? (int)(off / 8) : UNWIND_UNDEFINED;
}

/* By architecture: DWARF numbers of what saved[] is about, and of the return address. */
static const struct {
	int saved[UNWIND_SAVED], ra;
} numbers[] = {
	[UNWIND_X86_64] = {{6, 3, 12, 13, 14, 15}, 16},
	[UNWIND_ARM64] = {{29, 19, 20, 21, 22, 23}, 30},
};

static bool same_return_address(enum unwind_arch arch, const struct unwind_rule *r,
				Dwarf_Frame *frame)
{
	Dwarf_Op mem[3], *ops;
	size_t n;

	if (!(r->flags & UNWIND_RA_IN_REG))
		return saved_of(frame, numbers[arch].ra, 0) == r->ra;
	assert_int_equal(dwarf_frame_register(frame, numbers[arch].ra, mem, &ops, &n), 0);
	/* The link register has kept its value. */
	if (arch == UNWIND_ARM64 && n == 0)
		return r->ra == unwind_slot(arch, 30);
	return n == 1 && ops[0].atom == DW_OP_regx && is_slot(arch, ops[0].number, r->ra);
}

static bool same_registers(enum unwind_arch arch, const struct unwind_rule *r, Dwarf_Frame *frame)
{
	const int *regs = numbers[arch].saved;

	if (!same_return_address(arch, r, frame))
		return false;
	for (unsigned i = 0; i < UNWIND_SAVED; i++) {
		int want = saved_of(frame, regs[i], r->flags & UNWIND_SAVED_BY_FP ? regs[0] : 0);

		/* libdw 0.188 takes rbx for lost where nothing is said of it. */
		if (want != r->saved[i] &&
		    !(regs[i] == 3 && want == UNWIND_UNDEFINED && r->saved[i] == UNWIND_SAME))
			return false;
	}
	return true;
}

static bool ra_is_undefined(enum unwind_arch arch, Dwarf_Frame *frame)
{
	Dwarf_Op mem[3], *ops;
	size_t n;

	return !dwarf_frame_register(frame, numbers[arch].ra, mem, &ops, &n) && n == 0 &&
	       ops == mem;
}

static bool agrees(enum unwind_arch arch, const struct unwind_rule *r, Dwarf_Frame *frame)
{
	bool signal;

	assert_true(dwarf_frame_info(frame, NULL, NULL, &signal) >= 0);
	switch (r->kind) {
	case UNWIND_RULE_SIGNAL:
		return signal;
	case UNWIND_RULE_END:
		return !signal && ra_is_undefined(arch, frame);
	case UNWIND_RULE_UNSUPPORTED: /* counted by the caller */
		return true;
	default:
		return !signal && same_cfa(arch, r, frame) && same_registers(arch, r, frame);
	}
}

static void compare(const char *path)
{
	struct subject s;
	uint64_t seed = 42;
	size_t n = 0, unsupported = 0;

	if (!open_subject(path, &s))
		return;
	for (int i = 0; i < ADDRESSES; i++) {
		size_t row;
		uint64_t first, bytes, vaddr;
		const struct unwind_rule *r;
		Dwarf_Frame *frame = NULL;

		seed = hash_u64(seed + 1);
		row = seed % (s.table->rows.n - 1);
		first = s.table->rows.v[row].off;
		bytes = s.table->rows.v[row + 1].off - first;
		/* Long rows may hold padding after functions, of which libdw says nothing. */
		vaddr = first + (seed >> 32) % bytes + s.table->base_off + s.to_vaddr;
		r = unwind_table_find(s.table, vaddr - s.to_vaddr);
		if (dwarf_cfi_addrframe(s.cfi, vaddr, &frame))
			continue;
		if (!agrees(s.table->arch, r, frame))
			describe(path, vaddr, r);
		unsupported += r->kind == UNWIND_RULE_UNSUPPORTED;
		free(frame);
		n++;
	}
	print_message("# %s: %zu addresses agree, %zu of them unsupported\n", path, n, unsupported);
	assert_true(n > ADDRESSES * 3 / 4);
	assert_true(unsupported * 100 < n);
	close_subject(&s);
}

static void libc_agrees(void **state UNUSED)
{
	compare("/lib/x86_64-linux-gnu/libc.so.6");
	compare("/lib64/ld-linux-x86-64.so.2");
}

static void libstdcxx_agrees(void **state UNUSED)
{
	compare("/usr/lib/x86_64-linux-gnu/libstdc++.so.6");
}

static void python_agrees(void **state UNUSED)
{
	compare("/usr/bin/python3");
}

static void libcrypto_agrees(void **state UNUSED)
{
	compare("/usr/lib/x86_64-linux-gnu/libcrypto.so.3");
}

static void aarch64_agrees(void **state UNUSED)
{
	static const char path[] = "/usr/aarch64-linux-gnu/lib/libc.so.6";

	if (access(path, R_OK) < 0)
		skip_because("no aarch64 C library here");
	compare(path);
}

/* How many of the functions whose names begin with `prefix` are taken for one that calls
 * __builtin_eh_return; *ret_n: of how many. */
static size_t count_eh_return(const struct subject *s, const char *prefix, size_t *ret_n)
{
	Elf_Scn *scn = NULL;
	size_t n = 0, flagged = 0;

	while ((scn = elf_nextscn(elf_file_elf(s->file), scn))) {
		Elf_Data *data = elf_getdata(scn, NULL);
		GElf_Shdr shdr;
		GElf_Sym sym;

		assert_non_null(gelf_getshdr(scn, &shdr));
		if (shdr.sh_type != SHT_DYNSYM)
			continue;
		for (int i = 0; gelf_getsym(data, i, &sym); i++) {
			const char *name =
				elf_strptr(elf_file_elf(s->file), shdr.sh_link, sym.st_name);
			/* In its middle: nothing is saved yet at its start. */
			uint64_t off = sym.st_value - s->to_vaddr + sym.st_size / 2;
			const struct unwind_rule *r = unwind_table_find(s->table, off);

			if (!name || !sym.st_size || GELF_ST_TYPE(sym.st_info) != STT_FUNC ||
			    strncmp(name, prefix, strlen(prefix)) != 0)
				continue;
			n++;
			flagged += (r->flags & UNWIND_EH_RETURN) != 0;
		}
	}
	*ret_n = n;
	return flagged;
}

/* Those that land an exception, and nothing else (libc's mcount saves more registers). */
static void eh_returns_of(const char *libgcc, const char *libc)
{
	static const char *const landing[] = {"_Unwind_RaiseException", "_Unwind_Resume",
					      "_Unwind_ForcedUnwind"};
	static const char *const others[] = {"_Unwind_Backtrace", "_Unwind_Find_FDE", "_Unwind_Get",
					     "_Unwind_Set",       "_Unwind_Delete",   "__"};
	struct subject s;
	size_t n, flagged;

	if (open_subject(libgcc, &s)) {
		for (size_t i = 0; i < ARRAY_SIZE(landing); i++) {
			flagged = count_eh_return(&s, landing[i], &n);
			assert_true(n && flagged == n);
		}
		for (size_t i = 0; i < ARRAY_SIZE(others); i++) {
			assert_int_equal(count_eh_return(&s, others[i], &n), 0);
			assert_true(n);
		}
		close_subject(&s);
	}
	if (open_subject(libc, &s)) {
		assert_int_equal(count_eh_return(&s, "", &n), 0);
		assert_true(n > 1000);
		close_subject(&s);
	}
}

static void eh_returns(void **state UNUSED)
{
	eh_returns_of("/lib/x86_64-linux-gnu/libgcc_s.so.1", "/lib/x86_64-linux-gnu/libc.so.6");
	eh_returns_of("/usr/aarch64-linux-gnu/lib/libgcc_s.so.1",
		      "/usr/aarch64-linux-gnu/lib/libc.so.6");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(libc_agrees),    cmocka_unit_test(libstdcxx_agrees),
		cmocka_unit_test(python_agrees),  cmocka_unit_test(libcrypto_agrees),
		cmocka_unit_test(aarch64_agrees), cmocka_unit_test(eh_returns),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
