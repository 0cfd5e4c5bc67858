/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Utilisation, saturation and errors of every resource (B. Gregg's USE method): two readings of
 * /proc, /sys, NVML and an inference server's metrics become rows with values over the time between
 * them. What a value is, where it comes from and its limits stand in one table, use_metrics. What
 * could not be read is NAN with its reason, never 0.
 */
#ifndef INSPECT_USE_H
#define INSPECT_USE_H

#include <inspect/arena.h>
#include <inspect/array.h>
#include <inspect/driver_calls.h>
#include <inspect/task_times.h>
#include <sys/types.h>

enum use_kind { USE_UTILISATION, USE_SATURATION, USE_ERRORS, USE_KINDS };

enum use_verdict {
	USE_NO_DATA,
	USE_NOT_JUDGED, /* it is above a limit that means nothing here */
	USE_OK,
	USE_WARN,
	USE_CRITICAL
};

struct use_metric {
	const char *key; /* "cpu_busy_percent": the unit last; unique */
	enum use_kind kind;
	double warn, critical; /* above them; NAN: none */
	const char *shown;     /* printf format of one double */
	const char *source;    /* the file, or the call */
	const char *why;       /* where the limits come from; NULL without limits */
};
extern const struct use_metric use_metrics[];
extern const size_t n_use_metrics;

/* Index into use_metrics, or n_use_metrics. */
size_t use_metric_find(const char *key);

struct use_limit {
	double warn, critical;
};

/* Of those that were given (NULL: none), else the table's. */
struct use_limit use_limit_of(const struct use_limit *limits, size_t metric);

struct use_value {
	unsigned metric;
	double v;           /* NAN: no data, because of `reason` */
	const char *reason; /* NULL unless v is NAN */
	const char *source; /* the very file where that differs from the table's */
	const char *text;   /* shown instead of the number by the table's format; or NULL */
	/* Why it is not: too little happened, or it is not this resource's own limit; or NULL. */
	const char *not_judged;
	enum use_verdict verdict;
};

#define USE_VALUES_MAX 12

/* One resource: a disk, the memory of a cgroup, all CPUs. */
struct use_row {
	const char *resource; /* "disk", of a fixed set */
	const char *device;   /* "vda", "" the only one */
	const char *scope;    /* "host", "cgroup", "process", "engine", "gpu" */
	const char *path;     /* of a cgroup: its folder; else NULL */
	struct use_value values[USE_VALUES_MAX];
	size_t n_values;
	enum use_verdict verdict; /* the worst of its values */
	double score;             /* of the value nearest to its critical limit; 1: at it */
	bool detail;              /* an equal of others that is no worse than they: with --all */
	bool foreign;             /* a device that the target does not use */
	unsigned hidden;          /* details that this row stands for */
};

struct use_report {
	struct arena arena; /* names, reasons, texts */
	ARRAY(struct use_row) rows;
	ARRAY(const char *) notes;
	double seconds;   /* between the two readings */
	double own_cpu_s; /* that this program used meanwhile */
	bool has_target;  /* its rows come before the host's that are as bad */
	bool failed;      /* out of memory */
};
void use_report_release(struct use_report *r);

/* The first value with this metric in the row, or NULL. */
const struct use_value *use_row_value(const struct use_row *row, const char *key);

/* The row in which the metric is highest, or NULL when none has it. A target's own devices come
 * before those that it does not use. */
const struct use_row *use_report_worst(const struct use_report *r, const char *key);

/* By how bad, with a target its own first, then by name. */
void use_report_sort(struct use_report *r);

/* Where to read, and of whom. All borrowed for the life of the session. */
struct use_config {
	const char *root; /* before /proc and /sys: "" this machine, or a recorded tree */
	double seconds;   /* between the readings of a recorded tree; 0: by the clock */
	const pid_t *pids;
	size_t n_pids;
	/* Those of now, asked for before each reading (a cgroup's come and go), borrowed until the
	 * next time; NULL: the pids above. */
	int (*list_pids)(void *ctx, const pid_t **ret, size_t *ret_n);
	void *list_ctx;
	const char *cgroup;             /* absolute path in a hierarchy, or NULL */
	const char *engine;             /* URL, or NULL */
	bool find_engine;               /* among the ports that the pids listen on */
	bool in_pid_namespace;          /* pids are not the host\'s */
	bool gpus;                      /* look for them: not in a recorded tree */
	const struct use_limit *limits; /* n_use_metrics of them, NAN: as in the table; or NULL */
	/* Times of tasks from elsewhere (BPF), or NULL: /proc is walked. */
	task_times_fn *tasks;
	void *tasks_ctx;
	const char *tasks_reason; /* why not */
	/* Calls of the GPUs' driver, or NULL with the reason. */
	driver_calls_fn *driver;
	void *driver_ctx;
	const char *driver_reason;
};

struct use;
int use_new(const struct use_config *c, struct use **ret);
void use_free(struct use *u);

/* Takes one reading. 0 or -ENOMEM: what cannot be read is told by the rows. */
int use_read(struct use *u);

/* Between two readings, several times a second, with the time until the next one: what has no
 * counter is sampled. What takes long to read is read in here, so that it ends with the window; for
 * that the last call should come use_lead_ns before the end. */
void use_tick(struct use *u, uint64_t left_ns);
uint64_t use_lead_ns(const struct use *u);

/* Rows from the last two readings. 0, -ENOMEM, or -EINVAL before the second one. */
int use_rows(struct use *u, struct use_report *ret);

#endif
