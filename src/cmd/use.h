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
	unsigned count;           /* of reports with --watch; 0: until it is ended */
	unsigned fail_on;         /* enum use_fail_on */
	struct use_limit *limits; /* n_use_metrics of them; NULL none given */
	struct common_options common;
};
enum use_fail_on { USE_FAIL_NEVER, USE_FAIL_WARN, USE_FAIL_CRITICAL };

/* --limit KEY=WARN[/CRITICAL],… */
int use_parse_limits(void *value, const char *arg, struct diag *d);

/* Who is looked at, as commands that are proposed name it. */
struct use_subject {
	const char *target; /* "-p 4711", "--cgroup /x"; NULL: the host */
	const char *shown;  /* "python3/4711" */
	const pid_t *pids;  /* of -p */
	size_t n_pids;
	bool (*lives)(pid_t pid);                  /* NULL: all do */
	const char *cgroup;                        /* of --cgroup: its folder */
	bool (*has_processes)(const char *cgroup); /* NULL: all have */
	const char *as_root;       /* before what this user may not do: "sudo "; NULL it may */
	bool (*is_own)(pid_t pid); /* of this user; asked with as_root */
	pid_t net_pid;             /* of the target, in another network than ours; 0 */
	pid_t root_pid;            /* likewise, with another tree of files */
	const char *engine, *device;
	const note_list *notes; /* what its names were taken for; NULL none */
	size_t n_left_out;      /* child processes that are no part of it */
	unsigned cpus;
};

/* A report as a table and as data. `width`: of the terminal; 0: any. */
void use_fill_result(struct use_report *report, const struct use_values *v,
		     const struct use_subject *subject, unsigned width, enum use_sort sort,
		     struct result *r);

enum use_verdict use_worst(const struct use_report *r);
const char *use_verdict_name(enum use_verdict v);

/* "disk vda" */
const char *use_row_name(struct result *r, const struct use_row *row);

/* What the rules say. With a target its own first, then worst first, then errors. 0 or -ENOMEM. */
int use_findings(const struct use_report *report, const struct use_limit *limits,
		 const struct use_subject *subject, struct result *r, findings *ret);

/* The rule's command for who is looked at and the row. */
const char *use_fill_next(struct result *r, const struct finding_rule *rule,
			  const struct use_row *row, const struct use_subject *s);

/* Whether it speaks of a value that makes the row as bad as it is. */
bool use_finding_tells(const struct use_report *report, const struct finding *f,
		       const struct use_row *row);

/* What --explain prints of the rules. 0 or -ENOMEM. */
int use_findings_explain(const struct use_limit *limits, struct result *r);

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
