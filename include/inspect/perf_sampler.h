/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sampling by plain perf_event_open: event names, rings, and the source that `record` reads.
 */
#ifndef INSPECT_PERF_SAMPLER_H
#define INSPECT_PERF_SAMPLER_H

#include <inspect/diag.h>
#include <inspect/event.h>
#include <inspect/host.h>
#include <inspect/note_list.h>
#include <inspect/source.h>
#include <inspect/strbuf.h>
#include <sys/types.h>

struct event_spec {
	struct perf_event_attr attr; /* type, config…, exclude_*, precise_ip from the text */
	char *name;                  /* as perf prints it, modifiers included ("cycles:u") */
	bool is_tracepoint;
};

typedef ARRAY(struct event_spec) event_specs;

/*
 * Parses an -e list: hardware, software and cache events by perf's names, `:u :k :p…` modifiers,
 * tracepoints ("sched:sched_switch", ids from tracefs), rNNN, pmu/terms/. Appends to *ret.
 * On failure nothing is appended; the diag names the event, near misses, and what lists them.
 */
int event_specs_parse(const char *text, const struct host *host, event_specs *ret, struct diag *d);

/* Whether libpfm4 is here, which knows the events of CPUs by their own names. */
bool event_library_found(void);
void event_specs_release(event_specs *s);

/* Whether this host has the event at all: opens it for the caller, user code only, and closes it
 * again. A refusal for lack of rights says nothing against it. */
bool perf_event_available(const struct perf_event_attr *attr);

/* Whether an event of exactly this attr may be opened on a target (pid and cpu as for
 * perf_event_open): opens and closes it. 0 or -errno. */
int perf_event_probe(const struct perf_event_attr *attr, pid_t pid, int cpu);

struct sampler_config {
	const char *command; /* of the user, for advice: "record" */
	const event_specs *events;
	uint64_t freq_hz; /* one of freq_hz and period is set; tracepoints: period 1 by default */
	uint64_t period;
	bool freq_given; /* by the user: above the limit it is refused, else lowered */
	bool callchain;
	uint64_t user_regs;   /* with stack_bytes: registers (perf_regs.h) and a copy of the user
			       * stack instead of its frames; 0: none */
	unsigned stack_bytes; /* at most 65528, and an eighth of the ring */
	bool user_only, kernel_only;
	unsigned max_stack;  /* 0: the kernel's default */
	bool idle_cpus;      /* sample idle CPUs too */
	unsigned ring_pages; /* per CPU, a power of two; 0: default (512 KiB, or more as root) */

	const pid_t *pids; /* processes: all their threads, children followed */
	size_t n_pids;
	const pid_t *tids; /* single threads */
	size_t n_tids;
	const int *cpus; /* -C, or NULL: all online */
	size_t n_cpus;
	bool all;      /* -a, or -C without a target */
	int cgroup_fd; /* -1: none */
	pid_t child;   /* a stopped child that will exec: events enabled on exec; 0: none */
	const char *child_command; /* what it will execute; NULL: no child */
	bool child_runs; /* it has done so when counting starts (a delay): enabled by start */
};

/*
 * Opens all events and rings; nothing counts yet. What had to be less than asked (smaller ring,
 * user only, threads gone) is appended to *notes, one line each. On failure the diag explains
 * (explain_perf_open) and nothing stays open.
 */
/*
 * The source's descriptors change as threads end: ask for them again after each read. Rings wake
 * the reader when a quarter is full, so poll with a timeout. read answers 0 when every thread that
 * could still be sampled has ended.
 */
int sampler_new(const struct sampler_config *config, const struct host *host, note_list *notes,
		struct source **ret, struct diag *d);

/*
 * The attr that sampler_new would open on every CPU for one event of the config: for a sampler that
 * takes the stacks itself. A rate above the kernel's limit is refused or lowered as there. 0 or
 * -errno.
 */
int sampler_attr(const struct sampler_config *config, size_t event, const struct host *host,
		 note_list *notes, struct perf_event_attr *ret, struct diag *d);

/*
 * The kernel writes a LOST record with the next record that fits, and the losses at the end of a
 * full ring with none. For each CPU whose events counted more (PERF_FORMAT_LOST, 6.0+; side-band
 * records included) than the records read so far have told, emits one LOST record with the rest.
 * After the last read. 0, -ENOMEM, or what emit returned if not 0.
 */
int sampler_untold_losses(struct source *s, record_fn *emit, void *ctx);

/*
 * Writes FORK (marked PERF_RECORD_MISC_FORK_EXEC: the parent's mappings are not the child's) and
 * COMM for every thread, and MMAP2 records (executable mappings, with build-ids when readable,
 * " (deleted)" kept) for processes that exist now; synthesize_kernel, for kernel samples, the MMAP
 * of the kernel and its modules when their addresses are visible. Records have time 0 and carry the
 * sample_id trailer of `events`. A thread's id stands for its process; pids NULL: all. What ends
 * meanwhile is left out. Call it after start, so that no mapping falls between. 0, -errno, or what
 * emit returned if not 0.
 */
int synthesize_processes(const pid_t *pids, size_t n_pids, const struct event_table *events,
			 record_fn *emit, void *ctx);
int synthesize_kernel(const struct event_table *events, record_fn *emit, void *ctx);

/* What perf needs to read records of tracepoints (the TRACING_DATA feature); *ret stays empty when
 * no event is one. 0 or -errno. */
int tracing_data_read(const struct event_table *events, const struct host *host,
		      struct strbuf *ret);

#endif
