/* SPDX-License-Identifier: BSD-2-Clause */
/* What the files of `inspect trace` share. */
#ifndef INSPECT_CMD_TRACE_H
#define INSPECT_CMD_TRACE_H

#include "gpu_choice.h"
#include "offcpu_view.h"

#include <inspect/fd_names.h>
#include <inspect/finding.h>
#include <inspect/options.h>
#include <inspect/probe_points.h>
#include <inspect/streaming.h>
#include <inspect/tracing.h>

/* --limit RULE=N, as given. */
struct trace_limit {
	const char *rule;
	double limit;
};

struct trace_values {
	struct target_options target;
	struct duration_options duration;
	struct common_options common;
	const char *filter; /* -e */
	bool summary;       /* -c */
	bool hist;
	const char *of, *by;        /* as given */
	const char *output, *flame; /* of --by stack */
	const char *probe, *until, *condition;
	bool locks, hold;
	const char *lock; /* --lock: an address or a part of the name */
	unsigned sort;    /* index into trace_sort_names */
	uint64_t top;
	bool all_rows, explain, verbose;
	uint64_t interval_ns;
	unsigned count;
	ARRAY(struct trace_limit) limits;

	/* GPU drivers (trace_gpu.c) */
	bool gpu, leaks;
	struct gpu_choice_options gpu_choice;
	bool cuda, cuda_launch; /* trace_cuda.c */

	/* the stream */
	bool timestamps, relative, failed, stack, opens, hot_files;
	bool string_bytes_given;
	uint32_t string_bytes;
	uint64_t min_latency_ns;
};

/* What a distribution is of. */
enum trace_of { TRACE_OF_LATENCY, TRACE_OF_BYTES, TRACE_OF_VALUE };

void trace_values_release(struct trace_values *v);
/* Nothing asks for a table of calls. */
bool trace_is_stream(const struct trace_values *v);

enum { TRACE_BINDINGS_MAX = 10 };
size_t trace_bind(struct trace_values *v, struct option_binding *bindings);
int trace_check_options(struct trace_values *v, const struct operands *operands, struct diag *d);

/* --by of system calls: enum syscalls_by, or'ed; text NULL: by call. 0 or -EINVAL. */
int trace_parse_by(const char *text, uint32_t *ret, struct diag *d);

/* -e as strace spells it; an empty set is refused. */
int trace_parse_filter(const char *text, struct syscall_set *ret, struct diag *d);

/* --- the stream (trace_stream.c, trace_opens.c) ----------------------------------------------- */

/* What it is run with: all is borrowed. */
struct trace_stream_run {
	const struct trace_values *v;
	const struct host *host;
	const struct target *target;
	const struct syscall_set *only; /* NULL: all calls */
	note_list *notes;
	struct diag *d;
};

/* Without -c and --hist: a line for each call, or --opens. */
int trace_stream_run(const struct trace_stream_run *run, int *exit_code);
int trace_opens(const struct trace_stream_run *run, const struct streaming_config *config,
		struct streaming *s);

/* --- by stack (trace_stacks.c): of calls, or of a probe --------------------------------------- */

bool trace_is_by_stack(const struct trace_values *v);
/* Libraries that only pass calls on: libc and NVIDIA's, by their short names. */
bool trace_module_passes_on(const char *module);

/* The function that made a site's calls: the innermost outside of the kernel, libc and NVIDIA's
 * libraries; otherwise the innermost one. Where it is a function that is probed (probe NULL: none),
 * one that called it. path is room for it. */
const char *trace_caller_of(const struct profile *p, const struct wait_site *s,
			    const struct probe_counts_config *probe, struct symbol_path *path);

/* A recording of calls of any kind by the stack that made them. All is borrowed. */
struct measure;
struct trace_stacks_run {
	const struct trace_values *v;
	const char *schema, *title; /* of the flame graph */
	/* Says what is counted (m->waits), when the target is known. 0, or -errno, explained. */
	int (*prepare)(void *ctx, struct measure *m, struct diag *d);
	/* Adds what is shown to the result, which has its facts; 0 or -ENOMEM. */
	int (*fill)(void *ctx, const struct recording *rec, const char *target, struct result *r);
	void *ctx;
};
int trace_stacks_record(const struct trace_stacks_run *run, const struct operands *operands,
			int argc, char **argv, int *exit_code, struct diag *d);

