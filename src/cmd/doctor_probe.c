/* SPDX-License-Identifier: BSD-2-Clause */
#include "doctor_probe.h"

#include <inspect/bpf_sampler.h>
#include <inspect/capture.h>
#include <inspect/explain.h>
#include <inspect/perf_sampler.h>
#include <inspect/procfs.h>
#include <sched.h>
#include <sys/stat.h>
#include <time.h>

#define PROBE_HZ 99

static struct perf_event_attr clock_attr(bool kernel)
{
	return (struct perf_event_attr){
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_CPU_CLOCK,
		.freq = 1,
		.sample_freq = PROBE_HZ,
		.sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_CALLCHAIN,
		.exclude_kernel = !kernel,
		.exclude_callchain_kernel = !kernel,
		.exclude_hv = 1,
	};
}

static struct perf_attempt clock_attempt(void)
{
	return (struct perf_attempt){
		.event = "cpu-clock", .command = "record", .freq_hz = PROBE_HZ};
}

static enum ability_state judge(int err, const struct perf_attempt *a, const struct host *h,
				struct diag *d)
{
	if (!err)
		return ABILITY_YES;
	explain_perf_open(err, a, h, d);
	return ABILITY_NO;
}

static enum ability_state probe_own(const struct host *h, struct diag *d)
{
	struct perf_event_attr attr = clock_attr(false);
	struct perf_attempt a = clock_attempt();

	a.pid = -1;
	a.own_process = true;
	return judge(perf_event_probe(&attr, 0, -1), &a, h, d);
}

static enum ability_state probe_kernel_stacks(const struct host *h, struct diag *d)
{
	struct perf_event_attr attr = clock_attr(true);
	struct perf_attempt a = clock_attempt();

	a.pid = -1;
	a.own_process = true;
	a.kernel = true;
	return judge(perf_event_probe(&attr, 0, -1), &a, h, d);
}

/* A process of another user, or 0. */
static pid_t find_foreign(const struct host *h)
{
	struct pid_list pids = {0};
	pid_t found = 0;

	if (proc_pids(&pids) == 0)
		for (size_t i = 0; i < pids.n && !found; i++) {
			char path[32];
			struct stat st;

			snprintf(path, sizeof(path), "/proc/%d", (int)pids.v[i]);
			if (stat(path, &st) == 0 && st.st_uid != h->euid)
				found = pids.v[i];
		}
	array_release(&pids);
	return found;
}

/* With nobody else here there is nothing to try: then the capability decides, as in the kernel. */
static enum ability_state probe_other(const struct host *h, struct diag *d)
{
	struct perf_event_attr attr = clock_attr(false);
	struct perf_attempt a = clock_attempt();
	pid_t pid = find_foreign(h);
	int err = pid ? perf_event_probe(&attr, pid, -1) : -ESRCH;

	a.pid = -1;
	if (err == -ESRCH)
		err = host_perfmon_capable(h) ? 0 : -EACCES;
	return judge(err, &a, h, d);
}

static enum ability_state probe_all_cpus(const struct host *h, struct diag *d)
{
	struct perf_event_attr attr = clock_attr(host_allows_kernel_samples(h));
	struct perf_attempt a = clock_attempt();

	a.all_cpus = true;
	return judge(perf_event_probe(&attr, -1, MAX(sched_getcpu(), 0)), &a, h, d);
}

/* Sampling a cgroup takes the right to sample all CPUs, and a hierarchy that perf counts by. */
static enum ability_state probe_cgroups(const struct host *h, struct diag *d)
{
	enum ability_state state = probe_all_cpus(h, d);

	if (state != ABILITY_YES || cgroup_counts_events("/sys/fs/cgroup"))
		return state;
	if (access("/sys/fs/cgroup", F_OK)) {
		diag_set(d, -ENOENT, "no cgroups");
		diag_why(d, "there is no /sys/fs/cgroup here");
		diag_fix(d, "-p PID,…");
		return ABILITY_NO;
	}
	diag_set(d, -EOPNOTSUPP, "not all cgroups count events");
	diag_why(d,
		 "perf counts by the groups of %s alone; of a group elsewhere below "
		 "/sys/fs/cgroup the processes of the start and their children are recorded",
		 cgroup_counts_events("/sys/fs/cgroup/perf_event") ? "/sys/fs/cgroup/perf_event"
		 : cgroup_counts_events("/sys/fs/cgroup/unified")  ? "/sys/fs/cgroup/unified"
								   : "cgroup v2 (not mounted)");
	return ABILITY_LIMITED;
}

