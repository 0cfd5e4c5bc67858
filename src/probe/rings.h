/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The rings that programs write to (bpf/lib/output.bpf.h), one for each CPU. They also carry the
 * kernel's MMAP2, COMM, FORK, EXIT and KSYMBOL records, in one order with what programs send.
 */
#ifndef PROBE_RINGS_H
#define PROBE_RINGS_H

#include "core.h"

#include <inspect/ring.h>
#include <inspect/source.h>

/* A CPU: the event that BPF writes to, with its ring. */
struct probe_slot {
	int cpu;
	int output_fd;
	struct ring ring;
	uint64_t id;        /* of its event, in records */
	uint64_t lost_told; /* what programs could not write, as told so far */
};

struct probe_rings {
	ARRAY(struct probe_slot) slots;
	int outputs_fd, failed_fd; /* the object's */
	bool counts_lost;          /* PERF_FORMAT_LOST */
	uint64_t *failed;          /* room for the program's counts, by CPU */
	uint64_t side_lost;        /* records about processes that the rings did not take */
	uint32_t n_possible;       /* CPUs */
};

/* The fields of side-band records' trailers, and of what the rings' own events sample. */
#define PROBE_COMMON_FIELDS                                                                        \
	(PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU)

/* perf_event_open's owner and flags for the target. */
int probe_rings_owner(const struct probe_target *t, unsigned long *ret_flags);

/* Opens a ring for each CPU of the core's target, whose object is loaded. ring_pages 0: default. A
 * smaller ring than wanted becomes a note. */
int probe_rings_open(struct probe_rings *r, const struct probe_core *c, unsigned ring_pages,
		     const struct host *h, note_list *notes, struct diag *d);
void probe_rings_release(struct probe_rings *r);
size_t probe_rings_fds(const struct probe_rings *r, struct pollfd *v, size_t max);

/* What a program has sent: valid during the call, at no good alignment. */
struct probe_message {
	const uint8_t *raw;
	size_t raw_bytes;
	uint64_t time_ns;
	uint32_t cpu;
	const struct perf_event_header *record; /* around it */
	uint64_t id;                            /* of the event it was sampled by */
};
typedef int probe_message_fn(void *ctx, const struct probe_message *m);

/* Reads all rings: messages go to `message`, records about the target's processes to `emit`. 0 or
 * -errno. */
int probe_rings_read(struct probe_rings *r, struct probe_core *c, probe_message_fn *message,
		     void *message_ctx, record_fn *emit, void *ctx);

/* Counts for each CPU what programs could not send since the last time: as LOST records of the
 * event with that id. */
int probe_rings_losses(struct probe_rings *r, uint64_t id, record_fn *emit, void *ctx);
/* At the end: what else the rings did not take, into side_lost. */
void probe_rings_side_losses(struct probe_rings *r);

#endif
