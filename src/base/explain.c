/* SPDX-License-Identifier: BSD-2-Clause */
/* Refusals outside perf_event_open: tracefs, other processes, names, and starting CMD. */
#include "advice.h"

#include <inspect/explain.h>
#include <linux/capability.h>
#include <linux/version.h>

#define TRACEFS "/sys/kernel/tracing"

/*
 * Since 5.17 the files of tracefs have no rights for "others" (commit 21ccc9cd7211), and the gid
 * of a remount reaches all of them (commit 48b27b6b5191); before, the mode of the top was enough.
 */
static void advise_remount(const struct host *h, struct diag *d)
{
	const char *point = h->tracefs_point[0] ? h->tracefs_point : TRACEFS;

	if (h->kernel_version && h->kernel_version < KERNEL_VERSION(5, 17, 0))
		diag_fix(d, "%smount -o remount,mode=755 %s", advice_sudo(h), point);
	else
		diag_fix(d, "%smount -o remount,mode=750,gid=%u %s", advice_sudo(h), h->egid,
			 point);
	if (h->euid != 0)
		diag_fix(d, "run inspect as root");
}

static void advise_mount(const struct host *h, struct diag *d)
{
	diag_fix(d, "%smount -t tracefs nodev " TRACEFS, advice_sudo(h));
}

static void explain_no_tracefs(const struct host *h, struct diag *d)
{
	diag_why(d, "tracepoints are listed in tracefs, which is not mounted");
	if (h->in_user_namespace || (advice_in_container(h) && !host_has_cap(h, CAP_SYS_ADMIN)))
		diag_fix(d,
			 "mount the host's %s into the container (docker run -v " TRACEFS
			 ":" TRACEFS ":ro …)",
			 TRACEFS);
	else
		advise_mount(h, d);
}

int explain_tracepoint(int err, const char *name, const struct host *h, struct diag *d)
{
	bool refused = err == -EACCES || err == -EPERM;
	const char *point = h->tracefs_mounted ? h->tracefs_point : TRACEFS;
	const char *colon = strchr(name, ':');

	if (!refused && h->tracefs[0]) {
		diag_set(d, err, "no tracepoint '%s' in this kernel (%s)", name, h->kernel_release);
		if (!h->tracefs_mounted)
			advise_mount(h, d);
		if (colon)
			diag_fix(d, "ls %s/events/%.*s      (those of the group)", point,
				 (int)(colon - name), name);
		diag_fix(d, "%scat %s/available_events", advice_sudo(h), point);
		return err;
	}
	diag_errno(d, err, "cannot use the tracepoint '%s'", name);
	if (!h->tracefs_mounted) {
		explain_no_tracefs(h, d);
		return err;
	}
	if (str_eq(h->lockdown_mode, "confidentiality") && h->euid == 0) {
		diag_why(d, "kernel lockdown is on (%s) and closes tracefs", h->lockdown_mode);
		diag_fix(d, "boot with lockdown=none on the kernel command line");
		return err;
	}
	diag_why(d, "%s is not readable by this user", h->tracefs_point);
	advise_remount(h, d);
	return err;
}

int explain_target(int err, int pid, const struct host *h, struct diag *d)
{
	diag_errno(d, err, "cannot read process %d", pid);
	if (err == -ENOENT || err == -ESRCH) {
		diag_why(d, "there is no process %d%s", pid,
			 h->in_pid_namespace ? " in this pid namespace (container)"
					     : ", or it has ended");
		diag_fix(d, "pgrep -a NAME      (the pids that there are)");
	} else if (err == -EACCES || err == -EPERM) {
		diag_why(d, "it belongs to another user or has more rights than this one: "
			    "CAP_SYS_PTRACE is needed");
		if (h->euid != 0)
			diag_fix(d, "the same command with %s",
				 h->has_sudo ? "sudo" : "root's rights");
		advice_capability(h, d);
	}
	return err;
}

