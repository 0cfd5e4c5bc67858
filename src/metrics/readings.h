/* SPDX-License-Identifier: BSD-2-Clause */
/* What one reading holds, by resource: counters as the kernel has them. NAN: unknown. */
#ifndef INSPECT_METRICS_READINGS_H
#define INSPECT_METRICS_READINGS_H

#include <inspect/array.h>
#include <inspect/strbuf.h>
#include <inspect/use.h>
#include <math.h>

enum { NAME_SIZE = 64, PATH_SIZE = 512 };

/* --- text (text.c) ---------------------------------------------------------------------------- */

/* A file below root, at most `max_bytes` of it. */
bool root_read(const char *root, struct strbuf *text, size_t max_bytes, const char *fmt, ...)
	PRINTF(4, 5);
/* A file of one number; NAN. "max" of a cgroup is INFINITY. */
double root_number(const char *root, const char *fmt, ...) PRINTF(2, 3);
/* Of the line that begins with the name; NAN. */
double text_field(const char *text, const char *name);
/* The next line from *at on, without its newline, into buf (cut when longer). False at the end. */
bool next_line(const char **at, char *buf, size_t size);
/* Whitespace-separated field number `index` (0 the first) as a number; NAN. */
double line_number(const char *line, unsigned index);
/* Change for each second; 0 when it ran backwards (a counter that began anew), NAN when unknown. */
double rate_of(double now, double before, double seconds);
/* 100 part / whole; NAN of an empty whole. */
double percent_of(double part, double whole);

/* --- rows (rows.c) ---------------------------------------------------------------------------- */

struct use_row *row_add(struct use_report *r, const char *scope, const char *resource,
			const char *device);
/* The value is judged with the limits of the session. */
struct use_value *row_put(struct use_report *r, struct use_row *row, const char *key, double v);
/* No data, with the reason. */
void row_lacks(struct use_report *r, struct use_row *row, const char *key, const char *reason);
/* A value, or no data with that reason when it is NAN. */
struct use_value *row_put_or(struct use_report *r, struct use_row *row, const char *key, double v,
			     const char *reason);
const char *report_text(struct use_report *r, const char *fmt, ...) PRINTF(2, 3);
void report_note(struct use_report *r, const char *fmt, ...) PRINTF(2, 3);
void report_judge(struct use_report *r, const struct use_limit *limits);

/* --- resources -------------------------------------------------------------------------------- */

struct pressure {
	double some_us, full_us; /* total */
};
void pressure_read(const char *root, const char *path, struct pressure *ret);
/* Share of the time. The file is not read at the very time of the clock: it may seem to exceed
 * it. */
double pressure_percent(double now_us, double before_us, double seconds);

struct cpu_times {
	int cpu;
	double busy, total, steal; /* ticks */
};

struct cpu_reading {
	ARRAY(struct cpu_times) cpus;
	bool readable;
	struct pressure pressure;
	double run_delay_ns; /* /proc/schedstat */
	double machine_checks, throttles;
};
void cpu_read(const char *root, struct cpu_reading *c);
void cpu_release(struct cpu_reading *c);

struct runnable { /* sampled */
	double sum;
	unsigned n;
};
void runnable_sample(const char *root, struct runnable *r);

/* Whether processes or a cgroup are looked at, not the host. A cgroup may have no process. */
static inline bool has_target(const struct use_config *c)
{
	return c->n_pids || c->cgroup;
}

struct interval; /* two readings: below */
void cpu_rows(const struct interval *i, struct use_report *r);

enum vm_counter {
	VM_SWAP_IN,
	VM_SWAP_OUT,
	VM_REFAULT,
	VM_STALL,
	VM_SCAN_KSWAPD,
	VM_SCAN_DIRECT,
	VM_OOM,
	VM_COUNTERS,
};

struct numa_node {
	unsigned node;
	bool has_cpus;
	double local, other, miss; /* pages */
	double total_bytes, free_bytes;
};

