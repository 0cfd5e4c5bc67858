/* SPDX-License-Identifier: BSD-2-Clause */
/* Processes that are looked at by themselves. Source: proc(5). */
#include "readings.h"

#include <dirent.h>
#include <inspect/procfs.h>
#include <sys/stat.h>

enum { TEXT_MAX = 65536, PROCESSES_MAX = 4096 };

/* Since Linux 6.2 the folder's size says it. */
double process_fds(const char *root, pid_t pid)
{
	char path[PATH_SIZE];
	struct stat st;
	double n = 0;
	DIR *dir;

	snprintf(path, sizeof(path), "%s/proc/%d/fd", root, (int)pid);
	if (stat(path, &st))
		return NAN;
	if (st.st_size > 0 && !root[0])
		return (double)st.st_size;
	dir = opendir(path);
	if (!dir)
		return NAN;
	for (struct dirent *e; (e = readdir(dir));)
		n += e->d_name[0] != '.';
	closedir(dir);
	return n;
}

/* "Max open files            1024                 524288               files"; unlimited: NAN */
static void read_limits(const char *root, struct process *p)
{
	CLEANUP(strbuf_release) struct strbuf text = {0};

	root_read(root, &text, TEXT_MAX, "/proc/%d/limits", (int)p->pid);
	p->fds_limit = text_field(strbuf_str(&text), "Max open files");
	p->threads_limit = text_field(strbuf_str(&text), "Max processes");
	p->locked_limit = text_field(strbuf_str(&text), "Max locked memory");
}

static void read_status(const char *root, struct process *p)
{
	CLEANUP(strbuf_release) struct strbuf text = {0};

	root_read(root, &text, TEXT_MAX, "/proc/%d/status", (int)p->pid);
	p->rss = text_field(strbuf_str(&text), "VmRSS") * 1024;
	p->swapped = text_field(strbuf_str(&text), "VmSwap") * 1024;
	p->locked = text_field(strbuf_str(&text), "VmLck") * 1024;
	p->uid = text_field(strbuf_str(&text), "Uid");
	if (user_threads_exempt(root, strbuf_str(&text), p->pid))
		p->threads_limit = NAN;
}

static bool read_stat(const char *root, struct process *p)
{
	CLEANUP(strbuf_release) struct strbuf text = {0};
	const char *open_paren, *close_paren;
	double tick_ns = 1e9 / (double)MAX(sysconf(_SC_CLK_TCK), 1L);

	if (!root_read(root, &text, TEXT_MAX, "/proc/%d/stat", (int)p->pid))
		return false;
	open_paren = strchr(strbuf_str(&text), '(');
	close_paren = strrchr(strbuf_str(&text), ')');
	if (!open_paren || !close_paren || close_paren < open_paren)
		return false;
	snprintf(p->comm, sizeof(p->comm), "%.*s", (int)(close_paren - open_paren - 1),
		 open_paren + 1);
	p->minor_faults = line_number(close_paren + 1, 7);
	p->major_faults = line_number(close_paren + 1, 9);
	p->cpu_ns = (line_number(close_paren + 1, 11) + line_number(close_paren + 1, 12)) * tick_ns;
	p->io_delay_ns = line_number(close_paren + 1, 39) * tick_ns;
	return true;
}

static void read_io(const char *root, struct process *p)
{
	CLEANUP(strbuf_release) struct strbuf text = {0};

	root_read(root, &text, TEXT_MAX, "/proc/%d/io", (int)p->pid);
	p->disk_bytes = text_field(strbuf_str(&text), "read_bytes") +
			text_field(strbuf_str(&text), "write_bytes");
}

void process_read(const char *root, const pid_t *pids, size_t n, struct process_reading *p)
{
	for (size_t i = 0; i < MIN(n, (size_t)PROCESSES_MAX); i++) {
		struct process one = {.pid = pids[i]};

		if (!read_stat(root, &one))
			continue;
		read_limits(root, &one);
		read_status(root, &one);
		read_io(root, &one);
		one.fds = process_fds(root, one.pid);
		if (array_push(&p->v, one))
			return;
	}
}

void process_release(struct process_reading *p)
{
	array_release(&p->v);
}

/* --- rows ------------------------------------------------------------------------------------- */

static const char came_since[] = "it came during this time: the next report has it";

static const char *size_text(struct use_report *r, double bytes)
{
	return report_text(r, bytes < 1 << 30 ? "%.0f MiB" : "%.1f GiB",
			   bytes / (bytes < 1 << 30 ? 1 << 20 : 1 << 30));
}

