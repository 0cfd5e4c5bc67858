/* SPDX-License-Identifier: BSD-2-Clause */
#include <inspect/profile.h>

/* Samples of one function on one line. */
struct line_count {
	uint32_t symbol, file, line;
	uint64_t self, total;
};

struct counting {
	ARRAY(struct line_count) lines;
	struct hashmap map;
};

/* Samples by frame: those taken in it, and those with it on the stack. */
struct frame_count {
	uint64_t self, total;
};

static void count_frames(const struct profile *p, struct frame_count *counts)
{
	for (size_t i = 0; i < p->rows.n; i++) {
		const struct profile_row *row = &p->rows.v[i];

		if (row->stack != STACK_ROOT)
			counts[p->stacks.v[row->stack].frame].self += row->count;
		for (uint32_t s = row->stack; s != STACK_ROOT; s = p->stacks.v[s].parent)
			counts[p->stacks.v[s].frame].total += row->count;
	}
}

static int count_line(struct counting *c, const struct symbol_at *at, uint64_t self, uint64_t total)
{
	uint64_t hash = hash_u64(((uint64_t)at->symbol << 32 | at->file) ^ hash_u64(at->line));
	uint32_t slot, i;
	int err;

	hashmap_each_candidate(&c->map, hash, slot, i) {
		struct line_count *known = &c->lines.v[i];

		if (known->symbol != at->symbol || known->file != at->file ||
		    known->line != at->line)
			continue;
		known->self += self;
		known->total += total;
		return 0;
	}
	err = array_push(&c->lines,
			 (struct line_count){at->symbol, at->file, at->line, self, total});
	return err ? err : hashmap_insert(&c->map, hash, (uint32_t)c->lines.n - 1);
}

/* Of a frame's functions only the innermost, its last, is where its own samples were taken. */
static int count_lines(const struct profile *p, const struct frame_count *counts,
		       struct counting *c)
{
	for (uint32_t frame = 0; frame < p->frames.n; frame++) {
		uint32_t end = p->first.v[frame + 1];

		for (uint32_t i = p->first.v[frame]; i < end; i++) {
			const struct symbol_at *at = &p->at.v[i];
			int err;

			if (!at->file || !at->line || !counts[frame].total)
				continue;
			err = count_line(c, at, i + 1 == end ? counts[frame].self : 0,
					 counts[frame].total);
			if (err)
				return err;
		}
	}
	return 0;
}

static bool is_better(const struct line_count *a, const struct line_count *b)
{
	if (a->self != b->self)
		return a->self > b->self;
	if (a->total != b->total)
		return a->total > b->total;
	return a->line < b->line;
}

int profile_places(const struct profile *p, struct symbol_place **ret)
{
	CLEANUP(freep) struct frame_count *counts = calloc(p->frames.n + 1, sizeof(*counts));
	CLEANUP(freep) uint32_t *best = calloc(p->symbols.n + 1, sizeof(*best)); /* index + 1 */
	struct symbol_place *places = calloc(p->symbols.n + 1, sizeof(*places));
	struct counting c = {0};
	int err = counts && best && places ? 0 : -ENOMEM;

	if (!err) {
		count_frames(p, counts);
		err = count_lines(p, counts, &c);
	}
	for (uint32_t i = 0; i < c.lines.n && !err; i++) {
		const struct line_count *own = &c.lines.v[i];
		uint32_t known = best[own->symbol];

		if (known && !is_better(own, &c.lines.v[known - 1]))
			continue;
		best[own->symbol] = i + 1;
		places[own->symbol] = (struct symbol_place){own->file, own->line};
	}
	array_release(&c.lines);
	hashmap_release(&c.map);
	if (err) {
		free(places);
		return err;
	}
	*ret = places;
	return 0;
}
