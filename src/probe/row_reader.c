/* SPDX-License-Identifier: BSD-2-Clause */
#include "row_reader.h"

#include <bpf/bpf.h>

enum { KEYS_MAX = 1 << 20 }; /* more than any of the maps has */

void row_reader_release(struct row_reader *r)
{
	array_release(&r->seen);
	hashmap_release(&r->by_key);
}

static struct read_slots *seen_of(struct row_reader *r, const struct syscalls_key *key)
{
	uint64_t hash = hash_bytes(key, sizeof(*key));
	struct read_slots *s;
	uint32_t at, i;

	hashmap_each_candidate(&r->by_key, hash, at, i)
		if (!memcmp(&r->seen.v[i].key, key, sizeof(*key)))
			return &r->seen.v[i];
	if (array_reserve(&r->seen, r->seen.n + 1) ||
	    hashmap_insert(&r->by_key, hash, (uint32_t)r->seen.n))
		return NULL;
	s = &r->seen.v[r->seen.n++];
	memset(s, 0, sizeof(*s));
	s->key = *key;
	return s;
}

/* The sums go on where the kernel's 32 bits wrap. */
static int add_slots(struct row_reader *r, const struct syscalls_key *key, const uint32_t *slots,
		     struct histogram *h)
{
	struct read_slots *seen = seen_of(r, key);

	if (!seen)
		return -ENOMEM;
	for (size_t i = 0; i < LOG_LINEAR_SLOTS; i++) {
		seen->sums[i] += (uint32_t)(slots[i] - seen->slots[i]);
		seen->slots[i] = slots[i];
		h->slots[i] = seen->sums[i];
		h->n += seen->sums[i];
	}
	return 0;
}

int row_reader_take(struct row_reader *r, const struct syscalls_key *key,
		    const struct syscalls_row *from, struct syscall_row *row)
{
	row->calls = from->calls;
	row->errors = from->errors;
	row->total_ns = from->total_ns;
	row->bytes = from->bytes;
	row->io_calls = from->io;
	row->h.sum = from->total_ns;
	row->h.max = from->max;
	row->pid = from->pid;
	row->own_tid = from->own_tid;
	row->own_pid = from->own_pid;
	row->fd = from->fd;
	memcpy(row->comm, from->comm, sizeof(from->comm));
	return add_slots(r, key, from->slots, &row->h);
}

/* Rows are never deleted: no key vanishes under the walk. */
int row_reader_map(struct row_reader *r, int map_fd, struct syscall_table *t)
{
	struct syscalls_key key, *before = NULL;
	struct syscalls_row value;
	int err = 0;

	for (size_t i = 0; i < KEYS_MAX && !err; i++) {
		struct syscall_row *row;

		if (bpf_map_get_next_key(map_fd, before, &key))
			return errno == ENOENT ? 0 : -errno;
		before = &key;
		if (bpf_map_lookup_elem(map_fd, &key, &value))
			continue;
		row = syscall_table_row(t, &key);
		err = row ? row_reader_take(r, &key, &value, row) : -ENOMEM;
	}
	return err;
}