/* Without counters cpu-clock stands in, if that much is allowed. */
static enum ability_state probe_hardware(const struct host *h, struct diag *d)
{
	struct perf_event_attr attr = clock_attr(false), clock = clock_attr(false);
	struct perf_attempt a = clock_attempt();
	int err;

	attr.type = PERF_TYPE_HARDWARE;
	attr.config = PERF_COUNT_HW_CPU_CYCLES;
	a.event = "cycles";
	a.hardware = true;
	a.pid = -1;
	a.own_process = true;
	err = perf_event_probe(&attr, 0, -1);
	if (judge(err, &a, h, d) == ABILITY_YES)
		return ABILITY_YES;
	return perf_event_probe(&clock, 0, -1) ? ABILITY_NO : ABILITY_LIMITED;
}

static enum ability_state probe_tracepoints(const struct host *h, struct diag *d)
{
	struct perf_attempt a = {.event = "sched:sched_switch",
				 .command = "record",
				 .tracepoint = true,
				 .kernel = true,
				 .own_process = true,
				 .pid = -1};
	struct perf_event_attr attr;
	event_specs specs = {0};
	int err = event_specs_parse(a.event, h, &specs, d);

	if (err)
		return ABILITY_NO;
	attr = specs.v[0].attr;
	attr.sample_period = 1;
	attr.sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_RAW;
	event_specs_release(&specs);
	return judge(perf_event_probe(&attr, 0, -1), &a, h, d);
}

/* Hidden addresses are all zero; a few of the real ones may be. */
static enum ability_state probe_kernel_names(const struct host *h, struct diag *d)
{
	CLEANUP(fclosep) FILE *file = fopen("/proc/kallsyms", "re");
	char line[512];

	if (!file) {
		diag_errno(d, -errno, "cannot read /proc/kallsyms");
		return ABILITY_NO;
	}
	for (size_t i = 0; i < 1000 && fgets(line, sizeof(line), file); i++)
		if (strtoull(line, NULL, 16))
			return ABILITY_YES;
	if (!explain_kernel_names(h, d))
		diag_set(d, -EPERM, "the addresses in /proc/kallsyms are zero");
	return ABILITY_NO;
}

static int no_rows(void *ctx UNUSED, const struct dso *d UNUSED, bool quick UNUSED,
		   struct unwind_rows *ret UNUSED)
{
	return -ENOENT;
}

/* The whole sampler, on this process: only loading its program tells. */
static enum ability_state probe_unwinding(const struct host *h, struct diag *d)
{
	struct perf_event_attr attr = clock_attr(true);
	const char *name = "cpu-clock";
	pid_t self = getpid();
	struct bpf_sampler_config config = {
		.attrs = &attr,
		.names = &name,
		.n_events = 1,
		.callchain = true,
		.ring_pages = 1,
		.target = {.pids = &self, .n_pids = 1, .cgroup_fd = -1, .rows = no_rows},
	};
	struct source *source = NULL;
	note_list notes = {0};
	int err = explain_bpf(h, d);

	/* Events that share a ring share its clock. */
	attr.size = sizeof(attr);
	attr.sample_id_all = 1;
	attr.use_clockid = 1;
	attr.clockid = CLOCK_MONOTONIC;
	if (!err)
		err = bpf_sampler_new(&config, h, &notes, &source, d);
	source_freep(&source);
	note_list_release(&notes);
	return err ? ABILITY_LIMITED : ABILITY_YES;
}

/* Files are read without any rights but those on the file. */
static enum ability_state probe_files(const struct host *h UNUSED, struct diag *d UNUSED)
{
	return ABILITY_YES;
}

const struct ability abilities[] = {
	{"record, flame", "own processes", "-p PID, -- CMD", probe_own},
	{"record, flame", "kernel stacks", "", probe_kernel_stacks},
	{"record, flame", "processes of other users", "-p PID", probe_other},
	{"record, flame", "all CPUs", "-a", probe_all_cpus},
	{"record, flame", "cgroups", "--cgroup PATH", probe_cgroups},
	{"record, flame", "stacks without frame pointers", "", probe_unwinding},
	{"record, flame", "hardware counters", "-e cycles", probe_hardware},
	{"record, flame", "tracepoints", "-e GROUP:EVENT", probe_tracepoints},
	{"record, flame", "names of kernel functions", "", probe_kernel_names},
	{"report, flame, diff", "recordings and folded stacks", "FILE", probe_files},
	{0},
};
