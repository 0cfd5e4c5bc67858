/* SPDX-License-Identifier: BSD-2-Clause */
#include "snapshot_holders.h"

#include <inspect/lock_names.h>
#include <linux/futex.h>

/* FUTEX_LOCK_PI2 of newer headers. */
enum { LOCK_PI2 = 13 };

static uint32_t command_of(const struct waiting_call *c)
{
	return (uint32_t)c->task->args[1] & (uint32_t)FUTEX_CMD_MASK;
}

/* The thread that has this id in its own pid namespace, in that process first; of a futex that
 * others may share, the only one in any. */
static pid_t find_owner(const struct waiting_call *c, pid_t own_tid)
{
	const struct snapshot *s = c->names->work->result;
	bool is_private = c->task->args[1] & FUTEX_PRIVATE_FLAG;
	pid_t other = 0;
	size_t n = 0;

	for (size_t i = 0; i < s->threads.n && own_tid > 0; i++) {
		const struct task_state *t = &s->threads.v[i].task;

		if ((t->own_tid ? t->own_tid : t->tid) != own_tid)
			continue;
		if (t->pid == c->task->pid)
			return t->tid;
		other = t->tid;
		n++;
	}
	return n == 1 && !is_private ? other : 0;
}

/* --- mutexes ---------------------------------------------------------------------------------- */

/*
 * The word of a PI futex is the owner's id: the kernel reads it so (futex(2)). All else is how a C
 * library uses a futex, which may be one of another kind: a guess, until the functions confirm it.
 * - glibc's plain mutex waits with FUTEX_WAIT for 2 (lowlevellock.c) on the first word of struct
 *   __pthread_mutex_s, whose third is the owner.
 * - Robust ones, and all of musl's but the normal ones, have the owner in their word, with
 *   FUTEX_WAITERS; musl's normal ones have EBUSY there (pthread_mutex_timedlock.c).
 */
static void mutex_holder(const struct waiting_call *c, struct snapshot_wait *wait,
			 struct snapshot_guess *ret)
{
	struct {
		uint32_t lock, count, owner, users;
	} mutex;
	uint64_t va = c->task->args[0];
	uint32_t command = command_of(c), id;

	if (remote_memory_read(c->memory, va, &mutex, sizeof(mutex)))
		return;
	id = mutex.lock & FUTEX_TID_MASK;
	if (command == FUTEX_LOCK_PI || command == LOCK_PI2) {
		wait->owner = find_owner(c, (pid_t)id);
		wait->lock_va = wait->owner ? va : 0;
		return;
	}
	if (command != FUTEX_WAIT)
		return;
	if ((uint32_t)c->task->args[2] == 2 && mutex.lock == 2)
		id = mutex.owner;
	else if (!(c->task->args[2] & FUTEX_WAITERS))
		return;
	else
		ret->of_glibc = id == EBUSY;
	ret->owner = find_owner(c, (pid_t)id);
	ret->mutex_va = ret->owner ? va : 0;
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
			wait->owner = find_owner(c, (pid_t)words[i]);
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
static void read_rwlock(const struct waiting_call *c, struct snapshot_guess *ret)
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
		ret->rwlock_va = va;
		ret->writer = find_owner(c, words.writer);
		ret->readers = words.readers >> RWLOCK_READER_SHIFT;
	}
}

/* --- what the functions say ------------------------------------------------------------------- */

/* A name as `__GI___pthread_mutex_lock` without what the C library puts before it. */
static const char *plain_name(const char *name)
{
	name += strspn(name, "_");
	name += str_starts(name, "GI_") ? strlen("GI_") : 0;
	return name + strspn(name, "_");
}

static bool is_of_glibc(const char *name, const char *module)
{
	static const char *const files[] = {"libc.so.6", "libc-2.", "libpthread.so.0",
					    "libpthread-2."};

	for (size_t i = 0; i < ARRAY_SIZE(files); i++)
		if (str_starts(module, files[i]))
			return true;
	return str_starts(name, "lll_lock_wait");
}

struct callers {
	bool mutex, rwlock, glibc;
};

/* In which of the C library's functions a thread waits. */
static struct callers callers_of(const struct snapshot *s, const struct snapshot_thread *t)
{
	struct callers c = {0};

	for (size_t i = 0; i < t->path.at.n; i++) {
		const struct symbol *symbol = &s->profile->symbols.v[t->path.at.v[i].symbol];
		const char *name = plain_name(intern_str(&s->profile->strings, symbol->name));

		if (symbol->kind == FRAME_KERNEL)
			continue;
		/* Who is woken from a condition takes the mutex again. */
		c.mutex |= str_starts(name, "pthread_mutex_") || str_starts(name, "pthread_cond_");
		c.rwlock |= str_starts(name, "pthread_rwlock_");
		c.glibc |= is_of_glibc(name, intern_str(&s->profile->strings, symbol->module));
	}
	return c;
}

void snapshot_confirm_holders(struct snapshot_work *w)
{
	for (size_t i = 0; i < w->result->threads.n && i < w->guesses.n; i++) {
		struct snapshot_thread *t = &w->result->threads.v[i];
		const struct snapshot_guess *guess = &w->guesses.v[i];
		struct callers in;

		if ((!guess->mutex_va && !guess->rwlock_va) || t->wait.owner)
			continue;
		in = callers_of(w->result, t);
		if (guess->mutex_va && in.mutex && (in.glibc || !guess->of_glibc)) {
			t->wait.lock_va = guess->mutex_va;
			t->wait.owner = guess->owner;
		} else if (guess->rwlock_va && in.rwlock) {
			t->wait.lock_va = guess->rwlock_va;
			t->wait.owner = guess->writer;
			t->wait.readers = guess->writer ? 0 : guess->readers;
		}
	}
}

/* --- any of them ------------------------------------------------------------------------------ */

void snapshot_holder(const struct waiting_call *c, struct snapshot_wait *wait,
		     struct snapshot_guess *ret_guess)
{
	mutex_holder(c, wait, ret_guess);
	if (!wait->owner && c->object.n && lock_name_is_gil(strbuf_str(&c->object)))
		gil_holder(c, wait);
	else if (!wait->owner)
		read_rwlock(c, ret_guess);
}
