/* SPDX-License-Identifier: BSD-2-Clause */
/* The rows and rules of all files in BPF's maps: each file's once, each rule once. */
#ifndef PROBE_ROW_STORE_H
#define PROBE_ROW_STORE_H

#include "chunks.h"

#include <inspect/bpf_sampler.h>
#include <inspect/hashmap.h>
#include <lib/unwind.abi.h>

/* What was uploaded, by where the engine has it. */
struct stored_rows {
	const struct unwind_row *rows;
	uint32_t first, n;
};

struct row_store {
	struct chunks chunks;
	uint64_t n_rows;
	struct unwind_rule *rules; /* the map, UNWIND_RULES_MAX */
	uint32_t n_rules;
	struct hashmap by_rule;
	ARRAY(struct stored_rows) stored;
	struct hashmap by_rows;
	ARRAY(struct unwind_row) renumbered;
	ARRAY(uint32_t) rule_index; /* by the file's own number */
};

/* Maps the rules. rows_fd and rules_fd stay the caller's. 0 or -errno. */
int row_store_init(struct row_store *s, int rows_fd, int rules_fd, size_t budget_bytes);
void row_store_release(struct row_store *s);

/* Makes room for what may come: the next file need not wait for it. 0, -ENOSPC or -errno. */
int row_store_prepare(struct row_store *s);

/* Uploads unless that was done. 0, -ENOSPC: no room within the budget, or -errno. */
int row_store_add(struct row_store *s, const struct unwind_rows *r, uint32_t *ret_first,
		  uint32_t *ret_n);

#endif
