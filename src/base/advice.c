/* SPDX-License-Identifier: BSD-2-Clause */
#include "advice.h"

#include <linux/version.h>
#include <string.h>

enum {
	BIT_SYS_PTRACE = 19,
	BIT_SYS_ADMIN = 21,
	BIT_PERFMON = 38,
	BIT_BPF = 39,
};

static bool has_perfmon(const struct host *h)
{
	return !h->kernel_version || h->kernel_version >= KERNEL_VERSION(5, 8, 0);
}

bool advice_in_container(const struct host *h)
{
	return h->container[0] || h->in_pid_namespace;
}

const char *advice_sudo(const struct host *h)
{
	if (h->euid == 0)
		return "";
	return h->has_sudo ? "sudo " : "as root: ";
}

bool advice_is_plain_word(const char *s)
{
	return *s && *s != '-' &&
	       !s[strspn(
		       s,
		       "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._+-@%,:")];
}

/* The path as one shell word; "" when it is unknown, deleted, or not to be quoted simply. */
static struct program_name quoted_exe(const struct host *h)
{
	struct program_name name = {""};

	if (!h->exe[0] || str_ends(h->exe, " (deleted)") || strchr(h->exe, '\''))
		return name;
	snprintf(name.v, sizeof(name.v), advice_is_plain_word(h->exe) ? "%s" : "'%s'", h->exe);
	return name;
}

struct program_name advice_program(const struct host *h)
{
	static const char *const on_every_path[] = {"/bin/inspect", "/usr/bin/inspect",
						    "/usr/local/bin/inspect"};
	struct program_name name = quoted_exe(h);
	bool found = !name.v[0];

	for (size_t i = 0; i < ARRAY_SIZE(on_every_path); i++)
		found = found || str_eq(name.v, on_every_path[i]);
	return found ? (struct program_name){"inspect"} : name;
}

const char *advice_capability_name(const struct host *h)
{
	return has_perfmon(h) ? "CAP_PERFMON" : "CAP_SYS_ADMIN";
}

void advice_sysctl(const struct host *h, const char *name, long long value, struct diag *d)
{
	/* These are the whole machine's, and containers see them read-only. */
	if (advice_in_container(h) || h->in_user_namespace)
		diag_fix(d, "on the host, as root: sysctl %s=%lld      (until reboot)", name,
			 value);
	else
		diag_fix(d, "%ssysctl %s=%lld      (until reboot)", advice_sudo(h), name, value);
}

static void advise_container(const struct host *h, struct diag *d)
{
	const char *cap = advice_capability_name(h) + strlen("CAP_");

	if (str_eq(h->container, "kubernetes"))
		diag_fix(d,
			 "kubernetes: securityContext: {capabilities: {add: [%s, SYS_PTRACE]}}"
			 "      (of the container)",
			 cap);
	else if (str_eq(h->container, "docker") || str_eq(h->container, "podman"))
		diag_fix(d, "%s run --cap-add %s --cap-add SYS_PTRACE …      (a new container)",
			 h->container, cap);
	else
		diag_fix(d, "start the container with %s and CAP_SYS_PTRACE",
			 advice_capability_name(h));
}

static void advise_setcap(const struct host *h, struct diag *d)
{
	uint64_t wanted = has_perfmon(h)
				  ? 1ULL << BIT_PERFMON | 1ULL << BIT_BPF | 1ULL << BIT_SYS_PTRACE
				  : 1ULL << BIT_SYS_ADMIN | 1ULL << BIT_SYS_PTRACE;
	struct program_name program = quoted_exe(h);

	/* A file capability outside the bounding set makes every exec of the file fail; root takes
	 * all that the set holds anyway. */
	if (h->euid == 0 || h->no_new_privs || (h->caps_bounding & wanted) != wanted)
		return;
	diag_fix(d, "%ssetcap %s+ep %s", advice_sudo(h),
		 has_perfmon(h) ? "cap_perfmon,cap_bpf,cap_sys_ptrace"
				: "cap_sys_admin,cap_sys_ptrace",
		 program.v[0] ? program.v : "$(command -v inspect)");
}

void advice_capability(const struct host *h, struct diag *d)
{
	if (h->in_user_namespace)
		advice_outside(h, d);
	else if (advice_in_container(h))
		advise_container(h, d);
	else
		advise_setcap(h, d);
}

void advice_outside(const struct host *h, struct diag *d)
{
	diag_fix(d, "run inspect outside the %s, with the pids seen there",
		 advice_in_container(h) ? "container, on its host" : "user namespace");
}