/* What is counted: it decides which columns there are. */
enum trace_stacks_of {
	TRACE_STACKS_CALLS = 1,
	TRACE_STACKS_PROBE = 2, /* with an end */
	TRACE_STACKS_HITS = 4,  /* … or none: no times */
	TRACE_STACKS_GPU = 8,   /* calls of a GPU's driver */
};
/* A row for each call from each stack, and the first of these stacks. 0 or -ENOMEM. */
int trace_stacks_table(const struct trace_values *v, const struct recording *rec,
		       enum trace_stacks_of of, const struct probe_counts_config *probe,
		       struct result *r);
struct offcpu_view trace_stacks_view(const struct trace_values *v, const struct recording *rec);

/* The whole command. argv: as it is kept in the file. */
int trace_stacks(const struct trace_values *v, const struct operands *operands, int argc,
		 char **argv, int *exit_code, struct diag *d);

/* --- rows (trace_rows.c) ---------------------------------------------------------------------- */

/* What a table is made with. */
struct trace_view {
	const struct trace_values *v;
	const struct syscall_counts *counts; /* names of files */
	const struct syscall_table *table;
	const struct trace_locks *locks; /* names of locks; NULL: none were learnt */
	struct fd_names *sockets;        /* names of those that are open; NULL: inodes are shown */
	int cgroups_fd;                  /* where cgroups of version 2 are mounted; 0: nowhere */
	uint32_t by;
	enum trace_of of;
	const char *value_name; /* of SYSCALLS_BY_VALUE: "arg1" */
	const char *title;      /* of the one row without a key */
	bool is_interval;       /* details are of the whole measurement alone */
	bool narrow;            /* fewer columns: 80 have to do */
};

/* The parts of --by in the order of their columns. */
struct trace_part {
	const char *name; /* "syscall" */
	const char *key;  /* of the column in JSON */
	enum syscalls_by by;
	enum cell_type type;
	bool is_long; /* may be cut */
};
extern const struct trace_part trace_parts[];
extern const size_t n_trace_parts;

/* "futex", "getpid (i386)" */
const char *trace_call_name(struct result *r, uint32_t code);

/* "4711", or "4711(12)" of a thread or process that lives and is 12 in its own pid namespace. */
const char *trace_task_number(const struct syscall_table *t, struct result *r, uint32_t number);

/* The cells of a key, one for each part in `by`; their number. */
size_t trace_key_cells(const struct trace_view *view, const struct syscall_row *row,
		       struct result *r, struct cell *cells);
/* The columns that go with them. */
size_t trace_key_columns(const struct trace_view *view, struct column *columns);

/* Waits by design: it is listed apart. */
bool trace_row_waits(const struct trace_view *view, const struct syscall_row *row);

/* Time in the call, those that have not ended included. */
static inline uint64_t trace_row_wall_ns(const struct syscall_row *row)
{
	return row->total_ns + row->open_ns;
}

enum {
	TRACE_SORT_CALLS = 1,
	TRACE_SORT_ERRORS,
	TRACE_SORT_P99 = 5,
	TRACE_SORT_MAX,
	TRACE_SORT_BYTES,
};
extern const char trace_sort_names[]; /* "total|calls|…" */

/* The rows (indices) in the order of --sort, greatest first; malloc'ed. */
int trace_sorted_rows(const struct syscall_table *t, unsigned sort, size_t **ret);

/* --- locks (trace_locks.c, trace_lock_names.c) ------------------------------------------------ */

/* Names of locks (process, address), learnt while the process is there to be asked. */
struct trace_locks;
int trace_locks_new(struct trace_locks **ret);
void trace_locks_free(struct trace_locks *l);

/* Learns the names of those that were waited at so far; by_lock: that is what is counted. 0 or
 * -errno. */
int trace_locks_learn(struct trace_locks *l, struct syscall_counts *counts, bool by_lock);

/* The same of a table whose rows are locks alone. */
int trace_locks_learn_rows(struct trace_locks *l, const struct syscall_table *t);

/* The rows of one object's words become one, that of the object, and of each detail the lock; what
 * is found by a row's key is found no more. 0 or -ENOMEM. */
