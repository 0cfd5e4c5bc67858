/* SPDX-License-Identifier: BSD-2-Clause */
#include "paths.h"
#include <inspect/render.h>
#include <inspect/term.h>

/*
 * The pieces of lines, ranked by their bytes. An inner piece ends in its `;` and no piece holds
 * another one, so lines compare as the sequences of their pieces do.
 */
struct pieces {
	char **text;    /* owned, by piece */
	uint32_t *rank; /* by piece; equal texts have one rank */
	const char **by_rank;
	size_t n;
};

/* Where the pieces of comms begin: each name has two, inner (even) and last (odd). */
static size_t comm_piece(const struct profile *p, uint32_t comm)
{
	return 2 * (p->symbols.n + comm);
}

static void pieces_release(struct pieces *ps)
{
	for (size_t i = 0; ps->text && i < ps->n; i++)
		free(ps->text[i]);
	free(ps->text);
	free(ps->rank);
	free(ps->by_rank);
}

static void add_name(struct strbuf *out, const struct intern_string *name, bool is_comm)
{
	CLEANUP(strbuf_release) struct strbuf plain = {0};

	strbuf_add(&plain, name->s, name->n);
	for (size_t i = 0; i < plain.n; i++) {
		char *c = &plain.v[i];

		if (*c == ';' || *c == '\n' || *c == '\r')
			*c = ':';
		else if (*c == ' ' && is_comm)
			*c = '_';
	}
	term_escape(out, strbuf_str(&plain), plain.n);
	out->failed |= plain.failed;
}

static int set_piece(struct pieces *ps, size_t at, const struct intern_string *name,
		     const char *suffix, bool is_comm)
{
	for (size_t last = 0; last < 2; last++) {
		CLEANUP(strbuf_release) struct strbuf text = {0};
		int err;

		add_name(&text, name, is_comm);
		strbuf_puts(&text, suffix);
		strbuf_puts(&text, last ? "" : ";");
		err = strbuf_take(&text, &ps->text[at + last]);
		if (err)
			return err;
	}
	return 0;
}

static int set_texts(const struct profile *p, struct pieces *ps)
{
	static const char *const suffixes[FRAME_KINDS] = {
		[FRAME_KERNEL] = "_[k]",
		[FRAME_INLINED] = "_[i]",
		[FRAME_JIT] = "_[j]",
	};
	const struct intern_string *strings = p->strings.strings.v;

	for (size_t i = 0; i < p->symbols.n; i++) {
		const struct symbol *s = &p->symbols.v[i];
		const char *suffix = s->kind < FRAME_KINDS ? suffixes[s->kind] : NULL;
		int err = set_piece(ps, 2 * i, &strings[s->name], suffix ? suffix : "", false);

		if (err)
			return err;
	}
	for (size_t i = 0; i < p->threads.n; i++) {
		uint32_t comm = p->threads.v[i].comm;
		size_t at = comm_piece(p, comm);
		int err = ps->text[at] ? 0 : set_piece(ps, at, &strings[comm], "", true);

		if (err)
			return err;
	}
	return 0;
}

static int by_text(const void *a, const void *b, void *context)
{
	const struct pieces *ps = context;

	return strcmp(ps->text[*(const uint32_t *)a], ps->text[*(const uint32_t *)b]);
}

static int pieces_init(const struct profile *p, struct pieces *ps)
{
	CLEANUP(freep) uint32_t *order = NULL;
	size_t used = 0;
	uint32_t rank = 0;
	int err;

	ps->n = comm_piece(p, (uint32_t)p->strings.strings.n);
	ps->text = calloc(ps->n + 1, sizeof(*ps->text));
	ps->rank = calloc(ps->n + 1, sizeof(*ps->rank));
	ps->by_rank = calloc(ps->n + 1, sizeof(*ps->by_rank));
	order = calloc(ps->n + 1, sizeof(*order));
	err = ps->text && ps->rank && ps->by_rank && order ? set_texts(p, ps) : -ENOMEM;
	if (err)
		return err;
	for (size_t i = 0; i < ps->n; i++)
		if (ps->text[i])
			order[used++] = (uint32_t)i;
	qsort_r(order, used, sizeof(*order), by_text, ps);
	for (size_t i = 0; i < used; i++) {
		if (i && !str_eq(ps->text[order[i]], ps->text[order[i - 1]]))
			rank++;
		ps->rank[order[i]] = rank;
		ps->by_rank[rank] = ps->text[order[i]];
	}
	return 0;
}

static int add_row(const struct profile *p, const struct profile_row *row, const struct pieces *ps,
		   struct symbol_path *symbols, struct paths *paths)
{
	struct path path = {.first = paths->keys.n, .weight = row->weight, .count = row->count};
	uint32_t comm = row->thread < p->threads.n ? p->threads.v[row->thread].comm : 0;
	int err = profile_row_path(p, row, symbols);
	size_t n = symbols->at.n;

	if (!err)
		err = array_reserve(&paths->keys, paths->keys.n + n + 1);
	if (err)
		return err;
	if (comm)
		paths->keys.v[paths->keys.n++] = ps->rank[comm_piece(p, comm) + (n == 0)];
	for (size_t i = 0; i < n; i++) {
		size_t piece = 2 * (size_t)symbols->at.v[i].symbol + (i + 1 == n);

		paths->keys.v[paths->keys.n++] = ps->rank[piece];
	}
	path.n = (uint32_t)(paths->keys.n - path.first);
	return path.n ? array_push(&paths->rows, path) : 0;
}

static int collect(const struct profile *p, int event, const struct pieces *ps, struct paths *paths)
{
	struct symbol_path symbols = {0};
	int err = 0;

	for (size_t i = 0; i < p->rows.n && !err; i++)
		if (event < 0 || p->rows.v[i].event == (uint32_t)event)
			err = add_row(p, &p->rows.v[i], ps, &symbols, paths);
	array_release(&symbols.at);
	return err;
}

static void write_lines(const struct pieces *ps, const struct paths *paths, FILE *out)
{
	for (size_t i = 0; i < paths->rows.n;) {
		const struct path *row = &paths->rows.v[i];
		uint64_t weight = 0;

		for (; i < paths->rows.n; i++) {
			const struct path *same = &paths->rows.v[i];

			if (same->n != row->n || paths_common(paths, row, same) != row->n)
				break;
			weight = sum_u64(weight, same->weight);
		}
		for (uint32_t k = 0; k < row->n; k++)
			fputs(ps->by_rank[paths->keys.v[row->first + k]], out);
		fprintf(out, " %llu\n", (unsigned long long)weight);
	}
}

int folded_write(const struct profile *p, int event, FILE *out)
{
	struct pieces pieces = {0};
	struct paths paths = {0};
	int err = pieces_init(p, &pieces);

	if (!err)
		err = collect(p, event, &pieces, &paths);
	if (!err)
		err = paths_sort(&paths);
	if (!err)
		write_lines(&pieces, &paths, out);
	pieces_release(&pieces);
	paths_release(&paths);
	if (err)
		return err;
	return fflush(out) || ferror(out) ? -EIO : 0;
}
