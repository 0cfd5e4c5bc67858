/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * What the scheduler has accounted to every thread, in one walk inside of the kernel; and how long
 * threads sleep in futex(2) for a lock. That is seen at the switch from the registers that they
 * entered the kernel with: nothing is attached to system calls. What is refused for want of room is
 * seen where the kernel gives out descriptors, files and processes.
 */
#include "lib/kernel_types.h"

#include "lib/filter.bpf.h"
#include "vitals.abi.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

const volatile struct vitals_setup setup;
struct vitals_shared shared;

enum {
	RLIMIT_NPROC_INDEX = 6, /* include/uapi/asm-generic/resource.h */
	RLIMIT_NOFILE_INDEX = 7,
	CAP_SYS_ADMIN_BIT = 21, /* include/uapi/linux/capability.h */
	CAP_SYS_RESOURCE_BIT = 24,
	TASK_ASLEEP = 0x3,     /* TASK_INTERRUPTIBLE | TASK_UNINTERRUPTIBLE, linux/sched.h */
	FUTEX_COMMANDS = 0x7f, /* include/uapi/linux/futex.h */
	FUTEX_BY_REALTIME = 256,
	FUTEX_IS_WAIT = 0,
	FUTEX_IS_LOCK_PI = 6,
	FUTEX_IS_WAIT_BITSET = 9,
	FUTEX_IS_LOCK_PI2 = 13,
	LOCKED_WITH_WAITERS = 2,        /* the state of a mutex in glibc, Go and Rust */
	MUSL_WRITE_LOCKED = 0xffffffff, /* with waiters: pthread_rwlock_timedrdlock.c */
	FRAME_BYTES = 1024,
	CGROUP_DEPTH = 32,
	E_AGAIN = 11,
	E_EXIST = 17,
	E_NFILE = 23,
	E_MFILE = 24,
#if defined(__TARGET_ARCH_x86)
	NR_FUTEX = 202,
	NR_CLONE = 56,
	NR_FORK = 57,
	NR_VFORK = 58,
#else
	NR_FUTEX = 98,
	NR_CLONE = 220,
	NR_FORK = NR_CLONE, /* there is none */
	NR_VFORK = NR_CLONE,
#endif
	NR_CLONE3 = 435,
};

/* Of the kernel's types what this program alone uses. */
#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
struct sched_entity___tasks {
	__u64 sum_exec_runtime;
};
struct sched_info___tasks {
	unsigned long long run_delay;
};
struct fdtable___tasks {
	unsigned int max_fds;
};
struct files_struct___tasks {
	struct fdtable___tasks *fdt;
};
struct rlimit___tasks {
	unsigned long rlim_cur;
};
struct signal_struct___tasks {
	struct rlimit___tasks rlim[16];
};
struct user_namespace___tasks {
	int level;
};
struct atomic_long___tasks {
	long counter;
};
/* Tasks of a user in a user namespace: kernel/ucount.c. */
struct ucounts___tasks {
	struct atomic_long___tasks rlimit[1];
};
/* 5.14 to 5.19 */
struct ucounts___one_array {
	struct atomic_long___tasks ucount[1];
};
enum rlimit_type___tasks {
	UCOUNT_RLIMIT_NPROC___tasks,
};
enum ucount_type___one_array {
	UCOUNT_RLIMIT_NPROC___one_array,
};
/* Before 5.14. */
struct user_struct___processes {
	struct {
		int counter;
	} processes;
};
struct cred___tasks {
	struct {
		__u32 val;
	} uid;
	struct {
		__u64 bits; /* of two words before 6.3 */
	} cap_effective;
	struct user_struct___processes *user;
	struct user_namespace___tasks *user_ns;
	struct ucounts___tasks *ucounts;
};
struct task_struct___tasks {
	struct cred___tasks *real_cred;
	struct sched_entity___tasks se;
	struct sched_info___tasks sched_info;
	struct files_struct___tasks *files;
	struct signal_struct___tasks *signal;
	__u64 start_time;
	char comm[16];
};
struct atomic64___tasks {
	__s64 counter;
};
/* kernel/cgroup/pids.c */
struct pids_cgroup___tasks {
	struct cgroup_subsys_state css;
	struct atomic64___tasks counter, limit;
};
#pragma clang attribute pop

