/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the kernel accounts without any counter: rusage, /proc, cgroup files. Every value may be
 * unknown (NAN): not every source has every one.
 */
#ifndef INSPECT_TASK_USAGE_H
#define INSPECT_TASK_USAGE_H

#include <inspect/base.h>
#include <sys/resource.h>
#include <sys/types.h>

struct task_usage {
	double user_ns, sys_ns;
	double voluntary, involuntary; /* context switches */
	double run_delay_ns;           /* runnable, but not on a CPU */
	double minor_faults, major_faults;
	double max_rss_bytes;             /* highest so far, not a sum */
	double read_bytes, written_bytes; /* by system calls */
	double disk_read_bytes, disk_written_bytes;
	double threads; /* now */
};

void task_usage_unknown(struct task_usage *u);

/*
 * A process with all its threads: /proc/PID/stat (with the children it has waited for), status of
 * each thread, io. False when it is gone. Of threads that have ended the switches are not known.
 */
bool task_usage_process(pid_t pid, struct task_usage *ret);

/* One thread alone. */
bool task_usage_thread(pid_t tid, struct task_usage *ret);

/*
 * The bytes of a child that has ended and was not waited for yet, those of the descendants that
 * were waited for included. The file has to be opened while it lives: then it is root's (kernel:
 * task_dump_owner). A descriptor, or -errno.
 */
int task_usage_io_open(pid_t pid);
void task_usage_io_read(int fd, struct task_usage *u);

/* The run delay of a child that has ended and was not waited for yet: of its first thread alone. */
void task_usage_delay_read(pid_t pid, struct task_usage *u);

/* What wait4 answered: the child and the descendants that were waited for. Bytes and the run
 * delay are unchanged. */
void task_usage_rusage(const struct rusage *r, struct task_usage *u);

/* The CPUs given, or with none all of them: /proc/stat. */
void task_usage_system(const int *cpus, size_t n_cpus, struct task_usage *ret);

/* cpu.stat (v2) or cpuacct.stat (v1) of a group by its path; what is below it is included. */
void task_usage_cgroup(const char *path, struct task_usage *ret);

/* a += b, and a -= b, for what both know; the rest becomes unknown. The maximum and the threads:
 * the larger one, and of a difference a's. */
void task_usage_add(struct task_usage *a, const struct task_usage *b);
void task_usage_subtract(struct task_usage *a, const struct task_usage *b);

#endif
