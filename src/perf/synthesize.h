/* SPDX-License-Identifier: BSD-2-Clause */
/* Building the records that the kernel would have sent had it been asked earlier. */
#ifndef PERF_SYNTHESIZE_H
#define PERF_SYNTHESIZE_H

#include <inspect/event.h>

/* One record at a time in a buffer of its own. */
struct record_builder {
	uint64_t sample_type; /* of the trailer (sample_id_all); 0: records have none */
	uint32_t cpu;         /* in the trailer */
	record_fn *emit;
	void *ctx;
	struct perf_event_header *record; /* RECORD_ROOM bytes */
	size_t n;
};

int record_builder_init(struct record_builder *b, const struct event_table *events, record_fn *emit,
			void *ctx);
void record_builder_release(struct record_builder *b);

void record_begin(struct record_builder *b, uint32_t type, uint16_t misc);
void record_add(struct record_builder *b, const void *bytes, size_t n);
/* With its NUL and padded to 8 bytes; cut where it is longer than a path can be. */
void record_add_string(struct record_builder *b, const char *s);
/* Appends the trailer and emits. 0, or what emit returned. */
int record_end(struct record_builder *b, uint32_t pid, uint32_t tid);

/* One LOST record of a CPU. 0, -ENOMEM, or what emit returned. */
int synthesize_lost(const struct event_table *events, uint32_t cpu, uint64_t n, record_fn *emit,
		    void *ctx);

/* synthesize_kernel from other files than those of /proc, for tests. */
struct kernel_files {
	const char *kallsyms, *modules, *iomem;
};
int synthesize_kernel_from(const struct kernel_files *files, const struct event_table *events,
			   record_fn *emit, void *ctx);

#endif
