/* SPDX-License-Identifier: BSD-2-Clause */
/* What rows mean together, and what to ask next. */
#include "stat.h"
#include "use.h"

#include <math.h>

static const char method[] = "B. Gregg, Systems Performance, 2nd ed., 2.5.9 (USE method)";
static const char serving[] = "a GPU that waits while requests wait is fed too slowly";

const struct finding_rule use_rules[] = {
	{
		.name = "oom-killed",
		.tests = {{"cgroup_oom_kills", ABOVE, 0, "%.0f oom kills"}},
		.means = "a cgroup was at its memory limit and had nothing to reclaim",
		.next = "inspect record -e page-faults -c 1 {target}",
		.source = "Documentation/admin-guide/cgroup-v2.rst, memory.events (oom_kill)",
	},
	{
		.name = "oom-killed",
		.tests = {{"oom_kills", ABOVE, 0, "%.0f oom kills"}},
		.means = "memory ran out: the host's or a cgroup's",
		.next = "dmesg | grep -i 'killed process'",
		.source = "proc(5), /proc/vmstat oom_kill",
	},
	{
		.name = "gpu-fault",
		.tests = {{"gpu_xid_errors", ABOVE, 0, "%.0f XID errors"}},
		.means = "the GPU or its driver reported a fault",
		.next = "dmesg | grep -i xid",
		.source = "NVIDIA, XID Errors",
	},
	{
		.name = "gpu-slowed-down",
		.tests = {{"gpu_throttled", ABOVE, 0, "clocks lowered by hardware"}},
		.means = "heat or power supply: the same work takes longer, whatever the software",
		.next = "nvidia-smi -q -d PERFORMANCE,TEMPERATURE,POWER",
		.source = "nvml.h, nvmlClocksEventReason*",
	},
	{
		.name = "kv-cache-full",
		.tests = {{"kv_cache_percent", ABOVE, 90, "KV cache %.0f %%"},
			  {"preemptions_per_second", ABOVE, 0, "%.2f preemptions a second"}},
		.means = "requests are put out of the batch and computed again: fewer at once, "
			 "shorter contexts, or more memory",
		.next = "inspect use --watch{self}",
		.source = "vLLM, Optimization and Tuning: Preemption",
	},
	{
		.name = "event-loop-bound",
		.tests = {{"thread_busy_percent", ABOVE, 90, "one thread %.0f %% of a core"},
			  {"gpu_busy_percent", BELOW, 50, "GPU %.0f %% busy"},
			  {"requests_running", ABOVE, 0, NULL}},
		.means = "a single thread feeds the GPU and is full: the GPU waits for it",
		.next = "inspect record {thread}",
		.source = serving,
	},
	{
		.name = "event-loop-bound",
		.tests = {{"thread_busy_percent", ABOVE, 90, "one thread %.0f %% of a core"},
			  {"gpu_busy_percent", BELOW, 50, "GPU %.0f %% busy"}},
		.means = "the GPU idles while one thread is full: it may be what feeds the GPU",
		.next = "inspect record {thread}",
		.source = serving,
	},
	{
		.name = "gpu-starved",
		.tests = {{"requests_waiting", ABOVE, 0, "%.0f requests wait"},
			  {"gpu_busy_percent", BELOW, 50, "GPU %.0f %% busy"}},
		.means = "requests wait and the GPU does too: what lies between is slow",
		.next = "inspect offcpu {target}",
		.source = serving,
	},
	{
		.name = "engine-overloaded",
		.tests = {{"waiting_per_running", ABOVE, 1, "%.1f wait for each that runs"}},
		.means = "more requests come than the batch takes: latency is the queue's",
		.next = "inspect use --watch{self}",
		.source = "Little's law: what waits longer than it runs is a queue",
	},
	{
		.name = "gpu-bound",
		.tests = {{"gpu_busy_percent", ABOVE, 90, "GPU %.0f %% busy"},
			  {"waiting_per_running", BELOW, 1, "%.1f wait for each that runs"}},
		.means =
			"the GPU does the work and the queue is short: faster kernels or more GPUs",
		.next = "inspect trace --gpu -c {target}",
		.source = "nvml.h, nvmlUtilization_t: share of time with any kernel",
	},
	{
		.name = "cgroup-throttled",
		.tests = {{"throttled_percent", ABOVE, 1, "%.0f %% of its periods"}},
		.means = "the quota is used up early and all threads wait for the next period: "
			 "raise it, or run fewer threads",
		.next = "inspect offcpu {target}",
		.source = "Documentation/scheduler/sched-bwc.rst",
	},
	{
		.name = "memory-limit",
		.tests = {{"memory_high_per_second", ABOVE, 0, "over memory.high %.0f times/s"}},
		.means = "a cgroup is slowed down to make it reclaim",
		.next = "inspect offcpu {target}",
		.source = "Documentation/admin-guide/cgroup-v2.rst, memory.high",
	},
	{
		.name = "memory-limit",
		.tests = {{"cgroup_memory_percent", ABOVE, 85, "%.0f %% of its limit"}},
		.means = "a cgroup is close to its limit, beyond which processes are killed",
		.next = "inspect record -e page-faults -c 1 {target}",
		.source = method,
	},
	{
		.name = "no-more-processes",
		.tests = {{"pids_refused", ABOVE, 0, "%.0f forks refused"}},
		.means = "the pids limit of a cgroup is reached: fork fails with EAGAIN",
		.next = "cat /proc/PID/cgroup",
		.source = "Documentation/admin-guide/cgroup-v2.rst, pids.events",
	},
	{
		.name = "no-more-processes",
		.tests = {{"threads_refused", ABOVE, 0, "%.0f forks failed with EAGAIN"}},
		.means = "a limit of processes is reached: a user's, a cgroup's, or the system's",
		.next = "prlimit --nproc; cat /sys/fs/cgroup/pids.max; sysctl kernel.threads-max",
		.source = "fork(2), EAGAIN",
	},
	{
		.name = "descriptors",
		.tests = {{"fds_refused", ABOVE, 0, "%.0f calls failed with EMFILE"}},
		.means = "open, accept, socket fail: a leak, or a low limit",
		.next = "ls -l /proc/{pid}/fd",
		.source = "getrlimit(2), RLIMIT_NOFILE",
	},
	{
		.name = "descriptors",
		.tests = {{"files_refused", ABOVE, 0, "%.0f calls failed with ENFILE"}},
		.means = "the system has as many open files as it may",
		.next = "sysctl fs.file-nr fs.file-max",
		.source = "proc_sys_fs(5), file-max",
	},
	{
		.name = "descriptors",
		.tests = {{"fds_percent", ABOVE, 80, "%.0f %% of its limit"}},
		.means = "soon open, accept and socket fail with EMFILE: a leak, or a low limit",
		.next = "ls -l /proc/{pid}/fd",
		.source = "getrlimit(2), RLIMIT_NOFILE",
	},
	{
		.name = "hot-thread",
		.tests = {{"thread_busy_percent", ABOVE, 90, "%.0f %% of a core"},
			  {"cpu_busy_percent", BELOW, 80, NULL}},
		.means = "one thread is the limit: more CPUs do not help",
		.next = "inspect record {thread}",
		.source = "Amdahl's law: one serial thread bounds the rest",
	},
	{
		.name = "cpu-saturated",
		.tests = {{"run_delay_percent", ABOVE, 5, "run delay %.0f %%"},
			  {"cpu_busy_percent", ABOVE, 80, "%.0f %% busy"}},
		.means = "more threads want to run than there are CPUs: they wait for each other",
		.next = "inspect record -a -d 10",
		.source = method,
	},
	{
		.name = "cpu-saturated",
		.tests = {{"cpu_busy_percent", ABOVE, 95, "%.0f %% busy"}},
		.means = "the CPUs have no time left",
		.next = "inspect record -a -d 10",
		.source = method,
	},
	{
		.name = "cpu-stolen",
		.tests = {{"steal_percent", ABOVE, 5, "%.0f %% of the time is stolen"}},
		.means = "the hypervisor runs somebody else: not to be mended in here",
		.next = "inspect stat {target}",
		.source = "proc(5), /proc/stat steal",
	},
	{
		.name = "waits-for-cpu",
		.tests = {{"thread_run_delay_percent", ABOVE, 5, "run delay %.0f %%"},
			  {"run_delay_percent", BELOW, 5, NULL}},
		.means = "it could run and gets no CPU, though there are some: it may be bound to "
			 "busy ones",
		.next = "inspect offcpu {thread}",
		.source = method,
	},
	{
		.name = "waits-for-cpu",
		.tests = {{"process_run_delay_percent", ABOVE, 5, "run delay %.0f %%"}},
		.means = "it could run and gets no CPU: others take them, or its quota is short",
		.next = "inspect offcpu {owner}",
		.source = method,
	},
	{
		.name = "locked",
		.tests = {{"lock_wait", ABOVE, 0.1, "%.2f s of waiting a second"}},
		.means = "threads wait for one lock: it is held too long, or by too many",
		.next = "inspect trace --locks {owner}",
		.source = "futex(2): only who must wait enters the kernel",
	},
	{
		.name = "memory-short",
		.tests = {{"memory_pressure_percent", ABOVE, 1,
			   "%.1f %% of time nobody could run"}},
		.means = "tasks wait for memory to be reclaimed",
		.next = "inspect record -e major-faults -c 1 {target}",
		.source = "Documentation/accounting/psi.rst (full)",
	},
	{
		.name = "swapping",
		.tests = {{"swap_in_per_second", ABOVE, 0, "%.0f pages a second are read back"}},
		.means = "what is needed was put to swap: memory is short",
		.next = "inspect record -e major-faults -c 1 {target}",
		.source = "proc(5), /proc/vmstat pswpin",
	},
	{
		.name = "memory-short",
		.tests = {{"memory_used_percent", ABOVE, 85, "%.0f %% used"}},
		.means = "little memory is left",
		.next = "inspect record -e page-faults -c 1 {target}",
		.source = method,
	},
	{
		.name = "slow-disk",
		.tests = {{"disk_await_ms", ABOVE, 10, "%.1f ms for each I/O"}},
		.means = "each read or write waits long: the disk is slow or its queue is",
		.next = "inspect offcpu {target}",
		.source = "Documentation/admin-guide/iostats.rst",
	},
	{
		.name = "waiting-for-disk",
		.tests = {{"io_pressure_percent", ABOVE, 10, "%.0f %% of time somebody waits"}},
		.means = "tasks wait for I/O",
		.next = "inspect offcpu {target}",
		.source = "Documentation/accounting/psi.rst",
	},
	{
		.name = "disk-full",
		.tests = {{"filesystem_used_percent", ABOVE, 85, "%.0f %% of its blocks"}},
		.means = "writes fail soon",
		.next = "du -xh --max-depth=2 {device} | sort -h | tail",
		.source = method,
	},
	{
		.name = "disk-full",
		.tests = {{"inodes_used_percent", ABOVE, 85, "%.0f %% of its inodes"}},
		.means = "no more files can be made, however much space is left",
		.next = "du -x --inodes --max-depth=2 {device} | sort -n | tail",
		.source = method,
	},
	{
		.name = "disk-full",
		.tests = {{"shm_used_percent", ABOVE, 80, "%.0f %%"}},
		.means = "shared memory between processes runs out (SIGBUS)",
		.next = "ls -lS /dev/shm",
		.source = method,
	},
	{
		.name = "accept-too-slow",
		.tests = {{"listen_overflows_per_second", ABOVE, 0, "%.0f connections refused/s"}},
		.means = "a server does not accept(2) as fast as clients connect",
		.next = "ss -ltn",
		.source = "Documentation/networking/snmp_counter.rst, TcpExtListenOverflows",
	},
	{
		.name = "packets-lost",
		.tests = {{"retransmitted_percent", ABOVE, 1, "%.1f %% sent again"}},
		.means = "the network, or a peer that is overrun, loses packets",
		.next = "ss -ti",
		.source = "proc_net(5), Tcp RetransSegs",
	},
	{
		.name = "packets-dropped",
		.tests = {{"net_drops_per_second", ABOVE, 0, "%.0f a second"}},
		.means = "packets are dropped at the device",
		.next = "ip -s -s link show dev {device}",
		.source = method,
	},
	{
		.name = "packets-dropped",
		.tests = {{"softnet_drops_per_second", ABOVE, 0, "%.0f a second"}},
		.means = "the CPU that takes packets in is too slow",
		.next = "inspect record -C 0 --kernel-only",
		.source = "net/core/dev.c, enqueue_to_backlog",
	},
	{
		.name = "network-full",
		.tests = {{"net_used_percent", ABOVE, 70, "%.0f %% of its speed"}},
		.means = "the link is close to what it can carry",
		.next = "ss -tmi",
		.source = method,
	},
	{
		.name = "gpu-memory",
		.tests = {{"gpu_no_memory", ABOVE, 0, "%.0f calls refused"}},
		.means = "the GPU's driver had no memory to give",
		.next = "inspect trace --gpu --leaks {target}",
		.source = "nvstatuscodes.h, NV_ERR_NO_MEMORY (0x51)",
	},
	{
		.name = "gpu-driver-slow",
		.tests = {{"gpu_calls_p99_ms", ABOVE, 5, "p99 %.1f ms"}},
		.means =
			"the GPU's driver answers slowly: its callers wait for it, not for the GPU",
		.next = "inspect trace --gpu -c {target}",
		.source = "while serving, kernels are launched without the driver",
	},
	{
		.name = "gpu-allocates",
		.tests = {{"gpu_allocs_per_second", ABOVE, 10, "%.0f allocations a second"},
			  {"requests_running", ABOVE, 0, NULL}},
		.means = "memory is taken from the driver while requests are served: it stops the "
			 "GPU each time",
		.next = "inspect trace --gpu --leaks {target}",
		.source = "engines take their memory ahead",
	},
	{
		.name = "gpu-memory",
		.tests = {{"gpu_memory_percent", ABOVE, 95, "%.0f %% used"}},
		.means = "the next allocation may fail",
		.next = "nvidia-smi",
		.source = "nvml.h, nvmlMemory_t",
	},
	{
		.name = "gpu-link",
		.tests = {{"pcie_percent", ABOVE, 60, "PCIe %.0f %%"}},
		.means = "data is moved to and from the GPU more than it should",
		.next = "inspect trace --gpu -c {target}",
		.source = method,
	},
	{
		.name = "remote-memory",
		.tests = {{"numa_other_percent", ABOVE, 20, "%.0f %% of pages"}},
		.means = "memory is taken from another node than the CPU's",
		.next = "numastat -p PID",
		.source = "Documentation/admin-guide/numastat.rst",
	},
};
const size_t n_use_rules = ARRAY_SIZE(use_rules);

