/* SPDX-License-Identifier: BSD-2-Clause */
/* A tracefs of our own, where none is mounted. */
#include <inspect/host.h>

#include <sys/syscall.h>
#include <unistd.h>

/* uapi/linux/mount.h; the wrappers are in glibc 2.36 and later only. */
#define CLOEXEC 1           /* FSOPEN_CLOEXEC, FSMOUNT_CLOEXEC */
#define CONFIG_CMD_CREATE 6 /* FSCONFIG_CMD_CREATE */
#define ATTR_NOSUID 0x2     /* MOUNT_ATTR_NOSUID */

static int mount_detached(void)
{
	CLEANUP(closep) int context = (int)syscall(SYS_fsopen, "tracefs", CLOEXEC);

	if (context < 0 || syscall(SYS_fsconfig, context, CONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
		return -errno;
	return (int)syscall(SYS_fsmount, context, CLOEXEC, ATTR_NOSUID);
}

void host_open_tracefs(struct host *h)
{
	char id[128];
	int fd;

	if (h->tracefs_mounted || (fd = mount_detached()) < 0)
		return;
	snprintf(h->tracefs, sizeof(h->tracefs), "/proc/self/fd/%d", fd);
	snprintf(id, sizeof(id), "%s/events/sched/sched_switch/id", h->tracefs);
	if (access(id, R_OK) == 0)
		return;
	h->tracefs[0] = '\0';
	close(fd);
}
