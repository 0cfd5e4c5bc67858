/* SPDX-License-Identifier: BSD-2-Clause */
#include "gpu_waits.h"

#include <inspect/cuda.h>
#include <inspect/strbuf.h>

/* What a stack was taken for. */
enum taken { TAKEN_SAMPLE, TAKEN_WAIT, TAKEN_OTHER };

struct marker {
	struct profile *p;
	const struct cuda_function **by_symbol; /* those that wait; NULL: another function */
	size_t n_symbols;
	struct strbuf text;
};

/* --- which functions -------------------------------------------------------------------------- */

static bool is_in_libcuda(const struct profile *p, const struct symbol *s)
{
	return str_starts(intern_str(&p->strings, s->module), "libcuda.so");
}

/* Whether there are any; the table by symbol. */
static int find_functions(struct marker *m, bool *ret_any)
{
	const struct profile *p = m->p;

	*ret_any = false;
	m->n_symbols = p->symbols.n;
	m->by_symbol = calloc(p->symbols.n + 1, sizeof(*m->by_symbol));
	if (!m->by_symbol)
		return -ENOMEM;
	for (size_t i = 0; i < p->symbols.n; i++) {
		const struct symbol *s = &p->symbols.v[i];
		int at = is_in_libcuda(p, s)
				 ? cuda_function_find(intern_str(&p->strings, s->name), NULL)
				 : -1;

		if (at < 0 || !(cuda_functions[at].flags & CUDA_WAITS))
			continue;
		m->by_symbol[i] = &cuda_functions[at];
		*ret_any = true;
	}
	return 0;
}

static const struct cuda_function *function_of(const struct marker *m, uint32_t frame)
{
	const struct profile *p = m->p;

	for (uint32_t i = p->first.v[frame]; i < p->first.v[frame + 1]; i++)
		if (p->at.v[i].symbol < m->n_symbols && m->by_symbol[p->at.v[i].symbol])
			return m->by_symbol[p->at.v[i].symbol];
	return NULL;
}

/* The outermost such function of a stack, which the program called; STACK_ROOT: none. */
static uint32_t find_call(const struct marker *m, uint32_t stack, const struct cuda_function **ret)
{
	uint32_t found = STACK_ROOT;

	for (uint32_t s = stack; s != STACK_ROOT; s = m->p->stacks.v[s].parent) {
		const struct cuda_function *f = function_of(m, m->p->stacks.v[s].frame);

		if (!f)
			continue;
		found = s;
		*ret = f;
	}
	return found;
}

/* --- frames ----------------------------------------------------------------------------------- */

static const char *name_of(const struct profile *p, uint32_t stack)
{
	uint32_t frame = p->stacks.v[stack].frame;
	uint32_t symbol = p->at.v[p->first.v[frame + 1] - 1].symbol;

	return intern_str(&p->strings, p->symbols.v[symbol].name);
}

/* A frame with a name, after the naming. */
static int named_frame(struct profile *p, const char *name, uint32_t *ret)
{
	struct symbol symbol = {.kind = FRAME_SYNTHETIC};
	struct symbol_at at = {0};
	int err = profile_named_frame(p, FRAME_SYNTHETIC, name, strlen(name), "", 0, ret);

	if (err || *ret + 1 < p->first.n)
		return err; /* it was there */
	err = intern_add(&p->strings, name, strlen(name), &symbol.name);
	if (!err)
		err = profile_symbol(p, &symbol, &at.symbol);
	if (!err)
		err = array_push(&p->at, at);
	return err ? err : array_push(&p->first, (uint32_t)p->at.n);
}

/* Whether the stack reaches an entry point is as it was. */
static int copy_cut(struct profile *p, uint32_t from, uint32_t to)
{
	if (from >= p->cut.n || !p->cut.v[from])
		return 0;
	while (p->cut.n <= to)
		if (array_push(&p->cut, 0))
			return -ENOMEM;
	p->cut.v[to] = 1;
	return 0;
}

/* --- stacks ----------------------------------------------------------------------------------- */

/* All below the call is one frame. What copies is work. */
static int spin(struct marker *m, uint32_t stack, uint32_t call, const struct cuda_function *f,
		uint32_t *ret)
{
	const char *leaf = name_of(m->p, stack);
	uint32_t frame;
	int err;

	if (!(f->flags & CUDA_SPINS) || strstr(leaf, "memcpy") || strstr(leaf, "memmove"))
		return 0;
	err = named_frame(m->p, "[gpu spin wait]", &frame);
	return err ? err : profile_stack(m->p, call, frame, ret);
}

