/* SPDX-License-Identifier: BSD-2-Clause */
/* What rows of the machine mean, and what to ask next. */
#include "use_rules.h"

#define OFTEN " -d 10" /* long enough for what comes again and again */

static const char method[] = "B. Gregg, Systems Performance, 2nd ed., 2.5.9 (USE method)";
static const char psi[] = "Documentation/accounting/psi.rst";
static const char cgroup_v2[] = "Documentation/admin-guide/cgroup-v2.rst";
static const char killed[] = "dmesg | grep -i 'killed process'";
static const char who_waits[] = "inspect offcpu {target}" OFTEN;
static const char who_faults[] = "inspect record -e page-faults -c 1 {target}" OFTEN;
static const char who_reads[] = "inspect record -e major-faults -c 1 {owner}" OFTEN;
static const char who_computes[] = "inspect record -a" OFTEN;
static const char biggest[] = "ps -eo pid,rss,comm --sort=-rss | head";
static const char most_threads[] = "ps -eo nlwp,pid,user,comm --sort=-nlwp | head";
static const char threads_of_user[] = "ps -U $(ps -o ruid= -p {pid}) -o nlwp,pid,comm "
				      "--sort=-nlwp | head";
static const char most_files[] = "find /proc/[0-9]*/fd -mindepth 1 2>/dev/null | cut -d/ -f3 | "
				 "sort | uniq -c | sort -n | tail";

