/* SPDX-License-Identifier: BSD-2-Clause */
/* A perf.data file: header, features, decompression, decoding, order, processes, stacks. */
#include "fuzz.h"

#include <inspect/capture.h>

struct feed {
	struct pipeline *pipeline;
	bool stable;
};

static int feed_record(void *ctx, const struct perf_event_header *record, size_t size_bytes)
{
	struct feed *f = ctx;

	if (record->type == RECORD_FINISHED_ROUND)
		return pipeline_round(f->pipeline);
	return pipeline_record(f->pipeline, record, size_bytes, f->stable);
}

static void read_all(struct perfdata_reader *r)
{
	struct profile *p = NULL;
	struct pipeline *pipeline = NULL;
	struct diag d = {0};

	if (profile_new(&p))
		return;
	if (!pipeline_new(perfdata_events(r), p, NULL, false, &pipeline)) {
		struct feed feed = {pipeline, perfdata_stable(r)};

		if (!perfdata_read(r, feed_record, &feed, &d))
			pipeline_finish(pipeline);
		pipeline_free(pipeline);
	}
	diag_release(&d);
	profile_free(p);
}

int LLVMFuzzerTestOneInput(const uint8_t *v, size_t n)
{
	CLEANUP(closep) int fd = fuzz_file(v, n);
	struct perfdata_reader *r = NULL;
	struct diag d = {0};

	if (!perfdata_open_fd(fd, NULL, 0, "fuzz", &r, &d)) {
		read_all(r);
		perfdata_reader_free(r);
	}
	diag_release(&d);
	return 0;
}
