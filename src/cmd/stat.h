/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the files of inspect stat share. Its life: options → events and metrics → runs (values of
 * every metric) → summaries → findings and gate → a result and its renderers.
 */
#ifndef INSPECT_CMD_STAT_H
#define INSPECT_CMD_STAT_H

#include <inspect/baseline.h>
#include <inspect/counting.h>
#include <inspect/environment.h>
#include <inspect/finding.h>
#include <inspect/options.h>
#include <regex.h>
#include <wordexp.h>

enum {
	EXIT_REGRESSION = 3,
	EXIT_INCONCLUSIVE = 4,
	EXIT_NO_BASELINE = 5,
	EXIT_COMMAND_FAILED = 6,
	EXIT_TIMED_OUT = 124, /* as timeout(1) says it */
};

/* --- options (stat_options.c) ----------------------------------------------------------------- */

typedef ARRAY(const char *) text_list;

struct stat_values {
	struct target_options target;
	struct duration_options duration;
	struct common_options common;
	const char *events, *require;
	bool detail, user_only, kernel_only;
	bool per_core, per_thread, per_cgroup;
	uint64_t interval_ns, timeout_ns;
	unsigned count;          /* -n: intervals */
	unsigned repeat, warmup; /* 0: not given */
	const char *versus;      /* CMD B, for the shell */
	const char *output, *save;
	const char *baseline, *check;
	text_list fail_on, budgets, metrics;
	const char *per;
	unsigned gate; /* enum gate_mode */
	unsigned retry;
	const char *accept_env;
	unsigned inconclusive; /* enum inconclusive_is */
	bool table, explain;
};

enum inconclusive_is { INCONCLUSIVE_OWN_CODE, INCONCLUSIVE_PASS, INCONCLUSIVE_FAIL };

enum { STAT_BINDINGS_MAX = 12 };
size_t stat_bind(struct stat_values *v, struct option_binding *ret);
int stat_check_options(const struct stat_values *v, const struct operands *operands,
		       struct diag *d);
void stat_values_release(struct stat_values *v);

/* Whether a verdict on CMD was asked for: then the exit codes are those of a gate. */
bool stat_is_gate(const struct stat_values *v);

/* --- metrics (stat_metrics.c) ----------------------------------------------------------------- */

enum metric_source {
	FROM_WALL,
	FROM_USAGE,  /* struct task_usage at `offset` */
	FROM_EVENT,  /* counters; `offset` of the usage that stands in for it, SIZE_MAX: none */
	FROM_CPUS,   /* CPU time by time */
	FROM_OUTPUT, /* a number in CMD's output */
};

struct stat_metric {
	char *name;
	enum unit unit;
	enum metric_source source;
	size_t offset; /* of usage; `second` is added to it where there is one */
	size_t second;
	size_t event;           /* index in the counters */
	regex_t *pattern;       /* FROM_OUTPUT */
	bool undivided;         /* --per does not apply: it is no amount */
	char *event_name;       /* as counted, with its modifiers; NULL: no event */
	char *reason;           /* why the last run has no value; NULL: it has */
	double running_percent; /* of the last run */
};

typedef ARRAY(struct stat_metric) stat_metrics;

struct stat_run {
	unsigned side, attempt; /* side 0: CMD, 1: --vs */
	int exit_code;
	bool timed_out;
	bool judged;    /* part of what the summary and the gate speak of */
	double *values; /* by metric, NAN: none */
};

struct stat_session;

/* Events by -e or the default set, the metrics that come of them, and those of --metric. */
int stat_metrics_prepare(struct stat_session *s, struct diag *d);
void stat_metrics_release(stat_metrics *m);

/* Values of one measurement into run->values. 0 or -ENOMEM. */
int stat_metrics_take(struct stat_session *s, const struct counting *c, struct stat_run *run);

/* A line of CMD's output, for the metrics that look for a number there. ctx: stat_session. */
void stat_metrics_line(void *ctx, const char *line);