/* Kills for the limits of cgroups, by the kernel's log (oom_log.c). */
struct oom_log {
	int fd;       /* -1: it may not be read */
	double kills; /* since it was opened */
};
void oom_log_open(const char *root, struct oom_log *l);
/* All so far; NAN when nothing tells. */
double oom_log_read(struct oom_log *l);
void oom_log_close(struct oom_log *l);

struct memory_reading {
	double group_kills;                                    /* NAN */
	double total, available, swap_total, swap_free, shmem; /* bytes */
	double vm[VM_COUNTERS];
	double corrected, uncorrected; /* EDAC */
	struct pressure pressure;
	double shm_size, shm_used;
	bool shm_denied;
	ARRAY(struct numa_node) nodes;
};
/* pid: whose /dev/shm; 0: ours. */
void memory_read(const char *root, pid_t pid, struct oom_log *ooms, struct memory_reading *m);
void memory_release(struct memory_reading *m);
void memory_rows(const struct interval *i, struct use_report *r);

struct disk {
	char name[NAME_SIZE];
	double ios, io_ms, busy_ms, queue_ms, errors;
};

struct disk_reading {
	ARRAY(struct disk) disks;
	struct pressure pressure;
	bool readable;
};
void disk_read(const char *root, struct disk_reading *d);
void disk_release(struct disk_reading *d);
void disk_rows(const struct interval *i, struct use_report *r);

struct filesystem {
	char point[256], type[32];
	double blocks_percent, inodes_percent;
	bool went_read_only;
	const char *skipped; /* why its fill is not asked; NULL it was */
};

struct filesystem_reading {
	ARRAY(struct filesystem) v;
};
void filesystem_read(const char *root, pid_t pid, struct filesystem_reading *f);
void filesystem_release(struct filesystem_reading *f);
void filesystem_rows(const struct interval *i, struct use_report *r);

struct net_device {
	char name[NAME_SIZE];
	double rx_bytes, tx_bytes, packets, drops, errors;
	double speed_bytes; /* a second, in each direction; NAN */
};

enum tcp_counter {
	TCP_LISTEN_OVERFLOWS,
	TCP_LISTEN_DROPS,
	TCP_BACKLOG_DROPS,
	TCP_RETRANSMITTED,
	TCP_SENT,
	TCP_COUNTERS,
};

struct net_reading {
	ARRAY(struct net_device) devices;
	double tcp[TCP_COUNTERS];
	double softnet_drops, softnet_squeezes;
	ino_t namespace; /* 0: our own */
	bool readable;
};
/* pid 0: our own network namespace. */
void net_read(const char *root, pid_t pid, struct net_reading *n);
void net_release(struct net_reading *n);
void net_rows(const struct interval *i, struct use_report *r);

struct limits_reading {
	double files, files_max, threads, threads_max, pid_max;
};
void limits_read(const char *root, struct limits_reading *l);
void limits_rows(const struct interval *i, struct use_report *r);

enum cgroup_counter {
	CG_USAGE_NS,
	CG_PERIODS,
	CG_THROTTLED,
	CG_THROTTLED_NS,
	CG_HIGH,
	CG_MAX,
	CG_OOM,
	CG_OOM_KILL,
	CG_PIDS_MAX,
	CG_COUNTERS,
};

/* CG_UNIFIED: version 2 beside controllers of version 1: it has times and pressure without any. */
enum cgroup_controller { CG_CPU, CG_MEMORY, CG_PIDS, CG_CPUACCT, CG_UNIFIED, CG_CONTROLLERS };

struct cgroup {
	char name[256]; /* as in /proc/PID/cgroup */
	double counters[CG_COUNTERS];
	double quota_cpus;                             /* INFINITY: none */
	double memory, cache, memory_max, memory_high; /* bytes */
	double pids, pids_max;
	struct pressure cpu_pressure, memory_pressure;
	bool v2[CG_CONTROLLERS]; /* which version was read */
};

