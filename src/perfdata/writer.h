/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef PERFDATA_WRITER_H
#define PERFDATA_WRITER_H

#include "format.h"

/* Feature sections ready to be written, in ascending order of their bits. */
struct features {
	struct {
		unsigned feature;
		struct strbuf bytes;
	} v[16];
	size_t n;
};

void features_release(struct features *f);

/* Those that info states, with that of the event names. 0 or -ENOMEM. */
int features_make(const struct perfdata_info *info, const struct strbuf *event_desc,
		  bool clock_given, struct features *ret);

/* True for a feature that perf takes from a stream too, and in the form it has in a file. */
bool feature_fits_stream(unsigned feature);

/* The EVENT_DESC feature; a want of memory shows in ret->failed. */
void feature_event_desc(const struct event_table *events, struct strbuf *ret);

/* Appends one build-id entry (type 0) or record. */
void feature_build_id(const struct perfdata_build_id *b, uint32_t type, struct strbuf *ret);

#endif
