/* SPDX-License-Identifier: BSD-2-Clause */
#include <inspect/unwind.h>

static const char *const stop_texts[UNWIND_STOPS] = {
	[UNWIND_CONTINUE] = "unfinished",
	[UNWIND_END] = "complete",
	[UNWIND_NO_ROW] = "no unwind information",
	[UNWIND_NO_MAPPING] = "address in no mapping",
	[UNWIND_NEW_MAPPING] = "new mapping",
	[UNWIND_NO_FRAME_POINTER] = "no frame pointer",
	[UNWIND_UNREADABLE] = "stack not readable",
	[UNWIND_COPY_TOO_SHORT] = "stack copy too short",
	[UNWIND_UNSUPPORTED] = "unsupported rule",
	[UNWIND_LOST_REGISTER] = "register not saved",
	[UNWIND_BAD_CFA] = "stack does not rise",
	[UNWIND_DEPTH] = "deeper than --max-stack",
	[UNWIND_32_BIT] = "32-bit process",
	[UNWIND_NO_REGISTERS] = "no user registers",
	[UNWIND_NO_FILE] = "file not readable",
	[UNWIND_NO_MEMORY] = "no memory for rows",
	[UNWIND_ZERO_RETURN] = "signal at address zero",
	[UNWIND_IN_FLIGHT] = "exception in flight",
	[UNWIND_OTHER_STACK] = "copy of a signal handler's own stack",
	[UNWIND_FILE_CHANGED] = "file changed",
};

const char *unwind_stop_text(enum unwind_stop stop)
{
	return (unsigned)stop < UNWIND_STOPS ? stop_texts[stop] : "unknown";
}

struct copy {
	const uint8_t *bytes;
	size_t n;
	uint64_t start_va;
	bool cut;
};

static int read_copy(void *ctx, __u64 user_va, __u64 *ret_word)
{
	const struct copy *c = ctx;
	uint64_t at = user_va - c->start_va;

	if (user_va < c->start_va)
		return UNWIND_UNREADABLE;
	if (c->n < 8 || at > c->n - 8)
		return c->cut ? UNWIND_UNREADABLE : UNWIND_COPY_TOO_SHORT;
	memcpy(ret_word, c->bytes + at, 8);
	return 0;
}

static const struct unwind_rule jit_rule = {.kind = UNWIND_RULE_FP};

/* The rule for the frame in state. */
static enum unwind_stop find_rule(const struct unwind_walk *w, uint32_t pid,
				  const struct unwind_state *state, const struct unwind_rule **ret)
{
	uint64_t pc = unwind_lookup_pc(state);
	const struct mapping *m = process_table_find(w->processes, pid, pc);
	const struct unwind_table *table;
	const struct dso *d;
	int err;

	if (!m)
		return (enum unwind_stop)unwind_astray(state);
	d = w->processes->dsos.dsos.v[m->dso];
	if (d->kind == DSO_JIT) {
		*ret = &jit_rule;
		return UNWIND_CONTINUE;
	}
	err = unwind_tables_get(w->tables, d, w->local_host, &table);
	if (err == -EOPNOTSUPP || (!err && table->arch != w->arch))
		return UNWIND_UNSUPPORTED;
	if (err == -EAGAIN)
		return UNWIND_NEW_MAPPING;
	if (err == -ESTALE)
		return UNWIND_FILE_CHANGED;
	if (err)
		return err == -ENOMEM ? UNWIND_NO_MEMORY : UNWIND_NO_FILE;
	*ret = unwind_table_find(table, pc - m->start_va + m->pgoff_bytes);
	return UNWIND_CONTINUE;
}

/* Whether a handler with its frame at frame_va runs on a stack of its own (sigaltstack), and what
 * it interrupted on another. */
static bool left_signal_stack(enum unwind_arch arch, uint64_t frame_va, uint64_t interrupted_sp,
			      unwind_read_fn *read, void *ctx)
{
	uint64_t at = frame_va + unwind_sigstack_at(arch);
	__u64 start, bytes;

	if (read(ctx, at, &start) || read(ctx, at + 16, &bytes))
		return false;
	return frame_va - start < bytes && interrupted_sp - start >= bytes;
}

/* ret_left: the walk has come from a signal handler's own stack to the one interrupted last. */
static size_t walk(const struct unwind_walk *w, uint32_t pid, struct unwind_state *state,
		   unwind_read_fn *read, void *ctx, uint64_t *chain, size_t max_frames,
		   enum unwind_stop *ret_stop, bool *ret_left)
{
	const struct unwind_rule *rule;
	int stop = UNWIND_CONTINUE;
	size_t n = 0;

	while (!stop) {
		if (n == max_frames) {
			stop = UNWIND_DEPTH;
			break;
		}
		chain[n] = unwind_chain_entry(state, !n);
		n++;
		stop = (int)find_rule(w, pid, state, &rule);
		if (!stop) {
			uint64_t sp = state->r[UNWIND_SLOT_SP];

			stop = unwind_step(w->arch, rule, state, read, ctx);
			if (!stop && rule->kind == UNWIND_RULE_SIGNAL)
				*ret_left = left_signal_stack(w->arch, sp, state->r[UNWIND_SLOT_SP],
							      read, ctx);
		}
	}
	*ret_stop = (enum unwind_stop)stop;
	return n;
}

size_t unwind_registers(const struct unwind_walk *w, uint32_t pid, struct unwind_state *state,
			unwind_read_fn *read, void *ctx, uint64_t *chain, size_t max_frames,
			enum unwind_stop *ret_stop)
{
	bool left;

	return walk(w, pid, state, read, ctx, chain, max_frames, ret_stop, &left);
}

size_t unwind_sample(const struct unwind_walk *w, const struct sample *s, uint64_t *chain,
		     size_t max_frames, enum unwind_stop *ret_stop, bool *ret_guessed)
{
	struct copy copy = {.bytes = s->stack, .n = s->stack_bytes, .cut = s->stack_cut};
	struct unwind_state state = {0};
	bool left = false;
	size_t n = 0;
	int stop = unwind_state_from_perf(w->arch, &s->regs, &state);

	copy.start_va = state.stack_low = state.r[UNWIND_SLOT_SP];
	if (stop == UNWIND_32_BIT && max_frames)
		chain[n++] = state.pc;
	*ret_stop = (enum unwind_stop)stop;
	if (!stop)
		n = walk(w, s->pid, &state, read_copy, &copy, chain, max_frames, ret_stop, &left);
	if (left && (*ret_stop == UNWIND_COPY_TOO_SHORT || *ret_stop == UNWIND_UNREADABLE))
		*ret_stop = UNWIND_OTHER_STACK;
	*ret_guessed = state.guessed;
	return n;
}
