/* SPDX-License-Identifier: BSD-2-Clause */
/* Every value that a row may have: one line each, with where it comes from and its limits. */
#include <inspect/use.h>
#include <math.h>

#define NONE NAN, NAN
#define NEVER 0, NAN /* any is worth a warning */
#define FATAL 0, 0   /* any is critical */

static const char gregg[] = "B. Gregg, Systems Performance, 2nd ed., 2.5.9 (USE method) and app. A";
static const char psi[] = "Documentation/accounting/psi.rst: share of time in which tasks stall";
static const char any[] = "none of these happen on a healthy machine";
static const char prometheus[] = "where the engine's own dashboards warn";

#define U USE_UTILISATION
#define S USE_SATURATION
#define E USE_ERRORS

const struct use_metric use_metrics[] = {
	/* CPU */
	{"cpu_busy_percent", U, 80, 95, "%.0f %%", "/proc/stat", gregg},
	{"run_delay_percent", S, 5, 20, "run delay %.0f %%",
	 "run_delay of all tasks / (wall × CPUs)",
	 "runnable and not running is time that a faster machine would not have spent"},
	{"cpu_pressure_percent", S, 10, 30, "PSI %.0f %%", "/proc/pressure/cpu (some)", psi},
	{"runnable_per_cpu", S, NONE, "%.1f runnable/CPU", "/proc/loadavg, sampled", NULL},
	{"steal_percent", S, 5, 20, "stolen %.0f %%", "/proc/stat (steal)",
	 "the same as run delay, at the hypervisor"},
	{"cpu_throttles", E, NEVER, "%.0f thermal throttles",
	 "/sys/devices/system/cpu/cpu*/thermal_throttle/core_throttle_count", any},
	{"machine_checks", E, FATAL, "%.0f machine checks", "/proc/interrupts (MCE)", any},
	{"one_cpu_busy_percent", U, 90, NAN, "%.0f %%", "/proc/stat (cpuN)",
	 "one CPU is full while others have room"},
	{"thread_busy_percent", U, 90, 98, "%.0f %% of a core", "run time of one thread / wall",
	 "a single-threaded event loop ends here, however many CPUs there are"},
	{"thread_run_delay_percent", S, 5, 20, "run delay %.0f %%",
	 "run_delay of the thread that waits most / wall", gregg},
	{"process_cpus", U, NONE, "%.2f CPUs", "run time of its threads / wall", NULL},
	{"process_cpu_percent", U, 80, 95, "%.0f %% of its CPUs",
	 "run time of its threads / (wall × the CPUs or the quota that it may use)", gregg},
	{"process_run_delay_percent", S, 5, 20, "run delay %.0f %%",
	 "run_delay of its worst thread / wall", gregg},

	/* memory */
	{"memory_used_percent", U, 85, 95, "%.0f %%", "/proc/meminfo (1 - MemAvailable / MemTotal)",
	 gregg},
	{"swap_in_per_second", S, 0, NAN, "swap-in %.0f/s", "/proc/vmstat (pswpin)",
	 "what is read back from swap was needed"},
	{"swap_out_per_second", S, NONE, "swap-out %.0f/s", "/proc/vmstat (pswpout)", NULL},
	{"direct_reclaim_per_second", S, NONE, "stalls %.0f/s", "/proc/vmstat (allocstall*)", NULL},
	{"refault_per_second", S, NONE, "refaults %.0f/s", "/proc/vmstat (workingset_refault*)",
	 NULL},
	{"memory_pressure_percent", S, 1, 10, "PSI %.1f %%", "/proc/pressure/memory (full)", psi},
	{"oom_kills", E, FATAL, "%.0f oom kills", "/proc/vmstat (oom_kill)", any},
	{"memory_corrected", E, NEVER, "%.0f corrected", "/sys/devices/system/edac/mc/mc*/ce_count",
	 any},
	{"memory_uncorrected", E, FATAL, "%.0f uncorrected",
	 "/sys/devices/system/edac/mc/mc*/ue_count", any},
	{"swap_used_percent", U, NONE, "%.0f %%", "/proc/meminfo (SwapTotal, SwapFree)", NULL},
	{"shm_used_percent", U, 80, 95, "%.0f %%", "statfs of /dev/shm", gregg},
	{"numa_other_percent", U, 20, 50, "%.0f %% remote",
	 "/sys/devices/system/node/node*/numastat (other_node / all)",
	 "memory of another node costs 1.5 to 2 times the latency"},
	{"numa_miss_per_second", S, NONE, "misses %.0f/s",
	 "/sys/devices/system/node/node*/numastat (numa_miss)", NULL},
	{"node_used_percent", U, NONE, "%.0f %%", "/sys/devices/system/node/node*/meminfo", NULL},
	{"process_memory_bytes", U, NONE, "%.0f bytes", "/proc/PID/status (VmRSS)", NULL},
	{"process_swap_bytes", S, NEVER, "%.0f bytes in swap", "/proc/PID/status (VmSwap)",
	 "what is in swap waits for the disk when it is touched"},
	{"major_faults_per_second", S, 10, 100, "major faults %.0f/s", "/proc/PID/stat (majflt)",
	 "each is a read of the disk, 0.1 to 10 ms"},
	{"locked_percent", U, 80, 95, "%.0f %% locked",
	 "/proc/PID/status (VmLck), /proc/PID/limits (Max locked memory)", gregg},

	/* cgroup */
	{"cgroup_cpu_percent", U, NONE, "%.0f %% of quota", "cpu.stat / cpu.max", NULL},
	{"cgroup_cpus", U, NONE, "%.2f CPUs, no quota", "cpu.stat (usage_usec), cpuacct.usage",
	 NULL},
	{"throttled_percent", S, 1, 10, "throttled %.0f %%", "cpu.stat (nr_throttled / nr_periods)",
	 "each throttled period stops all threads for up to 100 ms"},
	{"throttled_time_percent", S, NONE, "for %.0f %% of time",
	 "cpu.stat (throttled time / wall, of all CPUs)", NULL},
	{"cgroup_cpu_pressure_percent", S, 10, 30, "PSI %.0f %%", "cpu.pressure (some)", psi},
	{"cgroup_memory_percent", U, 85, 95, "%.0f %%",
	 "(memory.current - inactive_file) / memory.max",
	 "cache that is not in use is no need: Kubernetes' working set"},
	{"cgroup_memory_bytes", U, NONE, "%.0f bytes", "memory.current - inactive_file", NULL},
	{"cgroup_memory_pressure_percent", S, 1, 10, "PSI %.1f %%", "memory.pressure (full)", psi},
	{"memory_high_per_second", S, NEVER, "over high %.0f/s", "memory.events (high)",
	 "Documentation/admin-guide/cgroup-v2.rst: its tasks are slowed down to reclaim"},
	{"memory_max_per_second", E, NONE, "at max %.0f/s", "memory.events (max)", NULL},
	{"cgroup_ooms", E, NEVER, "%.0f oom", "memory.events (oom)", any},
	{"cgroup_oom_kills", E, FATAL, "%.0f oom kills", "memory.events (oom_kill)", any},
	{"cgroup_pids", U, NONE, "%.0f, no limit", "pids.current", NULL},
	{"pids_percent", U, 80, 95, "%.0f %%", "pids.current / pids.max", gregg},
	{"pids_refused", E, FATAL, "%.0f forks refused", "pids.events (max)", any},

	/* disks and file systems */
	{"disk_busy_percent", U, NONE, "%.0f %%", "/proc/diskstats (io_ticks)", NULL},
	{"disk_await_ms", S, 10, 50, "await %.1f ms", "/proc/diskstats (time / I/Os)", gregg},
	{"disk_queue", S, NONE, "queue %.1f", "/proc/diskstats (weighted time / wall)", NULL},
	{"disk_ios_per_second", S, NONE, "%.0f I/Os a second", "/proc/diskstats", NULL},
	{"io_pressure_percent", S, 10, 30, "PSI %.0f %%", "/proc/pressure/io (some)", psi},
	{"disk_errors", E, FATAL, "%.0f errors", "/sys/block/DISK/device/ioerr_cnt", any},
	{"filesystem_used_percent", U, 85, 95, "%.0f %%", "statfs (blocks)", gregg},
	{"inodes_used_percent", U, 85, 95, "inodes %.0f %%", "statfs (inodes)", gregg},
	{"went_read_only", E, FATAL, "read-only after errors", "/proc/self/mountinfo",
	 "ext4(5), errors=remount-ro"},
	{"process_disk_bytes_per_second", U, NONE, "%.0f bytes/s",
	 "/proc/PID/io (read_bytes + write_bytes)", NULL},
	{"io_delay_percent", S, 10, 30, "waits for I/O %.0f %%",
	 "/proc/PID/stat (delayacct_blkio_ticks)", gregg},

	/* network */
	{"net_used_percent", U, 70, 90, "%.0f %%", "/proc/net/dev / /sys/class/net/DEVICE/speed",
	 gregg},
	{"net_bytes_per_second", U, NONE, "%.0f bytes/s", "/proc/net/dev", NULL},
	{"net_drops_per_second", S, NEVER, "drops %.0f/s", "/proc/net/dev (drop)", gregg},
	{"net_errors_per_second", E, NEVER, "errors %.0f/s", "/proc/net/dev (errs)", any},
	{"softnet_drops_per_second", S, NEVER, "backlog drops %.0f/s",
	 "/proc/net/softnet_stat (column 2)", "net.core.netdev_max_backlog was full"},
	{"softnet_squeezes_per_second", S, NONE, "squeezed %.0f/s",
	 "/proc/net/softnet_stat (column 3)", NULL},
	{"listen_overflows_per_second", S, NEVER, "listen overflows %.0f/s",
	 "/proc/net/netstat (TcpExt ListenOverflows)", "accept(2) is not called fast enough"},
	{"listen_drops_per_second", S, NONE, "listen drops %.0f/s",
	 "/proc/net/netstat (TcpExt ListenDrops)", NULL},
	{"tcp_backlog_drops_per_second", S, NEVER, "backlog drops %.0f/s",
	 "/proc/net/netstat (TcpExt TCPBacklogDrop)", any},
	{"retransmitted_percent", E, 1, 3, "retransmits %.1f %%",
	 "/proc/net/snmp (Tcp RetransSegs / OutSegs)", gregg},

	/* descriptors, threads */
	{"files_percent", U, 80, 95, "%.0f %%", "/proc/sys/fs/file-nr", gregg},
	{"threads_percent", U, 80, 95, "%.0f %%",
	 "/proc/loadavg / /proc/sys/kernel/{threads-max,pid_max}", gregg},
	{"fds_percent", U, 80, 95, "%.0f %%", "/proc/PID/fd, /proc/PID/limits (Max open files)",
	 "at the limit open, accept and socket fail with EMFILE"},
	{"fds_refused", E, FATAL, "%.0f EMFILE", "calls that failed with EMFILE, by BPF", any},
	{"files_refused", E, FATAL, "%.0f ENFILE", "calls that failed with ENFILE, by BPF", any},
	{"threads_refused", E, FATAL, "%.0f EAGAIN",
	 "fork and clone that failed with EAGAIN, by BPF", any},
	{"process_threads_percent", U, 80, 95, "%.0f %%",
	 "/proc/PID/status (Threads), /proc/PID/limits (Max processes)",
	 "at the limit fork and clone fail with EAGAIN"},
	{"lock_wait", S, 0.1, 0.5, "%.2f s/s",
	 "BPF on sched_switch: threads that sleep in futex(2) for a lock, by its address",
	 "seconds of waiting for each second, over all threads"},

	/* GPUs */
	{"gpu_busy_percent", U, NONE, "%.0f %%",
	 "nvmlDeviceGetUtilizationRates: time with any kernel, an upper bound", NULL},
	{"gpu_throttled", S, FATAL, "hardware slowdown",
	 "nvmlDeviceGetCurrentClocksEventReasons (0x8, 0x40, 0x80)",
	 "nvml.h: HW slowdown, thermal slowdown, power brake"},
	{"gpu_thermal", S, NEVER, "too warm", "nvmlDeviceGetCurrentClocksEventReasons (0x20)",
	 "nvml.h: SW thermal slowdown"},
	{"gpu_xid_errors", E, FATAL, "%.0f XID", "nvmlEventSetWait (XID)", "NVIDIA, XID Errors"},
	{"gpu_memory_percent", U, 95, 99, "%.0f %%", "nvmlDeviceGetMemoryInfo",
	 "engines take about 90 % ahead"},
	{"gpu_process_bytes", U, NONE, "%.0f bytes", "nvmlDeviceGetComputeRunningProcesses", NULL},
	{"gpu_ecc_uncorrected", E, FATAL, "%.0f ECC errors",
	 "nvmlDeviceGetTotalEccErrors (uncorrected, since the driver's load)", any},
	{"gpu_remapped_rows", E, NEVER, "%.0f remapped rows",
	 "nvmlDeviceGetRemappedRows (uncorrectable, or pending)", any},
	{"pcie_percent", U, 60, 85, "%.0f %%",
	 "nvmlDeviceGetPcieThroughput / link generation and width", gregg},
	{"pcie_link_reduced", S, NEVER, "%.0f %% of its link",
	 "nvmlDeviceGet{Curr,Max}PcieLink{Generation,Width}, while it is busy", gregg},
	{"pcie_replays_per_second", E, NEVER, "replays %.0f/s", "nvmlDeviceGetPcieReplayCounter",
	 any},
	{"nvlink_percent", U, 60, 85, "%.0f %%",
	 "nvmlDeviceGetFieldValues (NVLINK_THROUGHPUT_DATA) / speed of the links", gregg},
	{"nvlinks_down", S, NEVER, "%.0f links down", "nvmlDeviceGetNvLinkState", any},
	{"nvlink_errors_per_second", E, NEVER, "errors %.0f/s",
	 "nvmlDeviceGetNvLinkErrorCounter (replay, recovery)", any},
	{"gpu_power_percent", U, NONE, "%.0f %%",
	 "nvmlDeviceGetPowerUsage / nvmlDeviceGetEnforcedPowerLimit", NULL},
	{"gpu_power_capped", S, NEVER, "at the power cap",
	 "nvmlDeviceGetCurrentClocksEventReasons (0x4)", "nvml.h: SW power cap"},
	{"gpu_celsius", S, NONE, "%.0f °C", "nvmlDeviceGetTemperature", NULL},
	{"gpu_calls_per_second", U, NONE, "%.0f calls/s", "BPF: ioctls of the driver", NULL},
	{"gpu_allocs_per_second", U, 10, NAN, "%.0f allocations/s",
	 "BPF: RM_ALLOC, RM_ALLOC_MEMORY, RM_VID_HEAP_CONTROL",
	 "while an engine serves, its memory was taken ahead"},
	{"gpu_calls_p99_ms", S, 5, NAN, "p99 %.1f ms", "BPF: ioctls of the driver",
	 "while serving, kernels are launched without the driver"},
	{"gpu_no_memory", S, NEVER, "%.0f out of memory",
	 "BPF: status of the driver (NV_ERR_NO_MEMORY)", "an engine goes on with less, or fails"},
	{"gpu_calls_failed_per_second", E, NONE, "%.1f failed/s",
	 "BPF: errno, or the driver's status", NULL},
	{"drm_busy_percent", U, 80, 95, "%.0f %%", "/proc/PID/fdinfo (drm-engine-*)", gregg},
	{"drm_memory_bytes", U, NONE, "%.0f bytes", "/proc/PID/fdinfo (drm-memory-*)", NULL},
	{"card_busy_percent", U, NONE, "%.0f %%", "/sys/class/drm/card*/device/gpu_busy_percent",
	 NULL},
	{"card_memory_percent", U, 95, 99, "memory %.0f %%",
	 "/sys/class/drm/card*/device/mem_info_vram_{used,total}", gregg},

	/* inference engines */
	{"kv_cache_percent", U, 90, 98, "%.0f %%", "engine metric", prometheus},
	{"preemptions_per_second", S, NEVER, "preempted %.2f/s", "engine metric",
	 "what is preempted is computed again"},
	{"requests_running", U, NONE, "%.0f running", "engine metric", NULL},
	{"requests_waiting", S, NONE, "%.0f waiting", "engine metric", NULL},
	{"waiting_per_running", S, 1, NAN, "%.1f waiting/running", "engine metrics",
	 "the queue is longer than the batch"},
	{"queue_time_p99_ms", S, NONE, "queue p99 %.0f ms", "engine histogram over the window",
	 NULL},
	{"requests_failed_per_second", E, NEVER, "failed %.2f/s", "engine metric", any},
	{"first_token_p50_ms", U, NONE, "p50 %.0f ms", "engine histogram over the window", NULL},
	{"first_token_p99_ms", S, NONE, "p99 %.0f ms", "engine histogram over the window", NULL},
	{"per_token_p50_ms", U, NONE, "p50 %.1f ms", "engine histogram over the window", NULL},
	{"per_token_p99_ms", S, NONE, "p99 %.1f ms", "engine histogram over the window", NULL},
	{"prefill_p50_ms", U, NONE, "p50 %.0f ms", "engine histogram over the window", NULL},
	{"prefill_p99_ms", S, NONE, "p99 %.0f ms", "engine histogram over the window", NULL},
	{"decode_p50_ms", U, NONE, "p50 %.0f ms", "engine histogram over the window", NULL},
	{"decode_p99_ms", S, NONE, "p99 %.0f ms", "engine histogram over the window", NULL},
};
const size_t n_use_metrics = ARRAY_SIZE(use_metrics);

size_t use_metric_find(const char *key)
{
	size_t i = 0;

	while (i < n_use_metrics && !str_eq(use_metrics[i].key, key))
		i++;
	return i;
}
