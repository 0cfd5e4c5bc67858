/* SPDX-License-Identifier: BSD-2-Clause */
/* One page by HTTP(S), through libcurl where it is installed. */
#ifndef INSPECT_METRICS_HTTP_H
#define INSPECT_METRICS_HTTP_H

#include <inspect/strbuf.h>

struct http;

/* NULL with a reason when there is no libcurl. */
struct http *http_open(const char **ret_reason);
void http_close(struct http *h);

/* Whether this user may ask in that network namespace. */
bool http_may_enter(int net_fd);
/* From now on in that network namespace (an open file, borrowed); -1: ours, as at first. */
void http_set_network(struct http *h, int net_fd);

/*
 * Redirections are followed on the same host and port alone, three of them, all within the timeout.
 * What comes compressed without being asked for is unpacked. 0 with the page in out,
 * or a negative errno with the reason in why: -EFBIG beyond max_bytes, -ETIMEDOUT, -EPROTO for
 * another status than 200.
 */
int http_get(struct http *h, const char *url, unsigned timeout_ms, size_t max_bytes,
	     struct strbuf *out, char *why, size_t why_size);

#endif
