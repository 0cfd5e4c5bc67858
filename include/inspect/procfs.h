/* SPDX-License-Identifier: BSD-2-Clause */
/* /proc, read defensively: files vanish, names hold anything, every size is bounded. */
#ifndef INSPECT_PROCFS_H
#define INSPECT_PROCFS_H

#include <inspect/array.h>
#include <inspect/strbuf.h>
#include <sys/types.h>

/* A whole file of at most max_bytes into out (cleared first). 0, -errno, or -EFBIG. */
int file_read(const char *path, size_t max_bytes, struct strbuf *out);

/* A file holding one decimal number. 0 or -errno. */
int file_read_i64(const char *path, int64_t *ret);

struct proc_stat {
	char comm[64]; /* the raw bytes, which may be anything */
	char state;
	pid_t ppid;
	uint64_t utime_ns, stime_ns;
	uint64_t start_time_ns; /* since boot */
	uint32_t num_threads;
	bool of_kernel; /* a thread of the kernel's own: no program, no system calls */
};

/* /proc/PID/stat, or /proc/PID/task/TID/stat when tid is not 0. Uses the last ')'. 0 or -errno. */
int proc_stat_read(pid_t pid, pid_t tid, struct proc_stat *ret);

/* The process that a thread is of: a pid, or -errno. */
pid_t proc_of_thread(pid_t tid);

/* The id under which /proc and process_vm_readv(2) have a process's memory, files and root: its
 * own, or a living thread's when the main thread has ended before the others. */
pid_t proc_living(pid_t pid);

/* Comm without the newline. 0 or -errno. */
int proc_comm_read(pid_t pid, pid_t tid, struct strbuf *out);

struct proc_map {
	uint64_t start, end, pgoff_bytes;
	uint64_t ino;
	uint32_t maj, min;
	bool read, write, exec, shared;
	char *path; /* "" for anonymous; " (deleted)" kept as the kernel prints it, \012 undone;
		     * borrowed during the call */
};

/* Calls fn for each line of /proc/PID/maps; a non-zero result ends the walk and is returned. */
typedef int proc_map_fn(void *ctx, const struct proc_map *map);
int proc_maps_each(pid_t pid, proc_map_fn *fn, void *ctx);

struct pid_list {
	pid_t *v;
	size_t n, cap;
};

/* Numeric entries of /proc, of /proc/PID/task, and the children (all levels) of PID; sorted. */
int proc_pids(struct pid_list *out);
int proc_threads(pid_t pid, struct pid_list *out);
int proc_descendants(pid_t pid, struct pid_list *out);

#endif
