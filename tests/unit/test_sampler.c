/* SPDX-License-Identifier: BSD-2-Clause */
/* Sampling real processes: how many samples, of whom, and what is lost. */
#include "../../src/perf/sampler.h"

#include "sampler_session.h"

static void test_samples_are_cpu_time(void **state)
{
	size_t before = open_descriptors();
	struct target t = target_start(burn_some);
	struct session s;
	struct pollfd polls[8];
	struct ticks ticks;
	double cpu, clock;

	(void)state;
	session_init(&s, "cpu-clock");
	s.config.pids = &t.pid;
	s.config.n_pids = 1;
	session_start(&s);
	ticks_open(&ticks, t.pid, HZ_ASKED);
	target_go(&t);
	session_run(&s, 10 * NSEC_PER_SEC);
	clock = target_clock_s(&t);
	cpu = target_end(&t);
	/* The target's end is the source's end. */
	assert_int_equal(session_read(&s), 0);
	assert_int_equal(s.source->ops->fds(s.source, polls, ARRAY_SIZE(polls)), 0);
	assert_samples(s.tally.samples, ticks_so_far(&ticks, 0), "samples");
	ticks_close(&ticks);
	/* Between two times that are equal where no host holds the CPU up; ticks of one holdup are
	 * one. */
	assert_true((double)s.tally.samples > cpu * HZ_ASKED * 0.8);
	assert_true((double)s.tally.samples < clock * HZ_ASKED * 1.05);
	assert_int_equal(tally_of_tid(&s.tally, t.pid), s.tally.samples);
	assert_int_equal(s.tally.unknown_id, 0);
	assert_int_equal(s.tally.out_of_order, 0);
	assert_int_equal(sampler_untold_losses(s.source, tally_record, &s.tally), 0);
	assert_int_equal(s.tally.lost, 0);
	session_release(&s);
	assert_int_equal(open_descriptors(), before);
}

static void *burn_thread(void *ctx)
{
	struct shared *shared = ctx;

	shared->tid = (pid_t)syscall(SYS_gettid);
	burn(BURN_NS / 2);
	return NULL;
}

static void thread_and_child(struct shared *shared)
{
	pthread_t thread;
	pid_t pid;

	pthread_create(&thread, NULL, burn_thread, shared);
	pthread_join(thread, NULL);
	pid = fork();
	if (!pid) {
		burn(BURN_NS / 2);
		_exit(0);
	}
	waitpid(pid, NULL, 0);
}

static void test_threads_and_children_are_followed(void **state)
{
	struct target t = target_start(thread_and_child);
	pid_t tid;
	struct session s;
	struct ticks ticks;
	size_t of_thread, of_child;

	(void)state;
	session_init(&s, "cpu-clock");
	s.config.pids = &t.pid;
	s.config.n_pids = 1;
	session_start(&s);
	ticks_open(&ticks, t.pid, HZ_ASKED);
	target_go(&t);
	session_run(&s, 10 * NSEC_PER_SEC);
	tid = t.shared->tid;
	target_end(&t);
	of_thread = tally_of_tid(&s.tally, tid);
	of_child = s.tally.samples - of_thread - tally_of_tid(&s.tally, t.pid);
	assert_true(of_thread > 50 && of_child > 50);
	assert_samples(of_thread, ticks_so_far(&ticks, tid), "the thread's samples");
	assert_samples(of_child,
		       ticks_so_far(&ticks, 0) - ticks_so_far(&ticks, tid) -
			       ticks_so_far(&ticks, t.pid),
		       "the child's samples");
	ticks_close(&ticks);
	/* Side-band records come once, not for each CPU. */
	assert_int_equal(s.tally.forks, 2);
	session_release(&s);
}

static void test_single_threads(void **state)
{
	struct target t = target_start(thread_and_child);
	struct session s;

	(void)state;
	session_init(&s, "cpu-clock");
	s.config.tids = &t.pid;
	s.config.n_tids = 1;
	session_start(&s);
	target_go(&t);
	session_run(&s, 10 * NSEC_PER_SEC);
	assert_int_equal(tally_of_tid(&s.tally, t.shared->tid), 0);
	assert_int_equal(tally_of_tid(&s.tally, t.pid), s.tally.samples);
	target_end(&t);
	session_release(&s);
}

