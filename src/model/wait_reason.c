/* SPDX-License-Identifier: BSD-2-Clause */
#include <inspect/syscalls.h>
#include <inspect/wait_reason.h>
#include <sys/stat.h>

static const char *const names[WAIT_REASONS] = {
	[WAIT_RUNNABLE] = "runnable",   [WAIT_THROTTLED] = "throttled", [WAIT_LOCK] = "lock",
	[WAIT_CONDITION] = "condition", [WAIT_JOIN] = "join",           [WAIT_DISK] = "disk",
	[WAIT_NETWORK] = "network",     [WAIT_PIPE] = "pipe",           [WAIT_POLL] = "poll",
	[WAIT_SLEEP] = "sleep",         [WAIT_CHILD] = "child",         [WAIT_FAULT] = "page fault",
	[WAIT_RECLAIM] = "reclaim",     [WAIT_MMAP_LOCK] = "mmap_lock", [WAIT_GPU] = "gpu",
	[WAIT_STOPPED] = "stopped",     [WAIT_OTHER] = "other",         [WAIT_RUNNING] = "running",
};

const char *wait_reason_name(enum wait_reason r)
{
	return r < WAIT_REASONS ? names[r] : names[WAIT_OTHER];
}

/* Calls that say it all. */
static const struct {
	const char *call;
	enum wait_reason reason;
} by_call[] = {
	{"futex", WAIT_LOCK},
	{"futex_wait", WAIT_LOCK},
	{"futex_waitv", WAIT_LOCK},
	{"futex_requeue", WAIT_LOCK},
	{"flock", WAIT_LOCK},
	{"fcntl", WAIT_LOCK},
	{"semop", WAIT_LOCK},
	{"semtimedop", WAIT_LOCK},
	{"epoll_wait", WAIT_POLL},
	{"epoll_pwait", WAIT_POLL},
	{"epoll_pwait2", WAIT_POLL},
	{"poll", WAIT_POLL},
	{"ppoll", WAIT_POLL},
	{"select", WAIT_POLL},
	{"pselect6", WAIT_POLL},
	{"nanosleep", WAIT_SLEEP},
	{"clock_nanosleep", WAIT_SLEEP},
	{"pause", WAIT_SLEEP},
	{"rt_sigsuspend", WAIT_SLEEP},
	{"rt_sigtimedwait", WAIT_SLEEP},
	{"wait4", WAIT_CHILD},
	{"waitid", WAIT_CHILD},
	{"vfork", WAIT_CHILD},
	{"clone", WAIT_CHILD},
	{"clone3", WAIT_CHILD},
	{"fsync", WAIT_DISK},
	{"fdatasync", WAIT_DISK},
	{"sync", WAIT_DISK},
	{"syncfs", WAIT_DISK},
	{"sync_file_range", WAIT_DISK},
	{"msync", WAIT_DISK},
	{"io_getevents", WAIT_DISK},
	{"io_pgetevents", WAIT_DISK},
	{"io_uring_enter", WAIT_DISK},
	{"connect", WAIT_NETWORK},
	{"accept", WAIT_NETWORK},
	{"accept4", WAIT_NETWORK},
	{"recvfrom", WAIT_NETWORK},
	{"recvmsg", WAIT_NETWORK},
	{"recvmmsg", WAIT_NETWORK},
	{"sendto", WAIT_NETWORK},
	{"sendmsg", WAIT_NETWORK},
	{"sendmmsg", WAIT_NETWORK},
};

static enum wait_reason by_file(const struct wait_facts *f)
{
	if (f->fd && (str_starts(f->fd, "/dev/nvidia") || str_starts(f->fd, "/dev/dri/")))
		return WAIT_GPU;
	switch (f->fd_mode & S_IFMT) {
	case S_IFSOCK:
		return WAIT_NETWORK;
	case S_IFIFO:
		return WAIT_PIPE;
	case S_IFREG:
	case S_IFDIR:
	case S_IFBLK:
		return WAIT_DISK;
	default:
		return WAIT_OTHER;
	}
}

enum wait_reason wait_reason_of(const struct wait_facts *f)
{
	enum wait_reason by_fd = by_file(f);

	if (by_fd == WAIT_GPU)
		return WAIT_GPU;
	if (!f->call)
		return f->fault ? WAIT_FAULT : f->io ? WAIT_DISK : WAIT_OTHER;
	for (size_t i = 0; i < ARRAY_SIZE(by_call); i++)
		if (str_eq(f->call, by_call[i].call))
			return by_call[i].reason;
	if (f->io)
		return WAIT_DISK;
	/* Other calls on files (openat, stat, rename) wait for the file system in state D. */
	if (by_fd == WAIT_OTHER && f->uninterruptible &&
	    syscall_classes(SYSCALL_NATIVE, (uint32_t)syscall_number(SYSCALL_NATIVE, f->call)) &
		    SYSCALL_FILE)
		return WAIT_DISK;
	return by_fd;
}

static bool has(const char *const *functions, size_t n, const char *const *any, size_t n_any)
{
	for (size_t i = 0; i < n; i++)
		for (size_t j = 0; j < n_any; j++)
			if (str_starts(functions[i], any[j]))
				return true;
	return false;
}

enum wait_reason wait_reason_by_stack(enum wait_reason first, const char *const *functions,
				      size_t n)
{
	/* mm/vmscan.c, mm/memcontrol.c */
	static const char *const reclaim[] = {"try_to_free_pages", "try_to_free_mem_cgroup_pages",
					      "shrink_node",       "mem_cgroup_handle_over_high",
					      "reclaim_throttle",  "throttle_direct_reclaim"};
	/* kernel/locking/rwsem.c */
	static const char *const rwsem[] = {"rwsem_down_read_slowpath", "rwsem_down_write_slowpath",
					    "rwsem_down_read_failed", "rwsem_down_write_failed"};
	/* Who takes mmap_lock: arch/x86/mm/fault.c, mm/mmap.c, mm/mprotect.c, mm/madvise.c */
	static const char *const mappings[] = {
		"lock_mm_and_find_vma",
		"do_user_addr_fault",
		"vm_mmap_pgoff",
		"__vm_munmap",
		"do_mprotect_pkey",
		"do_madvise",
		"madvise_lock",
		"__do_sys_brk",
		"__x64_sys_brk",
		"__x64_sys_munmap",
		"__x64_sys_mremap",
		"dup_mm",
		"exit_mm",
		"do_mlock",
	};

	if (has(functions, n, reclaim, ARRAY_SIZE(reclaim)))
		return WAIT_RECLAIM;
	if (has(functions, n, rwsem, ARRAY_SIZE(rwsem)) &&
	    has(functions, n, mappings, ARRAY_SIZE(mappings)))
		return WAIT_MMAP_LOCK;
	return first;
}

bool wait_is_idle(const char *call)
{
	int nr = call ? syscall_number(SYSCALL_NATIVE, call) : -1;

	return nr >= 0 && syscall_classes(SYSCALL_NATIVE, (uint32_t)nr) & SYSCALL_WAITS;
}
