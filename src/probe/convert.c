/* SPDX-License-Identifier: BSD-2-Clause */
#include "sampler.h"

/* By the sample_type that the recording states: IDENTIFIER, IP, TID, TIME, CPU, PERIOD, with stacks
 * CALLCHAIN, and where there are early samples REGS_USER and STACK_USER. */

struct writer {
	uint64_t *at;
};

static void put(struct writer *w, uint64_t word)
{
	*w->at++ = word;
}

static void put_pair(struct writer *w, uint32_t low, uint32_t high)
{
	uint32_t pair[2] = {low, high};

	memcpy(w->at++, pair, sizeof(pair));
}

static void put_chain(struct writer *w, const struct sampler_record *r)
{
	uint64_t n = r->n_kernel + r->n_user + !!r->n_kernel + !!r->n_user;

	put(w, n);
	if (r->n_kernel)
		put(w, (uint64_t)PERF_CONTEXT_KERNEL);
	memcpy(w->at, r->chain, r->n_kernel * sizeof(*r->chain));
	w->at += r->n_kernel;
	if (r->n_user)
		put(w, (uint64_t)PERF_CONTEXT_USER);
	memcpy(w->at, r->chain + r->n_kernel, r->n_user * sizeof(*r->chain));
	w->at += r->n_user;
}

/* The bytes lie where the ring has them, at no good alignment. */
static bool read_record(const uint8_t *raw, size_t size_bytes, struct sampler_record *ret)
{
	size_t n, at = SAMPLER_HEAD_BYTES;

	if (size_bytes < SAMPLER_HEAD_BYTES)
		return false;
	memcpy(ret, raw, SAMPLER_HEAD_BYTES);
	if (ret->early) {
		at = offsetof(struct sampler_early, kernel);
		ret->n_user = 0;
		if (size_bytes < offsetof(struct sampler_early, stack) ||
		    ret->n_kernel > SAMPLER_KERNEL_FRAMES)
			return false;
	}
	n = (size_t)ret->n_kernel + ret->n_user;
	if (n > SAMPLER_CHAIN || n * 8 > size_bytes - at)
		return false;
	memcpy(ret->chain, raw + at, n * 8);
	return true;
}

bool probe_is_early(const uint8_t *raw, size_t size_bytes)
{
	return size_bytes >= offsetof(struct sampler_early, stack) &&
	       raw[offsetof(struct sampler_record, early)];
}

static void put_registers(struct writer *w, const struct bpf_sampler *s, const uint8_t *raw)
{
	uint64_t v[1 + UNWIND_REGS];

	memcpy(v, raw + offsetof(struct sampler_early, pc), sizeof(v));
	put(w, PERF_SAMPLE_REGS_ABI_64);
	for (int i = 0; i < __builtin_popcountll(s->early_regs); i++)
		put(w, s->early_slots[i] < UNWIND_REGS ? v[1 + s->early_slots[i]] : v[0]);
}

static void put_stack(struct writer *w, const uint8_t *raw, size_t size_bytes)
{
	size_t at = offsetof(struct sampler_early, stack);
	size_t n = MIN(size_bytes, sizeof(struct sampler_early)) - at;

	n = n / SAMPLER_STACK_PIECE * SAMPLER_STACK_PIECE; /* the kernel pads */
	put(w, n);
	if (!n)
		return;
	memcpy(w->at, raw + at, n);
	w->at += n / 8;
	put(w, n);
}

size_t probe_convert(struct bpf_sampler *s, const void *raw, size_t size_bytes, uint64_t time_ns,
		     uint32_t cpu)
{
	struct sampler_record r;
	struct writer w = {s->record + 1};
	struct perf_event_header header = {.type = PERF_RECORD_SAMPLE};

	if (!read_record(raw, size_bytes, &r) || (r.early && !s->early_regs))
		return 0;
	put(&w, r.event_id);
	put(&w, r.ip);
	put_pair(&w, r.pid, r.tid);
	put(&w, time_ns);
	put_pair(&w, cpu, 0);
	put(&w, r.period);
	if (s->setup.with_chain)
		put_chain(&w, &r);
	if (r.early) {
		put_registers(&w, s, raw);
		put_stack(&w, raw, size_bytes);
	} else if (s->early_regs) {
		put(&w, PERF_SAMPLE_REGS_ABI_NONE);
		put(&w, 0);
	}
	header.misc = r.in_user ? PERF_RECORD_MISC_USER : PERF_RECORD_MISC_KERNEL;
	if (r.stop < UNWIND_STOPS && !r.early)
		header.misc |= sample_misc_of_stop(r.stop, r.guessed);
	header.size = (uint16_t)((uint8_t *)w.at - (uint8_t *)s->record);
	memcpy(s->record, &header, sizeof(header));
	return header.size;
}
