/* SPDX-License-Identifier: BSD-2-Clause */
/* Every system call of a target as an event, taken by a BPF program. Filters run in the kernel. */
#ifndef INSPECT_SYSCALL_STREAM_H
#define INSPECT_SYSCALL_STREAM_H

#include <inspect/diag.h>
#include <inspect/host.h>
#include <inspect/note_list.h>
#include <inspect/probe_target.h>
#include <inspect/syscall_attach.h>
#include <inspect/syscall_event.h>

#define SYSCALL_STRING_BYTES_MAX 1024

struct syscall_stream;

struct syscall_stream_config {
	struct probe_target target;
	const struct syscall_set *only; /* NULL: all calls */
	uint64_t min_latency_ns;
	bool failed_only;
	bool with_stack;       /* user stacks: target.rows is given */
	uint32_t string_bytes; /* of buffers; paths are whole. At most SYSCALL_STRING_BYTES_MAX */
};

struct syscall_stream_counts {
	uint64_t sent;
	uint64_t lost_ring;   /* calls for which the ring had no room */
	uint64_t lost_memory; /* calls of threads for which the kernel had no memory */
	uint64_t no_exit;     /* calls that were entered and not seen to end */
	uint64_t recursions;  /* calls that the kernel did not give to the programs */
};

/* Loads and attaches; nothing is taken before the start. 0, or -errno with d explained. */
int syscall_stream_new(const struct syscall_stream_config *config, const struct host *h,
		       struct syscall_stream **ret, struct diag *d);
void syscall_stream_free(struct syscall_stream *s);
static inline void syscall_stream_freep(struct syscall_stream **s)
{
	syscall_stream_free(*s);
}

int syscall_stream_start(struct syscall_stream *s); /* 0 or -errno */
/* Ends it: calls in flight are sent, and nothing else is after that. */
int syscall_stream_stop(struct syscall_stream *s);

/* Readable when there are events. */
int syscall_stream_fd(const struct syscall_stream *s);

/* Borrowed during the call. lost: how many calls were lost before this one, in all. Not 0: ends the
 * reading with that error. */
typedef int syscall_event_fn(void *ctx, const struct syscall_event *e, uint64_t lost);

/* Hands on what is there, at most some 10,000 events. How many, or -errno. */
int syscall_stream_read(struct syscall_stream *s, syscall_event_fn *fn, void *ctx);

bool syscall_stream_alive(const struct syscall_stream *s);
enum syscall_attach syscall_stream_attached(const struct syscall_stream *s);
int syscall_stream_counts(const struct syscall_stream *s, struct syscall_stream_counts *ret);
int syscall_stream_notes(const struct syscall_stream *s, note_list *notes);

#endif
