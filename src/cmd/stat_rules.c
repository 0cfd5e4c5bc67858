/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What kind of slow it is. Limits are where a look pays, not where a law begins; each says where it
 * comes from. Rules that need counters stay silent without them: the rest still speaks.
 */
#include "stat.h"

/* Shorter or idler than this, and it is the start of a program that is seen. */
#define ENOUGH_CPU                                                                                 \
	{                                                                                          \
		"cpu-seconds", ABOVE, STAT_ENOUGH_CPU_SECONDS, NULL                                \
	}
#define ENOUGH_TIME                                                                                \
	{                                                                                          \
		"wall-seconds", ABOVE, 0.1, NULL                                                   \
	}

#define TOPDOWN_SOURCE                                                                             \
	"A. Yasin, A Top-Down Method for Performance Analysis, ISPASS 2014; limits of the TMA "    \
	"metrics in the kernel's tools/perf/pmu-events"

const struct finding_rule stat_rules[] = {
	{
		.name = "stalling",
		.tests = {{"ipc", BELOW, 1, "IPC %.2f"}, ENOUGH_CPU},
		.means = "less than one instruction a cycle: the CPU waits, mostly for memory",
		.next = "inspect record -e cache-misses {target}",
		.source = "B. Gregg, CPU Utilization is Wrong (2017): IPC below 1 is likely "
			  "stalled on memory",
	},
	{
		.name = "memory-bound",
		.tests = {{"cache-miss-percent", ABOVE, 20, "%.1f %% of cache references miss"},
			  {"cache-references-per-kinst", ABOVE, 1, NULL},
			  ENOUGH_CPU},
		.means = "the data does not fit the last-level cache",
		.next = "inspect record -e cache-misses {target}",
		.source = "where perf stat turns red: 20 % (tools/perf/util/stat-shadow.c, "
			  "grc_table, GRC_CACHE_MISSES)",
	},
	{
		.name = "branchy",
		.tests = {{"branch-miss-percent", ABOVE, 5, "%.1f %% of branches are mispredicted"},
			  ENOUGH_CPU},
		.means = "each miss throws away 15 to 20 cycles of work",
		.next = "inspect record -e branch-misses {target}",
		.source = "where perf stat gives it a colour: 5 % (tools/perf/util/stat-shadow.c, "
			  "grc_table)",
	},
	{
		.name = "tlb-bound",
		.tests = {{"dtlb-misses-per-kinst", ABOVE, 2,
			   "%.1f dTLB misses per 1000 instructions"},
			  ENOUGH_CPU},
		.means = "page tables are walked often: huge pages, or data closer together",
		.next = "inspect record -e dTLB-load-misses {target}",
		.source = "a walk costs tens of cycles (Intel Optimization Reference Manual, TLB "
			  "misses): 2 in 1000 instructions are several percent of the time",
	},
	{
		.name = "frontend-bound",
		.tests = {{"topdown-frontend-percent", ABOVE, 15,
			   "%.0f %% of slots wait for instructions"},
			  ENOUGH_CPU},
		.means = "code is fetched too slowly: large, scattered or often changing code",
		.next = "inspect record -e L1-icache-load-misses {target}",
		.source = TOPDOWN_SOURCE " (tma_frontend_bound > 0.15)",
	},
	{
		.name = "backend-bound",
		.tests = {{"topdown-backend-percent", ABOVE, 20,
			   "%.0f %% of slots wait for data or units"},
			  ENOUGH_CPU},
		.means = "instructions wait for memory or for execution units",
		.next = "inspect record -e cache-misses {target}",
		.source = TOPDOWN_SOURCE " (tma_backend_bound > 0.2)",
	},
	{
		.name = "frontend-stalls",
		.tests = {{"frontend-stall-percent", ABOVE, 30,
			   "%.0f %% of cycles wait for instructions"},
			  ENOUGH_CPU},
		.means = "code is fetched too slowly: large, scattered or often changing code",
		.next = "inspect record -e stalled-cycles-frontend {target}",
		.source = "perf stat's second colour: 30 % (tools/perf/util/stat-shadow.c, "
			  "grc_table, GRC_STALLED_CYCLES_FE)",
	},
	{
		.name = "backend-stalls",
		.tests = {{"backend-stall-percent", ABOVE, 50,
			   "%.0f %% of cycles wait for data or units"},
			  ENOUGH_CPU},
		.means = "instructions wait for memory or for execution units",
		.next = "inspect record -e stalled-cycles-backend {target}",
		.source = "perf stat's second colour: 50 % (tools/perf/util/stat-shadow.c, "
			  "grc_table, GRC_STALLED_CYCLES_BE)",
	},
	{
		.name = "kernel-heavy",
		.tests = {{"sys-percent", ABOVE, 30, "%.0f %% of the CPU time is in the kernel"},
			  ENOUGH_CPU},
		.means = "system calls, faults or the network stack, not its own code",
		.next = "inspect trace -c {target}",
		.source = "B. Gregg, Systems Performance, 2nd ed., 6.5 (user and system time)",
	},
	{
		.name = "waiting",
		.tests = {{"cpus-per-thread", BELOW, 0.5, "%.2f CPUs used by each thread"},
			  {"cpus-wanted-per-thread", BELOW, 0.5, NULL},
			  ENOUGH_TIME},
		.means = "threads are mostly off the CPU: locks, disk, network, sleep",
		.next = "inspect offcpu {target}",
		.source = "B. Gregg, Systems Performance, 2nd ed., 5.4 (off-CPU analysis)",
	},
	{
		.name = "oversubscribed",
		.tests = {{"involuntary-per-cpu-second", ABOVE, 50,
			   "taken off the CPU %.0f times for each second on it"},
			  ENOUGH_CPU},
		.means = "more runnable threads than CPUs: it competes for them",
		.next = "inspect offcpu {target}",
		.source = "a thread alone on a CPU is preempted by little but housekeeping; slices "
			  "of the Linux scheduler are about 3 ms (kernel/sched/fair.c)",
	},
	{
		.name = "faulting",
		.tests = {{"faults-per-cpu-second", ABOVE, 20000,
			   "%.0f page faults for each second of CPU"},
			  ENOUGH_CPU},
		.means = "memory is taken and given back all the time",
		.next = "inspect record -e page-faults -c 1 {target}",
		.source = "a minor fault costs 0.5 to 2 µs with the page's zeroing: 20000 are "
			  "several percent of the time",
	},
	{
		.name = "paging",
		.tests = {{"major-faults-per-second", ABOVE, 10, "%.0f major faults a second"},
			  ENOUGH_TIME},
		.means = "it waits for its own pages from disk or swap",
		.next = "inspect record -e major-faults -c 1 {target}",
		.source = "getrusage(2), ru_majflt: each is a read of the disk, 0.1 to 10 ms",
	},
	{
		.name = "io",
		.tests = {{"disk-mb-per-second", ABOVE, 20, "%.0f MB/s to and from disk"},
			  ENOUGH_TIME},
		.means = "storage has a part in it",
		.next = "inspect offcpu {target}",
		.source = "proc(5), read_bytes and write_bytes of /proc/PID/io",
	},
	{
		.name = "computing",
		.tests = {{"cpus-per-thread", ABOVE, 0.9, "%.2f CPUs used by each thread"},
			  {"sys-percent", BELOW, 30, NULL},
			  ENOUGH_CPU},
		.means = "it runs all the time, in its own code",
		.next = "inspect record {target}",
		.source = "B. Gregg, Systems Performance, 2nd ed., 6.5 (CPU utilization)",
	},
};
const size_t n_stat_rules = ARRAY_SIZE(stat_rules);
