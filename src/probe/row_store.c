/* SPDX-License-Identifier: BSD-2-Clause */
#include "row_store.h"

#include <sys/mman.h>

#define SPARE_ROWS (4u << UNWIND_ROW_SHIFT)

static size_t rules_bytes(void)
{
	size_t page_bytes = (size_t)sysconf(_SC_PAGESIZE);

	return ALIGN_UP(UNWIND_RULES_MAX * sizeof(struct unwind_rule), page_bytes);
}

int row_store_init(struct row_store *s, int rows_fd, int rules_fd, size_t budget_bytes)
{
	void *rules = mmap(NULL, rules_bytes(), PROT_READ | PROT_WRITE, MAP_SHARED, rules_fd, 0);

	if (rules == MAP_FAILED)
		return -errno;
	*s = (struct row_store){
		.chunks = {.outer_fd = rows_fd,
			   .name = "unwind_row",
			   .element_bytes = sizeof(struct unwind_row),
			   .shift = UNWIND_ROW_SHIFT,
			   .n_max = UNWIND_ROW_CHUNKS,
			   .budget_bytes = budget_bytes},
		.rules = rules,
		.n_rules = UNWIND_RULE_INDEX_FIRST,
	};
	s->rules[UNWIND_RULE_INDEX_NONE] = (struct unwind_rule){.kind = UNWIND_RULE_NONE};
	s->rules[UNWIND_RULE_INDEX_FP] = (struct unwind_rule){.kind = UNWIND_RULE_FP};
	return 0;
}

void row_store_release(struct row_store *s)
{
	chunks_release(&s->chunks);
	if (s->rules)
		munmap(s->rules, rules_bytes());
	hashmap_release(&s->by_rule);
	hashmap_release(&s->by_rows);
	array_release(&s->stored);
	array_release(&s->renumbered);
	array_release(&s->rule_index);
}

static int intern_rule(struct row_store *s, const struct unwind_rule *rule, uint32_t *ret)
{
	uint64_t hash = hash_bytes(rule, sizeof(*rule));
	uint32_t at, i;
	int err;

	if (rule->kind == UNWIND_RULE_NONE) {
		*ret = UNWIND_RULE_INDEX_NONE;
		return 0;
	}
	hashmap_each_candidate(&s->by_rule, hash, at, i) {
		if (memcmp(&s->rules[i], rule, sizeof(*rule)) == 0) {
			*ret = i;
			return 0;
		}
	}
	if (s->n_rules == UNWIND_RULES_MAX)
		return -ENOSPC;
	err = hashmap_insert(&s->by_rule, hash, s->n_rules);
	if (err)
		return err;
	s->rules[s->n_rules] = *rule;
	*ret = s->n_rules++;
	return 0;
}

/* The file's rows with the numbers that rules have here. */
static int renumber(struct row_store *s, const struct unwind_rows *r)
{
	int err = array_reserve(&s->rule_index, r->n_rules);

	if (!err)
		err = array_reserve(&s->renumbered, r->n_rows);
	for (size_t i = 0; i < r->n_rules && !err; i++)
		err = intern_rule(s, &r->rules[i], &s->rule_index.v[i]);
	for (size_t i = 0; i < r->n_rows && !err; i++) {
		if (r->rows[i].rule >= r->n_rules)
			return -EBADMSG;
		s->renumbered.v[i] =
			(struct unwind_row){r->rows[i].off, s->rule_index.v[r->rows[i].rule]};
	}
	return err;
}

int row_store_add(struct row_store *s, const struct unwind_rows *r, uint32_t *ret_first,
		  uint32_t *ret_n)
{
	uint64_t hash = hash_u64((uintptr_t)r->rows);
	uint32_t at, i;
	int err;

	hashmap_each_candidate(&s->by_rows, hash, at, i) {
		if (s->stored.v[i].rows != r->rows || s->stored.v[i].n != r->n_rows)
			continue;
		*ret_first = s->stored.v[i].first;
		*ret_n = s->stored.v[i].n;
		return 0;
	}
	err = s->n_rows + r->n_rows > UINT32_MAX ? -ENOSPC : renumber(s, r);
	if (!err)
		err = chunks_reserve(&s->chunks, s->n_rows + r->n_rows);
	if (!err)
		err = array_push(&s->stored, (struct stored_rows){r->rows, (uint32_t)s->n_rows,
								  (uint32_t)r->n_rows});
	if (!err)
		err = hashmap_insert(&s->by_rows, hash, (uint32_t)s->stored.n - 1);
	if (err)
		return err;
	chunks_write(&s->chunks, s->n_rows, s->renumbered.v, r->n_rows);
	*ret_first = (uint32_t)s->n_rows;
	*ret_n = (uint32_t)r->n_rows;
	s->n_rows += r->n_rows;
	return 0;
}

int row_store_prepare(struct row_store *s)
{
	uint64_t have = (uint64_t)s->chunks.mapped.n << UNWIND_ROW_SHIFT;

	if (have - s->n_rows >= SPARE_ROWS / 2)
		return 0;
	return chunks_reserve(&s->chunks, s->n_rows + SPARE_ROWS);
}
