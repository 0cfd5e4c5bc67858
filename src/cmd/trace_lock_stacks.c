/* SPDX-License-Identifier: BSD-2-Clause */
/* The stacks of --locks: where it is waited from, and woken from. */
#include "trace_locks.h"

#include <inspect/clock.h>
#include <inspect/code_names.h>
#include <inspect/strbuf.h>
#include <inspect/symbolize.h>
#include <inspect/unwind.h>

enum { FRAMES_SHOWN = 8 };

static const struct column frame_columns[] = {
	{"lock", "", CELL_COUNT, COLUMN_DATA_ONLY},
	{"role", "", CELL_TEXT, COLUMN_DATA_ONLY},
	{"tid", "", CELL_COUNT, COLUMN_DATA_ONLY},
	{"frame", "", CELL_COUNT, COLUMN_DATA_ONLY},
	{"function", "function", CELL_TEXT, COLUMN_CUT},
	{"module", "module", CELL_TEXT, 0},
	{"address", "", CELL_TEXT, COLUMN_DATA_ONLY},
};

/* A place in a stack's table. */
struct frame_row {
	struct result *r;
	size_t section, number;
	const char *role;
	uint32_t tid;
	uint64_t i;
};

static void put(struct frame_row *to, const char *function, const char *module, uint64_t va)
{
	struct result *r = to->r;
	const struct cell cells[] = {
		cell_u64(CELL_COUNT, to->number),
		cell_text(r, to->role),
		cell_u64(CELL_COUNT, to->tid),
		cell_u64(CELL_COUNT, to->i++),
		cell_text(r, function),
		cell_text(r, module),
		va ? cell_text(r, result_text(r, "0x%llx", (unsigned long long)va))
		   : cell_null(r, "no code of the program"),
	};

	_Static_assert(ARRAY_SIZE(cells) == ARRAY_SIZE(frame_columns), "a cell for each column");
	result_row(r, to->section, cells);
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static void put_frame(const struct trace_view *view, const struct syscalls_stack *stack, size_t i,
		      struct code_names *code, struct frame_row *to)
{
	const struct syscalls_frame *f = &stack->frames[i];
	CLEANUP(strbuf_release) struct strbuf path = {0}, plain = {0};
	struct code_name name = {.symbol = NULL};
	const char *symbol, *module;

	syscall_counts_file(view->counts, &f->file, &path);
	if (!path.n) {
		put(to, result_text(to->r, "0x%llx", (unsigned long long)f->user_va), "",
		    f->user_va);
		return;
	}
	module = base_name(strbuf_str(&path));
	code_names_find(code, (pid_t)stack->pid, strbuf_str(&path), f->file.device >> 20,
			f->file.device & 0xfffff, f->file.inode, f->file_off, i > 0, &name);
	symbol = name.symbol && symbol_demangle(name.symbol, &plain) ? strbuf_str(&plain)
								     : name.symbol;
	put(to,
	    symbol ? symbol
		   : result_text(to->r, "[%s+0x%llx]", module,
				 (unsigned long long)(name.elf_vaddr ? name.elf_vaddr
								     : f->file_off)),
	    module, f->user_va);
	if (plain.failed || path.failed)
		to->r->failed = true;
}

static void put_stack(const struct trace_view *view, const struct lock_role *role,
		      const char *title, struct code_names *code, struct frame_row *to)
{
	struct syscalls_stack stack;

	if (!role->tid || !syscall_counts_stack(view->counts, role->stack, &stack))
		return;
	to->tid = role->tid;
	to->i = 0;
	to->section =
		result_section(to->r, "stacks", title, frame_columns, ARRAY_SIZE(frame_columns));
	for (size_t i = 0; i < stack.n; i++)
		put_frame(view, &stack, i, code, to);
	if (stack.stop != UNWIND_END)
		put(to,
		    result_text(to->r, "[truncated: %s]",
				unwind_stop_text((enum unwind_stop)stack.stop)),
		    "", 0);
	if (to->r->failed)
		return;
	to->r->sections.v[to->section].limit = FRAMES_SHOWN;
	to->r->sections.v[to->section].more = "--all";
}

int lock_stacks_add(const struct trace_view *view, const struct lock_facts *f, size_t number,
		    const char *lock, struct code_names *code, struct result *r)
{
	struct frame_row to = {.r = r, .number = number, .role = "waiter"};
	char waited[32];

	put_stack(view, &f->waiter,
		  result_text(r, "#%zu %s: %s waits, %s in all, mostly from", number, lock,
			      lock_thread_text(view, f->waiter.tid, r),
			      duration_format(f->waiter.amount, waited, sizeof(waited))),
		  code, &to);
	to.role = "waker";
	put_stack(view, &f->waker,
		  result_text(r, "#%zu %s: %s wakes, %llu times, mostly from", number, lock,
			      lock_thread_text(view, f->waker.tid, r),
			      (unsigned long long)f->waker.amount),
		  code, &to);
	return r->failed ? -ENOMEM : 0;
}
