/* SPDX-License-Identifier: BSD-2-Clause */
/* One link for many places in a file (Linux 6.6), which libbpf before 1.3 does not know. */
#ifndef PROBE_UPROBE_MULTI_H
#define PROBE_UPROBE_MULTI_H

#include <inspect/host.h>

/* The attach type that the program has to be loaded with; 0: the kernel has no such links. */
uint32_t uprobe_multi_type(const struct host *h);

/* Each place, an offset in the file, with its cookie. The link's descriptor, or -errno. */
int uprobe_multi_attach(int program_fd, const char *path, const uint64_t *offs,
			const uint64_t *cookies, size_t n, bool at_return);

#endif