/* --- locks ------------------------------------------------------------------------------------ */

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, VITALS_WAITING_MAX);
	__type(key, __u32); /* tid of the initial namespace */
	__type(value, struct vitals_waiting);
} waiting SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, VITALS_LOCKS_MAX);
	__type(key, struct vitals_lock);
	__type(value, struct vitals_waited);
} waited SEC(".maps");

struct futex_call {
	unsigned long nr, user_va, op, val, timeout_va, sp;
};

static __always_inline bool read_call(struct task_struct *task, struct futex_call *c)
{
	struct pt_regs r;

	if (bpf_probe_read_kernel(&r, sizeof(r), task_user_regs(task)) || REGS_ARE_32_BIT(&r))
		return false;
#if defined(__TARGET_ARCH_x86)
	*c = (struct futex_call){r.orig_ax, r.di, r.si, r.dx, r.r10, r.sp};
#else
	*c = (struct futex_call){r.regs[8], r.regs[0], r.regs[1], r.regs[2], r.regs[3], r.sp};
#endif
	return c->nr == NR_FUTEX;
}

/* Robust mutexes, and all of musl, hold their owner and the bit for waiters (futex(2)). */
static __always_inline bool is_owned(__u32 val)
{
	return (val & 0x80000000) && !(val & 0x7fffffff & ~VITALS_PID_BITS) &&
	       (val & VITALS_PID_BITS);
}

/* As mutexes wait. What else waits in futex(2), on conditions, semaphores and events, has another
 * value there: it waits for work, not for a lock. */
static __always_inline enum vitals_wait kind_of(const struct futex_call *c)
{
	unsigned int command = c->op & FUTEX_COMMANDS;
	__u32 val = c->val;

	if (command == FUTEX_IS_LOCK_PI || command == FUTEX_IS_LOCK_PI2)
		return VITALS_LOCK;
	/* musl's conditions wait on a word in the caller's own frame, with a mutex's value. */
	if ((command != FUTEX_IS_WAIT && command != FUTEX_IS_WAIT_BITSET) ||
	    c->user_va - c->sp < FRAME_BYTES)
		return VITALS_NO_LOCK;
	if (is_owned(val))
		return VITALS_LOCK;
	if (command == FUTEX_IS_WAIT)
		return val == MUSL_WRITE_LOCKED     ? VITALS_RWLOCK_OR_POST
		       : val == LOCKED_WITH_WAITERS ? VITALS_LOCK_OR_JOIN
						    : VITALS_NO_LOCK;
	/* Conditions have any value, also a lock's, in glibc since 2.41 and in Rust. glibc gives a
	 * timeout, or a clock without one; Rust gives neither. */
	if (!(c->op & FUTEX_BY_REALTIME) && !c->timeout_va)
		return val == LOCKED_WITH_WAITERS ? VITALS_LOCK_OR_CONDITION : VITALS_NO_LOCK;
	if (val == LOCKED_WITH_WAITERS)
		return VITALS_LOCK_OR_TIMED;
	return val == VITALS_RW_WORDS || (val & VITALS_RW_VALUES) == VITALS_RW_READERS
		       ? VITALS_RWLOCK_OR_TIMED
		       : VITALS_NO_LOCK;
}

static __always_inline __u64 user_word(__u64 user_va)
{
	__u64 word = 0;

	bpf_probe_read_user(&word, sizeof(word), (void *)user_va);
	return word;
}

/* musl's struct pthread begins with its own address, and is in a ring of all threads; the former
 * alone is true of crtbegin's __dso_handle, too. */
static __always_inline bool is_descriptor(__u64 user_va)
{
	return user_word(user_va) == user_va &&
	       user_word(user_word(user_va + VITALS_THREAD_NEXT) + VITALS_THREAD_PREV) == user_va;
}

static __always_inline __u64 rwlock_at(__u64 user_va, unsigned int word)
{
	struct vitals_rwlock l;

	return !bpf_probe_read_user(&l, sizeof(l), (void *)(user_va - word)) &&
			       vitals_is_rwlock(&l, word)
		       ? user_va - word
		       : 0;
}

/* Its address, by what the caller's memory says; 0 it is none. */
static __noinline __u64 rwlock_of(__u64 user_va)
{
	static const unsigned int words[] = {VITALS_RW_WAITED_WORDS};
	__u64 at = 0;

	for (unsigned int i = 0; i < sizeof(words) / sizeof(*words) && !at; i++)
		at = rwlock_at(user_va, words[i]);
	return at;
}

