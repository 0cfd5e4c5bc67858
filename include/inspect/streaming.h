/* SPDX-License-Identifier: BSD-2-Clause */
/* One stream of system calls: target, child, and the loop that hands on events as they come. */
#ifndef INSPECT_STREAMING_H
#define INSPECT_STREAMING_H

#include <inspect/capture.h>
#include <inspect/syscall_stream.h>

struct streaming_config {
	const struct target *target;
	const struct host *host;
	const struct syscall_set *only; /* NULL: all calls */
	uint64_t min_latency_ns;
	bool failed_only;
	uint32_t string_bytes;
	bool with_stack;
	uint64_t duration_ns, delay_ns; /* 0: none */
	bool stdout_taken;              /* what CMD writes to stdout goes to stderr */
	syscall_event_fn *event;
	int (*idle)(void *ctx); /* nothing more has come yet: output may go out. 0 or -errno */
	void *ctx;
};

struct streaming {
	struct syscall_stream_counts counts; /* of the whole */
	enum syscall_attach attached;
	uint64_t end_ns;
	struct watched watched;
	bool canceled; /* by an event that returned -ECANCELED: counts are not read */
};

/* 0; on failure CMD has not run, or was ended. An event that returns -ECANCELED ends it quietly.
 * *ret must be released in all cases. */
int streaming_run(const struct streaming_config *c, note_list *notes, struct streaming *ret,
		  struct diag *d);
void streaming_release(struct streaming *s);

#endif