static void memory_row(const struct interval *i, const struct process *now,
		       const struct process *before, const char *name, struct use_report *r)
{
	struct use_row *row = row_add(r, "process", "process memory", name);
	struct use_value *v;

	v = row_put_or(r, row, "process_memory_bytes", now->rss, "not readable for this user");
	if (v && !isnan(now->rss))
		v->text = size_text(r, now->rss);
	v = row_put_or(r, row, "process_swap_bytes", now->swapped, "not readable for this user");
	if (v && now->swapped > 0)
		v->text = report_text(r, "%s in swap", size_text(r, now->swapped));
	row_put_or(r, row, "major_faults_per_second",
		   rate_of(now->major_faults, before->major_faults, i->seconds), came_since);
	row_put_or(r, row, "locked_percent", percent_of(now->locked, now->locked_limit),
		   isnan(now->locked_limit) ? "no limit"
		   : now->locked_limit > 0  ? "not readable for this user"
					    : "its limit is 0");
}

static void fd_row(const struct interval *i, const struct process *now, const char *name,
		   struct use_report *r)
{
	struct use_row *row = row_add(r, "process", "fds", name);
	struct use_value *v;

	v = row_put_or(r, row, "fds_percent", percent_of(now->fds, now->fds_limit),
		       isnan(now->fds) ? "not readable for this user: its owner or root may"
				       : "no limit");
	if (v && !isnan(v->v))
		v->text = report_text(r, "%.0f of %.0f", now->fds, now->fds_limit);
	put_refusals(i, r, row, "fds_refused", refusals_of(i, now->pid).emfile);
}

static void io_row(const struct interval *i, const struct process *now,
		   const struct process *before, const char *name, struct use_report *r)
{
	struct use_row *row = row_add(r, "process", "process I/O", name);
	double bytes = rate_of(now->disk_bytes, before->disk_bytes, i->seconds);
	struct use_value *v;

	v = row_put_or(r, row, "process_disk_bytes_per_second", bytes,
		       isnan(now->disk_bytes) ? "not readable for this user: its owner or root may"
					      : came_since);
	if (v && !isnan(bytes))
		v->text = report_text(r, "%.1f MB/s", bytes / 1e6);
	/* Without delay accounting (kernel.task_delayacct) it stays 0. */
	if (now->io_delay_ns > 0)
		row_put_or(r, row, "io_delay_percent",
			   rate_of(now->io_delay_ns, before->io_delay_ns, i->seconds) / 1e7,
			   came_since);
	else
		row_lacks(r, row, "io_delay_percent",
			  "none yet, or delay accounting is off (kernel.task_delayacct)");
}

static const struct process *find_process(const struct process_reading *p, pid_t pid)
{
	for (size_t i = 0; i < p->v.n; i++)
		if (p->v.v[i].pid == pid)
			return &p->v.v[i];
	return NULL;
}

static void note_ended(const struct interval *i, struct use_report *r)
{
	size_t n = i->config->n_pids, ended = n - MIN(n, i->now->process.v.n);

	/* Those of a cgroup are listed anew. Of more than are read nothing is known. */
	if (i->config->list_pids || !ended || n > PROCESSES_MAX)
		return;
	if (n == 1)
		report_note(r, "the target has ended");
	else if (ended == n)
		report_note(r, "all %zu processes of the target have ended", n);
	else
		report_note(r, "%zu of the target's %zu processes %s ended", ended, n,
			    ended == 1 ? "has" : "have");
}

void process_rows(const struct interval *i, struct use_report *r)
{
	static const struct process unknown = {
		.major_faults = NAN, .disk_bytes = NAN, .io_delay_ns = NAN};

	if (i->config->cgroup && !i->config->n_pids)
		report_note(r, "%s: %s", i->config->cgroup, cgroup_absence(i->config));
	note_ended(i, r);
	for (size_t k = 0; k < i->now->process.v.n; k++) {
		const struct process *now = &i->now->process.v.v[k];
		const struct process *before = find_process(&i->before->process, now->pid);
		const char *name = report_text(r, "%s/%d", now->comm, (int)now->pid);

		if (!before)
			before = &unknown;
		memory_row(i, now, before, name, r);
		fd_row(i, now, name, r);
		user_threads_row(i, now, name, r);
		io_row(i, now, before, name, r);
	}
}
