/* SPDX-License-Identifier: BSD-2-Clause */
/* What is open while the BPF sampler runs. open.c fills it, source.c reads from it. */
#ifndef PROBE_SAMPLER_H
#define PROBE_SAMPLER_H

#include "rings.h"

#include <inspect/bpf_sampler.h>
#include <sampler.abi.h>

struct bpf_sampler {
	struct source source;
	struct event_table events;
	const struct bpf_sampler_config *config; /* during opening only */
	struct sampler_setup setup;
	struct sampler *skeleton;
	struct probe_core core;
	struct probe_rings rings;

	/* open.c */
	ARRAY(int) event_fds;

	/* source.c */
	uint64_t *record;        /* room for one */
	uint64_t early_regs;     /* as in the config */
	uint8_t early_slots[64]; /* of them, from the lowest */
};

/* The sampled events, linked to the program, beside the rings; nothing counts yet. */
int probe_open(struct bpf_sampler *s, const struct host *h, note_list *notes, struct diag *d);
void probe_close(struct bpf_sampler *s);

/* Head of a converted sample, its chain with two marks, an early one's stack, and what follows. */
#define RECORD_WORDS (SAMPLER_CHAIN + sizeof(struct sampler_early) / 8 + 96)

/* A sample as the program sent it (sampler_record or sampler_early, size_bytes of it) as the record
 * that perf would have written, into s->record. Its size, or 0: the bytes are no such record. */
bool probe_is_early(const uint8_t *raw, size_t size_bytes);
size_t probe_convert(struct bpf_sampler *s, const void *raw, size_t size_bytes, uint64_t time_ns,
		     uint32_t cpu);

#endif