/* Directories of the controllers: they may be different hierarchies. */
struct cgroup_mounts {
	char dir[CG_CONTROLLERS][PATH_SIZE]; /* "" not mounted */
	bool v2[CG_CONTROLLERS];
};

struct cgroup_list {
	struct cgroup_mounts mounts;
	ARRAY(char *) names; /* those to read */
	char own[256];       /* the one that was asked for: shown without a limit too */
	bool cut;            /* there are more groups than are read */
};
/* The groups of the pids and those above them; of the path; or with neither all with a limit. */
int cgroup_list_find(const char *root, const struct use_config *c, struct cgroup_list *ret);
void cgroup_list_release(struct cgroup_list *l);

struct cgroup_reading {
	ARRAY(struct cgroup) v;
};
void cgroup_read(const char *root, const struct cgroup_list *l, struct cgroup_reading *ret);
void cgroup_release(struct cgroup_reading *g);
void cgroup_rows(const struct interval *i, struct use_report *r);
/* The same group in the reading before, or NULL; hint: its index now. */
const struct cgroup *cgroup_before(const struct interval *i, const struct cgroup *now, size_t hint);
/* The group of a line of /proc/PID/cgroup, when it is in the controller's hierarchy. */
bool cgroup_line_of(const char *line, enum cgroup_controller c, bool v2, char *ret, size_t size);
/* Why nothing is known of the cgroup that was asked for: it has no process, or is gone. */
const char *cgroup_absence(const struct use_config *c);
/* Kills in groups that reached their limit in this time. */
double cgroup_limit_kills(const struct interval *i);

/* --- quotas (quota.c) ------------------------------------------------------------------------- */

struct throttle {
	const char *group; /* borrowed */
	double share;      /* of the time, over all CPUs */
};

struct throttles {
	ARRAY(struct throttle) v; /* groups that were throttled */
	unsigned looked_at;       /* threads */
};
void throttles_find(const struct interval *i, struct throttles *ret);
void throttles_release(struct throttles *t);
/* Of all groups. */
double throttles_sum(const struct throttles *t);
/* Of a thread's run delay, as a share of the time, what its groups' quotas have caused. */
double quota_delay(const struct interval *i, uint32_t tid, double delay);

/* One process of the target. */
struct process {
	pid_t pid;
	char comm[NAME_SIZE];
	double fds, fds_limit;
	double uid, threads_limit;                 /* RLIMIT_NPROC; NAN: none that counts */
	double rss, swapped, locked, locked_limit; /* bytes */
	double major_faults, minor_faults;
	double disk_bytes;
	double cpu_ns;
	double io_delay_ns; /* delay accounting */
};

struct process_reading {
	ARRAY(struct process) v;
};
void process_read(const char *root, const pid_t *pids, size_t n, struct process_reading *p);
void process_release(struct process_reading *p);
void process_rows(const struct interval *i, struct use_report *r);
/* Of processes that are no target: the exact number of open descriptors and the limit. */
double process_fds(const char *root, pid_t pid);

/* --- threads of a user (user_threads.c) --- */

enum { USERS_MAX = 16 };
struct user_count {
	double uid, threads;
	ino_t user_ns; /* 0: our own */
	uint64_t time_ns, cost_ns;
};
struct user_counts {
	struct user_count v[USERS_MAX];
	size_t n;
};
/* By the text of /proc/PID/status: RLIMIT_NPROC does not count for it. */
bool user_threads_exempt(const char *root, const char *status, pid_t pid);
void user_threads_row(const struct interval *i, const struct process *p, const char *name,
		      struct use_report *r);
/* Host-wide: users near their limit, and whom a thread was refused. */
void user_threads_rows(const struct interval *i, struct use_report *r);

