/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Comparing with what was saved: limits and budgets as users write them, the decision on two
 * series of runs, and the saved file itself (the JSON of inspect stat).
 */
#ifndef INSPECT_BASELINE_H
#define INSPECT_BASELINE_H

#include <inspect/arena.h>
#include <inspect/array.h>
#include <inspect/diag.h>
#include <inspect/statistics.h>

/* What a metric is measured in. Values are doubles: ns, bytes, points of percent, or a number. */
enum unit { UNIT_COUNT, UNIT_NS, UNIT_BYTES, UNIT_PERCENT, UNIT_NUMBER };
const char *unit_name(enum unit u);              /* "count", "ns", "bytes", "percent", "number" */
int unit_find(const char *name, enum unit *ret); /* 0 or -ENOENT */

/* --- limits ----------------------------------------------------------------------------------- */

/*
 * `METRIC:LIMIT[&LIMIT]`: "instructions:+2%", "wall:+5%&+2ms", "requests:-3%". With two limits
 * both have to be exceeded. A limit with `-` is for what must not fall.
 */
struct limit {
	const char *text; /* as given */
	char *metric;
	bool falling;
	bool has_percent, has_absolute;
	double percent;  /* above 0 */
	double absolute; /* in the metric's unit; 0 or more */
	enum unit unit;  /* of `absolute`; UNIT_NUMBER: a bare number */
};
int limit_parse(const char *text, struct limit *ret, struct diag *d); /* 0, -EINVAL, -ENOMEM */
void limit_release(struct limit *l);

/* `METRIC<=VALUE` (or <, >, >=), VALUE with a unit: "max-rss<=200MB", "wall<1.5s". Powers of ten:
 * kB, MB, GB; of two: KiB, MiB, GiB. */
enum budget_compare { BUDGET_LT, BUDGET_LE, BUDGET_GT, BUDGET_GE };
struct budget {
	const char *text;
	char *metric;
	enum budget_compare compare;
	double value;
	enum unit unit;
};
int budget_parse(const char *text, struct budget *ret, struct diag *d);
void budget_release(struct budget *b);

/* Whether a limit or budget in `given` can be meant for a metric in `metric`: times for times,
 * bytes for bytes, bare numbers for the rest. 0 or -EINVAL with the diag. */
int unit_check(const char *text, enum unit given, enum unit metric, struct diag *d);

/* --- decisions -------------------------------------------------------------------------------- */

enum gate_mode {
	GATE_CI,     /* by the 95 % interval */
	GATE_MEDIAN, /* by the medians alone */
};
enum gate_verdict { GATE_PASSED, GATE_REGRESSION, GATE_INCONCLUSIVE };
const char *gate_verdict_name(enum gate_verdict v); /* "passed", "regression", "inconclusive" */

struct gate_decision {
	enum gate_verdict verdict;
	size_t outliers_base, outliers_now; /* left out of the decision */
	double base, now;                   /* medians of what was judged */
	bool has_ratio;                     /* base is above 0 */
	struct ratio ratio;                 /* now in units of base */
	double low, high;                   /* budgets: the interval of the mean */
	size_t runs_needed; /* inconclusive for want of runs: of each side; else 0 */
};

/*
 * GATE_CI: of all pairs of runs those are counted in which the new one is beyond the limit that
 * stands on the old one. It is a regression when the 95 % rank interval is beyond the limit as a
 * whole, passed when none of it is, inconclusive when it straddles it. That is the Mann-Whitney
 * test of the new runs against the old ones moved to the limit, two-sided 5 %; it needs no
 * baseline above 0.
 * Up to a fifth of a series is left out as outliers (series_outliers) and counted; with more of
 * them they are no outliers but what the program does, and nothing is left out.
 * 0, -EINVAL (an empty series), -ENOMEM.
 */
int limit_judge(const struct limit *l, struct series base, struct series now, enum gate_mode mode,
		struct gate_decision *ret);

/* The same for an absolute value: by the interval of the mean, by the value of a single run. */
int budget_judge(const struct budget *b, struct series now, enum gate_mode mode,
		 struct gate_decision *ret);

/* --- saved files ------------------------------------------------------------------------------ */

struct saved_metric {
	const char *name;
	enum unit unit;
	const char *reason; /* why there are no values; NULL: there are */
	ARRAY(double) runs;
	double running_percent; /* of the time that it was on a counter; 100 mostly */
};

/* Facts that must be equal for two files to be comparable: "cpu", "kernel", … */
struct saved_fact {
	const char *name, *value;
};

struct saved_stat {
	struct arena arena;
	const char *path;
	const char *command; /* may be "" */
	const char *verdict; /* its findings' rules, "" none */
	const char *target;  /* "-p 4711 -d 10", "-- CMD"; "" unknown */
	unsigned exit_code;  /* CMD's first failure, 128 + the signal that killed it; 0: none */
	bool timed_out;      /* that was --timeout */
	ARRAY(struct saved_metric) metrics;
	ARRAY(struct saved_fact) facts;
};

/* Reads what `inspect stat --json` or --save wrote. 0; -ENOENT and the like; -EBADMSG when it is
 * none. */
int saved_stat_read(const char *path, struct saved_stat *ret, struct diag *d);
void saved_stat_release(struct saved_stat *s);
const struct saved_metric *saved_stat_find(const struct saved_stat *s, const char *name);
/* Why there is no verdict on a CMD that failed: "the command ended with exit code 1". */
void saved_stat_failure(const struct saved_stat *s, char *buf, size_t size);
const char *saved_stat_fact(const struct saved_stat *s, const char *name); /* "" unknown */

#endif