/* The lock's address, by what the caller's memory says; 0 it is none. */
static __always_inline __u64 lock_of(enum vitals_wait kind, const struct futex_call *c)
{
	__u32 word = 0;

	if (kind == VITALS_LOCK_OR_JOIN)
		return is_descriptor(c->user_va - VITALS_SELF_BEFORE) ? 0 : c->user_va;
	if (kind == VITALS_RWLOCK_OR_POST) {
		bpf_probe_read_user(&word, sizeof(word), (void *)(c->user_va + VITALS_FLAG_OFFSET));
		return (word ^ c->op) & VITALS_PRIVATE ? c->user_va : 0;
	}
	if (kind == VITALS_LOCK_OR_TIMED) {
		bpf_probe_read_user(&word, sizeof(word),
				    (void *)(c->user_va + VITALS_OWNER_OFFSET));
		if (word && !(word & ~VITALS_PID_BITS))
			return c->user_va;
	}
	if (kind == VITALS_LOCK_OR_TIMED || kind == VITALS_RWLOCK_OR_TIMED)
		return rwlock_of(c->user_va);
	return kind != VITALS_NO_LOCK ? c->user_va : 0;
}

static __always_inline void count_dropped(void)
{
	__sync_fetch_and_add(&shared.dropped, 1);
}

static __always_inline enum vitals_wait wait_of(struct task_struct *task, struct futex_call *ret)
{
	if (!(task_state(task) & TASK_ASLEEP) || BPF_CORE_READ(task, flags) & PF_KTHREAD ||
	    !read_call(task, ret))
		return VITALS_NO_LOCK;
	return kind_of(ret);
}

/* `how`: BPF_ANY, or BPF_NOEXIST to leave a wait that is known. */
static __always_inline bool put_wait(struct task_struct *task, __u64 user_va, __u64 how)
{
	__u32 tid = BPF_CORE_READ(task, pid);
	struct vitals_waiting w = {.since_ns = bpf_ktime_get_ns()};
	long err;

	w.lock.pid = task_pid(task, setup.pid_ns_inode);
	w.lock.user_va = user_va;
	if (!w.lock.pid)
		return false;
	err = bpf_map_update_elem(&waiting, &tid, &w, how);
	if (err && err != -E_EXIST)
		count_dropped();
	return !err;
}

static __always_inline void begin_wait(struct task_struct *task)
{
	struct futex_call c;
	enum vitals_wait kind = wait_of(task, &c);
	__u64 lock_va = lock_of(kind, &c);

	if (lock_va)
		put_wait(task, lock_va, BPF_ANY);
}

static __always_inline void end_wait(struct task_struct *task)
{
	__u32 tid = BPF_CORE_READ(task, pid);
	struct vitals_waiting *w = bpf_map_lookup_elem(&waiting, &tid);
	struct vitals_waited first = {}, *sum;
	struct vitals_lock lock;
	__u64 ns;

	if (!w)
		return;
	lock = w->lock;
	ns = bpf_ktime_get_ns() - w->since_ns;
	bpf_map_delete_elem(&waiting, &tid);
	sum = bpf_map_lookup_elem(&waited, &lock);
	if (!sum) {
		/* Another CPU may have been faster. */
		bpf_map_update_elem(&waited, &lock, &first, BPF_NOEXIST);
		sum = bpf_map_lookup_elem(&waited, &lock);
	}
	if (!sum) {
		count_dropped();
		return;
	}
	__sync_fetch_and_add(&sum->ns, ns);
	__sync_fetch_and_add(&sum->times, 1);
}

SEC("tp_btf/sched_switch")
int BPF_PROG(on_switch, bool preempt, struct task_struct *prev, struct task_struct *next)
{
	if (!preempt)
		begin_wait(prev);
	end_wait(next);
	return 0;
}

/* --- users ------------------------------------------------------------------------------------ */

