/* SPDX-License-Identifier: BSD-2-Clause */
/* Prometheus' text format: https://prometheus.io/docs/instrumenting/exposition_formats/ */
#include "use.h"

#include <inspect/strbuf.h>
#include <inspect/term.h>
#include <math.h>

/* A label is UTF-8: other bytes, for which a reader throws all of the file away, and controls are
 * escaped as on a terminal. Then backslash and quote, as the format wants. */
static void put_label(FILE *out, const char *name, const char *value)
{
	CLEANUP(strbuf_release) struct strbuf text = {0};

	term_escape(&text, value, strlen(value));
	fprintf(out, "%s=\"", name);
	for (const char *at = strbuf_str(&text); *at; at++) {
		if (*at == '\\' || *at == '"')
			putc('\\', out);
		putc(*at, out);
	}
	putc('"', out);
}

static void put_labels(FILE *out, const struct use_row *row)
{
	putc('{', out);
	put_label(out, "resource", row->resource);
	putc(',', out);
	put_label(out, "device", row->device);
	putc(',', out);
	put_label(out, "scope", row->scope);
	putc('}', out);
}

static bool is_same(const struct use_row *a, const struct use_row *b)
{
	return str_eq(a->resource, b->resource) && str_eq(a->device, b->device) &&
	       str_eq(a->scope, b->scope);
}

/* Of rows with equal labels, such as those of names that were cut, a reader takes none. */
static bool *find_repeated(const struct use_report *r)
{
	bool *repeated = calloc(r->rows.n + 1, sizeof(*repeated));

	for (size_t i = 0; repeated && i < r->rows.n; i++)
		for (size_t k = 0; k < i && !repeated[i]; k++)
			repeated[i] = is_same(&r->rows.v[i], &r->rows.v[k]);
	return repeated;
}

/* All lines of one metric stand together. What has no data has no line. */
static void put_metric(const struct use_report *r, const bool *repeated, size_t metric, FILE *out)
{
	bool headed = false;

	for (size_t i = 0; i < r->rows.n; i++) {
		const struct use_row *row = &r->rows.v[i];
		const struct use_value *v = use_row_value(row, use_metrics[metric].key);

		if (!v || isnan(v->v) || repeated[i])
			continue;
		if (!headed)
			fprintf(out, "# HELP inspect_use_%s %s\n# TYPE inspect_use_%s gauge\n",
				use_metrics[metric].key, use_metrics[metric].source,
				use_metrics[metric].key);
		headed = true;
		fprintf(out, "inspect_use_%s", use_metrics[metric].key);
		put_labels(out, row);
		fprintf(out, " %.15g\n", v->v);
	}
}

int use_write_prometheus(const struct use_report *r, FILE *out)
{
	CLEANUP(freep) bool *repeated = find_repeated(r);

	if (!repeated)
		return -ENOMEM;
	for (size_t i = 0; i < n_use_metrics; i++)
		put_metric(r, repeated, i, out);
	fputs("# HELP inspect_use_verdict 0 ok, 1 warn, 2 critical\n"
	      "# TYPE inspect_use_verdict gauge\n",
	      out);
	for (size_t i = 0; i < r->rows.n; i++) {
		if (r->rows.v[i].verdict < USE_OK || repeated[i])
			continue;
		fputs("inspect_use_verdict", out);
		put_labels(out, &r->rows.v[i]);
		fprintf(out, " %d\n", (int)r->rows.v[i].verdict - (int)USE_OK);
	}
	return ferror(out) ? -EIO : 0;
}
