/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef INSPECT_CMD_TARGET_TEXT_H
#define INSPECT_CMD_TARGET_TEXT_H

#include <inspect/capture.h>

/* What is measured, as it goes into a proposed command line, quoted for a shell: "-p 4711 -d 10",
 * "-- CMD…". What has no end of its own gets one. Appended. */
void target_text_put(const struct target_options *o, uint64_t duration_ns,
		     const struct operands *operands, const struct target *t, struct strbuf *out);

#endif
