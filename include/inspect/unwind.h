/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Unwinding without frame pointers: tables of rows made of the call frame information in ELF files,
 * and the walk over registers and a copy of the stack. The step itself, and the types of rows and
 * rules, are shared with BPF: bpf/lib/unwind_step.h.
 *
 * Rows are found by file offset, which a mapping gives without reading the file:
 * off = user_va - mapping.start_va + mapping.pgoff_bytes.
 */
#ifndef INSPECT_UNWIND_H
#define INSPECT_UNWIND_H

#include <inspect/elf_file.h>
#include <inspect/process.h>
#include <lib/unwind_step.h>

/* The rows of one file. Immutable once built. rules[0] is UNWIND_RULE_NONE; a file without any call
 * frame information has one row, a gap. */
struct unwind_table {
	enum unwind_arch arch;
	uint64_t base_off; /* file offset that rows count from */
	ARRAY(struct unwind_row) rows;
	ARRAY(struct unwind_rule) rules;
};

/* Rows of .eh_frame, or of .debug_frame where there is none. 0, -ENOMEM, -EOPNOTSUPP (another
 * architecture, or 32-bit), -EFBIG (code 4 GiB apart). Damaged parts of the file are gaps. */
int unwind_table_build(struct elf_file *f, struct unwind_table **ret);
void unwind_table_free(struct unwind_table *t);
static inline void unwind_table_freep(struct unwind_table **t)
{
	unwind_table_free(*t);
}

/* The rule at a file offset; rules[0] outside of all rows. Never NULL. */
const struct unwind_rule *unwind_table_find(const struct unwind_table *t, uint64_t file_off);

/*
 * The tables of a capture: one per build-id, shared by processes, kept in a directory between runs
 * (bounded; $XDG_CACHE_HOME/inspect/unwind or ~/.cache/inspect/unwind; none: works without).
 */
struct unwind_tables;
int unwind_tables_new(bool use_disk_cache, struct unwind_tables **ret);
void unwind_tables_free(struct unwind_tables *t);
/* Files with more bytes of code than that, which are not in the directory, are -EAGAIN: for one
 * that has no time, where somebody else is at it. */
void unwind_tables_leave_large(struct unwind_tables *t, uint64_t code_bytes);

/*
 * The table of a file: of d->fd, or of the file that build-id and path lead to; of this process's
 * own vdso for DSO_VDSO when local_host. Built on first use. Borrowed, as long as the tables live.
 * 0, -ENOENT (kernel, JIT, unknown, no such file), -EAGAIN (large), or as unwind_table_build.
 */
int unwind_tables_get(struct unwind_tables *t, const struct dso *d, bool local_host,
		      const struct unwind_table **ret);

/* "no row", "stack copy too short", …: what stands in [truncated: …]. Static. */
const char *unwind_stop_text(enum unwind_stop stop);

/* Registers of a sample as perf gives them (perf_regs.h order) into slots, pc exact. 0, or
 * UNWIND_NO_REGISTERS, or UNWIND_32_BIT (pc and sp are known). */
int unwind_state_from_perf(enum unwind_arch arch, const struct user_regs *regs,
			   struct unwind_state *ret);
/* The registers that unwinding asks perf for: perf_event_attr.sample_regs_user. */
uint64_t unwind_perf_regs(enum unwind_arch arch);
/* Their slots, from the lowest register; UNWIND_REGS for pc. How many there are. */
size_t unwind_perf_slots(enum unwind_arch arch, uint8_t ret[64]);
/* The slot of a DWARF register number, or -1. */
int unwind_slot(enum unwind_arch arch, unsigned dwarf_reg);

/*
 * The user stack of a sample with registers and a stack copy: addresses leaf first into chain
 * (unwind_chain_entry), why it ended, and whether a frame is a guess by frame pointer. At most
 * max_frames. Returns their number.
 */
struct unwind_walk {
	struct unwind_tables *tables;
	struct process_table *processes;
	enum unwind_arch arch;
	bool local_host;
};
size_t unwind_sample(const struct unwind_walk *w, const struct sample *s, uint64_t *chain,
		     size_t max_frames, enum unwind_stop *ret_stop, bool *ret_guessed);

/* The same from registers in any memory that `read` reads; *state is used up (its `guessed` tells
 * of guesses). */
size_t unwind_registers(const struct unwind_walk *w, uint32_t pid, struct unwind_state *state,
			unwind_read_fn *read, void *ctx, uint64_t *chain, size_t max_frames,
			enum unwind_stop *ret_stop);

#endif
