/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * From a key to the index of an element that the caller keeps in an array of his own. The map
 * stores hashes and indices only; the caller compares keys. All interning is built on this.
 *
 *	uint32_t at, i;
 *	hashmap_each_candidate (&m, hash, at, i)
 *		if (same(elements[i], key))
 *			return i;
 *	... push the element ...
 *	hashmap_insert(&m, hash, index);
 */
#ifndef INSPECT_HASHMAP_H
#define INSPECT_HASHMAP_H

#include <inspect/base.h>

#define HASHMAP_NONE UINT32_MAX

struct hashmap_slot {
	uint32_t hash;
	uint32_t index; /* HASHMAP_NONE: free */
};

struct hashmap {
	struct hashmap_slot *slots;
	uint32_t mask; /* slots - 1 (a power of two), or 0 before the first insertion */
	uint32_t n;
};

void hashmap_release(struct hashmap *m);

/* Adds an index under a hash without looking for duplicates. 0, -ENOMEM, or -E2BIG at 2^31. */
int hashmap_insert(struct hashmap *m, uint64_t hash, uint32_t index);

static inline uint32_t hashmap_fold_(uint64_t hash)
{
	return (uint32_t)(hash ^ hash >> 32);
}

/* The next index stored under `hash` from slot *at on, or HASHMAP_NONE. */
static inline uint32_t hashmap_next_(const struct hashmap *m, uint64_t hash, uint32_t *at)
{
	uint32_t h = hashmap_fold_(hash);

	if (!m->slots)
		return HASHMAP_NONE;
	for (;; (*at)++) {
		const struct hashmap_slot *slot = &m->slots[(h + *at) & m->mask];

		if (slot->index == HASHMAP_NONE)
			return HASHMAP_NONE;
		if (slot->hash == h) {
			(*at)++;
			return slot->index;
		}
	}
}

#define hashmap_each_candidate(m, hash, at, i)                                                     \
	for ((at) = 0; ((i) = hashmap_next_((m), (hash), &(at))) != HASHMAP_NONE;)

/* Mixes 64 bits well enough for the low bits to be used (splitmix64's finaliser). */
static inline uint64_t hash_u64(uint64_t x)
{
	x ^= x >> 30;
	x *= 0xbf58476d1ce4e5b9ULL;
	x ^= x >> 27;
	x *= 0x94d049bb133111ebULL;
	return x ^ x >> 31;
}

/* Hash of bytes; fast on short names. Not stable across builds: never written to a file. */
uint64_t hash_bytes(const void *v, size_t n);

#endif
