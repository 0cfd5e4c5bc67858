/* SPDX-License-Identifier: BSD-2-Clause */
/* What the whole system may have. Sources: proc_sys_fs(5), proc_sys_kernel(5). */
#include "readings.h"

void limits_read(const char *root, struct limits_reading *l)
{
	CLEANUP(strbuf_release) struct strbuf text = {0};
	const char *slash;

	root_read(root, &text, 256, "/proc/sys/fs/file-nr");
	l->files = line_number(strbuf_str(&text), 0);
	l->files_max = line_number(strbuf_str(&text), 2);
	root_read(root, &text, 256, "/proc/loadavg");
	slash = strchr(strbuf_str(&text), '/');
	l->threads = slash ? line_number(slash + 1, 0) : NAN;
	l->threads_max = root_number(root, "/proc/sys/kernel/threads-max");
	l->pid_max = root_number(root, "/proc/sys/kernel/pid_max");
}

void limits_rows(const struct interval *i, struct use_report *r)
{
	const struct limits_reading *l = &i->now->limits;
	struct use_row *row = row_add(r, "host", "open files", "");
	struct use_value *v;

	row_put_or(r, row, "files_percent", percent_of(l->files, l->files_max),
		   "no /proc/sys/fs/file-nr");
	put_refusals(i, r, row, "files_refused", refusals_of(i, 0).enfile);
	row = row_add(r, "host", "threads", "");
	v = row_put_or(r, row, "threads_percent",
		       percent_of(l->threads, fmin(l->threads_max, l->pid_max)),
		       "no /proc/loadavg");
	if (v && !isnan(v->v))
		v->text = report_text(r, "%.0f of %.0f", l->threads,
				      fmin(l->threads_max, l->pid_max));
	put_refusals(i, r, row, "threads_refused", refusals_of(i, 0).eagain);
}
