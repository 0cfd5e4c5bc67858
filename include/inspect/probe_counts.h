/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Functions and events timed and counted (bpf/probes.bpf.c): from one point to another in the same
 * thread, a row with a histogram for each key.
 */
#ifndef INSPECT_PROBE_COUNTS_H
#define INSPECT_PROBE_COUNTS_H

#include <inspect/diag.h>
#include <inspect/host.h>
#include <inspect/probe_target.h>
#include <inspect/syscall_table.h>
#include <probes.abi.h>

enum probe_point_kind {
	PROBE_FUNCTION,   /* of a file, at an offset: uprobe, and uretprobe at its return */
	PROBE_USDT,       /* of a file */
	PROBE_TRACEPOINT, /* of the kernel */
	PROBE_KERNEL,     /* a function of the kernel: fentry and fexit, or kprobe and kretprobe */
	PROBE_KINDS,
};

/* A place in code. Texts are borrowed. */
struct probe_point {
	enum probe_point_kind kind;
	const char *text;                        /* as given: "u:/usr/bin/x:main" */
	const char *path;                        /* of the file, to open */
	uint64_t file_off;                       /* FUNCTION */
	const char *category;                    /* USDT: the provider; TRACEPOINT: "sched" */
	const char *name;                        /* USDT, TRACEPOINT, KERNEL */
	struct probes_field fields[PROBES_ARGS]; /* TRACEPOINT: what stands for its arguments */
};

struct probe_counts_config {
	struct probe_target target;
	const struct probe_point *begin;
	const struct probe_point *end; /* NULL: a function's own return; other points have none */
	struct probes_setup setup;     /* fields and has_end are filled here */
};

/* Functions end when they return. */
static inline bool probe_has_end(const struct probe_counts_config *c)
{
	return c->end || c->begin->kind == PROBE_FUNCTION || c->begin->kind == PROBE_KERNEL;
}
static inline bool probe_is_in_kernel(const struct probe_counts_config *c)
{
	return c->begin->kind == PROBE_TRACEPOINT || c->begin->kind == PROBE_KERNEL;
}

struct probe_losses {
	uint64_t ends_without_begin; /* calls that had begun before the start among them */
	uint64_t too_deep;           /* recursive calls beyond PROBES_DEPTH */
	uint64_t keys_dropped;       /* events whose key found no room */
	uint64_t threads_dropped;
};

struct probe_counts;

/* Loads and attaches; nothing counts yet. On failure the diag explains and nothing stays. */
int probe_counts_new(const struct probe_counts_config *c, const struct host *h,
		     struct probe_counts **ret, struct diag *d);
int probe_counts_start(struct probe_counts *c); /* 0 or -errno */
void probe_counts_stop(struct probe_counts *c);
void probe_counts_free(struct probe_counts *c);
bool probe_counts_alive(const struct probe_counts *c);

/* Whether there is an end: latencies are measured. */
bool probe_counts_has_end(const struct probe_counts *c);
/* Whether a function of the kernel is timed by fentry and fexit; else by kprobes. */
bool probe_counts_by_trampoline(const struct probe_counts *c);

/* Totals up to now into an empty table, whose own losses stay 0. 0 or -errno. */
int probe_counts_read(struct probe_counts *c, struct syscall_table *ret);
int probe_counts_losses(struct probe_counts *c, struct probe_losses *ret);

#endif