static __always_inline __u32 user_tasks(struct cred___tasks *cred)
{
	struct ucounts___tasks *counts;
	struct ucounts___one_array *old;
	__u64 at;
	long n = 0;

	if (bpf_core_field_exists(cred->user->processes))
		return BPF_CORE_READ(cred, user, processes.counter);
	counts = BPF_CORE_READ(cred, ucounts);
	old = (void *)counts;
	if (bpf_core_field_exists(counts->rlimit))
		at = bpf_core_field_offset(counts->rlimit) +
		     8 * bpf_core_enum_value(enum rlimit_type___tasks, UCOUNT_RLIMIT_NPROC___tasks);
	else if (bpf_core_enum_value_exists(enum ucount_type___one_array,
					    UCOUNT_RLIMIT_NPROC___one_array))
		at = bpf_core_field_offset(old->ucount) +
		     8 * bpf_core_enum_value(enum ucount_type___one_array,
					     UCOUNT_RLIMIT_NPROC___one_array);
	else
		return 0;
	bpf_probe_read_kernel(&n, sizeof(n), (void *)counts + at);
	return n;
}

/* How many tasks its user may have; 0: any number. Source: kernel/fork.c, copy_process(). */
static __always_inline __u32 user_limit(struct task_struct___tasks *t, struct cred___tasks *cred)
{
	unsigned long limit = BPF_CORE_READ(t, signal, rlim[RLIMIT_NPROC_INDEX].rlim_cur);
	__u64 caps = 0;

	bpf_core_read(&caps, sizeof(caps), &cred->cap_effective);
	if (!BPF_CORE_READ(cred, uid.val) || limit > 0x7fffffff)
		return 0;
	if (!BPF_CORE_READ(cred, user_ns, level) &&
	    caps & (1ULL << CAP_SYS_ADMIN_BIT | 1ULL << CAP_SYS_RESOURCE_BIT))
		return 0;
	return limit ? limit : 1;
}

/* --- all threads ------------------------------------------------------------------------------ */

/* One that slept before on_switch was attached. It may be awake again before its wait is in the
 * map. Its memory is not at hand: the tool looks at that. */
static __always_inline enum vitals_wait find_wait(struct task_struct *task, __u32 *ret_private)
{
	__u32 tid = BPF_CORE_READ(task, pid);
	struct futex_call c;
	enum vitals_wait kind = wait_of(task, &c);

	if (kind == VITALS_NO_LOCK || kind == VITALS_LOCK_OR_CONDITION ||
	    !put_wait(task, c.user_va, BPF_NOEXIST))
		return VITALS_NO_LOCK;
	*ret_private = c.op & VITALS_PRIVATE;
	if (wait_of(task, &c) == kind)
		return kind;
	bpf_map_delete_elem(&waiting, &tid);
	return VITALS_NO_LOCK;
}

SEC("iter/task")
int each_task(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;
	struct task_struct___tasks *t = (void *)task;
	struct vitals_record r = {};
	const struct vitals_waiting *w;

	if (!task)
		return 0;
	r.tid = task_tid(task, setup.pid_ns_inode);
	r.pid = task_pid(task, setup.pid_ns_inode);
	if (!r.tid)
		return 0; /* of another pid namespace */
	r.run_ns = BPF_CORE_READ(t, se.sum_exec_runtime);
	if (bpf_core_field_exists(t->sched_info.run_delay))
		r.delay_ns = BPF_CORE_READ(t, sched_info.run_delay);
	r.start_ns = BPF_CORE_READ(t, start_time);
	r.fd_table = BPF_CORE_READ(t, files, fdt, max_fds);
	r.fd_limit = BPF_CORE_READ(t, signal, rlim[RLIMIT_NOFILE_INDEX].rlim_cur);
	if (r.pid == r.tid) {
		struct cred___tasks *cred = BPF_CORE_READ(t, real_cred);

		r.uid = BPF_CORE_READ(cred, uid.val);
		r.user_tasks = user_tasks(cred);
		r.user_limit = user_limit(t, cred);
	}
	bpf_core_read(r.comm, sizeof(r.comm), &t->comm);
	r.comm[sizeof(r.comm) - 1] = 0;
	r.waiting_key = BPF_CORE_READ(task, pid);
	if (shared.finds_waits)
		r.found = find_wait(task, &r.found_private);
	w = bpf_map_lookup_elem(&waiting, &r.waiting_key);
	if (w) {
		r.lock_va = w->lock.user_va;
		r.lock_wait_ns = bpf_ktime_get_ns() - w->since_ns;
	}
	bpf_seq_write(ctx->meta->seq, &r, sizeof(r));
	return 0;
}

