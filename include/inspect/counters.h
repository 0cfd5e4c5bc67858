/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Counting by perf_event_open: events in groups that fit the PMU, on threads, CPUs or cgroups,
 * with what multiplexing has left out estimated and shown.
 */
#ifndef INSPECT_COUNTERS_H
#define INSPECT_COUNTERS_H

#include <inspect/perf_sampler.h>

/* One reading of one event (perf_event_open(2), PERF_FORMAT_TOTAL_TIME_…). */
struct count {
	uint64_t value;
	uint64_t enabled_ns; /* time that it could have counted */
	uint64_t running_ns; /* time that it was on a counter */
};

/* What the PMU would have counted had the event been on it all the time; as perf rounds it. */
double count_scaled(const struct count *c);

/* The kernel, or a PMU made of tables in a test. All answer 0 (open: a descriptor) or -errno. */
struct pmu_ops {
	int (*open)(void *ctx, const struct perf_event_attr *attr, pid_t pid, int cpu, int group_fd,
		    unsigned long flags);
	int (*enable)(void *ctx, int fd, bool on);
	int (*read)(void *ctx, int fd, struct count *ret);
	void (*close)(void *ctx, int fd);
};
extern const struct pmu_ops pmu_kernel_ops; /* ctx NULL */

/* Events as given by -e, with {…} for groups. groups.v[i] is the group of event i: equal numbers
 * stand together and are scheduled together. */
struct counter_events {
	event_specs specs;
	ARRAY(unsigned) groups;
};

/*
 * Parses an -e list and appends it; `{a,b}` is a group. Names by perf's spelling, and those that
 * libpfm4 has for this CPU (event_specs_parse). 0 or -errno with the diag.
 */
int counter_events_parse(const char *text, const struct host *host, struct counter_events *ret,
			 struct diag *d);
void counter_events_release(struct counter_events *e);

struct counters_config {
	const struct counter_events *events;
	bool user_only, kernel_only;
	bool required; /* events that this user may not have are a failure, else only a reason */

	const pid_t *pids; /* processes: all their threads, and what they start from now on */
	size_t n_pids;
	const pid_t *tids; /* single threads */
	size_t n_tids;
	pid_t child;     /* a stopped child that will exec; 0: none */
	bool child_runs; /* it has done so when counting starts (a delay) */
	bool all;        /* every process on the CPUs */
	const int *cgroup_fds;
	size_t n_cgroups;
	const int *cpus; /* NULL: all online */
	size_t n_cpus;
	bool per_cpu; /* tasks are counted on each CPU apart; CPU-wide targets always are */
};

/* Where the events are counted: one row of --per-core, --per-thread, --per-cgroup. */
struct counter_place {
	pid_t tid;     /* 0: no task */
	int cpu;       /* -1: any */
	size_t cgroup; /* index, SIZE_MAX: none */
};

struct counter_event {
	char *name;     /* with the modifiers that were left of it ("cycles:u") */
	char *missing;  /* why it is not counted at all; NULL: it is */
	int err;        /* the errno behind `missing` */
	bool broken_up; /* its group did not fit the PMU: it is counted alone */
	struct perf_event_attr attr;
};

struct counters;

/*
 * Opens everything; nothing counts yet. An event that this host does not have is `missing`, and
 * the others go on. A group that the PMU refuses as a whole is broken up, with a note. Kernel code
 * is left out, with a note, where only that makes the difference. On failure nothing stays open.
 */
int counters_new(const struct counters_config *config, const struct pmu_ops *ops, void *ops_ctx,
		 const struct host *host, note_list *notes, struct counters **ret, struct diag *d);
void counters_free(struct counters *c);
void counters_freep(struct counters **c);

int counters_start(struct counters *c); /* 0 or -errno; events of a child start with its exec */
int counters_stop(struct counters *c);
int counters_read(struct counters *c); /* takes the counts of now; 0 or -errno */

size_t counters_events(const struct counters *c);
const struct counter_event *counters_event(const struct counters *c, size_t event);
size_t counters_places(const struct counters *c);
const struct counter_place *counters_place(const struct counters *c, size_t place);

/* As last read. False when the event is not open there. */
bool counters_at(const struct counters *c, size_t event, size_t place, struct count *ret);

/* What a count of the event means: scaled, when it can have been multiplexed. False: it is missing,
 * or it never got a counter though it could have run. */
bool counters_value(const struct counters *c, size_t event, const struct count *count, double *ret);

/* All places: the scaled sum, and in *ret the sums of value and times. */
double counters_total(const struct counters *c, size_t event, struct count *ret);

/* Why an event failed to open with -err, in a few words: "no hardware counters in this VM". */
const char *counter_reason(int err, bool hardware, const struct host *host);

#endif
