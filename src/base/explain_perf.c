/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Why perf_event_open and its rings are refused. Sources: kernel/events/core.c
 * (perf_event_open, find_get_context, perf_mmap), kernel/trace/trace_event_perf.c, and Debian's
 * "security,perf: Allow further restriction of perf_event_open".
 */
#include "advice.h"

#include <inspect/explain.h>
#include <linux/capability.h>

/* What the kernel assumes when nobody has set it. */
#define DEFAULT_PARANOID 2

static int64_t paranoid(const struct host *h)
{
	return h->perf_event_paranoid == HOST_UNKNOWN ? DEFAULT_PARANOID : h->perf_event_paranoid;
}

bool host_allows_kernel_samples(const struct host *h)
{
	return paranoid(h) <= 1 || host_perfmon_capable(h);
}

bool host_allows_all_cpus(const struct host *h)
{
	return paranoid(h) <= 0 || host_perfmon_capable(h);
}

/* The highest perf_event_paranoid with which an unprivileged user may do this. */
static int level_needed(const struct perf_attempt *a)
{
	if (a->tracepoint)
		return -1;
	if (a->all_cpus || a->cgroup)
		return 0;
	return a->kernel ? 1 : 2;
}

static bool level_allows(const struct perf_attempt *a, const struct host *h)
{
	return paranoid(h) <= level_needed(a) || host_perfmon_capable(h);
}

struct pid_words {
	char v[32];
};

/* The pid, or PID where no single one is meant. */
static struct pid_words pid_text(const struct perf_attempt *a)
{
	struct pid_words text = {"PID"};

	if (a->pid > 0)
		snprintf(text.v, sizeof(text.v), "%d", a->pid);
	return text;
}

static const char *kind(const struct perf_attempt *a)
{
	return a->thread ? "thread" : "process";
}

static bool always(const struct perf_attempt *a UNUSED, const struct host *h UNUSED)
{
	return true;
}

static bool is_forbidden_tracepoint(const struct perf_attempt *a, const struct host *h)
{
	return a->tracepoint && !level_allows(a, h);
}

/* The kernel itself says EACCES to what perf_event_paranoid forbids, tracepoints aside. */
static bool is_filtered(const struct perf_attempt *a UNUSED, const struct host *h)
{
	return h->seccomp_mode == 2;
}

/* security/lockdown: perf and tracing are closed in this mode only, not under "integrity". */
static bool is_locked_down(const struct perf_attempt *a UNUSED, const struct host *h)
{
	return str_eq(h->lockdown_mode, "confidentiality");
}

/* Root of a user namespace only. */
static bool is_namespaced(const struct perf_attempt *a, const struct host *h)
{
	return h->in_user_namespace && !level_allows(a, h) &&
	       (host_has_cap(h, CAP_SYS_ADMIN) || host_has_cap(h, CAP_PERFMON));
}

static bool is_foreign(const struct perf_attempt *a, const struct host *h)
{
	return a->pid && !a->own_process && !a->all_cpus && !a->cgroup && !host_perfmon_capable(h);
}

static bool is_above_level(const struct perf_attempt *a, const struct host *h)
{
	return !level_allows(a, h);
}

static bool is_hardware_missing(const struct perf_attempt *a, const struct host *h)
{
	return a->hardware && !h->has_pmu;
}

static bool is_hardware(const struct perf_attempt *a, const struct host *h UNUSED)
{
	return a->hardware;
}

static bool is_process(const struct perf_attempt *a, const struct host *h UNUSED)
{
	return a->pid != 0;
}

static bool is_too_fast(const struct perf_attempt *a, const struct host *h)
{
	return h->perf_event_max_sample_rate != HOST_UNKNOWN &&
	       a->freq_hz > (uint64_t)h->perf_event_max_sample_rate;
}

/* The attempt that needs the least: user stacks of a process of one's own. Only what changes of the
 * command line is said: the rest of it is the user's. */
static void advise_less(const struct perf_attempt *a, const struct host *h, struct diag *d)
{
	/* A filter may be what refused the tracepoint, and would refuse this too. */
	if (paranoid(h) > 2 || (a->tracepoint && h->seccomp_mode == 2))
		return;
	if (a->all_cpus || a->cgroup)
		diag_fix(d, "-p PID --user-only instead of %s      (own process; works now)",
			 a->all_cpus ? "-a" : "--cgroup");
	else if (a->own_process && !a->tracepoint)
		diag_fix(d, "--user-only      (works now)");
	else if (a->own_process)
		diag_fix(d, "--user-only -e cpu-clock      (works now)");
}

