/* SPDX-License-Identifier: BSD-2-Clause */
/* Samples with registers and a stack copy on their way to chains. */
#ifndef CAPTURE_UNWINDING_H
#define CAPTURE_UNWINDING_H

#include <inspect/capture.h>
#include <inspect/unwind.h>

enum unwind_arch unwinding_host_arch(void);

/* From events that sample registers and stacks to those that their rewritten samples are of. */
int unwinding_events(const struct event_table *events, struct event_table *ret);

struct unwinder;
int unwinder_new(const struct unwinding *config, struct process_table *processes,
		 struct unwinder **ret);
void unwinder_free(struct unwinder *u);

/* Whether s has what unwinding takes, and no user chain yet. */
bool unwinder_wants(const struct sample *s);

/* The user part of a sample's stack, leaf first; stop and guessed of s are set. Borrowed until the
 * next call. */
size_t unwinder_chain(struct unwinder *u, struct sample *s, const uint64_t **ret_chain);

/*
 * The record of a sample with the chain in place of registers and stack copy: for a file whose attr
 * is that of unwinding_events. Borrowed until the next call. 0, or -EBADMSG when it is too large.
 */
int unwinder_rewrite(struct unwinder *u, const struct perf_event_header *record,
		     const struct sample *s, const uint64_t *chain, size_t n,
		     const struct perf_event_header **ret);

#endif