/* The label of a wait has another name; above it is whoever ended the wait. */
static int rename_label(struct marker *m, uint32_t stack, uint32_t label,
			const struct cuda_function *f, uint32_t *ret)
{
	struct profile *p = m->p;
	ARRAY(uint32_t) above = {0};
	uint32_t to = p->stacks.v[label].parent, frame;
	int err;

	strbuf_clear(&m->text);
	strbuf_printf(&m->text, "[gpu: %s]", f->name);
	err = m->text.failed ? -ENOMEM : named_frame(p, strbuf_str(&m->text), &frame);
	for (uint32_t s = stack; s != label && !err; s = p->stacks.v[s].parent)
		err = array_push(&above, p->stacks.v[s].frame);
	if (!err)
		err = profile_stack(p, to, frame, &to);
	for (size_t i = above.n; i > 0 && !err; i--)
		err = profile_stack(p, to, above.v[i - 1], &to);
	array_release(&above);
	if (!err)
		*ret = to;
	return err;
}

static bool is_wait(const char *name)
{
	return str_starts(name, "[waiting: ") || str_starts(name, "[gpu: ");
}

/* The stack as it is to be seen; *ret_function: it waits, blocked, for what that function does. */
static int mark_stack(struct marker *m, uint32_t stack, enum taken taken, uint32_t *ret,
		      const struct cuda_function **ret_function)
{
	const struct cuda_function *f = NULL;
	uint32_t call = find_call(m, stack, &f), label = stack;
	int err = 0;

	*ret = stack;
	*ret_function = NULL;
	if (call == STACK_ROOT || taken == TAKEN_OTHER)
		return 0;
	if (taken == TAKEN_SAMPLE || str_eq(name_of(m->p, stack), "[on-cpu]")) {
		err = spin(m, stack, call, f, ret);
	} else {
		while (label != call && !is_wait(name_of(m->p, label)))
			label = m->p->stacks.v[label].parent;
		if (label == call)
			return 0;
		*ret_function = f;
		err = rename_label(m, stack, label, f, ret);
	}
	return err ? err : copy_cut(m->p, stack, *ret);
}

/* --- the profile ------------------------------------------------------------------------------ */

static enum taken taken_of(const struct profile_event *e)
{
	if (str_eq(e->name, OFFCPU_EVENT) || str_eq(e->name, WALL_EVENT))
		return TAKEN_WAIT;
	if (e->is_tracepoint || str_eq(e->name, CALLS_EVENT) || str_eq(e->name, GPU_EVENT) ||
	    str_eq(e->name, "offcpu-time"))
		return TAKEN_OTHER;
	return TAKEN_SAMPLE;
}

static int mark_rows(struct marker *m)
{
	struct profile *p = m->p;
	__typeof__(p->rows) rows = p->rows;
	int err = 0;

	p->rows.v = NULL;
	p->rows.n = p->rows.cap = 0;
	hashmap_release(&p->row_map);
	for (size_t i = 0; i < rows.n && !err; i++) {
		struct profile_row *r = &rows.v[i];
		const struct cuda_function *f;

		err = mark_stack(m, r->stack, taken_of(&p->events.v[r->event]), &r->stack, &f);
		if (!err)
			err = profile_add(p, r->stack, r->thread, r->event, r->weight, r->count);
	}
	array_release(&rows);
	return err;
}

/* "[gpu: cuStreamSynchronize] poll nvidiactl": of a wait that is one in the driver, its call is. */
static void put_label(const struct cuda_function *f, const char *label, struct strbuf *out)
{
	static const char begin[] = "[gpu: ";
	const char *end = str_starts(label, begin) ? strchr(label, ']') : NULL;

	strbuf_printf(out, "[gpu: %s] ", f->name);
	if (end)
		strbuf_add(out, label + strlen(begin), (size_t)(end - label) - strlen(begin));
	strbuf_puts(out, end ? end + 1 : label);
}

static int mark_sites(struct marker *m, struct waits *w)
{
	int err = 0;

	for (size_t i = 0; i < w->sites.n && !err; i++) {
		struct wait_site *s = &w->sites.v[i];
		const struct cuda_function *f;

		if (s->stack == UINT32_MAX)
			continue;
		err = mark_stack(m, s->stack, TAKEN_WAIT, &s->stack, &f);
		if (err || !f)
			continue;
		strbuf_clear(&m->text);
		put_label(f, w->labels.v[s->label].text, &m->text);
		s->reason = WAIT_GPU;
		err = m->text.failed ? -ENOMEM
				     : waits_label(w, strbuf_str(&m->text), WAIT_GPU, &s->label);
	}
	return err;
}

int gpu_waits_mark(struct profile *p, struct waits *waits)
{
	struct marker m = {.p = p};
	bool any;
	int err = find_functions(&m, &any);

	if (!err && any)
		err = mark_rows(&m);
	if (!err && any && waits)
		err = mark_sites(&m, waits);
	free(m.by_symbol);
	strbuf_release(&m.text);
	return err;
}
