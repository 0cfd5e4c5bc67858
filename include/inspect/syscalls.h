/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * System calls: numbers and names of each ABI, what their arguments are, and the classes that `-e`
 * selects by. Constant tables; nothing is read from the host.
 */
#ifndef INSPECT_SYSCALLS_H
#define INSPECT_SYSCALLS_H

#include <inspect/diag.h>

/* A 64-bit process can use all of them: `int $0x80` calls i386's, bit 30 of a number x32's. Other
 * machines have the native one alone (a 32-bit Arm program's numbers have no names here). */
enum syscall_abi { SYSCALL_NATIVE, SYSCALL_I386, SYSCALL_X32, SYSCALL_ABIS };

#define SYSCALL_X32_BIT 0x40000000U
#define SYSCALL_NAME_BYTES 40
#define SYSCALL_ARGS 6

/* The classes of strace(1). */
enum syscall_class {
	SYSCALL_FILE = 1 << 0,    /* takes a file name */
	SYSCALL_DESC = 1 << 1,    /* takes or makes a file descriptor */
	SYSCALL_NET = 1 << 2,     /* sockets */
	SYSCALL_MEMORY = 1 << 3,  /* mappings */
	SYSCALL_PROCESS = 1 << 4, /* begin, end and wait for processes */
	SYSCALL_SIGNAL = 1 << 5,
	SYSCALL_IPC = 1 << 6,   /* System V and message queues */
	SYSCALL_WAITS = 1 << 7, /* waits by design: epoll_wait, poll, nanosleep, … */
};

/* What an argument (or a result) is. The kinds from SYSCALL_ARG_FLAGS on are printed by tables of
 * names; those before SYSCALL_ARG_POINTERS are the value itself, the others point to something. */
enum syscall_arg {
	ARG_END, /* no argument from here on */
	ARG_INT,
	ARG_UINT,
	ARG_LONG,
	ARG_SIZE,
	ARG_HEX,
	ARG_OCTAL,
	ARG_FD,
	ARG_DIRFD, /* AT_FDCWD, or a descriptor that a path is relative to */
	ARG_PID,
	ARG_UID,
	ARG_SIGNAL,
	ARG_DEV,
	ARG_FUTEX_BITS, /* the sixth argument, a mask for some operations */
	ARG_IOCTL,
	ARG_ERRNO_RESULT, /* results: 0 or an error */

	SYSCALL_ARG_POINTERS,
	ARG_PTR = SYSCALL_ARG_POINTERS, /* shown as a number */
	ARG_PATH,
	ARG_PATH_OUT, /* bytes, as many as the result says: readlink, getcwd */
	ARG_STR,
	ARG_BUF,     /* bytes; the next argument is their number */
	ARG_BUF_OUT, /* bytes, of which the result is the number */
	ARG_IOV,     /* struct iovec[next argument] */
	ARG_IOV_OUT, /* the same, filled by the call */
	ARG_MSG,     /* struct msghdr */
	ARG_MSG_OUT,
	ARG_SOCKADDR,     /* the next argument is its length */
	ARG_SOCKADDR_OUT, /* the next argument points to its length */
	ARG_SOCKLEN_OUT,
	ARG_ARGV,
	ARG_ENVP,
	ARG_TIMESPEC,
	ARG_TIMESPEC_OUT,
	ARG_TIMESPECS, /* two of them: utimensat */
	ARG_TIMEVAL,
	ARG_TIMEVAL_OUT,
	ARG_ITIMERVAL,
	ARG_STAT_OUT,
	ARG_STATX_OUT,
	ARG_POLLFDS,       /* struct pollfd[next argument] */
	ARG_FUTEX_WAITERS, /* struct futex_waitv[next argument] */
	ARG_FUTEX_PAIR,    /* struct futex_waitv[2]: from, to */
	ARG_EPOLL_EVENT,
	ARG_EPOLL_EVENTS_OUT, /* as many as the result says */
	ARG_FDS_OUT,          /* int[2]: pipe, socketpair */
	ARG_FDSET,
	ARG_INT_IN, /* int * */
	ARG_INT_OUT,
	ARG_LONG_OUT,
	ARG_SIZE_OUT,
	ARG_STATUS_OUT, /* wait's status */
	ARG_SIGSET,
	ARG_SIGSET_OUT,
	ARG_CLONE_ARGS,
	ARG_OPEN_HOW,
	ARG_RLIMIT,
	ARG_RLIMIT_OUT,
	ARG_FUTEX_VALUE, /* what the fourth argument is depends on the operation */