static double value_of(void *ctx, const char *name)
{
	const struct use_row *row = use_report_worst(ctx, name);

	return row ? use_row_value(row, name)->v : NAN;
}

/* --- who the next command is for -------------------------------------------------------------- */

/* The number at the end of "comm/123", or in "comm/123 0xaddr". */
static const char *id_in(const char *device, int *ret_length)
{
	const char *slash = strrchr(device, '/');

	*ret_length = slash ? (int)strspn(slash + 1, "0123456789") : 0;
	return *ret_length ? slash + 1 : NULL;
}

static const char *replace(struct result *r, const char *line, const char *mark, const char *with)
{
	const char *at = strstr(line, mark);

	if (!at || !with)
		return line;
	return result_text(r, "%.*s%s%s", (int)(at - line), line, with, at + strlen(mark));
}

static const char *fill_next(struct result *r, const char *line, const struct use_row *row,
			     const struct use_subject *s)
{
	const char *target = s->target ? s->target : "-a";
	int n;
	const char *id = id_in(row->device, &n);
	const char *owner = id ? result_text(r, "-p %.*s", n, id) : target;

	line = replace(r, line, "{thread}", id ? result_text(r, "-t %.*s", n, id) : target);
	line = replace(r, line, "{owner}", owner);
	line = replace(r, line, "{self}", s->target ? result_text(r, " %s", s->target) : "");
	line = replace(r, line, "{pid}", id ? result_text(r, "%.*s", n, id) : "PID");
	return replace(r, line, "{device}", row->device);
}

