/* SPDX-License-Identifier: BSD-2-Clause */
#include <inspect/hashmap.h>

#define HASHMAP_MAX (1U << 31)
#define HASHMAP_SLOTS_MIN 16U

void hashmap_release(struct hashmap *m)
{
	free(m->slots);
	*m = (struct hashmap){0};
}

static void hashmap_place(struct hashmap_slot *slots, uint32_t mask, struct hashmap_slot item)
{
	uint32_t i = item.hash & mask;

	while (slots[i].index != HASHMAP_NONE)
		i = (i + 1) & mask;
	slots[i] = item;
}

static int hashmap_grow(struct hashmap *m)
{
	size_t slots_old = m->slots ? (size_t)m->mask + 1 : 0;
	size_t slots_new = slots_old ? slots_old * 2 : HASHMAP_SLOTS_MIN;
	struct hashmap_slot *slots = malloc(slots_new * sizeof(*slots));

	if (!slots)
		return -ENOMEM;
	memset(slots, 0xff, slots_new * sizeof(*slots));
	for (size_t i = 0; i < slots_old; i++)
		if (m->slots[i].index != HASHMAP_NONE)
			hashmap_place(slots, (uint32_t)(slots_new - 1), m->slots[i]);
	free(m->slots);
	m->slots = slots;
	m->mask = (uint32_t)(slots_new - 1);
	return 0;
}

int hashmap_insert(struct hashmap *m, uint64_t hash, uint32_t index)
{
	if (m->n >= HASHMAP_MAX || index == HASHMAP_NONE)
		return -E2BIG;
	/* At most 2/3 full: a free slot always ends the search. */
	if (!m->slots || ((uint64_t)m->n + 1) * 3 > ((uint64_t)m->mask + 1) * 2) {
		int err = hashmap_grow(m);

		if (err)
			return err;
	}
	hashmap_place(m->slots, m->mask,
		      (struct hashmap_slot){.hash = hashmap_fold_(hash), .index = index});
	m->n++;
	return 0;
}

static uint64_t load_u64(const unsigned char *p)
{
	uint64_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

static uint32_t load_u32(const unsigned char *p)
{
	uint32_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

/* Both halves of the 128-bit product: every bit of a and b reaches the low bits. */
static uint64_t multiply_fold(uint64_t a, uint64_t b)
{
	unsigned __int128 product = (unsigned __int128)a * b;

	return (uint64_t)product ^ (uint64_t)(product >> 64);
}

uint64_t hash_bytes(const void *v, size_t n)
{
	/* Odd 64-bit numbers with about half of their bits set (digits of sqrt 2, 3, 5). */
	static const uint64_t k1 = 0x6a09e667f3bcc909ULL, k2 = 0xbb67ae8584caa73bULL,
			      k3 = 0x3c6ef372fe94f82bULL;
	const unsigned char *p = v;
	/* The length, spread over all bits so that no few bytes of the text can undo it. */
	uint64_t h = k1 ^ n * k3, a = 0, b = 0;

	for (; n > 16; p += 16, n -= 16)
		h = multiply_fold(load_u64(p) ^ k2, load_u64(p + 8) ^ h);
	/* The last 1-16 bytes as two words that may overlap: no loop over single bytes. */
	if (n >= 8) {
		a = load_u64(p);
		b = load_u64(p + n - 8);
	} else if (n >= 4) {
		a = load_u32(p);
		b = load_u32(p + n - 4);
	} else if (n) {
		a = (uint64_t)p[0] << 16 | (uint64_t)p[n / 2] << 8 | p[n - 1];
	}
	return multiply_fold(multiply_fold(a ^ k2, b ^ h) ^ k3, k1);
}