	SYSCALL_ARG_FLAGS,
	ARG_OPEN = SYSCALL_ARG_FLAGS,
	ARG_MODE, /* printed only where a file is made */
	ARG_ACCESS,
	ARG_AT,
	ARG_UNLINK_AT,
	ARG_FSTAT_AT,
	ARG_STATX_MASK,
	ARG_RENAME,
	ARG_WHENCE,
	ARG_PROT,
	ARG_MAP,
	ARG_MREMAP,
	ARG_MADVICE,
	ARG_MSYNC,
	ARG_MLOCK2,
	ARG_FUTEX_OP,
	ARG_FUTEX2,
	ARG_CLONE,
	ARG_WAIT,
	ARG_WAIT_ID,
	ARG_EPOLL_CREATE,
	ARG_EPOLL_OP,
	ARG_FCNTL,
	ARG_FCNTL_ARG,
	ARG_FLOCK,
	ARG_FALLOCATE,
	ARG_FADVISE,
	ARG_FAMILY,
	ARG_SOCKET_TYPE,
	ARG_SOCKET_PROTO,
	ARG_SHUTDOWN,
	ARG_MSG_FLAGS,
	ARG_SOL,
	ARG_SOCKOPT,
	ARG_CLOCK,
	ARG_TIMER_FLAGS,
	ARG_ITIMER,
	ARG_SIGMASK_HOW,
	ARG_RESOURCE,
	ARG_RUSAGE_WHO,
	ARG_PRCTL,
	ARG_ARCH_PRCTL,
	ARG_EVENTFD,
	ARG_PIPE,
	ARG_DUP3,
	ARG_INOTIFY,
	ARG_MEMFD,
	ARG_GETRANDOM,
	ARG_RWF,
	ARG_SPLICE,
	ARG_URING_ENTER,
	ARG_MEMBARRIER,
	ARG_CLOSE_RANGE,
	ARG_PIDFD,
	ARG_SYNC_RANGE,
	SYSCALL_ARG_KINDS,
};

struct syscall_info {
	const char *name;
	uint16_t classes; /* enum syscall_class */
	uint8_t result;   /* enum syscall_arg: ARG_FD, ARG_PTR, ARG_PID, … */
	uint8_t args[SYSCALL_ARGS];
};

/* What is known of a call by its name, or NULL: arguments then come from the running kernel's
 * tracefs. i386's old names (mmap2, fstatat64, …) have entries of their own. */
const struct syscall_info *syscall_info_find(const char *name);

/* Whether its result is how many bytes it moved. */
bool syscall_moves_bytes(const struct syscall_info *info);

/* Waits whose time-out (ETIMEDOUT) is an end like any other: CPython asks for its lock so. */
bool syscall_is_timed_wait(const char *name);

/* The name of a number without SYSCALL_X32_BIT; a name of the table, or "syscall_N" in buf. */
const char *syscall_name(enum syscall_abi abi, uint32_t nr, char buf[SYSCALL_NAME_BYTES]);

/* The number of a name, or "syscall_N"; -ENOENT when that ABI has no such call. */
int syscall_number(enum syscall_abi abi, const char *name);

/* One more than the greatest number of an ABI that has a name. */
uint32_t syscall_numbers_end(enum syscall_abi abi);

/* Appended to a name of another ABI than the native one: "", " (i386)", " (x32)". */
const char *syscall_abi_suffix(enum syscall_abi abi);

/* Classes of a number: those of its name, 0 when nothing is known of it. */
uint32_t syscall_classes(enum syscall_abi abi, uint32_t nr);

/* The class of "%file", "%net", …, or 0. `syscall_class_name` gives the names one by one, NULL
 * after the last. */
uint32_t syscall_class_find(const char *name);
const char *syscall_class_name(size_t index);

/* The sets of calls that `-e` names: one bit for each number and ABI. */
#define SYSCALL_SET_NUMBERS 1024
struct syscall_set {
	uint64_t bits[SYSCALL_ABIS][SYSCALL_SET_NUMBERS / 64];
};

static inline bool syscall_set_has(const struct syscall_set *s, enum syscall_abi abi, uint32_t nr)
{
	return nr < SYSCALL_SET_NUMBERS && s->bits[abi][nr / 64] >> (nr % 64) & 1;
}

uint32_t syscall_set_count(const struct syscall_set *s);

/*
 * Reads a filter as strace spells it: `futex,openat`, `!futex`, `%file,%net`, `trace=…`, `all`. A
 * name selects the call of each ABI that has it. 0, or -EINVAL with the nearest names in d.
 */
int syscall_set_parse(const char *text, struct syscall_set *ret, struct diag *d);

/* The name of an errno (positive): "ENOENT"; the kernel's own restart codes too (512-516, 530).
 * NULL when there is none. */
const char *errno_name(int number);

#endif
