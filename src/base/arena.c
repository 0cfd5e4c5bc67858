/* SPDX-License-Identifier: BSD-2-Clause */
#include <inspect/arena.h>

#define CHUNK_BYTES_MIN 4096U
#define CHUNK_BYTES_MAX (1U << 20)

struct arena_chunk {
	struct arena_chunk *next;
	size_t size_bytes, used_bytes; /* of data */
	_Alignas(16) char data[];
};

static void arena_free_chunks(struct arena_chunk *chunk)
{
	while (chunk) {
		struct arena_chunk *next = chunk->next;

		free(chunk);
		chunk = next;
	}
}

void arena_release(struct arena *a)
{
	arena_free_chunks(a->chunks);
	*a = (struct arena){0};
}

void arena_clear(struct arena *a)
{
	a->used_bytes = 0;
	if (!a->chunks)
		return;
	arena_free_chunks(a->chunks->next);
	a->chunks->next = NULL;
	a->chunks->used_bytes = 0;
}

static struct arena_chunk *arena_chunk_new(size_t size_bytes)
{
	struct arena_chunk *chunk = malloc(sizeof(*chunk) + size_bytes);

	if (!chunk)
		return NULL;
	chunk->next = NULL;
	chunk->size_bytes = size_bytes;
	chunk->used_bytes = 0;
	return chunk;
}

/* A chunk with room for size_bytes, linked in. */
static struct arena_chunk *arena_add_chunk(struct arena *a, size_t size_bytes)
{
	struct arena_chunk *head = a->chunks;
	size_t usual = head ? MIN(head->size_bytes * 2, (size_t)CHUNK_BYTES_MAX) : CHUNK_BYTES_MIN;
	struct arena_chunk *chunk = arena_chunk_new(MAX(usual, size_bytes));

	if (!chunk)
		return NULL;
	if (head && size_bytes > usual) {
		/* Full at once: the newest chunk stays the one that is filled. */
		chunk->next = head->next;
		head->next = chunk;
	} else {
		chunk->next = head;
		a->chunks = chunk;
	}
	return chunk;
}

void *arena_alloc(struct arena *a, size_t size_bytes)
{
	struct arena_chunk *chunk = a->chunks;
	void *block;

	if (size_bytes > SIZE_MAX / 2)
		return NULL;
	size_bytes = ALIGN_UP(MAX(size_bytes, (size_t)1), (size_t)16);
	if (!chunk || chunk->size_bytes - chunk->used_bytes < size_bytes) {
		chunk = arena_add_chunk(a, size_bytes);
		if (!chunk)
			return NULL;
	}
	block = chunk->data + chunk->used_bytes;
	chunk->used_bytes += size_bytes;
	a->used_bytes += size_bytes;
	return block;
}

char *arena_strndup(struct arena *a, const char *s, size_t n)
{
	char *copy = n < SIZE_MAX ? arena_alloc(a, n + 1) : NULL;

	if (!copy)
		return NULL;
	if (n)
		memcpy(copy, s, n);
	copy[n] = '\0';
	return copy;
}
