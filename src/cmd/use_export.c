/* SPDX-License-Identifier: BSD-2-Clause */
/* Prometheus' text format: https://prometheus.io/docs/instrumenting/exposition_formats/ */
#include "use.h"

#include <math.h>

/* Backslash, quote and newline are escaped; other controls have no place in a label. */
static void put_label(FILE *out, const char *name, const char *value)
{
	fprintf(out, "%s=\"", name);
	for (; *value; value++) {
		if (*value == '\n')
			fputs("\\n", out);
		else if (*value == '\\' || *value == '"')
			fprintf(out, "\\%c", *value);
		else
			putc((unsigned char)*value < ' ' ? '?' : *value, out);
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

/* All lines of one metric stand together. What has no data has no line. */
static void put_metric(const struct use_report *r, size_t metric, FILE *out)
{
	bool headed = false;

	for (size_t i = 0; i < r->rows.n; i++) {
		const struct use_row *row = &r->rows.v[i];
		const struct use_value *v = use_row_value(row, use_metrics[metric].key);

		if (!v || isnan(v->v))
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
	for (size_t i = 0; i < n_use_metrics; i++)
		put_metric(r, i, out);
	fputs("# HELP inspect_use_verdict 0 ok, 1 warn, 2 critical\n"
	      "# TYPE inspect_use_verdict gauge\n",
	      out);
	for (size_t i = 0; i < r->rows.n; i++) {
		if (r->rows.v[i].verdict == USE_NO_DATA)
			continue;
		fputs("inspect_use_verdict", out);
		put_labels(out, &r->rows.v[i]);
		fprintf(out, " %d\n", (int)r->rows.v[i].verdict - (int)USE_OK);
	}
	return ferror(out) ? -EIO : 0;
}
