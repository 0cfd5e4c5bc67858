/* SPDX-License-Identifier: BSD-2-Clause */
#include "wait_records.h"

/* Where labels lie: above the kernel's code, where modules come last (arch/x86/include/asm/
 * pgtable_64_types.h), 16 bytes each. */
#define LABEL_BASE_VA 0xffffffffe0000000ULL
enum { LABEL_BYTES = 16, LABEL_TEXT_MAX = 255 };

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

static uint64_t label_va(uint32_t label)
{
	return LABEL_BASE_VA + (uint64_t)label * LABEL_BYTES;
}

/* Marks begin a context anew, so that what follows them is no return address. */
static void put_frames(struct writer *w, uint64_t mark, const __u64 *frames, size_t n)
{
	if (!n)
		return;
	put(w, mark);
	memcpy(w->at, frames, n * sizeof(*frames));
	w->at += n;
}

static void put_label(struct writer *w, uint32_t label)
{
	__u64 va = label_va(label);

	put_frames(w, (uint64_t)PERF_CONTEXT_KERNEL, &va, 1);
}

/* The other way round, outermost first. Readers take one off each address but the first behind a
 * mark, as off return addresses: here the last is none, and the first is. */
static void put_reversed(struct writer *w, uint64_t mark, const __u64 *frames, size_t n)
{
	if (!n)
		return;
	put(w, mark);
	for (size_t i = n; i > 0; i--) {
		uint64_t ip = frames[i - 1];

		put(w, n == 1 ? ip : i == n ? ip - 1 : i == 1 ? ip + 1 : ip);
	}
}

/* With its stack upside down; user code of another process has no names in this one. */
static void put_link(struct writer *w, const struct wait_link *l, uint32_t pid)
{
	const struct stack_record *k = l->stack;

	if (k && k->pid == pid)
		put_reversed(w, (uint64_t)PERF_CONTEXT_USER, k->chain + k->n_kernel, k->n_user);
	if (k)
		put_reversed(w, (uint64_t)PERF_CONTEXT_KERNEL, k->chain, k->n_kernel);
	put_label(w, l->label);
}

/* Leaf first: who woke whom, what was waited for, and the stack there. */
static void put_chain(struct writer *w, const struct wait_sample *s)
{
	const struct stack_record *k = s->stack;
	uint64_t *n = w->at++;

	for (size_t i = s->n_links; i > 0; i--)
		put_link(w, &s->links[i - 1], s->pid);
	put_label(w, s->label);
	if (k)
		put_frames(w, (uint64_t)PERF_CONTEXT_KERNEL, k->chain, k->n_kernel);
	if (k)
		put_frames(w, (uint64_t)PERF_CONTEXT_USER, k->chain + k->n_kernel, k->n_user);
	*n = (uint64_t)(w->at - n) - 1;
}

/* The payload of PERF_SAMPLE_RAW: its size, and what makes the next word aligned. */
static void put_raw(struct writer *w, const struct sample_waits *v)
{
	uint32_t size_bytes = sizeof(*v) + sizeof(uint32_t);
	uint8_t *at = (uint8_t *)w->at;

	memcpy(at, &size_bytes, sizeof(size_bytes));
	memcpy(at + sizeof(size_bytes), v, sizeof(*v));
	memset(at + sizeof(size_bytes) + sizeof(*v), 0, sizeof(uint32_t));
	w->at += (sizeof(size_bytes) + size_bytes) / sizeof(*w->at);
}

const struct perf_event_header *wait_record_sample(const struct wait_sample *s, uint64_t *record)
{
	struct perf_event_header header = {.type = PERF_RECORD_SAMPLE,
					   .misc = PERF_RECORD_MISC_KERNEL};
	struct writer w = {record + 1};

	put(&w, s->id);
	put(&w, label_va(s->label));
	put_pair(&w, s->pid, s->tid);
	put(&w, s->time_ns);
	put_pair(&w, 0, 0);
	put(&w, s->weight_ns);
	put_chain(&w, s);
	put_raw(&w, &s->waits);
	if (s->stack)
		header.misc |= sample_misc_of_stop(s->stack->stop, s->stack->guessed);
	header.size = (uint16_t)((uint8_t *)w.at - (uint8_t *)record);
	memcpy(record, &header, sizeof(header));
	return (const struct perf_event_header *)record;
}

static void label_frame(const struct wait_label *l, char *ret, size_t size)
{
	bool waits = !l->is_call && !l->is_probe && l->reason != WAIT_RUNNING &&
		     l->reason != WAIT_RUNNABLE && l->reason != WAIT_THROTTLED &&
		     l->reason != WAIT_STOPPED;

	bool gpu = str_starts(l->text, "[gpu: "); /* it says so itself */

	snprintf(ret, size,
		 gpu                                   ? "%s"
		 : l->is_call && l->reason == WAIT_GPU ? "[gpu: %s]"
		 : l->is_call                          ? "[syscall: %s]"
		 : l->is_probe                         ? "[probe: %s]"
		 : waits                               ? "[waiting: %s]"
						       : "[%s]",
		 l->text);
}

const struct perf_event_header *wait_record_label(const struct wait_label *l, uint32_t label,
						  uint64_t time_ns, uint64_t id, uint64_t *record)
{
	struct {
		struct perf_event_header header;
		uint64_t addr;
		uint32_t len;
		uint16_t ksym_type, flags;
		char rest[256 + 64];
	} r = {.header = {.type = PERF_RECORD_KSYMBOL},
	       .addr = label_va(label),
	       .len = LABEL_BYTES,
	       .ksym_type = PERF_RECORD_KSYMBOL_TYPE_OOL};
	struct {
		uint32_t pid, tid; /* the trailer: TID, TIME, CPU, IDENTIFIER */
		uint64_t time_ns;
		uint32_t cpu, reserved;
		uint64_t identifier;
	} trailer = {.time_ns = time_ns, .identifier = id};
	size_t n;

	label_frame(l, r.rest, LABEL_TEXT_MAX);
	n = ALIGN_UP(strlen(r.rest) + 1, 8);
	memcpy(r.rest + n, &trailer, sizeof(trailer));
	r.header.size = (uint16_t)(offsetof(__typeof__(r), rest) + n + sizeof(trailer));
	memcpy(record, &r, r.header.size);
	return (const struct perf_event_header *)record;
}
