/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef PERFDATA_READER_H
#define PERFDATA_READER_H

#include "format.h"
#include <inspect/arena.h>

/* Bytes in file order: a whole file in memory, or a window on a stream. */
struct input {
	const uint8_t *file; /* NULL: a stream */
	size_t file_bytes;
	bool mapped; /* else malloc'ed */
	int fd;      /* of a stream */
	uint8_t *window;
	size_t window_cap, from, to; /* unread: window[from … to) */
	uint64_t pos, end;           /* offsets in the file; a stream has no known end */
	int err;                     /* of a failed read */
};

/* A stream that begins with bytes which were read already. */
int input_open_stream(struct input *in, int fd, const void *head, size_t head_bytes);
/* Turns a stream into a file in memory by reading it to its end. */
int input_slurp(struct input *in);
int input_map(struct input *in, int fd, size_t file_bytes);
void input_release(struct input *in);
/* The next n bytes (64 KiB at most), not consumed; NULL: the end comes first, or in->err. */
const uint8_t *input_need(struct input *in, size_t n);
void input_advance(struct input *in, size_t n); /* over bytes that were needed before */
bool input_skip(struct input *in, uint64_t n);  /* false: the end comes first */

#define INPUT_NEED_MAX (64U << 10)

/* zstd over many records: one stream, whose records may span two pieces. */
struct inflate;
#define INFLATE_DAMAGED 1
void inflate_free(struct inflate *z);
/* Hands on every record that has become whole: 0, INFLATE_DAMAGED, -ENOMEM, or what fn returned.
 * *z is made when it is NULL. */
int inflate_feed(struct inflate **z, const uint8_t *v, size_t n, record_fn *fn, void *ctx);
/* True when nothing waits for its second half. */
bool inflate_is_whole(const struct inflate *z);

struct perfdata_reader {
	char *name; /* for messages */
	int own_fd;
	bool pipe_mode;
	bool stable;
	struct input in;
	struct file_section data; /* as stated in the header */
	bool open_ended;          /* the recorder never got to state the size */
	struct event_table events;
	struct perfdata_info info;
	struct inflate *inflate;
	struct arena kept;        /* copies of records that could not be handed on where they lay */
	uint64_t *scratch;        /* such a copy when records need not last */
	uint64_t record_off;      /* in the file: where the record begins that is being read */
	uint64_t records, rounds; /* handed on */
	unsigned group_reads;     /* events counted with the samples of another one (:S) */
};

void reader_set_damage(struct perfdata_reader *r, const char *fmt, ...) PRINTF(2, 3);
void reader_set_newer(struct perfdata_reader *r, const char *fmt, ...) PRINTF(2, 3);

/* An attr of n bytes as some recorder knew it, into ours. -EBADMSG when too short. */
int reader_attr(struct perfdata_reader *r, const uint8_t *v, size_t n, struct perf_event_attr *ret);

/* The features listed after the data; what is missing or damaged is said in info->damage. */
int reader_features(struct perfdata_reader *r, const struct file_header *h);
/* One feature. 0, -EBADMSG, or -ENOMEM; features of no use here are 0. */
int reader_feature(struct perfdata_reader *r, unsigned feature, const uint8_t *v, size_t n);
/* One build-id entry with its header, of n bytes. */
int reader_build_id(struct perfdata_reader *r, const uint8_t *v, size_t n);

#endif
