/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef INSPECT_CMD_TARGET_TEXT_H
#define INSPECT_CMD_TARGET_TEXT_H

#include <inspect/capture.h>

/* What is measured, quoted for a shell: "-p 4711", "-p 4711 -d 5", "-- CMD…". out is empty. */
void target_text_given(const struct target_options *o, uint64_t duration_ns,
		       const struct operands *operands, const struct target *t, struct strbuf *out);

/* The same for a proposed command line: what has no end of its own gets one, "-p 4711 -d 10". */
void target_text_put(const struct target_options *o, uint64_t duration_ns,
		     const struct operands *operands, const struct target *t, struct strbuf *out);

#endif
