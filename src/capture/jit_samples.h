/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Samples in code that a JIT compiler with a jitdump has made. What lay at an address is known by
 * time, and only when the dump is read: compilers write it in large parts, the last at their exit.
 * So these samples wait, as stacks of a trie of their own, and enter the profile at the end.
 */
#ifndef JIT_SAMPLES_H
#define JIT_SAMPLES_H

#include <inspect/profile.h>
#include <inspect/saved_names.h>

struct jit_samples;

int jit_samples_new(struct profile *profile, struct jit_samples **ret); /* 0 or -ENOMEM */
void jit_samples_free(struct jit_samples *j);

/* A mapping appeared. live: a dump is opened at once, as it may be gone at the end. 0 or -ENOMEM */
int jit_samples_mapped(struct jit_samples *j, uint32_t dso, bool live);

/* From now on pid is another program: what the dumps of the one before said no longer counts. 0 or
 * -ENOMEM */
int jit_samples_program_ends(struct jit_samples *j, uint32_t pid, uint64_t time_ns);

/* Whether a sample with these frames has to wait. */
bool jit_samples_must_wait(const struct jit_samples *j, const struct frame *frames, size_t n);

struct jit_sample {
	uint64_t time_ns, weight, count;
	uint32_t site; /* struct sample_waits */
	uint32_t pid, thread, event;
	uint32_t stack; /* set by jit_samples_add */
	bool ended;     /* the unwinder knows how the stack ends */
};

/* frames: leaf first. 0 or -ENOMEM. */
int jit_samples_add(struct jit_samples *j, const struct jit_sample *s, const struct frame *frames,
		    size_t n);

struct jit_sources {
	const struct saved_names *saved; /* where it has codes, the dumps are not read; or NULL */
	bool may_open;                   /* dumps that are not open yet: this is their machine */
};

/* Receives the stack that a site (struct sample_waits) has in the profile. */
typedef void site_fn(void *ctx, uint32_t site, uint32_t stack);

/* Adds all samples to the profile; found may be NULL. 0 or -ENOMEM. */
int jit_samples_finish(struct jit_samples *j, const struct jit_sources *sources, site_fn *found,
		       void *ctx);

#endif
