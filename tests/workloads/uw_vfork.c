/* SPDX-License-Identifier: BSD-2-Clause */
/* cflags: -O2 -fomit-frame-pointer */
/* Children that share the parent's stack, work a little and end. */
#include "uw.h"

#include <sys/wait.h>
#include <unistd.h>

NOINLINE static void child_work(void)
{
	for (int i = 0; i < 2000; i++)
		uw_leaf();
	__asm__ volatile("");
}

NOINLINE static void spawn(void)
{
	pid_t pid = vfork();

	if (pid == 0) {
		child_work();
		_exit(0);
	}
	waitpid(pid, NULL, 0);
}

int main(int argc, char **argv)
{
	uint64_t end_ns = (argc > 1 ? (uint64_t)atoll(argv[1]) : 500) * 1000000;

	while (rusage_cpu_ns(RUSAGE_SELF) + rusage_cpu_ns(RUSAGE_CHILDREN) < end_ns)
		spawn();
	return 0;
}