static int compare_verdicts(const struct use_report *report, const struct finding *a,
			    const struct finding *b)
{
	const struct use_row *x = use_report_worst(report, a->rule->tests[0].value);
	const struct use_row *y = use_report_worst(report, b->rule->tests[0].value);

	if (!x || !y)
		return 0;
	/* What a target itself has is the first answer to a question about it. */
	if (report->has_target && str_eq(x->scope, "host") != str_eq(y->scope, "host"))
		return str_eq(x->scope, "host") ? 1 : -1;
	return (int)y->verdict - (int)x->verdict;
}

/* Stable: within a verdict the order is the table's. */
static void sort_findings(const struct use_report *report, findings *f)
{
	for (size_t i = 1; i < f->n; i++)
		for (size_t k = i; k && compare_verdicts(report, &f->v[k - 1], &f->v[k]) > 0; k--) {
			struct finding swap = f->v[k];

			f->v[k] = f->v[k - 1];
			f->v[k - 1] = swap;
		}
}

/* With the limits of this run, where its first value has some. */
static bool is_worth_it(const struct use_row *row, const char *key)
{
	const struct use_value *v = use_row_value(row, key);

	return isnan(use_metrics[v->metric].warn) || v->verdict >= USE_WARN;
}

static bool is_told(const findings *f, const struct finding_rule *rule)
{
	for (size_t i = 0; i < f->n; i++)
		if (str_eq(f->v[i].rule->name, rule->name))
			return true;
	return false;
}

