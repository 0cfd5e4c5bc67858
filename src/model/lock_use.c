/* SPDX-License-Identifier: BSD-2-Clause */
/* A futex is a number in memory: what it is part of, the functions that wait at it tell. */
#include <inspect/wait_reason.h>

static const char *const names[LOCK_USES] = {
	[LOCK_USE_UNKNOWN] = "",
	[LOCK_USE_MUTEX] = "mutex",
	[LOCK_USE_RWLOCK] = "rwlock",
	[LOCK_USE_CONDITION] = "condition",
	[LOCK_USE_SEMAPHORE] = "semaphore",
	[LOCK_USE_BARRIER] = "barrier",
	[LOCK_USE_FUTURE] = "future",
	[LOCK_USE_THREAD] = "thread",
};

const char *lock_use_name(enum lock_use use)
{
	return use < LOCK_USES ? names[use] : "";
}

struct user {
	const char *function; /* its beginning, without leading "_" */
	enum lock_use use;
};

/* glibc (nptl/), musl, libgomp, libstdc++. */
static const struct user users[] = {
	{"lll_lock_wait", LOCK_USE_MUTEX},
	{"pthread_mutex_", LOCK_USE_MUTEX},
	{"mtx_lock", LOCK_USE_MUTEX},
	{"mtx_timedlock", LOCK_USE_MUTEX},
	{"pthread_rwlock_", LOCK_USE_RWLOCK},
	{"pthread_cond_", LOCK_USE_CONDITION},
	{"cnd_wait", LOCK_USE_CONDITION},
	{"cnd_timedwait", LOCK_USE_CONDITION},
	{"sem_wait", LOCK_USE_SEMAPHORE},
	{"sem_timedwait", LOCK_USE_SEMAPHORE},
	{"sem_clockwait", LOCK_USE_SEMAPHORE},
	{"new_sem_wait", LOCK_USE_SEMAPHORE},
	{"pthread_barrier_", LOCK_USE_BARRIER},
	{"gomp_barrier_", LOCK_USE_BARRIER},
	{"gomp_team_barrier_", LOCK_USE_BARRIER},
	{"GOMP_barrier", LOCK_USE_BARRIER},
	{"std::__atomic_futex_unsigned_base::", LOCK_USE_FUTURE},
	{"pthread_join", LOCK_USE_THREAD},
	{"pthread_timedjoin_np", LOCK_USE_THREAD},
	{"pthread_clockjoin", LOCK_USE_THREAD},
	{"thrd_join", LOCK_USE_THREAD},
};

/* Locks that Python makes of conditions and semaphores (Python/thread_pthread.h, ceval_gil.c). */
static const char *const python_locks[] = {
	"PyThread_acquire_lock",
	"take_gil",
	"PyEval_RestoreThread",
	"PyEval_AcquireThread",
	"PyEval_AcquireLock",
	"PyGILState_Ensure",
	"PyMutex_",
	"PyParkingLot_Park",
	"PyEval_EvalFrameDefault",
};

/* How far from the C library's function: what lies between may have no name. */
enum { CALLERS_LOOKED_AT = 2 };

static const char *plain_name(const char *function)
{
	return function ? function + strspn(function, "_") : "";
}

static bool is_python_lock(const char *const *callers, size_t n)
{
	for (size_t i = 0; i < n && i < CALLERS_LOOKED_AT; i++)
		for (size_t j = 0; j < ARRAY_SIZE(python_locks); j++)
			if (str_starts(plain_name(callers[i]), python_locks[j]))
				return true;
	return false;
}

static enum lock_use use_of(const char *function)
{
	for (size_t i = 0; i < ARRAY_SIZE(users); i++)
		if (str_starts(plain_name(function), users[i].function))
			return users[i].use;
	return LOCK_USE_UNKNOWN;
}

enum lock_use lock_use_of(const char *const *functions, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		enum lock_use use = use_of(functions[i]);
		size_t above = i + 1;

		if (use == LOCK_USE_UNKNOWN)
			continue;
		while (above < n && use_of(functions[above]) == use)
			above++;
		if ((use == LOCK_USE_CONDITION || use == LOCK_USE_SEMAPHORE) &&
		    is_python_lock(functions + above, n - above))
			return LOCK_USE_MUTEX;
		return use;
	}
	return LOCK_USE_UNKNOWN;
}

enum wait_reason wait_reason_of_lock(enum lock_use use)
{
	switch (use) {
	case LOCK_USE_CONDITION:
	case LOCK_USE_SEMAPHORE:
	case LOCK_USE_BARRIER:
	case LOCK_USE_FUTURE:
		return WAIT_CONDITION;
	case LOCK_USE_THREAD:
		return WAIT_JOIN;
	default:
		return WAIT_LOCK;
	}
}
