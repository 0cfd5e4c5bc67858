/* SPDX-License-Identifier: BSD-2-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <inspect/array.h>
#include <inspect/wait_reason.h>
#include <sys/stat.h>

static void test_reasons(void **state)
{
	static const struct {
		struct wait_facts facts;
		enum wait_reason reason;
	} cases[] = {
		{{.call = "futex"}, WAIT_LOCK},
		{{.call = "read", .fd_mode = S_IFIFO}, WAIT_PIPE},
		{{.call = "read", .fd_mode = S_IFSOCK}, WAIT_NETWORK},
		{{.call = "read", .fd_mode = S_IFREG, .io = true}, WAIT_DISK},
		{{.call = "read", .fd_mode = S_IFCHR}, WAIT_OTHER},
		{{.call = "openat", .uninterruptible = true}, WAIT_DISK},
		{{.call = "openat"}, WAIT_OTHER},
		{{.call = "fsync", .fd_mode = S_IFREG}, WAIT_DISK},
		{{.call = "ioctl", .fd = "/dev/nvidia0", .fd_mode = S_IFCHR}, WAIT_GPU},
		{{.call = "poll", .fd = "/dev/nvidiactl"}, WAIT_GPU},
		{{.call = "epoll_wait"}, WAIT_POLL},
		{{.call = "clock_nanosleep"}, WAIT_SLEEP},
		{{.call = "pause"}, WAIT_SLEEP},
		{{.call = "rt_sigsuspend"}, WAIT_SLEEP},
		{{.call = "wait4"}, WAIT_CHILD},
		{{.call = "accept4", .fd_mode = S_IFSOCK}, WAIT_NETWORK},
		{{.fault = true}, WAIT_FAULT},
		{{.fault = true, .io = true}, WAIT_FAULT},
		{{.io = true}, WAIT_DISK},
		{{0}, WAIT_OTHER},
		{{.call = "syscall_999"}, WAIT_OTHER},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		assert_int_equal(wait_reason_of(&cases[i].facts), cases[i].reason);
}

static void test_the_stack_says_better(void **state)
{
	const char *reclaim[] = {"schedule", "try_to_free_pages", "do_anonymous_page"};
	const char *mmap_lock[] = {"schedule", "rwsem_down_write_slowpath", "vm_mmap_pgoff"};
	const char *other_rwsem[] = {"schedule", "rwsem_down_write_slowpath",
				     "ext4_file_write_iter"};

	(void)state;
	assert_int_equal(wait_reason_by_stack(WAIT_FAULT, reclaim, 3), WAIT_RECLAIM);
	assert_int_equal(wait_reason_by_stack(WAIT_OTHER, mmap_lock, 3), WAIT_MMAP_LOCK);
	assert_int_equal(wait_reason_by_stack(WAIT_DISK, other_rwsem, 3), WAIT_DISK);
	assert_int_equal(wait_reason_by_stack(WAIT_LOCK, NULL, 0), WAIT_LOCK);
}

static void test_what_a_futex_is_part_of(void **state)
{
	static const struct {
		const char *functions[4]; /* the innermost first */
		enum lock_use use;
		enum wait_reason reason;
	} cases[] = {
		{{"__lll_lock_wait", "pthread_mutex_lock"}, LOCK_USE_MUTEX, WAIT_LOCK},
		{{"", "___pthread_mutex_lock", "main"}, LOCK_USE_MUTEX, WAIT_LOCK},
		{{"pthread_rwlock_rdlock"}, LOCK_USE_RWLOCK, WAIT_LOCK},
		{{"__futex_abstimed_wait_common", "pthread_cond_wait", "pool"},
		 LOCK_USE_CONDITION,
		 WAIT_CONDITION},
		/* Awake, it waits for the mutex. */
		{{"__lll_lock_wait", "pthread_cond_wait"}, LOCK_USE_MUTEX, WAIT_LOCK},
		{{"do_futex_wait", "__new_sem_wait_slow64", "main"},
		 LOCK_USE_SEMAPHORE,
		 WAIT_CONDITION},
		{{"pthread_barrier_wait"}, LOCK_USE_BARRIER, WAIT_CONDITION},
		{{"__pthread_clockjoin_ex", "main"}, LOCK_USE_THREAD, WAIT_JOIN},
		{{"sem_clockwait", "PyThread_acquire_lock_timed"}, LOCK_USE_MUTEX, WAIT_LOCK},
		{{"pthread_cond_timedwait", "", "PyEval_RestoreThread"}, LOCK_USE_MUTEX, WAIT_LOCK},
		{{"pthread_cond_wait", "in_an_extension", "", "_PyEval_EvalFrameDefault"},
		 LOCK_USE_CONDITION,
		 WAIT_CONDITION},
		{{"runtime.futex", "main"}, LOCK_USE_UNKNOWN, WAIT_LOCK},
		{{NULL}, LOCK_USE_UNKNOWN, WAIT_LOCK},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		enum lock_use use = lock_use_of(cases[i].functions, 4);

		assert_int_equal(use, cases[i].use);
		assert_int_equal(wait_reason_of_lock(use), cases[i].reason);
	}
	assert_string_equal(lock_use_name(LOCK_USE_RWLOCK), "rwlock");
}

static void test_idle_by_design(void **state)
{
	(void)state;
	assert_true(wait_is_idle("epoll_wait"));
	assert_true(wait_is_idle("accept4"));
	assert_false(wait_is_idle("futex"));
	assert_false(wait_is_idle("read"));
	assert_false(wait_is_idle(NULL));
	assert_false(wait_is_idle("no such call"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_reasons),
		cmocka_unit_test(test_the_stack_says_better),
		cmocka_unit_test(test_what_a_futex_is_part_of),
		cmocka_unit_test(test_idle_by_design),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
