/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Measuring: who is measured, the child that is started, the loop, and the pipeline from records
 * to a profile (the life of a sample, docs/architecture.md).
 */
#ifndef INSPECT_CAPTURE_H
#define INSPECT_CAPTURE_H

#include <inspect/decode.h>
#include <inspect/options.h>
#include <inspect/perf_sampler.h>
#include <inspect/perfdata.h>
#include <inspect/procfs.h>
#include <inspect/profile.h>
#include <sys/resource.h>

/* Who is measured, resolved from options and operands. */
struct target {
	struct pid_list pids, tids; /* each once */
	ARRAY(int) cpus;
	bool all;
	char *cgroup;  /* absolute path, NULL none */
	int cgroup_fd; /* -1: none, or the hierarchy has no perf_event: pids were listed instead */
	char **argv;   /* CMD, borrowed, NULL none */
	bool cmd_times_only; /* with -p/-a: CMD only gives the length, as in perf */
	note_list hints;     /* for who measures now; not stored in a file */
};
int target_resolve(const struct target_options *o, const struct operands *operands,
		   const struct host *host, note_list *notes, struct target *ret, struct diag *d);
void target_release(struct target *t);

/* The processes that are in the target's cgroup now, or below it, as its pids. */
int target_list_cgroup(struct target *t, note_list *notes, struct diag *d);
/* Whether there are any. */
bool cgroup_has_processes(const char *path);

/* Whether perf counts by the cgroups of the hierarchy that the path lies in. */
bool cgroup_counts_events(const char *path);

/*
 * CMD: a child that waits before its exec until it is let go. When the measurement cannot start
 * (child_cancel), or this tool dies first, CMD never runs.
 */
struct child {
	pid_t pid; /* 0: no CMD */
	const char *name;
	int go_fd, error_fd;
	int pidfd;        /* readable when it has ended; -1 where the kernel has none */
	bool exec_failed; /* CMD never ran: the exit code says why, 126 or 127 */
	bool reaped;
	int status;          /* wait status once reaped */
	struct rusage usage; /* of the child and what it waited for, once reaped */
};
/* stdout_taken: what CMD writes to stdout goes to stderr. */
int child_prepare(char **argv, bool stdout_taken, struct child *ret, struct diag *d);
/* The same with descriptors for what CMD writes to stdout and stderr; -1: as they are. */
int child_prepare_to(char **argv, int stdout_fd, int stderr_fd, struct child *ret, struct diag *d);
int child_go(struct child *c, struct diag *d); /* exec; a failed one is explained */
bool child_poll(struct child *c);              /* true when it has ended (or there is none) */
void child_end(struct child *c);               /* SIGTERM, after 2 s SIGKILL; waits */
void child_cancel(struct child *c);            /* before child_go: it leaves unrun */
int child_exit_code(const struct child *c);    /* CMD's code, 128 + N for a signal */

/* How a measurement by BPF went: of tracing.h, streaming.h, gpu_tracing.h and cuda_tracing.h. */
struct watched {
	struct child child; /* pid 0: no CMD */
	uint64_t start_ns;
	bool interrupted;       /* by a signal */
	bool ended_by_duration; /* CMD was still running and was ended */
};
/* This tool's exit code where CMD decides it, err being how the rest went. */
void watched_exit_code(const struct watched *w, const struct target *t, int err, int *exit_code);
void watched_release(struct watched *w);

/* A cgroup that limits CPU time (capture/cpu_groups.h). */
struct cpu_group {
	char *dir;
	int64_t n_throttled; /* nr_throttled in its cpu.stat at the start */
};
typedef ARRAY(struct cpu_group) cpu_group_list;

/* CPU time of the target over the measurement, from /proc; a second opinion beside the samples. */
struct target_usage {
	uint64_t start_ns;    /* clock */
	uint64_t cpu_ns;      /* of the pids at the start */
	uint64_t children_ns; /* of their existing children */
	size_t n_children;
	/* That its processes are in, with those above: how often each was throttled by then. */
	cpu_group_list groups;
	size_t n_at_start; /* groups; the others were met later */
};
void target_usage_begin(const struct target *t, const struct child *child, struct target_usage *u);
void target_usage_release(struct target_usage *u);
/* The groups of a process that may have moved since the start. 0 or -ENOMEM. */
int target_usage_follow(struct target_usage *u, pid_t pid);

struct target_load {
	double cpus;          /* CPUs used by the target on average; < 0 unknown */
	double quota;         /* of its cgroup, in CPUs; < 0 none */
	int64_t n_throttled;  /* periods in which a group used its quota up; < 0 unknown */
	bool at_least;        /* of some groups, only since they were met */
	uint32_t cpus_online; /* those measured, with -C */
	size_t n_children;    /* existing children that are not part of the target */
	double children_cpus;
};
void target_usage_end(const struct target *t, const struct child *child,
		      const struct target_usage *u, const struct host *host,
		      struct target_load *ret);

