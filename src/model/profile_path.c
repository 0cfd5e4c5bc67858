/* SPDX-License-Identifier: BSD-2-Clause */
#include <inspect/profile.h>

static int push_frame(const struct profile *p, uint32_t frame, struct symbol_path *buf)
{
	for (uint32_t i = p->first.v[frame + 1]; i > p->first.v[frame]; i--) {
		int err = array_push(&buf->at, p->at.v[i - 1]);

		if (err)
			return err;
	}
	return 0;
}

int profile_row_path(const struct profile *p, const struct profile_row *row,
		     struct symbol_path *buf)
{
	int err = 0;

	buf->at.n = 0;
	for (uint32_t s = row->stack; s != STACK_ROOT && !err; s = p->stacks.v[s].parent)
		err = push_frame(p, p->stacks.v[s].frame, buf);
	if (!err && row->stack < p->cut.n && p->cut.v[row->stack])
		err = array_push(&buf->at, (struct symbol_at){.symbol = p->truncated_symbol});
	if (err)
		return err;
	/* Collected from the leaf; a path runs from the root. */
	for (size_t i = 0, j = buf->at.n; i + 1 < j; i++) {
		struct symbol_at swap = buf->at.v[i];

		buf->at.v[i] = buf->at.v[--j];
		buf->at.v[j] = swap;
	}
	return 0;
}

size_t profile_path_leaf(const struct profile *p, const struct symbol_path *path)
{
	for (size_t i = 1; i < path->at.n; i++) {
		const struct symbol *s = &p->symbols.v[path->at.v[i].symbol];

		if (str_starts(intern_str(&p->strings, s->name), "[woken by "))
			return i - 1;
	}
	return path->at.n - 1;
}

static uint32_t leaf_symbol(const struct profile *p, uint32_t stack)
{
	uint32_t frame = p->stacks.v[stack].frame;

	return p->at.v[p->first.v[frame + 1] - 1].symbol;
}

static int count_module(unknown_modules *list, uint32_t module, uint64_t count)
{
	for (size_t i = 0; i < list->n; i++) {
		if (list->v[i].module == module) {
			list->v[i].count += count;
			return 0;
		}
	}
	return array_push(list, (struct unknown_module){module, count});
}

static int by_count(const void *a, const void *b)
{
	const struct unknown_module *x = a, *y = b;

	if (x->count != y->count)
		return x->count < y->count ? 1 : -1;
	return x->module < y->module ? -1 : x->module > y->module;
}

int profile_unknown(const struct profile *p, unknown_modules *ret)
{
	unknown_modules list = {0};

	for (size_t i = 0; i < p->rows.n; i++) {
		const struct profile_row *row = &p->rows.v[i];
		const struct symbol *s;
		int err;

		if (row->stack == STACK_ROOT)
			continue;
		s = &p->symbols.v[leaf_symbol(p, row->stack)];
		err = s->unknown ? count_module(&list, s->module, row->count) : 0;
		if (err) {
			array_release(&list);
			return err;
		}
	}
	if (list.n)
		qsort(list.v, list.n, sizeof(*list.v), by_count);
	ret->v = list.v;
	ret->n = list.n;
	ret->cap = list.cap;
	return 0;
}