/* Walks /proc (task_walk.c). */
int task_walk(const char *root, const pid_t *pids, size_t n, struct task_table *ret);
/* Adds those of the pids that are not in a sorted table: the kernel may hide some from BPF. */
int task_walk_missing(const char *root, const pid_t *pids, size_t n, struct task_table *t);
void task_rows(const struct interval *i, struct use_report *r);
/* How long a thread was runnable but not on a CPU, as a share of the time. */
double task_delay(const struct interval *i, const struct task_times *now);

struct nvml;
struct gpu_reading;
struct nvml *nvml_open(const char **ret_reason);
void nvml_close(struct nvml *n);
struct gpu_reading *gpu_reading_new(void);
void gpu_reading_free(struct gpu_reading *g);
void gpu_read(struct nvml *n, const pid_t *pids, size_t n_pids, struct gpu_reading *ret);
/* What NVML measures while it is asked, 40 ms for each GPU: for the next reading. */
void gpu_read_links(struct nvml *n);
void gpu_rows(const struct interval *i, struct use_report *r);

/* NVIDIA's, or that of the devices that were named (gpu_driver.c). */
void gpu_driver_row(const struct interval *i, struct use_report *r);

enum { DRM_ENGINES_MAX = 16 };
struct drm_client {
	uint32_t id;
	char driver[NAME_SIZE], device[NAME_SIZE];
	struct {
		char name[24];
		double ns, capacity;
	} engines[DRM_ENGINES_MAX];
	size_t n_engines;
	double memory_bytes; /* in the GPU's own memory */
};
struct drm_card {
	char name[NAME_SIZE];
	double busy_percent, memory_used, memory_total;
};

struct drm_reading {
	ARRAY(struct drm_client) clients; /* of the target */
	ARRAY(struct drm_card) cards;
};
void drm_read(const char *root, const pid_t *pids, size_t n, struct drm_reading *ret);
void drm_release(struct drm_reading *d);
void drm_rows(const struct interval *i, struct use_report *r);

struct engine_session;
struct engine_reading;
/* Requests that are in the batch now; NAN: no engine that tells it. */
double engine_running(const struct engine_reading *e);
struct engine_session *engine_open(const struct use_config *c);
void engine_close(struct engine_session *e);
struct engine_reading *engine_reading_new(void);
void engine_reading_free(struct engine_reading *e);
void engine_read(struct engine_session *e, struct engine_reading *ret);
void engine_rows(const struct interval *i, struct use_report *r);

/* What was refused to a process in this time, or (pid 0) to all together (task_refusals.c). */
struct task_refusals refusals_of(const struct interval *i, pid_t pid);
/* A count of them, or why there is none. */
void put_refusals(const struct interval *i, struct use_report *r, struct use_row *row,
		  const char *key, uint64_t count);

/* --- all of it -------------------------------------------------------------------------------- */

/* Apart from the rest: where a walk takes long, it is made less often. */
struct task_reading {
	struct task_table table;
	uint64_t clock_ns, boot_ns; /* monotonic; since the boot */
	int err;
};

struct reading {
	uint64_t clock_ns;
	uint64_t own_cpu_ns;
	struct cpu_reading cpu;
	struct memory_reading memory;
	struct disk_reading disk;
	struct filesystem_reading filesystem;
	struct net_reading net;
	struct limits_reading limits;
	struct cgroup_reading cgroup;
	struct process_reading process;
	struct gpu_reading *gpu;
	struct driver_calls driver;
	bool has_driver;
	struct drm_reading drm;
	struct engine_reading *engine;
};

struct interval {
	const struct use_config *config;
	const struct reading *before, *now;
	double seconds;
	const struct task_reading *tasks_before, *tasks_now;
	double tasks_seconds;
	struct runnable runnable;
	const char *no_gpu; /* why there is no NVML; NULL there is */
	const struct engine_session *engine;
	const struct nvml *nvml;
	const struct cgroup_list *cgroups;
	struct throttles *throttles;
	struct user_counts *user_counts;
};

#endif
