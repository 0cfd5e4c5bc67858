/* SPDX-License-Identifier: BSD-2-Clause */
/* Where a report goes, and how it is written. */
#include "output_file.h"
#include "stat.h"

#include <inspect/render.h>
#include <inspect/term.h>

typedef int write_fn(const struct result *r, const struct stat_values *v, FILE *out);

static int write_file(const char *path, write_fn *write, const struct result *r,
		      const struct stat_values *v, struct diag *d)
{
	struct output_file f;
	int err = output_file_open(&f, path, d);

	return err ? err : output_file_close(&f, write(r, v, f.out), d);
}

int stat_outputs_check(const struct stat_values *v, const struct operands *operands, struct diag *d)
{
	const char *const files[] = {v->save, v->common.markdown, v->output};
	const char *const saved[] = {v->baseline, v->check};
	const char *const *inputs = v->table ? (const char *const *)operands->v : saved;
	size_t n = v->table ? operands->n : ARRAY_SIZE(saved);
	int err = 0;

	for (size_t i = 0; i < ARRAY_SIZE(files) && !err; i++) {
		if (!files[i])
			continue;
		err = output_file_check(files[i], inputs, n, d);
		if (!err)
			err = output_file_try(files[i], d);
	}
	return err;
}

static int write_json(const struct result *r, const struct stat_values *v UNUSED, FILE *out)
{
	return result_json(r, out);
}

static int write_markdown(const struct result *r, const struct stat_values *v UNUSED, FILE *out)
{
	return result_markdown(r, out);
}

/* The line about the target is no fact of a table: it comes before all. */
static void put_first_line(const struct result *r, FILE *out)
{
	for (size_t i = 0; i < r->facts.n; i++)
		if (str_eq(r->facts.v[i].key, "summary"))
			fprintf(out, "%s\n", r->facts.v[i].value.text);
}

bool stat_takes_stdout(const struct stat_values *v)
{
	return (v->common.json || v->common.csv) && output_is_stdout(v->output);
}

bool stat_streams_csv(const struct stat_values *v)
{
	return v->interval_ns && v->common.csv && output_is_stdout(v->output);
}

/* A CSV has the same columns whatever was found: what it means is in the JSON, and the first line
 * on stderr names it. */
static int write_csv(const struct result *r, const struct stat_values *v, FILE *out)
{
	struct result tables = *r;
	int err = 0;

	tables.sections.v = malloc((r->sections.n + 1) * sizeof(*tables.sections.v));
	tables.sections.n = 0;
	if (!tables.sections.v)
		return -ENOMEM;
	for (size_t i = 0; i < r->sections.n; i++) {
		const char *key = r->sections.v[i].key;

		if (str_eq(key, "findings") || (stat_streams_csv(v) && str_eq(key, "intervals")))
			continue;
		tables.sections.v[tables.sections.n++] = r->sections.v[i];
	}
	err = (stat_streams_csv(v) ? result_csv_more : result_csv)(&tables, out);
	free(tables.sections.v);
	return err;
}

static int write_report(const struct result *r, const struct stat_values *v, FILE *out)
{
	struct table_options o = {
		.width = term_width(fileno(out)),
		.color = term_use_color(v->common.color, fileno(out)),
		.all = true,
	};
	struct result head = *r;
	int err;

	if (v->common.json)
		return result_json(r, out);
	if (!v->common.csv) {
		put_first_line(r, out);
		return result_table(r, &o, out);
	}
	err = write_csv(r, v, out);
	head.sections.n = 0;
	if (err || v->common.quiet)
		return err;
	put_first_line(r, stderr);
	return result_table(&head, &o, stderr);
}

static int print_report(const struct result *r, const struct stat_values *v, bool ran_command,
			struct diag *d)
{
	bool to_stderr = ran_command && !v->common.json && !v->common.csv;
	int err;

	if (v->output)
		return write_file(v->output, write_report, r, v, d);
	if (to_stderr ? v->common.quiet
		      : v->common.markdown && output_is_stdout(v->common.markdown))
		return 0;
	errno = 0;
	err = write_report(r, v, to_stderr ? stderr : stdout);
	if (err == -EIO && errno)
		err = -errno;
	return diag_errno(d, err, "cannot write the report");
}

int stat_print(const struct result *r, const struct stat_values *v, bool ran_command,
	       struct diag *d)
{
	int saved = v->save ? write_file(v->save, write_json, r, v, d) : 0;
	int marked =
		v->common.markdown ? write_file(v->common.markdown, write_markdown, r, v, d) : 0;
	/* What was measured is shown, whatever could not be written. */
	int printed = print_report(r, v, ran_command, d);

	return saved ? saved : marked ? marked : printed;
}