size_t stat_metric_find(const struct stat_session *s, const char *name); /* SIZE_MAX: none */

/* Judged values of one side; malloc'ed into ret->v. 0 or -ENOMEM. */
int stat_metric_series(const struct stat_session *s, size_t metric, unsigned side,
		       struct series *ret);

/* Derived values ("ipc", "cache-miss-percent") or metrics, of medians; NAN when not to be had.
 * A finding_value_fn; ctx: struct stat_numbers. */
struct stat_numbers {
	const struct saved_stat *stat;
};
double stat_number(void *ctx, const char *name);

/* Whether a metric is the event of that name, modifiers aside. */
bool stat_is_metric(const char *metric, const char *name);

struct stat_derived {
	const char *name, *shown; /* shown: printf format of its value */
	enum unit unit;
	const char *beside; /* the metric in whose row it stands */
};
extern const struct stat_derived stat_derived[];
extern const size_t n_stat_derived;

/* --- the session (stat_run.c) ----------------------------------------------------------------- */

struct stat_interval {
	uint64_t elapsed_ns;
	double *values; /* by event of the counters, NAN: not counted */
};

struct stat_place {
	const char *name; /* "core 0 (CPUs 0,4)", "4711 worker", "system.slice" */
	double *values;
};

struct stat_session {
	const struct stat_values *v;
	struct host host;
	struct target target;
	struct environment start, end;
	struct counter_events events;
	note_list notes;
	stat_metrics metrics;
	ARRAY(struct stat_run) runs;
	unsigned attempt;
	struct operands operands;
	char **versus_argv;
	wordexp_t versus_words;
	bool versus_split;
	char *versus_shell[4]; /* sh -c B */
	char *command;         /* CMD as one line; NULL none */
	char *target_text;     /* "-p 4711 -d 10", "-- CMD" for command lines in advice */
	char *target_given;    /* "-p 4711" */
	int signal_fd;
	bool interrupted;
	size_t left_out; /* children of -p that were not counted, in the run they used most in */
	double left_out_cpus;
	double *line_values; /* of FROM_OUTPUT metrics, of the run at hand */
	/* --per-… and -I; of the last run */
	struct arena arena;
	ARRAY(char *) event_names;
	ARRAY(struct stat_interval) intervals;
	ARRAY(struct stat_place) places;
	struct count *interval_before; /* by event */
	int *cgroup_fds;
	char **cgroup_names;
	size_t n_cgroups;
	size_t live_events; /* how many of the first have room there */
	FILE *live;         /* where intervals are printed as they come; NULL: nowhere */
	FILE *live_csv;
};

int stat_session_prepare(struct stat_session *s, const struct stat_values *v,
			 const struct operands *operands, struct diag *d);
void stat_session_release(struct stat_session *s);

/* Warm-ups, and N runs of each side. *exit_code: when CMD never ran. */
int stat_session_measure(struct stat_session *s, unsigned repeat, int *exit_code, struct diag *d);

/* The first failure of CMD among the judged runs: its exit code, or 0. */
int stat_session_exit_code(const struct stat_session *s, bool *ret_timed_out);

/* "user and kernel", "user" or "kernel": what of the code was counted. */
const char *stat_levels(const struct stat_session *s);

/* The session as if it had been saved and read again. Borrows from it. 0 or -ENOMEM. */
int stat_session_saved(const struct stat_session *s, struct saved_stat *ret);

/* --- parts (stat_places.c) -------------------------------------------------------------------- */

/* Opens the groups below the target's cgroup for --per-cgroup. */
int stat_cgroups_open(struct stat_session *s, struct diag *d);
int stat_interval_add(void *ctx, uint64_t elapsed_ns, const struct counters *c);
int stat_places_take(struct stat_session *s, const struct counters *c);
void stat_places_sections(struct stat_session *s, struct result *r);

