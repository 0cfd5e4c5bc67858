/* SPDX-License-Identifier: BSD-2-Clause */
#include "snapshot_holders.h"

#include <inspect/lock_names.h>
#include <linux/futex.h>

/* FUTEX_LOCK_PI2 of newer headers. */
enum { LOCK_PI2 = 13 };

/* The thread that has this id in its own pid namespace, in that process first. */
static pid_t find_owner(const struct snapshot *s, pid_t pid, pid_t own_tid)
{
	pid_t other = 0;

	for (size_t i = 0; i < s->threads.n && own_tid > 0; i++) {
		const struct task_state *t = &s->threads.v[i].task;

		if ((t->own_tid ? t->own_tid : t->tid) != own_tid)
			continue;
		if (t->pid == pid)
			return t->tid;
		other = t->tid;
	}
	return other;
}

static uint32_t command_of(const struct waiting_call *c)
{
	return (uint32_t)c->task->args[1] & (uint32_t)FUTEX_CMD_MASK;
}

/* --- mutexes ---------------------------------------------------------------------------------- */

/*
 * Futexes of the PI and robust kinds hold the owner's id in their word
 * (Documentation/locking/robust-futex-ABI.rst). glibc's plain mutex waits with FUTEX_WAIT for 2
 * (lowlevellock.c) on the first word of struct __pthread_mutex_s, whose third is the owner: taken
 * when it is the id of a thread.
 */
static void mutex_holder(const struct waiting_call *c, struct snapshot_wait *wait)
{
	struct {
		uint32_t lock, count, owner, users;
	} mutex;
	uint64_t va = c->task->args[0];
	uint32_t command = command_of(c), id;

	if (remote_memory_read(c->memory, va, &mutex, sizeof(mutex)))
		return;
	if (command == FUTEX_LOCK_PI || command == LOCK_PI2 ||
	    (command == FUTEX_WAIT && c->task->args[2] & FUTEX_WAITERS))
		id = mutex.lock & FUTEX_TID_MASK;
	else if (command == FUTEX_WAIT && (uint32_t)c->task->args[2] == 2 && mutex.lock == 2)
		id = mutex.owner;
	else
		return;
	wait->owner = find_owner(c->names->work->result, c->task->pid, (pid_t)id);
	if (wait->owner)
		wait->lock_va = va;
}

/* --- Python's lock ---------------------------------------------------------------------------- */

/*
 * struct _gil_runtime_state of CPython 3.8 to 3.14 (Include/internal/pycore_gil.h), from
 * last_holder on; its waiters sleep at a word of `cond`, which is glibc's. The holder's id is in
 * its PyThreadState since 3.11: native_thread_id, right behind thread_id, which is a pthread_t.
 * Where exactly differs from version to version, so it is looked for: an id of a thread of the
 * process behind an address.
 */
struct gil_head {
	uint64_t last_holder_va;
	int32_t locked, pad;
	uint64_t switches;
};

enum {
	COND_SIGNALS_OFFSET = 40, /* struct __pthread_cond_s.__g_signals: two words */
	STATE_WORDS = 32,         /* of a PyThreadState: it is the 18th to 20th */
	ADDRESS_LEAST = 1 << 16,
};

static void gil_holder(const struct waiting_call *c, struct snapshot_wait *wait)
{
	uint64_t va = c->task->args[0], words[STATE_WORDS];
	uint64_t cond_va = va - COND_SIGNALS_OFFSET - va % 8;
	struct gil_head gil;

	if (command_of(c) != FUTEX_WAIT_BITSET ||
	    remote_memory_read(c->memory, cond_va - sizeof(gil), &gil, sizeof(gil)) ||
	    gil.locked != 1 || !gil.last_holder_va ||
	    remote_memory_read(c->memory, gil.last_holder_va, words, sizeof(words)))
		return;
	for (size_t i = 1; i < STATE_WORDS && !wait->owner; i++)
		if (words[i] <= INT32_MAX && words[i - 1] > ADDRESS_LEAST)
			wait->owner =
				find_owner(c->names->work->result, c->task->pid, (pid_t)words[i]);
	if (wait->owner == c->task->tid)
		wait->owner = 0; /* it has got it since */
	if (wait->owner)
		wait->lock_va = cond_va - sizeof(gil);
}

/* --- rwlocks ---------------------------------------------------------------------------------- */

/* struct __pthread_rwlock_arch_t of glibc (since 2.25), up to the thread that writes. */
struct rwlock_words {
	uint32_t readers, writers, phase_futex, writers_futex, pad[2];
	int32_t writer;
};

enum {
	RWLOCK_READER_SHIFT = 3, /* PTHREAD_RWLOCK_READER_SHIFT */
	RWLOCK_WAITED = 2,       /* PTHREAD_RWLOCK_FUTEX_USED: waited for with or without bit 0 */
};

/* Which of its two futexes it is: the function tells. Read for both. */
static void read_rwlock(const struct waiting_call *c, struct snapshot_rwlock *ret)
{
	static const size_t futexes[] = {offsetof(struct rwlock_words, phase_futex),
					 offsetof(struct rwlock_words, writers_futex)};
	uint32_t value = (uint32_t)c->task->args[2];

	if (command_of(c) != FUTEX_WAIT_BITSET || (value & ~1U) != RWLOCK_WAITED)
		return;
	for (size_t i = 0; i < ARRAY_SIZE(futexes); i++) {
		struct rwlock_words words;
		uint64_t va = c->task->args[0] - futexes[i];

		if (va % 8 || remote_memory_read(c->memory, va, &words, sizeof(words)))
			continue;
		*ret = (struct snapshot_rwlock){
			.va = va,
			.writer = find_owner(c->names->work->result, c->task->pid, words.writer),
			.readers = words.readers >> RWLOCK_READER_SHIFT,
		};
	}
}

static bool is_in_rwlock(const struct snapshot *s, const struct snapshot_thread *t)
{
	for (size_t i = 0; i < t->path.at.n; i++) {
		const struct symbol *symbol = &s->profile->symbols.v[t->path.at.v[i].symbol];

		if (symbol->kind != FRAME_KERNEL &&
		    strstr(intern_str(&s->profile->strings, symbol->name), "pthread_rwlock_"))
			return true;
	}
	return false;
}

void snapshot_rwlock_holders(struct snapshot_work *w)
{
	for (size_t i = 0; i < w->result->threads.n && i < w->rwlocks.n; i++) {
		struct snapshot_thread *t = &w->result->threads.v[i];
		const struct snapshot_rwlock *rwlock = &w->rwlocks.v[i];

		if (!rwlock->va || t->wait.owner || !is_in_rwlock(w->result, t))
			continue;
		t->wait.lock_va = rwlock->va;
		t->wait.owner = rwlock->writer;
		t->wait.readers = rwlock->writer ? 0 : rwlock->readers;
	}
}

/* --- any of them ------------------------------------------------------------------------------ */

void snapshot_holder(const struct waiting_call *c, struct snapshot_wait *wait,
		     struct snapshot_rwlock *ret_rwlock)
{
	mutex_holder(c, wait);
	if (!wait->owner && c->object.n && lock_name_is_gil(strbuf_str(&c->object)))
		gil_holder(c, wait);
	else if (!wait->owner)
		read_rwlock(c, ret_rwlock);
}
