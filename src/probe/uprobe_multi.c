/* SPDX-License-Identifier: BSD-2-Clause */
#include "uprobe_multi.h"

#include <linux/bpf.h>
#include <linux/version.h>
#include <sys/syscall.h>

/* include/uapi/linux/bpf.h of 6.6 */
enum { TRACE_UPROBE_MULTI = 48, AT_RETURN = 1 };

uint32_t uprobe_multi_type(const struct host *h)
{
	return h->kernel_version >= KERNEL_VERSION(6, 6, 0) ? TRACE_UPROBE_MULTI : 0;
}

int uprobe_multi_attach(int program_fd, const char *path, const uint64_t *offs,
			const uint64_t *cookies, size_t n, bool at_return)
{
	/* union bpf_attr, link_create.uprobe_multi */
	struct {
		uint32_t program_fd, target_fd, type, link_flags;
		uint64_t path, offs, reference_offs, cookies;
		uint32_t n, flags, pid, unused;
	} attr = {
		.program_fd = (uint32_t)program_fd,
		.type = TRACE_UPROBE_MULTI,
		.path = (uint64_t)(uintptr_t)path,
		.offs = (uint64_t)(uintptr_t)offs,
		.cookies = (uint64_t)(uintptr_t)cookies,
		.n = (uint32_t)n,
		.flags = at_return ? AT_RETURN : 0,
	};
	int fd = (int)syscall(SYS_bpf, BPF_LINK_CREATE, &attr, sizeof(attr));

	return fd < 0 ? -errno : fd;
}
