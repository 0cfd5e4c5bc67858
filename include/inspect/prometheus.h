/* SPDX-License-Identifier: BSD-2-Clause */
/* The text format that servers show their metrics in. Anybody may have written it: lines that are
 * none are counted and left out. https://prometheus.io/docs/instrumenting/exposition_formats/ */
#ifndef INSPECT_PROMETHEUS_H
#define INSPECT_PROMETHEUS_H

#include <inspect/base.h>

struct prometheus_sample {
	const char *name, *labels; /* not terminated; labels without their braces */
	size_t name_bytes, labels_bytes;
	double v; /* may be NAN or INFINITY, as written */
};

typedef void prometheus_fn(void *ctx, const struct prometheus_sample *s);

/*
 * Calls fn for each sample. A page that is one JSON string (some llama.cpp builds) is taken as what
 * that string holds. Returns the number of lines that are no samples, or -ENOMEM, or -E2BIG beyond
 * PROMETHEUS_LINES_MAX lines.
 */
#define PROMETHEUS_LINES_MAX 200000
int prometheus_parse(const char *text, size_t n, prometheus_fn *fn, void *ctx);

/* The value of a label into buf (cut when longer). False when there is none of that name. */
bool prometheus_label(const struct prometheus_sample *s, const char *name, char *buf, size_t size);

bool prometheus_is_name(const struct prometheus_sample *s, const char *name);

#endif