static void advise_sudo(const struct perf_attempt *a, const struct host *h, struct diag *d)
{
	diag_fix(d, "%s%s %s …      (with the same options)", advice_sudo(h), advice_program(h).v,
		 a->command);
}

static void say_level(const struct perf_attempt *a, const struct host *h, struct diag *d)
{
	static const char *const needs[] = {
		"a tracepoint needs",
		"-a needs",
		"kernel stacks need",
		"sampling any process needs",
	};
	int level = level_needed(a);
	const char *what = level == 0 && a->cgroup   ? "--cgroup needs"
			   : level == 2 && a->counts ? "counting any process needs"
						     : needs[level + 1];

	diag_why(d, "%s kernel.perf_event_paranoid %d or lower, or %s; it is %lld", what, level,
		 advice_capability_name(h), (long long)paranoid(h));
	if (paranoid(h) > 2)
		diag_why(d,
			 "3 and 4 are settings of Debian, Ubuntu and Android kernels that refuse "
			 "perf events to every ordinary user");
	/* A container runtime's seccomp filter follows the capability, so that comes first. */
	if (advice_in_container(h))
		advice_capability(h, d);
	advice_sysctl(h, "kernel.perf_event_paranoid", level, d);
	if (!advice_in_container(h))
		advice_capability(h, d);
	advise_less(a, h, d);
}

static void say_filtered(const struct perf_attempt *a, const struct host *h, struct diag *d)
{
	const char *cap = advice_capability_name(h);

	if (!advice_in_container(h)) {
		diag_why(d, "a seccomp filter of this process refuses perf_event_open");
		diag_fix(d, "run inspect outside the sandbox (for a systemd unit: "
			    "SystemCallFilter=perf_event_open)");
		return;
	}
	diag_why(d, "a seccomp filter (container runtime) refuses perf_event_open without %s", cap);
	advice_capability(h, d);
	if (str_eq(h->container, "docker") || str_eq(h->container, "podman")) {
		if (level_allows(a, h))
			diag_fix(
				d,
				"%s run --security-opt seccomp=unconfined …      (a new container)",
				h->container);
	} else if (str_eq(h->container, "kubernetes") && level_allows(a, h)) {
		diag_fix(d, "kubernetes: securityContext: {seccompProfile: {type: Unconfined}}"
			    "      (of the container)");
	}
	if (!h->in_user_namespace)
		advice_outside(h, d);
}

static void say_locked_down(const struct perf_attempt *a UNUSED, const struct host *h,
			    struct diag *d)
{
	diag_why(d, "kernel lockdown is on (%s), and refuses it even to root", h->lockdown_mode);
	diag_fix(d, "boot with lockdown=none on the kernel command line (secure boot may turn "
		    "it on again)");
}

static void say_namespaced(const struct perf_attempt *a, const struct host *h, struct diag *d)
{
	diag_why(d,
		 "the capabilities of a user namespace do not count for perf events: the kernel "
		 "asks for %s outside it, or kernel.perf_event_paranoid %d or lower; it is %lld",
		 advice_capability_name(h), level_needed(a), (long long)paranoid(h));
	advice_outside(h, d);
	advice_sysctl(h, "kernel.perf_event_paranoid", level_needed(a), d);
	advise_less(a, h, d);
}

static void say_foreign(const struct perf_attempt *a, const struct host *h, struct diag *d)
{
	diag_why(d,
		 "%s %s belongs to another user or has more rights than this one: %s is "
		 "needed",
		 kind(a), pid_text(a).v, advice_capability_name(h));
	if (advice_in_container(h) || h->in_user_namespace) {
		advice_capability(h, d);
		return;
	}
	if (h->euid != 0)
		advise_sudo(a, h, d);
	advice_capability(h, d);
}

static void say_module(const struct perf_attempt *a, const struct host *h, struct diag *d)
{
	if (a->pid && !host_perfmon_capable(h))
		diag_why(d,
			 "%s %s is not open to this user (set-uid, file capabilities, or "
			 "another user namespace), or a security module refuses",
			 kind(a), pid_text(a).v);
	else if (paranoid(h) > 2 && !host_has_cap(h, CAP_SYS_ADMIN)) {
		/* The patch of Debian and Ubuntu that made levels above 2 (before CAP_PERFMON). */
		diag_why(d,
			 "kernel.perf_event_paranoid is %lld: some kernels ask for CAP_SYS_ADMIN "
			 "above 2",
			 (long long)paranoid(h));
		advice_sysctl(h, "kernel.perf_event_paranoid", 2, d);
		return;
	} else
		diag_why(d, "the sysctls and capabilities would allow it: a security module "
			    "(SELinux class perf_event) refuses");
	if (h->euid != 0 && !advice_in_container(h) && a->pid)
		advise_sudo(a, h, d);
	diag_fix(d, "%sdmesg | grep -i denied      (names the module and its rule)",
		 advice_sudo(h));
}

