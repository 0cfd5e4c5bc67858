/* SPDX-License-Identifier: BSD-2-Clause */
/* What the files of the stream share. */
#ifndef PROBE_STREAM_H
#define PROBE_STREAM_H

#include "core.h"
#include "own_frames.h"

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

/* STREAM_FILE, STREAM_STACK, or of a call enum stream_end. */
uint8_t stream_record_kind(const void *record, size_t n_bytes);

/* Those whose calls are yet to come. */
struct stream_stacks {
	struct stream_stack *v;
	size_t n;
};

/* 0 or -ENOMEM. */
int stream_stacks_keep(struct stream_stacks *s, const void *record, size_t n_bytes);
/* That of a call that was decoded, if there is one. */
void stream_stacks_take(const struct stream_stacks *s, const struct stream_files *files,
			const struct own_frames *own, struct syscall_event *e);
void stream_stacks_release(struct stream_stacks *s);

struct syscall_stream {
	struct probe_core core;
	struct stream *skeleton;
	struct ring_buffer *ring;
	enum syscall_attach attached;
	bool no_functions; /* to attach to */

	/* while reading */
	syscall_event_fn *fn;
	void *ctx;
	int n, err;
	struct syscall_event event;
	struct strbuf names; /* of the event's descriptors */
	struct stream_files files;
	struct stream_stacks stacks;
	struct own_frames own; /* of the kernel's stacks */
};

/* What is taken of each call's arguments. */
void stream_plan(enum syscall_abi abi, const struct syscall_info *info, struct stream_call *ret);

/* A record of the program as an event without a stack, borrowed from both. 0, -EBADMSG or
 * -ENOMEM. */
int stream_decode(const void *record, size_t n_bytes, struct strbuf *names,
		  struct syscall_event *ret, uint64_t *ret_lost);

#endif
