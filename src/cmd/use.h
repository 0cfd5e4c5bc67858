/* SPDX-License-Identifier: BSD-2-Clause */
/* What the files of `use` share. */
#ifndef INSPECT_CMD_USE_H
#define INSPECT_CMD_USE_H

#include <inspect/finding.h>
#include <inspect/note_list.h>
#include <inspect/options.h>
#include <inspect/use.h>

enum use_sort { USE_SORT_WORST, USE_SORT_UTILISATION, USE_SORT_NAME, USE_SORTS };

struct use_values {
	const char *pids, *cgroup, *engine, *device, *log, *prometheus;
	bool children, no_engine, watch, all, verbose, explain;
	uint64_t window_ns;
	unsigned count;           /* reports; 0: one, or with --watch until it is ended */
	unsigned fail_on;         /* enum use_fail_on */
	struct use_limit *limits; /* n_use_metrics of them; NULL none given */
	struct common_options common;
};
enum use_fail_on { USE_FAIL_NEVER, USE_FAIL_WARN, USE_FAIL_CRITICAL };

/* --limit KEY=WARN[/CRITICAL],… */
int use_parse_limits(void *value, const char *arg, struct diag *d);

/* Who is looked at, as commands that are proposed name it. */
struct use_subject {
	const char *target;     /* "-p 4711", "--cgroup /x"; NULL: the host */
	const char *shown;      /* "python3/4711" */
	const note_list *notes; /* what its names were taken for */
	size_t n_left_out;      /* child processes that are no part of it */
	unsigned cpus;
};

/* A report as a table and as data. `brief`: one value a cell, for narrow terminals. */
void use_fill_result(struct use_report *report, const struct use_values *v,
		     const struct use_subject *subject, bool brief, enum use_sort sort,
		     struct result *r);

enum use_verdict use_worst(const struct use_report *r);
const char *use_verdict_name(enum use_verdict v);

/* "disk vda" */
const char *use_row_name(struct result *r, const struct use_row *row);

/* The rules (use_rules.c). */
extern const struct finding_rule use_rules[];
extern const size_t n_use_rules;
/* Worst first. 0 or -ENOMEM. */
int use_findings(const struct use_report *report, const struct use_subject *subject,
		 struct result *r, findings *ret);

/* How bad the worst of the rows is that they speak of. */
enum use_verdict use_findings_worst(const struct use_report *report, const findings *f);

/* Metrics in the text format of Prometheus, for node_exporter's textfile collector. */
int use_write_prometheus(const struct use_report *r, FILE *out);

/* One measurement after the other, on a terminal in place. The exit code. */
struct use_loop {
	const struct use_values *v;
	struct use *session;
	const struct use_subject *subject;
	FILE *log;
	enum use_verdict worst; /* of all reports */
};
int use_loop_run(struct use_loop *l, struct diag *d);

#endif
