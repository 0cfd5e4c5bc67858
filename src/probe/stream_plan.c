/* SPDX-License-Identifier: BSD-2-Clause */
#include "stream.h"

#include <sys/epoll.h>
#include <sys/stat.h>

/* By kind of argument. `count` NEXT: the argument behind it says how many. */
enum { NEXT = 0xf0 };

static const struct stream_arg takes[SYSCALL_ARG_KINDS] = {
	[ARG_FD] = {.op = STREAM_FD},
	[ARG_PATH] = {.op = STREAM_STRING, .folder = STREAM_FOLDER_CWD},
	[ARG_STR] = {.op = STREAM_STRING},
	[ARG_PATH_OUT] = {.op = STREAM_BYTES, .at_exit = 1, .count = STREAM_COUNT_RESULT},
	[ARG_BUF] = {.op = STREAM_BYTES, .count = NEXT},
	[ARG_BUF_OUT] = {.op = STREAM_BYTES, .at_exit = 1, .count = STREAM_COUNT_RESULT},
	[ARG_IOV] = {.op = STREAM_IOV, .count = NEXT},
	[ARG_IOV_OUT] = {.op = STREAM_IOV, .at_exit = 1, .count = NEXT},
	[ARG_MSG] = {.op = STREAM_MSG},
	[ARG_MSG_OUT] = {.op = STREAM_MSG, .at_exit = 1},
	[ARG_SOCKADDR] = {.op = STREAM_SOCKADDR, .count = NEXT},
	[ARG_SOCKADDR_OUT] = {.op = STREAM_SOCKADDR_OUT, .at_exit = 1, .count = NEXT},
	[ARG_SOCKLEN_OUT] = {.op = STREAM_STRUCT, .at_exit = 1, .size_bytes = sizeof(int)},
	[ARG_ARGV] = {.op = STREAM_ARGV},
	[ARG_ENVP] = {.op = STREAM_POINTERS},
	[ARG_TIMESPEC] = {.op = STREAM_STRUCT, .size_bytes = 16},
	[ARG_TIMESPEC_OUT] = {.op = STREAM_STRUCT, .at_exit = 1, .size_bytes = 16},
	[ARG_TIMESPECS] = {.op = STREAM_STRUCT, .size_bytes = 32},
	[ARG_TIMEVAL] = {.op = STREAM_STRUCT, .size_bytes = 16},
	[ARG_TIMEVAL_OUT] = {.op = STREAM_STRUCT, .at_exit = 1, .size_bytes = 16},
	[ARG_ITIMERVAL] = {.op = STREAM_STRUCT, .size_bytes = 32},
	[ARG_STAT_OUT] = {.op = STREAM_STRUCT, .at_exit = 1, .size_bytes = sizeof(struct stat)},
	[ARG_STATX_OUT] = {.op = STREAM_STRUCT, .at_exit = 1, .size_bytes = sizeof(struct statx)},
	[ARG_POLLFDS] = {.op = STREAM_ARRAY, .at_exit = 1, .count = NEXT, .size_bytes = 8},
	[ARG_FUTEX_WAITERS] = {.op = STREAM_ARRAY, .count = NEXT, .size_bytes = 24},
	[ARG_FUTEX_PAIR] = {.op = STREAM_STRUCT, .size_bytes = 48},
	[ARG_EPOLL_EVENT] = {.op = STREAM_STRUCT, .size_bytes = sizeof(struct epoll_event)},
	[ARG_EPOLL_EVENTS_OUT] = {.op = STREAM_ARRAY,
				  .at_exit = 1,
				  .count = STREAM_COUNT_RESULT,
				  .size_bytes = sizeof(struct epoll_event)},
	[ARG_FDS_OUT] = {.op = STREAM_STRUCT, .at_exit = 1, .size_bytes = 2 * sizeof(int)},
	[ARG_FDSET] = {.op = STREAM_FD_SET},
	[ARG_INT_IN] = {.op = STREAM_STRUCT, .size_bytes = sizeof(int)},
	[ARG_INT_OUT] = {.op = STREAM_STRUCT, .at_exit = 1, .size_bytes = sizeof(int)},
	[ARG_LONG_OUT] = {.op = STREAM_STRUCT, .at_exit = 1, .size_bytes = 8},
	[ARG_SIZE_OUT] = {.op = STREAM_STRUCT, .at_exit = 1, .size_bytes = 8},
	[ARG_STATUS_OUT] = {.op = STREAM_STRUCT, .at_exit = 1, .size_bytes = sizeof(int)},
	[ARG_SIGSET] = {.op = STREAM_STRUCT, .size_bytes = 8},
	[ARG_SIGSET_OUT] = {.op = STREAM_STRUCT, .at_exit = 1, .size_bytes = 8},
	[ARG_CLONE_ARGS] = {.op = STREAM_STRUCT, .size_bytes = 64},
	[ARG_OPEN_HOW] = {.op = STREAM_STRUCT, .size_bytes = 24},
	[ARG_RLIMIT] = {.op = STREAM_STRUCT, .size_bytes = 16},
	[ARG_RLIMIT_OUT] = {.op = STREAM_STRUCT, .at_exit = 1, .size_bytes = 16},
	[ARG_FUTEX_VALUE] = {.op = STREAM_STRUCT, .size_bytes = 16},
};

/* Structs are laid out otherwise for the other ABIs; texts and bytes are not. */
static bool same_everywhere(uint8_t op)
{
	return op == STREAM_FD || op == STREAM_STRING || op == STREAM_BYTES;
}

void stream_plan(enum syscall_abi abi, const struct syscall_info *info, struct stream_call *ret)
{
	*ret = (struct stream_call){.flags = 0};
	if (!info)
		return;
	for (unsigned i = 0; i < SYSCALL_ARGS && info->args[i] != ARG_END; i++) {
		struct stream_arg *a = &ret->args[i];

		*a = takes[info->args[i]];
		if (abi != SYSCALL_NATIVE && !same_everywhere(a->op))
			*a = (struct stream_arg){.op = STREAM_NOTHING};
		if (a->count == NEXT)
			a->count = (uint8_t)(i + 1);
		if (a->folder && i && info->args[i - 1] == ARG_DIRFD)
			a->folder = (uint8_t)i;
	}
	/* A path in the result tells what an open has opened; what has none gets its name. */
	if (info->result == ARG_FD && !(info->classes & SYSCALL_FILE))
		ret->flags |= STREAM_FD_RESULT;
	if (str_starts(info->name, "exec"))
		ret->flags |= STREAM_EXECS;
	if (str_eq(info->name, "exit") || str_eq(info->name, "exit_group"))
		ret->flags |= STREAM_NO_RETURN;
	if (syscall_is_timed_wait(info->name))
		ret->flags |= STREAM_TIMED_WAIT;
}
