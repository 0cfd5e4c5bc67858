/* SPDX-License-Identifier: BSD-2-Clause */
/* What inference engines say of themselves, under one name each. */
#ifndef INSPECT_METRICS_ENGINE_H
#define INSPECT_METRICS_ENGINE_H

#include "readings.h"

enum engine_value {
	ENGINE_RUNNING,
	ENGINE_RUNNING_ELSE, /* taken when the first is not there */
	ENGINE_WAITING,
	ENGINE_WAITING_ELSE,
	ENGINE_KV,      /* 0…1 */
	ENGINE_KV_USED, /* … these two instead, where that is not there */
	ENGINE_KV_ALL,
	ENGINE_PREEMPTED, /* counters */
	ENGINE_FAILED,
	ENGINE_VALUES,
};

enum engine_time {
	ENGINE_FIRST_TOKEN,
	ENGINE_PER_TOKEN,
	ENGINE_QUEUE,
	ENGINE_PREFILL,
	ENGINE_DECODE,
	ENGINE_TIMES,
};

enum { ENGINE_BUCKETS_MAX = 64 };

struct engine_histogram {
	double bound[ENGINE_BUCKETS_MAX], count[ENGINE_BUCKETS_MAX]; /* up to it, seconds */
	size_t n;
	size_t from; /* which of the names it has: the best of those that are there */
};

struct engine_page {
	const char *engine;           /* "vLLM"; NULL: none that is known */
	double values[ENGINE_VALUES]; /* NAN: not there, or no number */
	double odd[ENGINE_VALUES]; /* what is there instead of one: NAN, INFINITY, out of range */
	bool is_odd[ENGINE_VALUES];
	struct engine_histogram times[ENGINE_TIMES];
	int bad_lines;
};

/* 0 or what prometheus_parse says. */
int engine_parse(const char *text, size_t n, struct engine_page *ret);

/* The quantile (0…1) of what came between two readings, in seconds, by linear interpolation within
 * a bucket; NAN when nothing came. */
double engine_quantile(const struct engine_histogram *now, const struct engine_histogram *before,
		       double quantile);

/* Where a process listens, as who is on its machine reaches it. */
struct engine_port {
	unsigned port;
	bool v6;   /* on ::1 alone */
	pid_t pid; /* whose network namespace it is; 0: ours */
};

/* Ports of loopback or any address on which the pids listen, those that engines have by themselves
 * first (engine_find.c). How many; 0 with a reason. */
enum { ENGINE_PORTS_MAX = 16 };
size_t engine_ports(const char *root, const pid_t *pids, size_t n, struct engine_port *ret_ports,
		    const char **ret_reason);

#endif