static void test_two_events_in_one_ring(void **state)
{
	struct target t = target_start(burn_some);
	struct session s;
	struct ticks ticks;

	(void)state;
	session_init(&s, "cpu-clock,task-clock,cpu-clock:k,sched:sched_process_exit");
	s.config.pids = &t.pid;
	s.config.n_pids = 1;
	session_start(&s);
	ticks_open(&ticks, t.pid, HZ_ASKED);
	target_go(&t);
	session_run(&s, 10 * NSEC_PER_SEC);
	target_end(&t);
	assert_int_equal(s.source->events->events.n, 4);
	assert_string_equal(s.source->events->events.v[1].name, "task-clock");
	assert_samples(s.tally.by_event[0], ticks_so_far(&ticks, 0), "cpu-clock");
	assert_samples(s.tally.by_event[1], ticks_so_far(&ticks, 0), "task-clock");
	ticks_close(&ticks);
	assert_true(s.tally.by_event[2] < s.tally.by_event[0]);
	/* A tracepoint counts each time it is passed. */
	assert_int_equal(s.tally.by_event[3], 1);
	assert_int_equal(s.tally.unknown_id, 0);
	session_release(&s);
}

/* Nothing reads the ring for a while: what is missing then is what the kernel says was lost. */
static void test_losses_are_counted(void **state)
{
	struct target t[2] = {target_start(burn_some), target_start(burn_some)};
	pid_t pids[2] = {t[0].pid, t[1].pid};
	struct ticks ticks[2];
	struct session s;

	(void)state;
	session_init(&s, "cpu-clock");
	s.config.pids = pids;
	s.config.n_pids = 2;
	s.config.freq_hz = 2000;
	s.config.ring_pages = 1;
	session_start(&s);
	ticks_open(&ticks[0], pids[0], 2000);
	ticks_open(&ticks[1], pids[1], 2000);
	target_go(&t[0]);
	target_go(&t[1]);
	while (process_cpu_s(pids[0]) + process_cpu_s(pids[1]) < BURN_NS / 1e9)
		usleep(1000);
	session_run(&s, 10 * NSEC_PER_SEC);
	target_end(&t[0]);
	target_end(&t[1]);
	session_read(&s);
	assert_int_equal(sampler_untold_losses(s.source, tally_record, &s.tally), 0);
	assert_true(s.tally.lost > 100);
	assert_samples(s.tally.samples + s.tally.lost,
		       ticks_so_far(&ticks[0], 0) + ticks_so_far(&ticks[1], 0), "samples and lost");
	ticks_close(&ticks[0]);
	ticks_close(&ticks[1]);
	session_release(&s);
}

#define LATE_THREADS 150
#define LATE_HZ 2000

static void *spin_thread(void *ctx)
{
	struct shared *shared = ctx;

	while (!__atomic_load_n(&shared->spin, __ATOMIC_RELAXED))
		usleep(2000);
	while (!__atomic_load_n(&shared->stop, __ATOMIC_RELAXED))
		;
	return NULL;
}

/* Makes threads, that stay, as fast as it can. */
static void make_threads(struct shared *shared)
{
	pthread_t threads[LATE_THREADS];
	pthread_attr_t attr;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 65536);
	for (int i = 0; i < LATE_THREADS; i++) {
		pthread_create(&threads[i], &attr, spin_thread, shared);
		__atomic_store_n(&shared->made, i + 1, __ATOMIC_RELAXED);
	}
	for (int i = 0; i < LATE_THREADS; i++)
		pthread_join(threads[i], NULL);
}

static void wait_until_made(struct shared *shared, int n)
{
	while (__atomic_load_n(&shared->made, __ATOMIC_RELAXED) < n)
		;
}

/* Neither missed nor counted twice, whoever made the thread and when. */
static void test_threads_made_while_attaching(void **state)
{
	struct target t = target_start(make_threads);
	struct session s;
	struct ticks ticks;
	size_t late, expected;

	(void)state;
	session_init(&s, "cpu-clock");
	s.config.pids = &t.pid;
	s.config.n_pids = 1;
	s.config.freq_hz = LATE_HZ;
	ticks_open(&ticks, t.pid, LATE_HZ);
	target_go(&t);
	wait_until_made(t.shared, 20);
	session_start(&s);
	wait_until_made(t.shared, LATE_THREADS);
	session_read(&s);
	expected = ticks_so_far(&ticks, 0) - s.tally.samples; /* before */
	t.shared->spin = 1;
	session_run(&s, 800 * NSEC_PER_MSEC);
	t.shared->stop = 1;
	session_run(&s, 10 * NSEC_PER_SEC);
	target_end(&t);
	expected = ticks_so_far(&ticks, 0) - expected;
	ticks_close(&ticks);
	late = ((struct sampler *)s.source)->late.n;
	print_message("# %zu threads sampled, %zu of them late\n", s.tally.n_tids, late);
	assert_int_equal(s.tally.lost, 0);
	/* The event of a late thread begins on each CPU with a whole period, of which the inherited
	 * one had half on average behind it. */
	if ((double)s.tally.samples > (double)expected * 1.03 ||
	    (double)s.tally.samples <
		    (double)expected * 0.97 - LATE_THREADS * host.cpus_online / 2.0)
		fail_msg("%zu samples, expected %zu", s.tally.samples, expected);
	session_release(&s);
}

