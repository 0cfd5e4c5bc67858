/* SPDX-License-Identifier: BSD-2-Clause */
#include "signals.h"

#include <inspect/base.h>
#include <signal.h>
#include <sys/signalfd.h>

static void ending_signals(sigset_t *set)
{
	sigemptyset(set);
	sigaddset(set, SIGINT);
	sigaddset(set, SIGTERM);
	sigaddset(set, SIGHUP);
}

int signals_open(void)
{
	sigset_t set;
	int fd;

	ending_signals(&set);
	if (sigprocmask(SIG_BLOCK, &set, NULL))
		return -errno;
	fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return fd < 0 ? -errno : fd;
}

void signals_close(int fd)
{
	struct signalfd_siginfo info;
	sigset_t set;

	if (fd < 0)
		return;
	/* Taken from the queue, or it would strike when it is unblocked. */
	while (read(fd, &info, sizeof(info)) == sizeof(info))
		;
	close(fd);
	ending_signals(&set);
	sigprocmask(SIG_UNBLOCK, &set, NULL);
}
