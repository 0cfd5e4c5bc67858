/* SPDX-License-Identifier: BSD-2-Clause */
/* What the files of the stream share. */
#ifndef PROBE_STREAM_H
#define PROBE_STREAM_H

#include "core.h"

#include <inspect/hashmap.h>
#include <inspect/intern.h>
#include <inspect/strbuf.h>
#include <inspect/syscall_stream.h>
#include <stream.abi.h>

struct ring_buffer;
struct stream;

/* The files that frames lie in. */
struct stream_files {
	struct intern paths;
	struct hashmap by_inode;
	ARRAY(struct stream_mapped) v;
};

struct stream_mapped {
	uint64_t device, inode;
	uint32_t path; /* in paths */
};

/* 0 or -ENOMEM. */
int stream_files_add(struct stream_files *f, const void *record, size_t n_bytes);
/* NULL: not told, or an error when it was. */
const char *stream_files_path(const struct stream_files *f, uint64_t device, uint64_t inode);
void stream_files_release(struct stream_files *f);

/* Whether it is one of those, no call. */
bool stream_is_file(const void *record, size_t n_bytes);

struct syscall_stream {
	struct probe_core core;
	struct stream *skeleton;
	struct ring_buffer *ring;
	enum syscall_attach attached;

	/* while reading */
	syscall_event_fn *fn;
	void *ctx;
	int n, err;
	struct syscall_event event;
	struct strbuf names; /* of the event's descriptors */
	struct stream_files files;
};

/* What is taken of each call's arguments. */
void stream_plan(enum syscall_abi abi, const struct syscall_info *info, struct stream_call *ret);

/* A record of the program as an event, borrowed from both. 0, -EBADMSG or -ENOMEM. */
int stream_decode(const void *record, size_t n_bytes, const struct stream_files *files,
		  struct strbuf *names, struct syscall_event *ret, uint64_t *ret_lost);

#endif