static void say_not_built(const struct perf_attempt *a UNUSED, const struct host *h UNUSED,
			  struct diag *d)
{
	diag_why(d, "this kernel has no perf events (CONFIG_PERF_EVENTS), or a sandbox such as "
		    "gVisor stands for it");
}

static void say_gone(const struct perf_attempt *a, const struct host *h, struct diag *d)
{
	diag_why(d, "there is no %s %s%s", kind(a), pid_text(a).v,
		 h->in_pid_namespace ? " in this pid namespace (container)" : ", or it has ended");
	diag_fix(d, "pgrep -a NAME      (the pids that there are)");
}

static void say_no_hardware(const struct perf_attempt *a UNUSED, const struct host *h,
			    struct diag *d)
{
	diag_why(d, "there are no hardware counters here%s",
		 h->virtual_machine ? " (a virtual machine without a virtual PMU)" : "");
	diag_fix(d, "-e cpu-clock      (a timer: works everywhere)");
	if (h->virtual_machine)
		diag_fix(d, "give the virtual machine a PMU (QEMU: -cpu host,pmu=on)");
}

static void say_no_event(const struct perf_attempt *a UNUSED, const struct host *h UNUSED,
			 struct diag *d)
{
	diag_why(d, "this CPU's counters do not have the event, or not with these modifiers");
	diag_fix(d, "-e cpu-clock      (a timer: works everywhere)");
}

static void say_absent(const struct perf_attempt *a UNUSED, const struct host *h, struct diag *d)
{
	diag_why(d, "the kernel (%s) does not offer this event here",
		 h->kernel_release[0] ? h->kernel_release : "unknown");
}

static void say_descriptors(const struct perf_attempt *a, const struct host *h, struct diag *d)
{
	size_t wanted = MAX(a->events_wanted, a->events_open + 1);
	unsigned long long limit = (wanted + 64 + 1023) / 1024 * 1024;

	diag_why(d,
		 "%zu event descriptors are needed (threads or CPUs, times events), %zu could be "
		 "opened; the limit (ulimit -n) is %llu",
		 wanted, a->events_open, (unsigned long long)h->nofile_soft);
	if (h->nofile_hard >= limit)
		diag_fix(d, "ulimit -n %llu      (this shell; then the same command)", limit);
	else
		diag_fix(d,
			 "%sprlimit --pid $$ --nofile=%llu:%llu      (this shell; then the same "
			 "command)",
			 advice_sudo(h), limit, limit);
	if (!a->all_cpus && host_allows_all_cpus(h))
		diag_fix(d, "-a      (one descriptor for each CPU and event)");
}

static void say_system_descriptors(const struct perf_attempt *a UNUSED, const struct host *h,
				   struct diag *d)
{
	diag_why(d, "the whole system's limit on open files (fs.file-max) is reached");
	diag_fix(d, "cat /proc/sys/fs/file-nr      (open, free, limit)");
	advice_sysctl(h, "fs.file-max", 1 << 22, d);
}

static void say_too_fast(const struct perf_attempt *a, const struct host *h, struct diag *d)
{
	diag_why(d, "-F %llu is above kernel.perf_event_max_sample_rate, which is %lld",
		 (unsigned long long)a->freq_hz, (long long)h->perf_event_max_sample_rate);
	diag_fix(d, "-F max");
	advice_sysctl(h, "kernel.perf_event_max_sample_rate",
		      (long long)MIN(a->freq_hz, (uint64_t)INT32_MAX), d);
}

static void say_refused_form(const struct perf_attempt *a UNUSED, const struct host *h UNUSED,
			     struct diag *d)
{
	diag_why(d, "the kernel does not take this event with these options (modifiers, rate, "
		    "target)");
	diag_fix(d, "-e cpu-clock      (a timer: works everywhere)");
}

static void say_busy(const struct perf_attempt *a, const struct host *h, struct diag *d)
{
	diag_why(d, "the counters are held by someone else (the NMI watchdog, an exclusive event, "
		    "or another profiler)");
	if (a->hardware)
		advice_sysctl(h, "kernel.nmi_watchdog", 0, d);
	diag_fix(d, "-e cpu-clock      (a timer: works everywhere)");
}

