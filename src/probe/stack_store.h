/* SPDX-License-Identifier: BSD-2-Clause */
/* Stacks that a program has sent, and chains of them, by id (bpf/lib/stacks.bpf.h). */
#ifndef PROBE_STACK_STORE_H
#define PROBE_STACK_STORE_H

#include "own_frames.h"
#include "rings.h"

#include <inspect/hashmap.h>
#include <offcpu.abi.h>

struct stack_store {
	struct own_frames own; /* are taken off */
	ARRAY(struct stack_record *) stacks;
	struct hashmap by_id;
	ARRAY(struct offcpu_chain) chains;
	struct hashmap chains_by_id;
	size_t n_seen; /* of the stacks, by stack_store_incomplete */
};
void stack_store_release(struct stack_store *s);

/* For probe_rings_read; ctx is the store. Bytes that are neither are left out. 0 or -ENOMEM. */
int stack_store_keep(void *ctx, const struct probe_message *m);

/* NULL: it has not come, or was lost. */
const struct stack_record *stack_store_find(const struct stack_store *s, uint64_t id);
const struct offcpu_chain *stack_store_chain(const struct stack_store *s, uint64_t id);

/* As offcpu_incomplete and offcpu_replace_stack. */
size_t stack_store_incomplete(struct stack_store *s, const struct stack_record **ret, size_t max);
int stack_store_replace(struct stack_store *s, uint64_t id, const struct stack_record *better);

#endif