int trace_locks_merge(const struct trace_locks *l, const struct syscall_counts *counts,
		      struct syscall_table *t);

/* "_PyRuntime (GIL)", "0x7f…" when nothing was learnt; in the result's arena. code: the key's. */
const char *trace_lock_name(const struct trace_locks *l, struct result *r, uint32_t pid,
			    uint64_t user_va, uint32_t code);
/* The address of the object that an address belongs to. */
uint64_t trace_lock_object(const struct trace_locks *l, uint32_t pid, uint64_t user_va);
bool trace_lock_is_gil(const struct trace_locks *l, uint32_t pid, uint64_t user_va);

/* --locks: a row for each lock, and the stacks of the first. 0 or -ENOMEM. */
int trace_lock_table(const struct trace_view *view, const char *target, struct result *r);

/* --locks --hold, the whole command (trace_holds.c). */
int trace_holds(const struct trace_values *v, const struct operands *operands, int *exit_code,
		struct diag *d);

/* --- what it means (trace_numbers.c, trace_rules.c) ------------------------------------------- */

#define TRACE_NUMBERS_MAX 40

struct trace_number {
	const char *name;
	double value;
	const char *subject; /* whose: "futex 0x7f… of python3 (4711)"; NULL none */
};

struct trace_numbers {
	struct trace_number v[TRACE_NUMBERS_MAX];
	size_t n;
};

/* Rates and shares by name, from a table with details. Texts go into the result's arena. */
void trace_numbers_fill(const struct trace_view *view, struct result *r, struct trace_numbers *ret);
double trace_number(void *numbers, const char *name);

extern const struct finding_rule trace_rules[];
extern const size_t n_trace_rules;
extern const struct finding_rule gpu_rules[]; /* of --gpu (trace_gpu_rules.c) */
extern const size_t n_gpu_rules;
/* Rules as --limit changes them, in the result's arena; NULL without memory. */
struct finding_rule *trace_limited_rules(const struct trace_values *v,
					 const struct finding_rule *from, size_t n,
					 struct result *r);

/* What stands out, with the limits of --limit; the caller releases *ret. 0 or -ENOMEM. */
int trace_findings(const struct trace_values *v, const struct trace_numbers *numbers,
		   const char *target, struct result *r, findings *ret);
int trace_explain(const struct trace_values *v, struct diag *d);
int trace_check_limits(const struct trace_values *v, struct diag *d);

/* --- reports (trace_summary.c, trace_hist.c) -------------------------------------------------- */

/* -c: the table, the waits by design, errors, findings, losses. 0 or -ENOMEM. */
int trace_summary(const struct trace_view *view, const char *target, struct result *r);
/* --hist: a distribution for each key. */
int trace_hist(const struct trace_view *view, struct result *r);
int trace_distributions(const struct trace_view *view, struct result *r); /* … without losses */
/* One distribution as bars, a section "histograms"; texts stay the caller's arena's. */
void trace_put_bars(struct result *r, const char *name, const char *heading,
		    const struct histogram *h, enum trace_of of);
/* The same of latencies, with its own heading. */
void trace_put_latencies(struct result *r, const char *name, const struct histogram *h);
/* Points of --probe with all that belongs to them; what was parsed is in `config`. */
struct trace_points {
	struct probe_text begin, end;
	struct probe_counts_config config;
	char *value_name; /* of --by */
	enum trace_of of;
};
int trace_points_parse(const struct trace_values *v, const struct target *t, const struct host *h,
		       struct trace_points *ret, struct diag *d);
void trace_points_release(struct trace_points *p);
/* --probe, the whole command (trace_probe.c). */
int trace_probe(const struct trace_values *v, const struct operands *operands, int *exit_code,
		struct diag *d);
/* --gpu, the whole command (trace_gpu.c). */
int trace_gpu(const struct trace_values *v, const struct operands *operands, int argc, char **argv,
	      int *exit_code, struct diag *d);
/* --cuda, the whole command (trace_cuda.c). */
int trace_cuda(const struct trace_values *v, const struct operands *operands, int *exit_code,
	       struct diag *d);
/* The facts that both begin with, and what is missing. */
void trace_facts(const struct trace_view *view, const struct tracing *t, const char *target,
		 struct result *r);
void trace_losses(const struct syscall_table *t, struct result *r);

#endif
