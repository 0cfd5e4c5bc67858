/* SPDX-License-Identifier: BSD-2-Clause */
/* One measurement by counting: child, counters, what the kernel accounts, and time. */
#ifndef INSPECT_COUNTING_H
#define INSPECT_COUNTING_H

#include <inspect/capture.h>
#include <inspect/counters.h>
#include <inspect/task_usage.h>

/* A whole line that CMD wrote to stdout or stderr, without its newline; cut at 64 KiB. */
typedef void counting_line_fn(void *ctx, const char *line);

/* After each interval, with the counts of now. Not 0: ends the measurement. */
typedef int counting_interval_fn(void *ctx, uint64_t elapsed_ns, const struct counters *c);

struct counting_config {
	const struct target *target;
	const struct host *host;
	const struct counter_events *events;
	bool user_only, kernel_only;
	bool required; /* as in counters_config */
	bool per_cpu;
	const int *cgroup_fds; /* --per-cgroup; NULL: the target's own */
	size_t n_cgroups;
	uint64_t duration_ns, delay_ns, timeout_ns, interval_ns; /* 0: none */
	unsigned intervals_max;                                  /* 0: no limit */
	int signal_fd;                                           /* signals_open */
	bool stdout_taken;      /* what CMD writes to stdout goes to stderr */
	counting_line_fn *line; /* NULL: CMD's output is not looked at, and not touched */
	counting_interval_fn *interval;
	void *ctx;
};

struct counting {
	struct counters *counters; /* as last read */
	struct task_usage usage;   /* over the measurement */
	struct child child;        /* pid 0: no CMD */
	uint64_t wall_ns;
	size_t left_out;        /* children that a -p target had before: they are not counted */
	double left_out_cpus;   /* what they used meanwhile */
	bool interrupted;       /* by a signal */
	bool timed_out;         /* CMD was ended by the time-out */
	bool ended_by_duration; /* CMD was still running and was ended */
};

/* Signals that end a measurement, as a descriptor; they stay blocked until it is closed. */
int counting_signals_open(void); /* or -errno */
void counting_signals_close(int fd);

/* 0; on failure CMD has not run, or was ended. *ret must be released in both cases: after a failed
 * exec its child says so. */
int counting_run(const struct counting_config *c, note_list *notes, struct counting *ret,
		 struct diag *d);
void counting_release(struct counting *r);

#endif