enum use_verdict use_findings_worst(const struct use_report *report, const findings *f)
{
	enum use_verdict worst = USE_NO_DATA;

	for (size_t i = 0; i < f->n; i++)
		for (size_t k = 0; k < FINDING_TESTS_MAX && f->v[i].rule->tests[k].value; k++) {
			const struct use_row *row =
				use_report_worst(report, f->v[i].rule->tests[k].value);

			worst = row ? MAX(worst, row->verdict) : worst;
		}
	return worst;
}

int use_findings(const struct use_report *report, const struct use_subject *subject,
		 struct result *r, findings *ret)
{
	const char *target = subject->target ? subject->target : "-a";

	for (size_t i = 0; i < n_use_rules; i++) {
		const struct finding_rule *rule = &use_rules[i];
		const struct use_row *row = use_report_worst(report, rule->tests[0].value);
		size_t n = ret->n;

		if (!row || is_told(ret, rule) || !is_worth_it(row, rule->tests[0].value))
			continue;
		if (findings_evaluate(rule, 1, value_of, (void *)report, target, stat_has_command,
				      r, ret))
			return -ENOMEM;
		if (ret->n == n)
			continue;
		ret->v[n].evidence =
			result_text(r, "%s: %s", use_row_name(r, row), ret->v[n].evidence);
		ret->v[n].next = fill_next(r, ret->v[n].next, row, subject);
	}
	sort_findings(report, ret);
	return 0;
}
