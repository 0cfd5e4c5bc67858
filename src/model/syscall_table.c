/* SPDX-License-Identifier: BSD-2-Clause */
#include <inspect/syscall_table.h>

void syscall_table_release(struct syscall_table *t)
{
	array_release(&t->rows);
	array_release(&t->details);
	array_release(&t->threads);
	hashmap_release(&t->by_key);
}

static struct syscall_row *find_row(const struct syscall_table *t, const struct syscalls_key *key,
				    uint64_t hash)
{
	uint32_t at, i;

	hashmap_each_candidate(&t->by_key, hash, at, i)
		if (!memcmp(&t->rows.v[i].key, key, sizeof(*key)))
			return &t->rows.v[i];
	return NULL;
}

struct syscall_row *syscall_table_row(struct syscall_table *t, const struct syscalls_key *key)
{
	uint64_t hash = hash_bytes(key, sizeof(*key));
	struct syscall_row *row = find_row(t, key, hash);

	if (row)
		return row;
	if (array_reserve(&t->rows, t->rows.n + 1) ||
	    hashmap_insert(&t->by_key, hash, (uint32_t)t->rows.n))
		return NULL;
	row = &t->rows.v[t->rows.n++];
	memset(row, 0, sizeof(*row));
	row->key = *key;
	row->fd = -1;
	return row;
}

/* The greatest value that came between two readings. */
static uint64_t max_since(const struct histogram *now, const struct histogram *before,
			  const struct histogram *difference)
{
	if (now->max > before->max)
		return now->max;
	for (uint32_t i = LOG_LINEAR_SLOTS; i-- > 0;) {
		uint64_t low, high;

		if (!difference->slots[i])
			continue;
		histogram_slot_range(i, &low, &high);
		return MIN(high == UINT64_MAX ? now->max : low + (high - low) / 2, now->max);
	}
	return 0;
}

static void subtract(struct syscall_row *row, const struct syscall_row *before)
{
	struct histogram now = row->h;

	row->calls -= before->calls;
	row->errors -= before->errors;
	row->total_ns -= before->total_ns;
	row->bytes -= before->bytes;
	row->io_calls -= before->io_calls;
	row->h.n -= before->h.n;
	row->h.sum -= before->h.sum;
	for (uint32_t i = 0; i < LOG_LINEAR_SLOTS; i++)
		row->h.slots[i] -= before->h.slots[i];
	row->h.max = max_since(&now, &before->h, &row->h);
}

static int rows_since(const struct syscall_table *now, const struct syscall_table *before,
		      struct syscall_table *ret)
{
	for (size_t i = 0; i < now->rows.n; i++) {
		const struct syscall_row *from = &now->rows.v[i], *old;
		struct syscall_row *row;

		old = find_row(before, &from->key, hash_bytes(&from->key, sizeof(from->key)));
		if (old && old->calls == from->calls && !from->in_flight)
			continue;
		row = syscall_table_row(ret, &from->key);
		if (!row)
			return -ENOMEM;
		*row = *from;
		if (old)
			subtract(row, old);
	}
	return 0;
}

static void losses_since(const struct syscall_losses *now, const struct syscall_losses *before,
			 struct syscall_losses *ret)
{
	*ret = (struct syscall_losses){
		.exits_without_enter = now->exits_without_enter - before->exits_without_enter,
		.enters_without_exit = now->enters_without_exit - before->enters_without_exit,
		.keys_dropped_calls = now->keys_dropped_calls - before->keys_dropped_calls,
		.details_dropped = now->details_dropped - before->details_dropped,
		.file_names_dropped = now->file_names_dropped - before->file_names_dropped,
		.threads_dropped = now->threads_dropped - before->threads_dropped,
		.stacks_dropped = now->stacks_dropped - before->stacks_dropped,
		.missed_by_recursion = now->missed_by_recursion - before->missed_by_recursion,
	};
}

int syscall_table_since(const struct syscall_table *now, const struct syscall_table *before,
			struct syscall_table *ret)
{
	int err = rows_since(now, before, ret);

	if (err)
		return err;
	ret->rest = now->rest;
	subtract(&ret->rest, &before->rest);
	ret->has_rest = ret->rest.calls != 0;
	ret->ended_threads = now->ended_threads - before->ended_threads;
	ret->started_threads = now->started_threads - before->started_threads;
	ret->from_before = now->from_before - before->from_before;
	ret->threads_ns = now->threads_ns - before->threads_ns;
	ret->elapsed_ns = now->elapsed_ns - before->elapsed_ns;
	losses_since(&now->losses, &before->losses, &ret->losses);
	for (size_t i = 0; i < now->threads.n && !err; i++)
		err = array_push(&ret->threads, now->threads.v[i]);
	return err;
}
