/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Whom the kernel killed for want of memory: for the limit of a cgroup, or for the host's. Only its
 * log tells them apart: /proc/vmstat counts both, and a group that is gone has no counter. Source:
 * mm/oom_kill.c, __oom_kill_process, which counts first, then writes a line for each.
 */
#include "readings.h"

#include <fcntl.h>

/* Records of /dev/kmsg, each of its own read(2): Documentation/ABI/testing/dev-kmsg. */
enum { RECORD_MAX = 8192, RECORDS_MAX = 4096 };

static const char group_kill[] = "Memory cgroup out of memory: Killed process ";

void oom_log_open(const char *root, struct oom_log *l)
{
	char path[PATH_SIZE];

	snprintf(path, sizeof(path), "%s/dev/kmsg", root);
	*l = (struct oom_log){.fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC)};
	if (l->fd >= 0 && lseek(l->fd, 0, SEEK_END) < 0)
		closep(&l->fd);
}

double oom_log_read(struct oom_log *l)
{
	char text[RECORD_MAX];

	for (unsigned i = 0; l->fd >= 0 && i < RECORDS_MAX; i++) {
		ssize_t n = read(l->fd, text, sizeof(text) - 1);

		/* What was overwritten before it was read is lost: EPIPE, once. */
		if (n < 0 && errno == EPIPE)
			continue;
		if (n <= 0)
			break;
		text[n] = '\0';
		/* "3,1234,5678901,-;Memory cgroup out of memory: Killed process 12 (a)…" */
		for (const char *at = text; (at = strstr(at, group_kill)); at++)
			l->kills += at > text && at[-1] == ';';
	}
	return l->fd >= 0 ? l->kills : NAN;
}

void oom_log_close(struct oom_log *l)
{
	closep(&l->fd);
}
