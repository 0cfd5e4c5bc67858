/* SPDX-License-Identifier: BSD-2-Clause */
#include "print_result.h"

#include "output_file.h"

#include <inspect/render.h>
#include <inspect/term.h>

static int print_csv(const struct result *r, const struct common_options *o)
{
	struct table_options to = {.color = term_use_color(o->color, STDERR_FILENO),
				   .ascii = !term_is_utf8()};
	struct result head = *r;
	int err = result_csv(r, stdout);

	head.sections.n = 0;
	if (!err && !o->quiet)
		err = result_table(&head, &to, stderr);
	return err;
}

/* Beside what goes to stdout: for a comment on a change, or a ticket. */
static int write_markdown(const struct result *r, const char *path, struct diag *d)
{
	struct output_file f;
	int err = output_file_open(&f, path, d);

	return err ? err : output_file_close(&f, result_markdown(r, f.out), d);
}

int print_result(const struct result *r, const struct common_options *o, bool all, struct diag *d)
{
	struct table_options to = {
		.width = term_width(STDOUT_FILENO),
		.height = term_height(STDOUT_FILENO),
		.color = term_use_color(o->color, STDOUT_FILENO),
		.ascii = !term_is_utf8(),
		.all = all,
	};
	bool alone = o->markdown && output_is_stdout(o->markdown);
	int err = alone ? options_conflict("--markdown -", true, o->json ? "--json" : "--csv",
					   o->json || o->csv, d)
			: 0;

	if (!err && o->markdown)
		err = write_markdown(r, o->markdown, d);
	if (err || alone)
		return err;
	errno = 0;
	if (o->json)
		err = result_json(r, stdout);
	else
		err = o->csv ? print_csv(r, o) : result_table(r, &to, stdout);
	/* The renderers only know that something failed. */
	if (err == -EIO && errno)
		err = -errno;
	return diag_errno(d, err, "cannot write to stdout");
}
