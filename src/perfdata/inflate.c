/* SPDX-License-Identifier: BSD-2-Clause */
#include "reader.h"
#include <zstd.h>

/* More than the largest record, so that a record's first half never fills it. */
#define BUFFER_BYTES (256U << 10)

struct inflate {
	ZSTD_DStream *stream;
	uint64_t *buffer;
	size_t n; /* bytes of a record whose rest is still to come */
};

void inflate_free(struct inflate *z)
{
	if (!z)
		return;
	ZSTD_freeDStream(z->stream);
	free(z->buffer);
	free(z);
}

static int inflate_new(struct inflate **ret)
{
	struct inflate *z = calloc(1, sizeof(*z));

	if (!z)
		return -ENOMEM;
	z->stream = ZSTD_createDStream();
	z->buffer = malloc(BUFFER_BYTES);
	if (!z->stream || !z->buffer) {
		inflate_free(z);
		return -ENOMEM;
	}
	*ret = z;
	return 0;
}

bool inflate_is_whole(const struct inflate *z)
{
	return !z || !z->n;
}

/* Records that stand for bytes outside themselves have no place in compressed data. */
static bool is_plain(uint32_t type)
{
	return type != RECORD_COMPRESSED && type != RECORD_COMPRESSED2 &&
	       type != RECORD_HEADER_TRACING_DATA && type != RECORD_AUXTRACE;
}

static int inflate_emit(struct inflate *z, record_fn *fn, void *ctx)
{
	uint8_t *v = (uint8_t *)z->buffer;
	struct perf_event_header header;
	size_t at = 0;
	int err = 0;

	while (!err && z->n - at >= sizeof(header)) {
		memcpy(&header, v + at, sizeof(header));
		if (header.size < sizeof(header) || !is_plain(header.type))
			return INFLATE_DAMAGED;
		if (header.size > z->n - at)
			break;
		err = fn(ctx, (const struct perf_event_header *)(const void *)(v + at),
			 header.size);
		at += header.size;
	}
	z->n -= at;
	memmove(v, v + at, z->n);
	return err;
}

int inflate_feed(struct inflate **z, const uint8_t *v, size_t n, record_fn *fn, void *ctx)
{
	ZSTD_inBuffer in = {.src = v, .size = n};
	ZSTD_outBuffer out;
	int err = *z ? 0 : inflate_new(z);

	if (err)
		return err;
	do {
		out = (ZSTD_outBuffer){.dst = (*z)->buffer, .size = BUFFER_BYTES, .pos = (*z)->n};
		if (ZSTD_isError(ZSTD_decompressStream((*z)->stream, &out, &in)))
			return INFLATE_DAMAGED;
		(*z)->n = out.pos;
		err = inflate_emit(*z, fn, ctx);
		/* A full buffer means that more may wait inside the decoder. */
	} while (!err && (in.pos < in.size || out.pos == out.size));
	return err;
}
