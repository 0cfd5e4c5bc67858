/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The two words that waiters of a glibc condition sleep at in turn (struct __pthread_cond_s,
 * __g_signals): neighbours, of which the functions say that they are of one. A condition that is a
 * variable of its own is known by its name; these lie within others, or on the heap.
 */
#include "trace_locks.h"

#include <inspect/code_names.h>
#include <inspect/strbuf.h>
#include <inspect/symbolize.h>
#include <inspect/wait_reason.h>

enum { WORD_BYTES = 4, PAIRS_MAX = 64, FRAMES_LOOKED_AT = 8 };

struct word {
	uint64_t user_va;
	uint32_t pid, row;
};

static int by_place(const void *a, const void *b)
{
	const struct word *x = a, *y = b;

	if (x->pid != y->pid)
		return x->pid < y->pid ? -1 : 1;
	return (x->user_va > y->user_va) - (x->user_va < y->user_va);
}

static void put_function(const struct syscall_counts *counts, const struct syscalls_stack *stack,
			 size_t i, struct code_names *code, struct strbuf *ret)
{
	const struct syscalls_frame *f = &stack->frames[i];
	CLEANUP(strbuf_release) struct strbuf path = {0};
	struct code_name name = {.symbol = NULL};

	syscall_counts_file(counts, &f->file, &path);
	if (path.n && !path.failed)
		code_names_find(code, (pid_t)stack->pid, strbuf_str(&path), f->file.device >> 20,
				f->file.device & 0xfffff, f->file.inode, f->file_off, i > 0, &name);
	if (name.symbol && !symbol_demangle(name.symbol, ret))
		strbuf_puts(ret, name.symbol);
}

enum lock_use lock_use_by_stack(const struct syscall_counts *counts, uint64_t id,
				struct code_names *code)
{
	struct strbuf names[FRAMES_LOOKED_AT] = {{0}};
	const char *functions[FRAMES_LOOKED_AT];
	struct syscalls_stack stack;
	enum lock_use use;
	size_t n;

	if (!id || !syscall_counts_stack(counts, id, &stack))
		return LOCK_USE_UNKNOWN;
	n = MIN((size_t)stack.n, (size_t)FRAMES_LOOKED_AT);
	for (size_t i = 0; i < n; i++) {
		put_function(counts, &stack, i, code, &names[i]);
		functions[i] = names[i].failed ? "" : strbuf_str(&names[i]);
	}
	use = lock_use_of(functions, n);
	for (size_t i = 0; i < n; i++)
		strbuf_release(&names[i]);
	return use;
}

/* Whether a stack of who waited at the lock of that id is in such a function. */
static bool waits_for_condition(const struct syscall_counts *counts, const struct syscall_table *t,
				uint64_t lock, struct code_names *code)
{
	for (size_t i = 0; i < t->details.n; i++) {
		const struct syscalls_detail_key *key = &t->details.v[i].key;

		if (key->kind == SYSCALLS_LOCK_WAITER && key->value == lock && key->stack)
			return lock_use_by_stack(counts, key->stack, code) == LOCK_USE_CONDITION;
	}
	return false;
}

int lock_words_join(const struct syscall_counts *counts, struct syscall_table *t)
{
	CLEANUP(freep) struct word *words = calloc(t->rows.n + 1, sizeof(*words));
	CLEANUP(code_names_freep) struct code_names *code = NULL;
	size_t n = 0, pairs = 0;

	if (!words || code_names_new(&code))
		return -ENOMEM;
	for (uint32_t i = 0; i < t->rows.n; i++)
		if (t->rows.v[i].key.pid && !t->rows.v[i].key.code)
			words[n++] = (struct word){t->rows.v[i].key.inode, t->rows.v[i].key.pid, i};
	if (n)
		qsort(words, n, sizeof(*words), by_place);
	for (size_t i = 0; i + 1 < n && pairs < PAIRS_MAX; i++) {
		const struct word *low = &words[i], *high = &words[i + 1];
		struct syscalls_key *key = &t->rows.v[high->row].key;

		if (low->pid != high->pid || low->user_va % (2 * WORD_BYTES) ||
		    high->user_va != low->user_va + WORD_BYTES)
			continue;
		pairs++;
		if (waits_for_condition(counts, t, t->rows.v[low->row].key.stack, code) &&
		    waits_for_condition(counts, t, key->stack, code))
			key->inode = low->user_va;
	}
	return 0;
}
