/* SPDX-License-Identifier: BSD-2-Clause */
/* One page by HTTP(S), through libcurl where it is installed. */
#ifndef INSPECT_METRICS_HTTP_H
#define INSPECT_METRICS_HTTP_H

#include <inspect/strbuf.h>

struct http; /* keeps its connection */

/* NULL with a reason when there is no libcurl. */
struct http *http_open(const char **ret_reason);
void http_close(struct http *h);

/*
 * Redirections are followed on the same host and port alone, three of them. 0 with the page in out,
 * or a negative errno with the reason in why: -EFBIG beyond max_bytes, -ETIMEDOUT, -EPROTO for
 * another status than 200.
 */
int http_get(struct http *h, const char *url, unsigned timeout_ms, size_t max_bytes,
	     struct strbuf *out, char *why, size_t why_size);

#endif
