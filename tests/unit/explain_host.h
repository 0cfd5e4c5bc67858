/* SPDX-License-Identifier: BSD-2-Clause */
/* Hosts for the tests of explanations: an ordinary one, and what a row changes of it. */
#ifndef TEST_EXPLAIN_HOST_H
#define TEST_EXPLAIN_HOST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <inspect/explain.h>
#include <linux/capability.h>
#include <linux/version.h>

#define BIT(cap) (1ULL << (cap))
#define SETCAP "sudo setcap cap_perfmon,cap_bpf,cap_sys_ptrace+ep $(command -v inspect)"
#define SYSCTL(n) "sudo sysctl kernel.perf_event_paranoid=" n "      (until reboot)"
#define HOST_SYSCTL(n)                                                                             \
	"on the host, as root: sysctl kernel.perf_event_paranoid=" n "      (until reboot)"

/* An ordinary user on an ordinary machine of today. */
static inline struct host ordinary(void)
{
	return (struct host){
		.kernel_release = "6.1.0-18-amd64",
		.kernel_version = KERNEL_VERSION(6, 1, 0),
		.has_sudo = true,
		.euid = 1000,
		.egid = 1001,
		.caps_bounding = ~0ULL,
		.perf_event_paranoid = 2,
		.perf_event_mlock_kb = 516,
		.perf_event_max_sample_rate = 100000,
		.perf_event_max_stack = 127,
		.has_pmu = true,
		.has_btf = true,
		.tracefs = "/sys/kernel/tracing",
		.tracefs_mounted = true,
		.tracefs_point = "/sys/kernel/tracing",
		.nofile_soft = 1024,
		.nofile_hard = 1048576,
		.memlock_soft_bytes = 8 << 20,
	};
}

/* What a row changes of the ordinary host. */
struct setting {
	int paranoid;
	bool root, no_sudo, no_pmu, vm, pid_ns, user_ns, nnp, no_tracefs, own_tracefs;
	uint64_t caps, not_bounding;
	unsigned kernel;
	int seccomp;
	const char *container, *lockdown, *exe;
	uint64_t nofile_hard;
};

static inline struct host host_with(const struct setting *s)
{
	struct host h = ordinary();

	h.perf_event_paranoid = s->paranoid;
	h.euid = s->root ? 0 : 1000;
	h.has_sudo = !s->no_sudo;
	h.has_pmu = !s->no_pmu;
	h.virtual_machine = s->vm;
	h.in_pid_namespace = s->pid_ns;
	h.in_user_namespace = s->user_ns;
	h.no_new_privs = s->nnp;
	h.caps_effective = s->caps;
	h.caps_bounding &= ~s->not_bounding;
	h.seccomp_mode = s->seccomp;
	if (s->kernel)
		h.kernel_version = s->kernel;
	if (s->no_tracefs || s->own_tracefs) {
		snprintf(h.tracefs, sizeof(h.tracefs), "%s",
			 s->own_tracefs ? "/proc/self/fd/5" : "");
		h.tracefs_mounted = false;
		h.tracefs_point[0] = '\0';
	}
	if (s->nofile_hard)
		h.nofile_hard = s->nofile_hard;
	snprintf(h.container, sizeof(h.container), "%s", s->container ? s->container : "");
	snprintf(h.lockdown_mode, sizeof(h.lockdown_mode), "%s",
		 s->lockdown ? s->lockdown : "none");
	h.lockdown = s->lockdown && !str_eq(s->lockdown, "none");
	snprintf(h.exe, sizeof(h.exe), "%s", s->exe ? s->exe : "");
	return h;
}

/* Compares a text that may be absent. */
static inline void check_text(const char *name, const char *kind, const char *got, const char *want,
			      bool whole)
{
	bool same = !want || !got ? !want && !got : whole ? str_eq(got, want) : !!strstr(got, want);

	if (!same)
		fail_msg("%s: %s is\n%s\nnot\n%s", name, kind, got ? got : "(none)",
			 want ? want : "(none)");
}

#endif
