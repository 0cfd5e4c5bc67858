/* SPDX-License-Identifier: BSD-2-Clause */
/* Puts records together byte by byte. */
#ifndef RECORD_BUILDER_H
#define RECORD_BUILDER_H

#include <inspect/event.h>

struct record_builder {
	union {
		struct perf_event_header header;
		uint8_t v[65536];
		uint64_t words[8192]; /* for the alignment */
	};
	size_t n;
};

static inline void record_begin(struct record_builder *b, uint32_t type, uint16_t misc)
{
	memset(b, 0, sizeof(*b));
	b->header = (struct perf_event_header){.type = type, .misc = misc};
	b->n = sizeof(b->header);
}

static inline void record_put(struct record_builder *b, const void *v, size_t n)
{
	memcpy(b->v + b->n, v, n);
	b->n += n;
	b->header.size = (uint16_t)b->n;
}

static inline void record_u64(struct record_builder *b, uint64_t v)
{
	record_put(b, &v, sizeof(v));
}

static inline void record_u32(struct record_builder *b, uint32_t v)
{
	record_put(b, &v, sizeof(v));
}

/* NUL-terminated and padded to 8. */
static inline void record_string(struct record_builder *b, const char *s)
{
	static const char zeros[8];

	record_put(b, s, strlen(s) + 1);
	record_put(b, zeros, -b->n % 8);
}

#endif
