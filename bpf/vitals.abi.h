/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What vitals.bpf.c gives: a record for each thread, and maps of waiting for locks. */
#ifndef VITALS_ABI_H
#define VITALS_ABI_H

#include <linux/types.h>

enum { VITALS_WAITING_MAX = 16384, VITALS_LOCKS_MAX = 8192, VITALS_REFUSED_MAX = 4096 };

struct vitals_setup {
	__u64 pid_ns_inode; /* 0: the initial namespace */
};

/* What a wait in futex(2) is by its registers; some are told apart by the caller's memory alone. */
enum vitals_wait {
	VITALS_NO_LOCK,
	VITALS_LOCK,
	VITALS_LOCK_OR_JOIN,      /* musl's pthread_join: the word is in a thread's descriptor */
	VITALS_LOCK_OR_TIMED,     /* glibc: a mutex has an owner, a condition none */
	VITALS_RWLOCK_OR_TIMED,   /* glibc: a condition has other words beside its own */
	VITALS_RWLOCK_OR_POST,    /* musl: a semaphore has the other flag for its processes */
	VITALS_LOCK_OR_CONDITION, /* Rust: nothing tells */
	VITALS_PRIVATE = 128,     /* FUTEX_PRIVATE_FLAG */
	/* In bytes from the word. Sources: musl, struct pthread (self, detach_state),
	 * pthread_rwlock_t (lock, waiters, shared) and sem_t, which has the call's flag there, and
	 * a lock the other one; glibc, struct __pthread_mutex_s (lock, count, owner). */
	VITALS_OWNER_OFFSET = 8,
	VITALS_FLAG_OFFSET = 8,
#if defined(__x86_64__) || defined(__TARGET_ARCH_x86)
	VITALS_SELF_BEFORE = 56,
	VITALS_THREAD_PREV = 16,
#else
	VITALS_SELF_BEFORE = 40,
	VITALS_THREAD_PREV = 8,
#endif
	VITALS_THREAD_NEXT = VITALS_THREAD_PREV + 8,
	VITALS_PID_BITS = 0x3fffff, /* PID_MAX_LIMIT - 1, include/linux/threads.h */
};

/* Of glibc's struct __pthread_rwlock_arch_t, since 2.25: threads wait at the words of `readers`,
 * `phase` and `turn`. */
struct vitals_rwlock {
	__u32 readers, writers, phase, turn, zero[2], writer, shared;
};
_Static_assert(sizeof(struct vitals_rwlock) == 32, "padding");

enum {
	VITALS_RW_TAKEN = 2, /* bit of readers: by a writer, or one waits for readers */
	VITALS_RW_WORDS = 3, /* other words are 0 or 1, with 2 when somebody waits */
	VITALS_RW_VALUES = 7,
	VITALS_RW_READERS = 6, /* of these bits of readers: taken, readers hold it and wait */
};

/* Who waits at `word` bytes from its begin; somebody has it then. */
static inline int vitals_is_rwlock(const struct vitals_rwlock *l, unsigned int word)
{
	return l->readers & VITALS_RW_TAKEN && l->phase <= VITALS_RW_WORDS &&
	       l->turn <= VITALS_RW_WORDS && l->turn & 1 && !l->zero[0] && !l->zero[1] &&
	       l->writer <= VITALS_PID_BITS && l->shared <= 1 &&
	       (word || (l->readers & VITALS_RW_VALUES) == VITALS_RW_READERS);
}

/* Where it would begin, for each word, of which the last is the end. */
#define VITALS_RW_WAITED_WORDS 8, 12, 0

struct vitals_record {
	__u32 pid, tid;
	__u64 run_ns, delay_ns, start_ns;
	__u32 fd_table, fd_limit;
	__u32 uid, user_tasks, user_limit; /* of a process's first thread; 0 unknown, no limit */
	__u32 found;                       /* enum vitals_wait: it slept already */
	__u64 lock_va, lock_wait_ns; /* the lock that it waits for, how long since the start */
	__u32 waiting_key;           /* in the map of those that wait */
	char comm[16];
	__u32 found_private; /* VITALS_PRIVATE: its call says so */
};
_Static_assert(sizeof(struct vitals_record) == 96, "padding");

struct vitals_lock {
	__u32 pid;
	__u32 padding;
	__u64 user_va;
};
_Static_assert(sizeof(struct vitals_lock) == 16, "padding");

/* A thread that waits now. */
struct vitals_waiting {
	__u64 since_ns;
	struct vitals_lock lock;
};

/* All waits for one lock that have ended. */
struct vitals_waited {
	__u64 ns, times;
};

/* What the kernel refused a process for want of room, by its error. */
struct vitals_refused {
	__u64 emfile, enfile;
	__u64 eagain, user_eagain; /* the system's limit of processes; that of a user */
};

struct vitals_shared {
	__u64 finds_waits;     /* set by the tool for one walk: who sleeps already is found */
	__u64 dropped;         /* waits that the maps had no room for */
	__u64 refused_dropped; /* refusals, likewise */
};

#endif
