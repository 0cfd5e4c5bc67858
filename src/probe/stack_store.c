/* SPDX-License-Identifier: BSD-2-Clause */
#include "stack_store.h"

void stack_store_release(struct stack_store *s)
{
	for (size_t i = 0; i < s->stacks.n; i++)
		free(s->stacks.v[i]);
	array_release(&s->stacks);
	hashmap_release(&s->by_id);
	array_release(&s->chains);
	hashmap_release(&s->chains_by_id);
}

const struct stack_record *stack_store_find(const struct stack_store *s, uint64_t id)
{
	uint32_t at, i;

	hashmap_each_candidate(&s->by_id, id, at, i)
		if (s->stacks.v[i]->id == id)
			return s->stacks.v[i];
	return NULL;
}

const struct offcpu_chain *stack_store_chain(const struct stack_store *s, uint64_t id)
{
	uint32_t at, i;

	hashmap_each_candidate(&s->chains_by_id, id, at, i)
		if (s->chains.v[i].id == id)
			return &s->chains.v[i];
	return NULL;
}

static int keep_chain(struct stack_store *s, const struct probe_message *m)
{
	struct offcpu_chain chain;
	int err;

	memcpy(&chain, m->raw, sizeof(chain));
	if (chain.n > OFFCPU_LINKS || stack_store_chain(s, chain.id))
		return 0;
	err = array_push(&s->chains, chain);
	return err ? err : hashmap_insert(&s->chains_by_id, chain.id, (uint32_t)s->chains.n - 1);
}

int stack_store_keep(void *ctx, const struct probe_message *m)
{
	struct stack_store *s = ctx;
	struct stack_record head, *kept;
	size_t size_bytes, own;
	int err;

	if (m->raw_bytes < STACK_HEAD_BYTES)
		return 0;
	memcpy(&head, m->raw, STACK_HEAD_BYTES);
	if (head.mark == OFFCPU_CHAIN_MARK && m->raw_bytes >= sizeof(struct offcpu_chain))
		return keep_chain(s, m);
	size_bytes = STACK_HEAD_BYTES + 8 * ((size_t)head.n_kernel + head.n_user);
	if (head.mark != STACK_MARK || size_bytes > m->raw_bytes || head.stop >= UNWIND_STOPS ||
	    head.n_kernel > STACK_KERNEL_FRAMES || stack_store_find(s, head.id))
		return 0;
	kept = malloc(size_bytes);
	if (!kept)
		return -ENOMEM;
	memcpy(kept, m->raw, size_bytes);
	own = own_frames_count(&s->own, kept->chain, kept->n_kernel);
	kept->n_kernel -= (uint16_t)own;
	memmove(kept->chain, kept->chain + own,
		((size_t)kept->n_kernel + kept->n_user) * sizeof(*kept->chain));
	err = array_push(&s->stacks, kept);
	if (err) {
		free(kept);
		return err;
	}
	return hashmap_insert(&s->by_id, head.id, (uint32_t)s->stacks.n - 1);
}

static bool is_incomplete(const struct stack_record *s)
{
	return s->stop == UNWIND_NEW_MAPPING || s->stop == UNWIND_NO_MAPPING;
}

size_t stack_store_incomplete(struct stack_store *s, const struct stack_record **ret, size_t max)
{
	size_t n = 0;

	for (; s->n_seen < s->stacks.n && n < max; s->n_seen++)
		if (is_incomplete(s->stacks.v[s->n_seen]))
			ret[n++] = s->stacks.v[s->n_seen];
	s->n_seen = s->stacks.n;
	return n;
}

int stack_store_replace(struct stack_store *s, uint64_t id, const struct stack_record *better)
{
	size_t size_bytes = STACK_HEAD_BYTES + 8 * ((size_t)better->n_kernel + better->n_user);
	uint32_t at, i;

	hashmap_each_candidate(&s->by_id, id, at, i) {
		const struct stack_record *old = s->stacks.v[i];
		struct stack_record *copy;

		if (old->id != id)
			continue;
		if (!old->n_user || !better->n_user || old->pid != better->pid ||
		    old->chain[old->n_kernel] != better->chain[better->n_kernel])
			return -ENOENT;
		copy = malloc(size_bytes);
		if (!copy)
			return -ENOMEM;
		memcpy(copy, better, size_bytes);
		copy->id = id;
		free(s->stacks.v[i]);
		s->stacks.v[i] = copy;
		return 0;
	}
	return -ENOENT;
}
