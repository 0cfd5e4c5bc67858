/* SPDX-License-Identifier: BSD-2-Clause */
#include "text.h"
#include <sys/mman.h>

#define HUGE_PAGE_BYTES (2U << 20)

#define SLOTS (1U << 16)
#define PROBES 4U

/* Longer ones are parsed each time: what is compared stays short. */
#define KEY_BYTES_MAX 4096U

int text_reader_init(struct text_reader *r, struct profile *p, const char *s, size_t n)
{
	int err;

	*r = (struct text_reader){.p = p, .at = s, .end = s + n};
	r->slots = aligned_alloc(HUGE_PAGE_BYTES, SLOTS * sizeof(*r->slots));
	if (!r->slots)
		return -ENOMEM;
	/* Only faster: few entries of the TLB instead of a thousand. */
	madvise(r->slots, SLOTS * sizeof(*r->slots), MADV_HUGEPAGE);
	memset(r->slots, 0, SLOTS * sizeof(*r->slots));
	err = array_reserve(&r->children, p->stacks.n);
	if (err)
		return err;
	r->children.n = p->stacks.n;
	memset(r->children.v, 0, r->children.n * sizeof(*r->children.v));
	return 0;
}

void text_reader_release(struct text_reader *r)
{
	free(r->slots);
	array_release(&r->frames);
	array_release(&r->children);
}

bool text_next_line(struct text_reader *r, struct span *ret)
{
	const char *start = r->at, *newline;

	if (start == r->end)
		return false;
	newline = memchr(start, '\n', (size_t)(r->end - start));
	r->at = newline ? newline + 1 : r->end;
	ret->s = start;
	ret->n = (size_t)((newline ? newline : r->end) - start);
	if (ret->n && start[ret->n - 1] == '\r')
		ret->n--;
	r->line++;
	return true;
}

void text_bad_line(struct text_reader *r)
{
	if (r->bad_lines < TEXT_BAD_LINES_NAMED)
		r->bad_line[r->bad_lines] = r->line;
	r->bad_lines++;
}

static bool slot_is(const struct frame_slot *slot, const struct frame_text *f)
{
	size_t n = f->text.n;

	return slot->hash == f->hash && slot->key_n == n &&
	       memcmp(n <= KEY_INLINE_BYTES ? slot->key : slot->long_key, f->text.s, n) == 0;
}

static void slot_fill(struct frame_slot *slot, const struct frame_text *f, uint32_t frame)
{
	slot->hash = f->hash;
	slot->frame = frame;
	slot->key_n = (uint32_t)f->text.n;
	if (f->text.n <= KEY_INLINE_BYTES)
		memcpy(slot->key, f->text.s, f->text.n);
	else
		slot->long_key = f->text.s;
}

int text_push_frame(struct text_reader *r, struct span text)
{
	uint64_t hash = hash_bytes(text.s, text.n);

	__builtin_prefetch(&r->slots[hash & (SLOTS - 1)]);
	return array_push(&r->frames, (struct frame_text){hash, text});
}

static int find_frame(struct text_reader *r, const struct frame_text *f, uint32_t *ret_frame)
{
	struct frame_slot *slot;
	uint32_t frame;
	unsigned i;
	int err;

	for (i = 0; i < PROBES; i++) {
		slot = &r->slots[(f->hash + i) & (SLOTS - 1)];
		if (!slot->key_n)
			break;
		if (slot_is(slot, f)) {
			*ret_frame = slot->frame;
			return 0;
		}
	}
	err = r->make_frame(r->p, f->text, &frame);
	if (err)
		return err;
	/* Full: one of the probed gives way, the hash decides which. */
	slot = &r->slots[(f->hash + (i < PROBES ? i : f->hash >> 62)) & (SLOTS - 1)];
	if (f->text.n && f->text.n <= KEY_BYTES_MAX)
		slot_fill(slot, f, frame);
	*ret_frame = frame;
	return 0;
}

static int step(struct text_reader *r, uint32_t frame, uint32_t *stack)
{
	struct stack_child *child = &r->children.v[*stack];
	size_t n;
	int err;

	if (child->stack && child->frame == frame) {
		*stack = child->stack;
		return 0;
	}
	err = profile_stack(r->p, *stack, frame, &child->stack);
	if (err)
		return err;
	child->frame = frame;
	*stack = child->stack;
	n = r->children.n;
	if (r->p->stacks.n <= n)
		return 0;
	err = array_reserve(&r->children, r->p->stacks.n);
	if (err)
		return err;
	r->children.n = r->p->stacks.n;
	memset(r->children.v + n, 0, (r->children.n - n) * sizeof(*r->children.v));
	return 0;
}

int text_take_stack(struct text_reader *r, bool leaf_first, uint32_t *ret_stack)
{
	size_t n = r->frames.n, first = 0;
	uint32_t stack = STACK_ROOT;

	if (n > TEXT_FRAMES_MAX) {
		first = leaf_first ? 0 : n - TEXT_FRAMES_MAX;
		n = TEXT_FRAMES_MAX;
		r->cut_stacks++;
	}
	for (size_t i = 0; i < n; i++) {
		uint32_t frame;
		int err = find_frame(r, &r->frames.v[leaf_first ? n - 1 - i : first + i], &frame);

		if (!err)
			err = step(r, frame, &stack);
		if (err)
			return err;
	}
	r->frames.n = 0;
	*ret_stack = stack;
	return 0;
}

int text_add(struct text_reader *r, uint32_t stack, uint32_t thread, uint32_t event,
	     uint64_t weight, uint64_t count)
{
	int err;

	if (weight > TEXT_WEIGHT_MAX - r->weight_total ||
	    count > TEXT_WEIGHT_MAX - r->p->losses.samples)
		return -EOVERFLOW;
	err = profile_add(r->p, stack, thread, event, weight, count);
	if (err)
		return err;
	r->weight_total += weight;
	r->samples++;
	r->p->losses.samples += count;
	if (stack == STACK_ROOT)
		r->p->losses.without_stack += count;
	return 0;
}