/* --- rules (stat_rules.c) --------------------------------------------------------------------- */

#define STAT_ENOUGH_CPU_SECONDS 0.05 /* less is the start of a program, and no rule speaks of it */

extern const struct finding_rule stat_rules[];
extern const size_t n_stat_rules;

/* --- gate (stat_gate.c) ----------------------------------------------------------------------- */

struct stat_gate {
	ARRAY(struct limit) limits;
	ARRAY(struct budget) budgets;
	struct saved_stat base;
	bool has_base;
	/* the outcome */
	ARRAY(struct gate_decision)
	decisions;             /* limits, then budgets; of those with a reason empty */
	ARRAY(char *) reasons; /* why one could not be decided; NULL: it was */
	char *incompatible;    /* why nothing can be compared; NULL: it can */
	int exit_code;
};

/* Parses limits and budgets, and reads the baseline. *exit_code is set where it is not 2 or 125. */
int stat_gate_prepare(struct stat_gate *g, const struct stat_values *v, int *exit_code,
		      struct diag *d);
void stat_gate_release(struct stat_gate *g);

/* Units that do not go together, metrics that are none. 0 or -EINVAL. */
int stat_gate_check(const struct stat_gate *g, const struct saved_stat *now, struct diag *d);

/* Whether the baseline can be compared with what is going to be measured. 0, -EBADMSG, -ENOMEM. */
int stat_gate_compatible(const struct stat_gate *g, const struct saved_stat *now,
			 const struct stat_values *v, struct diag *d);

/* A line for each limit that could not be decided. */
void stat_gate_put_reasons(const struct stat_gate *g, FILE *out);

/* Fills the outcome. 0 or -ENOMEM. */
int stat_gate_judge(struct stat_gate *g, const struct saved_stat *now, const struct stat_values *v);
void stat_gate_section(const struct stat_gate *g, const struct saved_stat *now,
		       const struct stat_values *v, struct result *r);

/* Says why a CMD that failed has no verdict; the exit code for that. */
int stat_no_verdict(const struct saved_stat *now);
const char *stat_gate_verdict(const struct stat_gate *g);

/* --- reports (stat_report.c, stat_files.c, stat_output.c) ------------------------------------- */

/* `now`: the session as saved. */
int stat_report(struct stat_session *s, const struct saved_stat *now, struct result *r,
		struct diag *d);

/* The environment, and a note for each thing that makes a machine noisy (stat_environment.c). */
void stat_environment_facts(const struct stat_session *s, struct result *r);

/* --vs: the table of both sides, and the line about time (stat_compare.c). 0 or -ENOMEM. */
int stat_comparison_section(const struct stat_session *s, struct result *r);

/* Whole: amounts without fraction are counts. */
struct cell stat_cell(double v, enum unit u, bool whole);

/* The key of a metric in a run: "wall_ns". */
const char *stat_run_key(struct result *r, const struct stat_metric *m);

/* Findings of the numbers, as a section; the first line of the report with what to do next. */
int stat_findings(const struct saved_stat *now, const char *target, struct result *r);

int stat_check_file(const struct stat_values *v, struct stat_gate *g, int *exit_code,
		    struct diag *d);
int stat_table_files(const struct stat_values *v, const struct operands *files, struct diag *d);

/* Refuses, before anything is measured, what cannot be or must not be written. */
int stat_outputs_check(const struct stat_values *v, const struct operands *operands,
		       struct diag *d);
bool stat_takes_stdout(const struct stat_values *v); /* CMD's goes to stderr then */
bool stat_streams_csv(const struct stat_values *v);  /* intervals are out before the report */
/* To -o FILE, else stdout; the table of a command that was run goes to stderr. Also --save and
 * --markdown; when one cannot be written the others are all the same. */
int stat_print(const struct result *r, const struct stat_values *v, bool ran_command,
	       struct diag *d);

#endif
