/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Waits as records that perf reads: samples whose innermost frames are labels. Those are addresses
 * that no kernel code has, named by KSYMBOL records.
 */
#ifndef CAPTURE_WAIT_RECORDS_H
#define CAPTURE_WAIT_RECORDS_H

#include <inspect/event.h>
#include <inspect/waits.h>

enum {
	/* Head, a chain and those of all links with their marks and labels, and what follows. */
	WAIT_RECORD_WORDS = (1 + OFFCPU_LINKS) * (STACK_CHAIN + 8) + 32,
};
_Static_assert(WAIT_RECORD_WORDS * sizeof(uint64_t) <= UINT16_MAX, "a record's size has 16 bits");

#define WAIT_RECORD_FIELDS                                                                         \
	(PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME |            \
	 PERF_SAMPLE_CPU | PERF_SAMPLE_PERIOD | PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_RAW)

/* Who ended a wait, or that thread's last one. */
struct wait_link {
	uint32_t label;
	const struct stack_record *stack; /* where it did; NULL: not known */
};

struct wait_sample {
	uint64_t id; /* of the event */
	uint64_t time_ns, weight_ns;
	uint32_t pid, tid, label;
	const struct stack_record *stack;     /* NULL: none */
	struct wait_link links[OFFCPU_LINKS]; /* above the label */
	size_t n_links;
	struct sample_waits waits;
};

/* Into WAIT_RECORD_WORDS words; the header is the record's. */
const struct perf_event_header *wait_record_sample(const struct wait_sample *s, uint64_t *record);

/* "[waiting: futex lock]", "[runnable]": the KSYMBOL record that names label number `label`, into
 * the same room. */
const struct perf_event_header *wait_record_label(const struct wait_label *l, uint32_t label,
						  uint64_t time_ns, uint64_t id, uint64_t *record);

#endif