int explain_kernel_names(const struct host *h, struct diag *d)
{
	int64_t restricted = h->kptr_restrict == HOST_UNKNOWN ? 0 : h->kptr_restrict;
	bool syslog = host_has_cap(h, CAP_SYSLOG) && !h->in_user_namespace;

	/* kernel/ksyms_common.c, kallsyms_show_value */
	if (restricted <= 0 && (h->perf_event_paranoid <= 1 || syslog))
		return 0;
	if (restricted == 1 && syslog)
		return 0;
	diag_set(d, -EPERM, "kernel addresses have no names");
	if (restricted > 1) {
		diag_why(d,
			 "kernel.kptr_restrict is %lld: the addresses in /proc/kallsyms are zero "
			 "for everyone",
			 (long long)restricted);
		advice_sysctl(h, "kernel.kptr_restrict", 1, d);
	} else {
		diag_why(d,
			 "the addresses in /proc/kallsyms are zero for this user: they need "
			 "CAP_SYSLOG, or kernel.kptr_restrict 0 with kernel.perf_event_paranoid 1 "
			 "or lower");
		if (h->in_user_namespace)
			advice_outside(h, d);
		else if (h->euid != 0)
			diag_fix(d, "run inspect as root");
		if (restricted == 1)
			advice_sysctl(h, "kernel.kptr_restrict", 0, d);
		if (h->perf_event_paranoid > 1)
			advice_sysctl(h, "kernel.perf_event_paranoid", 1, d);
	}
	return -EPERM;
}

int explain_btf(const struct host *h, struct diag *d)
{
	if (h->has_btf)
		return 0;
	diag_set(d, -ENOENT, "the kernel does not describe its types");
	diag_why(d,
		 "/sys/kernel/btf/vmlinux is missing: the kernel (%s) is older than 5.4 or was "
		 "built without CONFIG_DEBUG_INFO_BTF",
		 h->kernel_release[0] ? h->kernel_release : "unknown");
	diag_fix(d, "use a kernel of the distribution (all of them have BTF since 2021)");
	return -ENOENT;
}

int explain_create(int err, const char *path, struct diag *d)
{
	const char *slash = strrchr(path, '/');
	int n = slash ? (int)MAX(slash - path, 1) : 1;

	diag_errno(d, err, "cannot create %s", path);
	path = slash ? path : ".";
	if (err == -ENOENT) {
		diag_why(d, "there is no folder %.*s", n, path);
		diag_fix(d, "mkdir -p '%.*s'", n, path);
	} else if (err == -ENOTDIR) {
		diag_why(d, "%.*s is no folder", n, path);
	} else if (err == -EACCES || err == -EROFS || err == -EPERM) {
		diag_why(d, "the folder %.*s %s", n, path,
			 err == -EROFS ? "is read-only" : "does not let this user create files");
		diag_fix(d, "a file in another folder, such as /tmp, or - for stdout");
	}
	return err;
}

int explain_exec(int err, const char *argv0, struct diag *d)
{
	diag_errno(d, err, "cannot run '%s'", argv0);
	if (err == -ENOENT && strchr(argv0, '/'))
		diag_why(d,
			 "the file does not exist, or the interpreter that its first line or ELF "
			 "header names does not");
	else if (err == -ENOENT)
		diag_why(d, "no command of that name is in PATH");
	if (err == -ENOENT && strchr(argv0, ' '))
		diag_fix(d, "leave out the quotes around the whole command, or use: sh -c '…'");
	if (err == -EACCES) {
		diag_why(d,
			 "the file is not executable, is a directory, or lies on a noexec mount");
		if (strchr(argv0, '/') && advice_is_plain_word(argv0))
			diag_fix(d, "ls -ldL %s      (its mode: chmod +x a file that lacks the x)",
				 argv0);
	}
	if (err == -ENOEXEC) {
		diag_why(d, "it is no program for this machine, or a script without a #! line");
		if (advice_is_plain_word(argv0))
			diag_fix(d, "-- sh %s      (when it is a script)", argv0);
	}
	if (err == -E2BIG)
		diag_why(d, "its arguments and environment are longer than the kernel takes");
	return err;
}
