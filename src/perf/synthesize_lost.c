/* SPDX-License-Identifier: BSD-2-Clause */
#include "synthesize.h"

int synthesize_lost(const struct event_table *events, uint32_t cpu, uint64_t n, record_fn *emit,
		    void *ctx)
{
	uint64_t id_and_lost[2] = {events->id_value.n ? events->id_value.v[0] : 0, n};
	struct record_builder b;
	int err = record_builder_init(&b, events, emit, ctx);

	if (err)
		return err;
	b.cpu = cpu;
	record_begin(&b, PERF_RECORD_LOST, 0);
	record_add(&b, id_and_lost, sizeof(id_and_lost));
	err = record_end(&b, 0, 0);
	record_builder_release(&b);
	return err;
}