/* --- refusals --------------------------------------------------------------------------------- */

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, VITALS_REFUSED_MAX);
	__type(key, __u32); /* pid */
	__type(value, struct vitals_refused);
} refused SEC(".maps");

/* Whether the cgroup of the caller, or one above it, is full of processes: a fork that is refused
 * then was refused for its limit, and not for the system's. */
static __always_inline bool is_group_full(struct task_struct *task)
{
	struct cgroup_subsys_state **at = &BPF_CORE_READ(task, cgroups)->subsys[0];
	struct cgroup_subsys_state *css = NULL;
	int id;

	if (!bpf_core_enum_value_exists(enum cgroup_subsys_id, pids_cgrp_id))
		return false;
	id = bpf_core_enum_value(enum cgroup_subsys_id, pids_cgrp_id);
	bpf_probe_read_kernel(&css, sizeof(css), (void *)at + id * sizeof(css));
	for (int i = 0; i < CGROUP_DEPTH && css; i++) {
		struct pids_cgroup___tasks *group = (void *)css;

		if (BPF_CORE_READ(group, counter.counter) >= BPF_CORE_READ(group, limit.counter))
			return true;
		css = BPF_CORE_READ(css, parent);
	}
	return false;
}

/* Whether it has as many tasks as its user may: what was refused then was for that limit. */
static __always_inline bool is_user_full(void)
{
	struct task_struct___tasks *t = (void *)this_task();
	struct cred___tasks *cred = BPF_CORE_READ(t, real_cred);
	__u32 limit = user_limit(t, cred);

	return limit && user_tasks(cred) >= limit;
}

static __noinline int refuse(int err)
{
	__u32 pid = task_pid(this_task(), setup.pid_ns_inode);
	struct vitals_refused first = {}, *r = bpf_map_lookup_elem(&refused, &pid);

	/* The group's own events tell it. */
	if (err == E_AGAIN && is_group_full(this_task()))
		return 0;
	if (!r && pid) {
		bpf_map_update_elem(&refused, &pid, &first, BPF_NOEXIST);
		r = bpf_map_lookup_elem(&refused, &pid);
	}
	if (!r)
		__sync_fetch_and_add(&shared.refused_dropped, 1);
	else if (err == E_MFILE)
		__sync_fetch_and_add(&r->emfile, 1);
	else if (err == E_NFILE)
		__sync_fetch_and_add(&r->enfile, 1);
	else if (is_user_full())
		__sync_fetch_and_add(&r->user_eagain, 1);
	else
		__sync_fetch_and_add(&r->eagain, 1);
	return 0;
}

/* Every new descriptor, whichever call it is for: fs/file.c. */
SEC("fexit")
int BPF_PROG(on_alloc_fd, unsigned int start, unsigned int end, unsigned int flags, int result)
{
	return result == -E_MFILE ? refuse(E_MFILE) : 0;
}

/* The same before Linux 5.11. */
SEC("fexit")
int BPF_PROG(on_old_alloc_fd, void *files, unsigned int start, unsigned int end, unsigned int flags,
	     int result)
{
	return result == -E_MFILE ? refuse(E_MFILE) : 0;
}

/* Every new file: fs/file_table.c. */
SEC("fexit")
int BPF_PROG(on_alloc_file, int flags, const void *cred, void *result)
{
	return (long)result == -E_NFILE ? refuse(E_NFILE) : 0;
}

/* Every fork and clone: kernel/fork.c, since Linux 5.10. */
SEC("fexit")
int BPF_PROG(on_clone, void *args, int result)
{
	return result == -E_AGAIN ? refuse(E_AGAIN) : 0;
}

/* Where the kernel lets nobody attach to its functions: the ends of all calls, of which nearly all
 * end at the first test. */
SEC("tp_btf/sys_exit")
int BPF_PROG(on_sys_exit, struct pt_regs *regs, long result)
{
	__u64 nr;

	if (result != -E_MFILE && result != -E_NFILE && result != -E_AGAIN)
		return 0;
	if (result != -E_AGAIN)
		return refuse(-result);
#if defined(__TARGET_ARCH_x86)
	nr = regs->orig_ax;
#else
	nr = BPF_CORE_READ((struct pt_regs___syscall *)regs, syscallno);
#endif
	if (nr == NR_CLONE || nr == NR_CLONE3 || nr == NR_FORK || nr == NR_VFORK)
		refuse(E_AGAIN);
	return 0;
}