/* From records to a profile; steps in order, on one screen. */
struct sample_filter {
	const char *comm, *dso, *symbol;   /* NULL: any; symbol is applied after naming */
	uint32_t pid, tid;                 /* 0 any */
	uint64_t time_from_ns, time_to_ns; /* relative to the first sample; 0,0: all */
};

/* How samples with registers and a stack copy get their chains. */
struct unwinding {
	unsigned max_stack; /* frames, the kernel's too; 0: as many as there may be */
	bool local_host;    /* recorded here: /proc and our own vdso are the target's */
	bool no_cache;      /* of rows, on disk */
	bool leave_large;   /* large files whose rows are not on disk: the BPF sampler makes them */
	const struct perfdata_info *info; /* of the file that is read; NULL when live */
	/* Receives every record in the order of time, samples with chains in place of registers and
	 * stack copies; or NULL. */
	record_fn *output;
	void *output_ctx;
};

struct pipeline;
int pipeline_new(const struct event_table *events, struct profile *profile,
		 const struct sample_filter *filter, bool live, struct pipeline **ret);
void pipeline_free(struct pipeline *p);
/* Files of new mappings are looked for there first. Borrowed. */
struct build_ids;
void pipeline_build_ids(struct pipeline *p, const struct build_ids *b);
/* Where the stacks of waits (struct sample_waits) are in the profile: called for each sample. */
typedef void pipeline_site_fn(void *ctx, uint32_t site, uint32_t stack);
void pipeline_sites(struct pipeline *p, pipeline_site_fn *found, void *ctx);
int pipeline_unwind(struct pipeline *p, const struct unwinding *u); /* before the first record */
int pipeline_record(struct pipeline *p, const struct perf_event_header *record, size_t size_bytes,
		    bool stable);
int pipeline_round(struct pipeline *p);
/* Where the names of code made at run time are, for a recording that is read: stored with it, or
 * (saved NULL, or without such names) in the dumps on this machine. Before pipeline_finish. */
struct saved_names;
void pipeline_jit_sources(struct pipeline *p, const struct saved_names *saved, bool local_host);
int pipeline_finish(struct pipeline *p); /* flush; losses and times are final after it */

/* Waits in place of samples of the CPU. */
struct waits;
struct probe_counts_config;
struct syscall_set;
struct gpu_calls_config;
struct waits_config {
	uint64_t min_wait_ns, max_wait_ns; /* max 0: none */
	bool kthreads;
	bool chains;                    /* above what is waited for: who woke whom, with stacks */
	bool loops;                     /* gaps of event loops */
	bool calls;                     /* system calls, all the time in them, in place of waits */
	const struct syscall_set *only; /* … these; NULL: all */
	const struct probe_counts_config *probe; /* from one point in code to another, instead */
	const struct gpu_calls_config *gpu; /* calls of GPU drivers in place of waits; NULL: no */
	bool wall; /* what runs is in it too, sampled at the recording\'s frequency */
};

/* One measurement by sampling, from the opened target to a named profile. */
struct recording_config {
	const char *command; /* name, for advice: "record" */
	struct target *target;
	const struct host *host;
	const event_specs *events;
	const note_list *notes; /* what was already less than asked */
	const struct sampling_options *sampling;
	uint64_t freq_hz, period; /* one is set */
	bool freq_given;
	uint64_t duration_ns, delay_ns; /* duration 0: until ^C or the end of the target */
	const char *output;             /* perf.data to write, "-" stdout; NULL: only the profile */
	const char *command_line;       /* as stored in the file */
	bool show_progress;
	bool stdout_taken; /* stdout is for this tool's output alone, not for CMD's */
	struct naming_options naming;
	const struct waits_config *waits; /* NULL: what runs is sampled */
};

struct recording {
	struct profile *profile; /* symbolized; notes, losses and duration filled */
	struct waits *waits;     /* NULL: samples */
	struct target_load load;
	struct child child; /* CMD, ended or still running when it only gave the length */
	uint64_t file_bytes;
	bool interrupted;       /* by a signal */
	bool moved_old;         /* an older output became .old */
	bool ended_in_delay;    /* the target, before anything was measured */
	bool ended_by_duration; /* CMD was still running and was ended */
};
int recording_run(const struct recording_config *c, struct recording *ret, struct diag *d);
void recording_release(struct recording *r);

/* CMD's code, 128 + N for a signal. 0 where the recording was ended otherwise: by its duration, or
 * by ^C where CMD only gave the length. */
int recording_exit_code(const struct recording *r, const struct target *t);

/* Any file that report, flame and diff accept (perf.data, folded, perf script text; "-" stdin)
 * into a symbolized profile. */
struct load_options {
	struct sample_filter filter;
	struct naming_options naming;
};
int profile_load(const char *path, const struct load_options *o, struct profile **ret,
		 struct diag *d);

#endif