static void exec_true(struct shared *shared)
{
	(void)shared;
	burn(NSEC_PER_SEC / 10);
	execlp("sh", "sh", "-c", "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done", NULL);
	_exit(1);
}

static void test_child_counts_from_exec_on(void **state)
{
	struct target t = target_start(exec_true);
	struct session s;
	double clock;

	(void)state;
	session_init(&s, "cpu-clock");
	s.config.child = t.pid;
	session_start(&s);
	assert_int_equal(s.source->events->events.v[0].attr.enable_on_exec, 1);
	target_go(&t);
	session_run(&s, 10 * NSEC_PER_SEC);
	clock = target_clock_s(&t) - 0.1; /* before exec */
	target_end(&t);
	assert_int_equal(session_read(&s), 0);
	assert_int_equal(s.tally.comm_exec, 1);
	assert_string_equal(s.tally.exec_comm, "sh");
	assert_true(s.tally.mmap2 >= 3); /* sh, ld.so, libc, vdso */
	assert_true(s.tally.samples > 20);
	if ((double)s.tally.samples > clock * HZ_ASKED * 1.05 + 5)
		fail_msg("%zu samples in %.3f s", s.tally.samples, clock);
	session_release(&s);
}

static void test_all_cpus(void **state)
{
	struct target t = target_start(burn_some);
	struct session s;
	size_t of_target;
	double clock;

	(void)state;
	session_init(&s, "cpu-clock");
	s.config.all = true;
	session_start(&s);
	assert_int_equal(s.source->events->events.v[0].attr.exclude_idle, 1);
	target_go(&t);
	session_run_until_exit(&s, &t);
	assert_int_equal(session_read(&s), 1);
	assert_int_equal(s.source->ops->stop(s.source), 0);
	session_read(&s);
	clock = target_clock_s(&t);
	target_end(&t);
	of_target = tally_of_tid(&s.tally, t.pid);
	/* A CPU's own clock misses ticks after it was idle; it never gives more. */
	assert_true((double)of_target > clock * HZ_ASKED * 0.6);
	assert_true((double)of_target < clock * HZ_ASKED * 1.05);
	assert_int_equal(tally_of_tid(&s.tally, 0), 0); /* idle CPUs are left out */
	session_release(&s);
}

/* The unified hierarchy, alone or beside the old ones. */
static int make_cgroup(char *path, size_t size, pid_t member)
{
	static const char *const roots[] = {"/sys/fs/cgroup", "/sys/fs/cgroup/unified"};
	char procs[128];
	FILE *file;

	for (size_t i = 0; i < ARRAY_SIZE(roots); i++) {
		snprintf(procs, sizeof(procs), "%s/cgroup.procs", roots[i]);
		snprintf(path, size, "%s/inspect-test-%d", roots[i], getpid());
		if (access(procs, F_OK) < 0 || mkdir(path, 0755) < 0)
			continue;
		snprintf(procs, sizeof(procs), "%s/cgroup.procs", path);
		file = fopen(procs, "we");
		assert_non_null(file);
		fprintf(file, "%d\n", member);
		assert_int_equal(fclose(file), 0);
		return open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	}
	return -1;
}

static void test_cgroup(void **state)
{
	struct target in = target_start(burn_some), out = target_start(burn_some);
	char path[64];
	CLEANUP(closep) int cgroup = make_cgroup(path, sizeof(path), in.pid);
	struct session s;
	double clock;

	(void)state;
	if (cgroup < 0) {
		target_end(&in);
		target_end(&out);
		skip_because("no cgroup can be made here");
	}
	session_init(&s, "cpu-clock");
	s.config.cgroup_fd = cgroup;
	session_start(&s);
	target_go(&in);
	target_go(&out);
	session_run_until_exit(&s, &in);
	clock = target_clock_s(&in);
	target_end(&in);
	target_end(&out);
	assert_int_equal(session_read(&s), 1);
	rmdir(path);
	assert_true(s.tally.samples > clock * HZ_ASKED * 0.6);
	assert_true(s.tally.samples < clock * HZ_ASKED * 1.05);
	assert_int_equal(tally_of_tid(&s.tally, in.pid), s.tally.samples);
	session_release(&s);
}

static int setup(void **state)
{
	(void)state;
	host_read(&host, "");
	host_open_tracefs(&host);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_samples_are_cpu_time),
		cmocka_unit_test(test_threads_and_children_are_followed),
		cmocka_unit_test(test_single_threads),
		cmocka_unit_test(test_two_events_in_one_ring),
		cmocka_unit_test(test_losses_are_counted),
		cmocka_unit_test(test_threads_made_while_attaching),
		cmocka_unit_test(test_child_counts_from_exec_on),
		cmocka_unit_test(test_all_cpus),
		cmocka_unit_test(test_cgroup),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, setup, NULL);
}
