/* SPDX-License-Identifier: BSD-2-Clause */
/* What /proc says of a process, beside what getrusage says of the same one. */
#include <inspect/task_usage.h>
#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include <cmocka.h>

enum { PAGES = 5000 };

/* A child that touches pages, writes and ends; its memory is its own. */
static pid_t start_child(int ready[2])
{
	pid_t pid;

	assert_int_equal(pipe(ready), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		volatile char *p = mmap(NULL, (size_t)PAGES * 4096, PROT_READ | PROT_WRITE,
					MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		madvise((void *)p, (size_t)PAGES * 4096, MADV_NOHUGEPAGE);
		for (int i = 0; i < PAGES; i++)
			p[i * 4096] = 1;
		if (write(ready[1], "ready", 5) != 5)
			_exit(1);
		pause();
		_exit(0);
	}
	return pid;
}

static void test_process(void **state UNUSED)
{
	struct task_usage u, after;
	struct rusage r;
	int ready[2], status, io;
	char buf[8];
	pid_t pid = start_child(ready);

	assert_int_equal(read(ready[0], buf, sizeof(buf)), 5);
	io = task_usage_io_open(pid);
	assert_true(io >= 0);
	assert_true(task_usage_process(pid, &u));
	assert_true(u.minor_faults >= PAGES);
	assert_true(u.max_rss_bytes >= PAGES * 4096.0);
	assert_true(u.threads == 1);
	assert_true(u.written_bytes == 5);
	assert_true(u.run_delay_ns >= 0);
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(waitid(P_PID, (id_t)pid, &(siginfo_t){0}, WEXITED | WNOWAIT), 0);
	task_usage_unknown(&after);
	/* It has ended and was not waited for. */
	task_usage_io_read(io, &after);
	assert_true(after.written_bytes == 5);
	task_usage_delay_read(pid, &after);
	assert_true(after.run_delay_ns >= u.run_delay_ns);
	assert_int_equal(wait4(pid, &status, 0, &r), pid);
	task_usage_rusage(&r, &after);
	assert_true(after.minor_faults == (double)r.ru_minflt);
	assert_true(fabs(after.minor_faults - u.minor_faults) < 50);
	assert_true(fabs(after.max_rss_bytes - u.max_rss_bytes) < 1e6);
	assert_true(after.written_bytes == 5);
	assert_false(task_usage_process(pid, &u));
	close(io);
	close(ready[0]);
	close(ready[1]);
}

static void test_arithmetic(void **state UNUSED)
{
	struct task_usage a, b;

	task_usage_unknown(&a);
	task_usage_unknown(&b);
	assert_true(isnan(a.user_ns) && isnan(a.threads));
	a.user_ns = 10;
	b.user_ns = 4;
	a.max_rss_bytes = 5;
	b.max_rss_bytes = 7;
	a.voluntary = 1;
	task_usage_subtract(&a, &b);
	assert_true(a.user_ns == 6);
	assert_true(isnan(a.voluntary));
	assert_true(a.max_rss_bytes == 5);
	task_usage_add(&a, &b);
	assert_true(a.user_ns == 10);
	assert_true(a.max_rss_bytes == 7);
	/* A thread that has ended took its switches along: not less than none. */
	a.sys_ns = 1;
	b.sys_ns = 3;
	task_usage_subtract(&a, &b);
	assert_true(a.sys_ns == 0);
}

static void test_system(void **state UNUSED)
{
	static const int first[] = {0};
	struct task_usage u, one;

	task_usage_system(first, 1, &one);
	task_usage_system(NULL, 0, &u);
	assert_true(one.user_ns > 0 && one.user_ns <= u.user_ns);
	assert_true(sysconf(_SC_NPROCESSORS_ONLN) < 2 || one.user_ns < u.user_ns);
	assert_true(u.user_ns > 0 && u.sys_ns > 0);
	assert_true(isnan(u.max_rss_bytes));
	task_usage_cgroup("/nonexistent", &u);
	assert_true(isnan(u.user_ns) && isnan(u.sys_ns));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_process),
		cmocka_unit_test(test_arithmetic),
		cmocka_unit_test(test_system),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