static void say_too_new(const struct perf_attempt *a UNUSED, const struct host *h, struct diag *d)
{
	diag_why(d, "the kernel (%s) is older than an option that was asked for",
		 h->kernel_release[0] ? h->kernel_release : "unknown");
	diag_fix(d, "leave the special options out, or use Linux 5.4 or newer");
}

static void say_too_deep(const struct perf_attempt *a UNUSED, const struct host *h, struct diag *d)
{
	if (h->perf_event_max_stack == HOST_UNKNOWN)
		return;
	diag_why(d, "--max-stack is above kernel.perf_event_max_stack, which is %lld",
		 (long long)h->perf_event_max_stack);
	diag_fix(d, "--max-stack %lld", (long long)h->perf_event_max_stack);
}

/* The first row that fits speaks. */
static const struct {
	int err;
	bool (*fits)(const struct perf_attempt *a, const struct host *h);
	void (*say)(const struct perf_attempt *a, const struct host *h, struct diag *d);
} reasons[] = {
	{EPERM, is_forbidden_tracepoint, say_level},
	{EPERM, is_filtered, say_filtered},
	{ENOSYS, is_filtered, say_filtered},
	{ENOSYS, always, say_not_built},
	{EPERM, is_locked_down, say_locked_down},
	{EPERM, is_namespaced, say_namespaced},
	{EPERM, always, say_module},
	{EACCES, is_namespaced, say_namespaced},
	{EACCES, is_foreign, say_foreign},
	{EACCES, is_above_level, say_level},
	{EACCES, always, say_module},
	{ESRCH, is_process, say_gone},
	{ENOENT, is_hardware_missing, say_no_hardware},
	{ENODEV, is_hardware_missing, say_no_hardware},
	{EOPNOTSUPP, is_hardware_missing, say_no_hardware},
	{ENOENT, is_hardware, say_no_event},
	{ENODEV, is_hardware, say_no_event},
	{EOPNOTSUPP, always, say_no_event},
	{ENOENT, always, say_absent},
	{ENODEV, always, say_absent},
	{EMFILE, always, say_descriptors},
	{ENFILE, always, say_system_descriptors},
	{EINVAL, is_too_fast, say_too_fast},
	{EINVAL, is_hardware_missing, say_no_hardware},
	{EINVAL, always, say_refused_form},
	{EBUSY, always, say_busy},
	{E2BIG, always, say_too_new},
	{EOVERFLOW, always, say_too_deep},
};

int explain_perf_open(int err, const struct perf_attempt *a, const struct host *h, struct diag *d)
{
	char whom[32] = "the command";

	if (a->all_cpus)
		snprintf(whom, sizeof(whom), "all CPUs");
	else if (a->cgroup)
		snprintf(whom, sizeof(whom), "the cgroup");
	else if (a->pid)
		snprintf(whom, sizeof(whom), "%s %.20s", kind(a), pid_text(a).v);
	if (a->counts)
		diag_errno(d, err, "cannot count '%s' of %s", a->event, whom);
	else
		diag_errno(d, err, "cannot sample %s with '%s'", whom, a->event);
	for (size_t i = 0; i < ARRAY_SIZE(reasons); i++) {
		if (reasons[i].err != -err || !reasons[i].fits(a, h))
			continue;
		reasons[i].say(a, h, d);
		break;
	}
	return err;
}

int explain_ring(int err, unsigned pages, const struct host *h, struct diag *d)
{
	long long page_kb = sysconf(_SC_PAGESIZE) / 1024,
		  ring_kb = ((long long)pages + 1) * page_kb;

	diag_errno(d, err, "cannot map a ring of %lld KiB for each CPU",
		   (long long)pages * page_kb);
	if (err == -EPERM) {
		diag_why(d,
			 "it is more than kernel.perf_event_mlock_kb (%lld for each CPU and user) "
			 "and the memlock limit (%llu KiB) leave over",
			 h->perf_event_mlock_kb == HOST_UNKNOWN ? 516ll
								: (long long)h->perf_event_mlock_kb,
			 (unsigned long long)h->memlock_soft_bytes / 1024);
		if (pages > 1)
			diag_fix(d, "--mmap-pages %u", pages / 2);
		advice_sysctl(h, "kernel.perf_event_mlock_kb",
			      MAX(ring_kb, (long long)h->perf_event_mlock_kb) + ring_kb, d);
		advice_capability(h, d);
	} else if (err == -ENOMEM) {
		diag_why(d, "there is not enough memory for it");
		if (pages > 1)
			diag_fix(d, "--mmap-pages %u", pages / 2);
	}
	return err;
}
