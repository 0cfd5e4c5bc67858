/* SPDX-License-Identifier: BSD-2-Clause */
/* Why the kernel's side can't do the unwinding: before trying, and after. */
#include "advice.h"

#include <inspect/explain.h>
#include <linux/capability.h>
#include <linux/version.h>

#define NEEDS_KERNEL KERNEL_VERSION(5, 10, 0)
#define CHARGED_TO_CGROUP KERNEL_VERSION(5, 11, 0)

static int lacks_rights(const struct host *h, struct diag *d)
{
	bool admin = host_has_cap(h, CAP_SYS_ADMIN);
	bool bpf = host_has_cap(h, CAP_BPF), perfmon = host_has_cap(h, CAP_PERFMON);

	if (!h->in_user_namespace && (admin || (bpf && perfmon)))
		return 0;
	diag_set(d, -EPERM, "BPF is not allowed");
	if (h->in_user_namespace)
		diag_why(d, "capabilities of a user namespace do not count for it");
	else
		diag_why(d, "it needs CAP_BPF and CAP_PERFMON; missing: %s%s%s",
			 bpf ? "" : "CAP_BPF", bpf || perfmon ? "" : ", ",
			 perfmon ? "" : "CAP_PERFMON");
	if (!h->in_user_namespace && !advice_in_container(h)) {
		if (h->euid != 0)
			diag_fix(d, "the same command with %s",
				 h->has_sudo ? "sudo" : "root's rights");
		else
			diag_fix(d, "a shell or service whose root has them      (systemd: "
				    "CapabilityBoundingSet=; see CapBnd in /proc/self/status)");
	}
	advice_capability(h, d);
	return -EPERM;
}

int explain_bpf(const struct host *h, struct diag *d)
{
	if (h->machine[0] && !str_eq(h->machine, "x86_64") && !str_eq(h->machine, "aarch64")) {
		diag_set(d, -EOPNOTSUPP, "no unwinding in the kernel on %s", h->machine);
		diag_why(d, "it is built for x86_64 and aarch64");
		return -EOPNOTSUPP;
	}
	if (h->kernel_version && h->kernel_version < NEEDS_KERNEL) {
		diag_set(d, -EOPNOTSUPP, "kernel %s is too old to unwind in it", h->kernel_release);
		diag_why(d, "what the BPF program needs came up to 5.10");
		diag_fix(d, "a newer kernel, or --call-graph dwarf      (copies stacks instead)");
		return -EOPNOTSUPP;
	}
	if (!h->has_btf)
		return explain_btf(h, d);
	if (str_eq(h->lockdown_mode, "confidentiality")) {
		diag_set(d, -EPERM, "BPF is not allowed to read memory");
		diag_why(d, "the kernel is locked down (confidentiality)");
		return -EPERM;
	}
	return lacks_rights(h, d);
}

int explain_bpf_tracing(const struct host *h, enum explain_tracing_since since, const char *what,
			const char *fix, struct diag *d)
{
	if (h->kernel_version && h->kernel_version < since) {
		diag_set(d, -EOPNOTSUPP, "kernel %s is too old to %s", h->kernel_release, what);
		diag_why(d, "what the BPF program needs came up to %u.%u", since >> 16,
			 since >> 8 & 0xff);
		diag_fix(d, "%s", fix);
		return -EOPNOTSUPP;
	}
	return explain_bpf(h, d);
}

int explain_bpf_load(int err, const struct host *h, struct diag *d)
{
	static const struct {
		int err;
		const char *why;
	} reasons[] = {
		{-ENOMEM,
		 "memory is short: maps are charged to this program's cgroup (memory.max)"},
		{-E2BIG, "memory is short, or the program is too long for this kernel"},
		{-EACCES, "the kernel's verifier does not take the program, or a security module "
			  "forbids it"},
		{-EINVAL, "the kernel does not know something that the program uses"},
		{-ESRCH, "the kernel's types (BTF) lack one that the program uses"},
		{-ENOENT, "the kernel's types (BTF) lack one that the program uses"},
	};

	diag_errno(d, err, "the BPF program could not be loaded");
	if (err == -EPERM && h->kernel_version && h->kernel_version < CHARGED_TO_CGROUP &&
	    !host_has_cap(h, CAP_SYS_RESOURCE)) {
		diag_why(d,
			 "before Linux 5.11 maps count as locked memory, of which %llu KiB are "
			 "allowed",
			 (unsigned long long)h->memlock_soft_bytes / 1024);
		diag_fix(d, "ulimit -l unlimited      (as root, in the shell that starts it)");
	} else if (err == -EPERM) {
		diag_why(d,
			 "a capability is masked, or a seccomp filter or security module forbids "
			 "bpf(2)");
		advice_capability(h, d);
	}
	for (size_t i = 0; i < ARRAY_SIZE(reasons); i++)
		if (err == reasons[i].err)
			diag_why(d, "%s", reasons[i].why);
	return err;
}
