/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Advice for refusals, as pure functions of what was tried, the errno, and the host: table-tested
 * without root. Each fills the diag with what, why, and the least change that helps.
 */
#ifndef INSPECT_EXPLAIN_H
#define INSPECT_EXPLAIN_H

#include <inspect/diag.h>
#include <inspect/host.h>
#include <linux/version.h>

struct perf_attempt {
	const char *event;   /* "cycles" */
	const char *command; /* "record": for the command lines in the advice */
	bool all_cpus, cgroup, tracepoint, kernel, hardware;
	bool own_process;   /* the target is our child, or runs as this user */
	bool thread;        /* `pid` is a thread's id */
	int pid;            /* 0 none; -1: whichever, written as PID */
	size_t events_open; /* how many were open when it failed (EMFILE) */
	size_t events_wanted;
	uint64_t freq_hz;
	bool counts; /* it is counted, not sampled */
};

/* perf_event_open failed with -err. Returns err. */
int explain_perf_open(int err, const struct perf_attempt *a, const struct host *h, struct diag *d);

/* mmap of a ring of `pages` failed. Returns err. */
int explain_ring(int err, unsigned pages, const struct host *h, struct diag *d);

/* No tracepoint of that name, or tracefs missing or unreadable. Returns err. */
int explain_tracepoint(int err, const char *name, const struct host *h, struct diag *d);

/* Reading /proc/PID/… of the target failed. Returns err. */
int explain_target(int err, int pid, const struct host *h, struct diag *d);

/* Why names or BTF are not to be had, in the same form; 0 when nothing is in the way. */
int explain_kernel_names(const struct host *h, struct diag *d);
int explain_btf(const struct host *h, struct diag *d);

/*
 * Why BPF is not to be had on this host: rights, kernel (from 5.10 on), BTF, lockdown. 0
 * when nothing is in the way. And why loading failed all the same with -err; returns err.
 */
int explain_bpf(const struct host *h, struct diag *d);
/* The same for programs on tracepoints and probes, by the kernel that they need: what they do
 * ("trace system calls"), and what does it without. */
enum explain_tracing_since {
	TRACING_SINCE_5_10 = KERNEL_VERSION(5, 10, 0), /* all that follows is not needed */
	TRACING_SINCE_5_13 = KERNEL_VERSION(5, 13, 0), /* pointers to global functions (5.12) */
	TRACING_SINCE_5_15 = KERNEL_VERSION(5, 15, 0), /* cookies of probes */
};
int explain_bpf_tracing(const struct host *h, enum explain_tracing_since since, const char *what,
			const char *fix, struct diag *d);
int explain_bpf_load(int err, const struct host *h, struct diag *d);

/* A file could not be created: what is wrong with its folder. Returns err. */
int explain_create(int err, const char *path, struct diag *d);

/* Starting CMD failed. Returns err. */
int explain_exec(int err, const char *argv0, struct diag *d);

/* Whether user and kernel, or only user samples of own processes are allowed (perf_event_paranoid,
 * CAP_PERFMON, CAP_SYS_ADMIN). An unreadable sysctl counts as the kernel's default, 2. */
bool host_allows_kernel_samples(const struct host *h);
bool host_allows_all_cpus(const struct host *h);

#endif