static const struct finding_rule rules[] = {
	/* --- errors --- */
	{
		.name = "oom-killed",
		.tests = {{"cgroup_oom_kills", ABOVE, LIMIT, "%.0f oom kills"}},
		.means = "a cgroup was at its memory limit and had nothing to reclaim",
		.next = killed,
		.source = cgroup_v2,
	},
	{
		.name = "oom-killed",
		.tests = {{"oom_kills", ABOVE, LIMIT, "%.0f oom kills"}},
		.means = "memory ran out: the host's or a cgroup's",
		.next = killed,
		.source = "proc(5), /proc/vmstat oom_kill",
	},
	{
		.name = "oom-killed",
		.tests = {{"cgroup_ooms", ABOVE, LIMIT, "%.0f times out of memory"}},
		.means = "a cgroup is at its memory limit: allocations fail, or the next kills",
		.next = who_faults,
		.source = cgroup_v2,
	},
	{
		.name = "hardware-error",
		.tests = {{"machine_checks", ABOVE, LIMIT, "%.0f machine checks"}},
		.means = "a CPU, a bus or memory reports faults: take the machine out",
		.next = "dmesg | grep -iE 'mce|hardware error'",
		.source = "Documentation/arch/x86/x86_64/machinecheck.rst",
	},
	{
		.name = "hardware-error",
		.tests = {{"memory_uncorrected", ABOVE, LIMIT, "%.0f uncorrected errors"}},
		.means = "data in memory was lost: replace the module",
		.next = "grep . /sys/devices/system/edac/mc/mc*/dimm*/dimm_ue_count",
		.source = "Documentation/admin-guide/ras.rst",
	},
	{
		.name = "memory-fails",
		.tests = {{"memory_corrected", ABOVE, LIMIT, "%.0f corrected errors"}},
		.means = "a memory module begins to fail: nothing is lost yet",
		.next = "grep . /sys/devices/system/edac/mc/mc*/dimm*/dimm_ce_count",
		.source = "Documentation/admin-guide/ras.rst",
	},
	{
		.name = "cpu-too-hot",
		.tests = {{"cpu_throttles", ABOVE, LIMIT, "slowed down %.0f times"}},
		.means = "the CPU lowers its clock: the same work takes longer",
		.next = "grep . /sys/class/thermal/thermal_zone*/temp",
		.source = "drivers/thermal/intel/therm_throt.c",
	},
	{
		.name = "disk-fault",
		.tests = {{"disk_errors", ABOVE, LIMIT, "%.0f errors"}},
		.means = "the device failed requests: what was read or written may be lost",
		.next = "dmesg | grep -w {device}",
		.source = "drivers/scsi/scsi_lib.c, ioerr_cnt",
	},
	{
		.name = "read-only",
		.tests = {{"went_read_only", ABOVE, LIMIT, "read-only after an error"}},
		.means =
			"what writes there fails with EROFS, until it is repaired and mounted anew",
		.next = "dmesg | grep -iE 'remount|i/o error|corrupt'",
		.source = "ext4(5), errors=remount-ro",
	},
	{
		.name = "process-limit",
		.tests = {{"pids_refused", ABOVE, LIMIT, "%.0f forks refused"}},
		.means = "the pids limit of a cgroup is reached: fork fails with EAGAIN",
		.next = "inspect stack {group}",
		.source = cgroup_v2,
	},
	{
		.name = "process-limit",
		.tests = {{"user_threads_refused", ABOVE, LIMIT, "%.0f forks failed with EAGAIN"}},
		.means = "its user has as many threads as it may (RLIMIT_NPROC)",
		.next = threads_of_user,
		.next_else = most_threads,
		.source = "fork(2), EAGAIN",
	},
	{
		.name = "process-limit",
		.tests = {{"threads_refused", ABOVE, LIMIT, "%.0f forks failed with EAGAIN"}},
		.means = "the system has as many threads, or process ids, as it may",
		.next = most_threads,
		.source = "fork(2), EAGAIN",
	},
	{
		.name = "descriptors",
		.tests = {{"fds_refused", ABOVE, LIMIT, "%.0f calls failed with EMFILE"}},
		.means = "open, accept, socket fail: a leak, or a low limit",
		.next = "ls -l /proc/{pid}/fd",
		.next_else = most_files,
		.source = "getrlimit(2), RLIMIT_NOFILE",
	},
	{
		.name = "descriptors",
		.tests = {{"files_refused", ABOVE, LIMIT, "%.0f calls failed with ENFILE"}},
		.means = "the system has as many open files as it may",
		.next = most_files,
		.source = "proc_sys_fs(5), file-max",
	},

	/* --- limits of a cgroup, a process, the system --- */
	{
		.name = "cgroup-throttled",
		.tests = {{"throttled_percent", ABOVE, LIMIT, "%.0f %% of its periods"}},
		.means = "the quota is used up early and all threads wait for the next period: "
			 "raise it, or run fewer threads",
		.next = who_waits,
		.source = "Documentation/scheduler/sched-bwc.rst",
	},
	{
		.name = "memory-limit",
		.tests = {{"memory_high_per_second", ABOVE, LIMIT,
			   "over memory.high %.0f times/s"}},
		.means = "a cgroup is slowed down to make it reclaim",
		.next = who_waits,
		.source = cgroup_v2,
	},
	{
		.name = "memory-limit",
		.tests = {{"cgroup_memory_percent", ABOVE, LIMIT, "%.0f %% of its limit"}},
		.means = "a cgroup is close to its limit, beyond which processes are killed",
		.next = who_faults,
		.source = method,
	},
	{
		.name = "memory-limit",
		.tests = {{"cgroup_memory_pressure_percent", ABOVE, LIMIT,
			   "%.1f %% of time none of it could run"}},
		.means = "tasks of a cgroup wait for its memory to be reclaimed",
		.next = who_waits,
		.source = psi,
	},
	{
		.name = "process-limit",
		.tests = {{"pids_percent", ABOVE, LIMIT, "%.0f %% of its limit"}},
		.means = "soon fork fails in a cgroup: threads leak, or the limit is low",
		.next = "inspect stack {group}",
		.source = cgroup_v2,
	},
	{
		.name = "process-limit",
		.tests = {{"process_threads_percent", ABOVE, LIMIT, "%.0f %% of its user's limit"}},
		.means = "soon its user can neither fork nor start a thread: threads leak, or the "
			 "limit is low",
		.next = threads_of_user,
		.next_else = most_threads,
		.source = "getrlimit(2), RLIMIT_NPROC",
	},
	{
		.name = "process-limit",
		.tests = {{"threads_percent", ABOVE, LIMIT, "%.0f %% of the system's limit"}},
		.means = "soon nobody can fork: a process leaks threads or children",
		.next = most_threads,
		.source = "proc_sys_kernel(5), threads-max and pid_max",
	},
	{
		.name = "descriptors",
		.tests = {{"fds_percent", ABOVE, LIMIT, "%.0f %% of its limit"}},
		.means = "soon open, accept and socket fail with EMFILE: a leak, or a low limit",
		.next = "ls -l /proc/{pid}/fd",
		.next_else = most_files,
		.source = "getrlimit(2), RLIMIT_NOFILE",
	},
	{
		.name = "descriptors",
		.tests = {{"files_percent", ABOVE, LIMIT, "%.0f %% of the system's limit"}},
		.means = "soon nobody can open a file: a process leaks descriptors",
		.next = most_files,
		.source = "proc_sys_fs(5), file-max",
	},

	/* --- CPU --- */
	{
		.name = "hot-thread",
		.tests = {{"thread_busy_percent", ABOVE, LIMIT, "%.0f %% of a core"},
			  {"cpu_busy_percent", BELOW, LIMIT, NULL}},
		.means = "one thread is the limit: more CPUs do not help",
		.next = "inspect record {thread}" OFTEN,
		.source = "Amdahl's law: one serial thread bounds the rest",
	},
	{
		.name = "cpu-saturated",
		.tests = {{"run_delay_percent", ABOVE, LIMIT, "run delay %.0f %%"},
			  {"cpu_busy_percent", ABOVE, LIMIT, "%.0f %% busy"}},
		.means = "more threads want to run than there are CPUs: they wait for each other",
		.next = who_computes,
		.source = method,
	},
	{
		.name = "cpu-saturated",
		.tests = {{"cpu_busy_percent", ABOVE, LIMIT, "%.0f %% busy"}},
		.means = "the CPUs have little time left, or none",
		.next = who_computes,
		.source = method,
	},
	{
		.name = "cpu-limit",
		.tests = {{"process_cpu_percent", ABOVE, LIMIT, "%.0f %% of its CPUs"}},
		.means = "it uses all CPUs that it may: its affinity, its quota, or the machine's",
		.next = "inspect record {owner}" OFTEN,
		.source = method,
	},
	{
		.name = "hot-thread",
		.tests = {{"thread_busy_percent", ABOVE, LIMIT, "%.0f %% of a core"}},
		.means = "one thread has a CPU for itself all the time",
		.next = "inspect record {thread}" OFTEN,
		.source = method,
	},
	{
		.name = "full-cpu",
		.tests = {{"one_cpu_busy_percent", ABOVE, LIMIT, "%.0f %% busy"}},
		.means = "one CPU is full, others have room: a thread bound to it, or interrupts",
		.next = "inspect record -C {device}" OFTEN,
		.source = method,
	},
	{
		.name = "cpu-stolen",
		.tests = {{"steal_percent", ABOVE, LIMIT, "%.0f %% of the time is stolen"}},
		.means = "the hypervisor runs somebody else: not to be mended in here",
		.next = "inspect stat {target}" OFTEN,
		.source = "proc(5), /proc/stat steal",
	},
	{
		.name = "waits-for-cpu",
		.tests = {{"process_run_delay_percent", ABOVE, LIMIT, "run delay %.0f %%"}},
		.means = "it could run and gets no CPU: others take them, or its quota is short",
		.next = "inspect offcpu {owner}" OFTEN,
		.source = method,
	},
	{
		.name = "waits-for-cpu",
		.tests = {{"thread_run_delay_percent", ABOVE, LIMIT, "run delay %.0f %%"},
			  {"run_delay_percent", BELOW, LIMIT, NULL}},
		.means = "it could run and gets no CPU, though there are some: it may be bound to "
			 "busy ones",
		.next = "inspect offcpu {thread}" OFTEN,
		.source = method,
	},
	{
		.name = "waits-for-cpu",
		.tests = {{"thread_run_delay_percent", ABOVE, LIMIT, "run delay %.0f %%"}},
		.means = "it waits longest of all for a CPU",
		.next = "inspect offcpu {thread}" OFTEN,
		.source = method,
	},
	{
		.name = "waits-for-cpu",
		.tests = {{"run_delay_percent", ABOVE, LIMIT, "run delay %.0f %%"}},
		.means = "threads wait for a CPU though there is time left: bursts, or bound "
			 "to few",
		.next = who_waits,
		.source = method,
	},
	{
		.name = "waits-for-cpu",
		.tests = {{"cgroup_cpu_pressure_percent", ABOVE, LIMIT,
			   "%.0f %% of time somebody waits"}},
		.means =
			"tasks of a cgroup wait for a CPU: others take them, or its quota is short",
		.next = who_waits,
		.source = psi,
	},
	{
		.name = "cpu-saturated",
		.tests = {{"cpu_pressure_percent", ABOVE, LIMIT, "%.0f %% of time somebody waits"}},
		.means = "tasks wait for a CPU",
		.next = who_waits,
		.source = psi,
	},
	{
		.name = "locked",
		.tests = {{"lock_wait", ABOVE, LIMIT, "%.2f s of waiting a second"}},
		.means = "threads wait for one lock: it is held too long, or by too many",
		.next = "inspect trace --locks {owner}" OFTEN,
		.source = "futex(2): only who must wait enters the kernel",
	},

	/* --- memory --- */
	{
		.name = "memory-short",
		.tests = {{"memory_pressure_percent", ABOVE, LIMIT,
			   "%.1f %% of time nobody could run"}},
		.means = "tasks wait for memory to be reclaimed",
		.next = biggest,
		.source = psi,
	},
	{
		.name = "swapping",
		.tests = {{"swap_in_per_second", ABOVE, LIMIT,
			   "%.0f pages a second are read back"}},
		.means = "what is needed was put to swap: memory is short",
		.next = "inspect record -e major-faults -c 1 {target}" OFTEN,
		.source = "proc(5), /proc/vmstat pswpin",
	},
	{
		.name = "memory-short",
		.tests = {{"memory_used_percent", ABOVE, LIMIT, "%.0f %% used"}},
		.means = "little memory is left",
		.next = biggest,
		.source = method,
	},
	{
		.name = "faults-from-disk",
		.tests = {{"major_faults_per_second", ABOVE, LIMIT, "%.0f pages a second"}},
		.means =
			"its memory is read from the disk as it is touched: it was swapped, or its "
			"files' pages were dropped",
		.next = who_reads,
		.source = "getrusage(2), ru_majflt",
	},
	{
		.name = "in-swap",
		.tests = {{"process_swap_bytes", ABOVE, LIMIT, "%.0f bytes"}},
		.means = "a part of it is in swap: touching that waits for the disk",
		.next = who_reads,
		.source = "proc(5), VmSwap",
	},
	{
		.name = "locked-memory",
		.tests = {{"locked_percent", ABOVE, LIMIT, "%.0f %% of its limit"}},
		.means = "soon mlock and pinned buffers (RDMA, io_uring, rings) fail with ENOMEM",
		.next = "grep VmLck /proc/{pid}/status; grep locked /proc/{pid}/limits",
		.next_else = "grep -H VmLck /proc/[0-9]*/status | sort -nk2 | tail",
		.source = "getrlimit(2), RLIMIT_MEMLOCK",
	},
	{
		.name = "disk-full",
		.tests = {{"shm_used_percent", ABOVE, LIMIT, "%.0f %%"}},
		.means = "shared memory between processes runs out (SIGBUS)",
		.next = "ls -lS {root}/dev/shm",
		.source = method,
	},
	{
		.name = "remote-memory",
		.tests = {{"numa_other_percent", ABOVE, LIMIT, "%.0f %% of pages"}},
		.means = "memory is taken from another node than the CPU's",
		.next = "numastat -p {pid}",
		.next_else = "numastat",
		.source = "Documentation/admin-guide/numastat.rst",
	},

	/* --- disks and file systems --- */
	{
		.name = "slow-disk",
		.tests = {{"disk_await_ms", ABOVE, LIMIT, "%.1f ms for each I/O"}},
		.means = "each read or write waits long: the disk is slow or its queue is",
		.next = who_waits,
		.source = "Documentation/admin-guide/iostats.rst",
	},
	{
		.name = "waiting-for-disk",
		.tests = {{"io_delay_percent", ABOVE, LIMIT, "%.0f %% of its time"}},
		.means = "it waits for the disk",
		.next = "inspect offcpu {owner}" OFTEN,
		.source = "Documentation/accounting/delay-accounting.rst",
	},
	{
		.name = "waiting-for-disk",
		.tests = {{"io_pressure_percent", ABOVE, LIMIT, "%.0f %% of time somebody waits"}},
		.means = "tasks wait for I/O",
		.next = who_waits,
		.source = psi,
	},
	{
		.name = "disk-full",
		.tests = {{"filesystem_used_percent", ABOVE, LIMIT, "%.0f %% of its blocks"}},
		.means = "writes fail soon",
		.next = "du -xh --max-depth=2 {root}{device} | sort -h | tail",
		.source = method,
	},
	{
		.name = "inodes-used-up",
		.tests = {{"inodes_used_percent", ABOVE, LIMIT, "%.0f %% of its inodes"}},
		.means = "no more files can be made, however much space is left",
		.next = "du -x --inodes --max-depth=2 {root}{device} | sort -n | tail",
		.source = method,
	},

	/* --- network --- */
	{
		.name = "accept-too-slow",
		.tests = {{"listen_overflows_per_second", ABOVE, LIMIT,
			   "%.0f connections refused/s"}},
		.means = "a server does not accept(2) as fast as clients connect",
		.next = "{nsenter}ss -ltnp",
		.source = "Documentation/networking/snmp_counter.rst, TcpExtListenOverflows",
	},
	{
		.name = "reads-too-slowly",
		.tests = {{"tcp_backlog_drops_per_second", ABOVE, LIMIT, "%.0f packets dropped/s"}},
		.means = "a socket's queue is full: its process reads less than it is sent",
		.next = "{nsenter}ss -tmnp",
		.source = "Documentation/networking/snmp_counter.rst, TcpExtTCPBacklogDrop",
	},
	{
		.name = "packets-lost",
		.tests = {{"retransmitted_percent", ABOVE, LIMIT, "%.1f %% sent again"}},
		.means = "the network, or a peer that is overrun, loses packets",
		.next = "{nsenter}ss -tinp",
		.source = "proc_net(5), Tcp RetransSegs",
	},
	{
		.name = "packets-damaged",
		.tests = {{"net_errors_per_second", ABOVE, LIMIT, "%.0f errors a second"}},
		.means = "packets are lost at the device: cable, transceiver, or driver",
		.next = "{nsenter}ip -s -s link show dev {device}",
		.source = "Documentation/networking/statistics.rst, rx_errors and tx_errors",
	},
	{
		.name = "packets-dropped",
		.tests = {{"net_drops_per_second", ABOVE, LIMIT, "%.0f a second"}},
		.means = "packets are dropped at the device",
		.next = "{nsenter}ip -s -s link show dev {device}",
		.source = "Documentation/networking/statistics.rst, rx_dropped and tx_dropped",
	},
	{
		.name = "packets-dropped",
		.tests = {{"softnet_drops_per_second", ABOVE, LIMIT, "%.0f a second"}},
		.means = "the CPU that takes packets in is too slow",
		.next = "inspect record -a --kernel-only" OFTEN,
		.source = "net/core/dev.c, enqueue_to_backlog",
	},
	{
		.name = "network-full",
		.tests = {{"net_used_percent", ABOVE, LIMIT, "%.0f %% of its speed"}},
		.means = "the link is close to what it can carry",
		.next = "{nsenter}ss -tmnp",
		.source = method,
	},
};
const struct use_rules use_host_rules = {rules, ARRAY_SIZE(rules)};
