/* SPDX-License-Identifier: BSD-2-Clause */
/* What the kernel and this user allow: facts read once, given to everything that explains. */
#ifndef INSPECT_HOST_H
#define INSPECT_HOST_H

#include <inspect/base.h>

#define HOST_UNKNOWN INT64_MIN

struct host {
	char kernel_release[128];
	unsigned kernel_version; /* KERNEL_VERSION(a,b,c) */
	char machine[64], hostname[256];
	uint32_t cpus_online;
	char exe[256]; /* absolute path of this program, "" unknown */
	bool has_sudo;
	uint32_t euid, egid;
	uint64_t caps_effective; /* bit CAP_x */
	uint64_t caps_bounding;  /* what a program with file capabilities could still get */
	bool no_new_privs;       /* file capabilities and set-uid have no effect */
	int64_t perf_event_paranoid, perf_event_mlock_kb, perf_event_max_sample_rate,
		perf_event_max_stack, kptr_restrict, unprivileged_bpf_disabled;
	int seccomp_mode; /* 0 none, 1 strict, 2 filter, -1 unknown */
	bool lockdown;    /* confidentiality or integrity mode is on */
	char lockdown_mode[32];
	bool has_btf;         /* /sys/kernel/btf/vmlinux readable */
	char tracefs[64];     /* path of a readable tracefs, "" none */
	bool tracefs_mounted; /* at tracefs_point, but perhaps unreadable */
	char tracefs_point[64];
	bool in_user_namespace, in_pid_namespace; /* not the initial one */
	char container[32]; /* "docker", "podman", "kubernetes", "lxc"…; "" none recognised */
	bool has_pmu;       /* a hardware PMU is listed (cpu, cpu_core, armv8_…) */
	bool virtual_machine;
	uint64_t nofile_soft, nofile_hard, memlock_soft_bytes;
};

/* Reads the facts; `root` ("" or a directory) is put before every path, for tests. Never fails:
 * what cannot be read stays unknown. Mounts nothing. */
void host_read(struct host *h, const char *root);

/*
 * Where no tracefs is mounted, one that is attached nowhere (fsmount, Linux 5.2, CAP_SYS_ADMIN):
 * h->tracefs then leads through a descriptor that stays open until this process ends, so call it
 * once. Does nothing where that is not allowed.
 */
void host_open_tracefs(struct host *h);

bool host_has_cap(const struct host *h, int cap);

/* Whether this user passes for privileged where perf asks (CAP_PERFMON, before 5.8 CAP_SYS_ADMIN).
 * Inside a user namespace nobody does: the kernel asks for the capability in the initial one. */
bool host_perfmon_capable(const struct host *h);

#endif
