/* SPDX-License-Identifier: BSD-2-Clause */
/* The machine that a measurement was made on, as far as it decides what numbers mean. */
#ifndef INSPECT_ENVIRONMENT_H
#define INSPECT_ENVIRONMENT_H

#include <inspect/host.h>

struct environment {
	char cpu[128];     /* model; "" unknown */
	char governor[32]; /* of the first CPU; "" there is no cpufreq */
	int smt;           /* 1 on, 0 off, -1 unknown */
	double load_1m;    /* at the start; < 0 unknown */
	/* Counters and state of now, for what changes meanwhile. */
	double steal_ns, total_ns; /* of all CPUs since boot */
	double freq_khz;           /* mean over the CPUs; < 0 unknown */
};

/* `root` as in host_read. Never fails: what cannot be read stays unknown. */
void environment_read(struct environment *e, const char *root);

/* What made the machine noisy between two readings. */
struct noise {
	double load_per_cpu;  /* at the start; < 0 unknown */
	double steal_percent; /* of the CPUs' time */
	double freq_percent;  /* change of the mean frequency; 0 unknown */
};
void environment_noise(const struct environment *start, const struct environment *end,
		       uint32_t cpus_online, struct noise *ret);

#define NOISE_LOAD_PER_CPU 0.5
#define NOISE_STEAL_PERCENT 1.0
#define NOISE_FREQ_PERCENT 5.0

#endif
