/* SPDX-License-Identifier: BSD-2-Clause */
/* What the sampler does with less: refusals, lower rates and rights, few descriptors. */
#include "sampler_session.h"

static void test_refusals_explain_and_leave_nothing_open(void **state)
{
	size_t before = open_descriptors();
	pid_t self = getpid(), gone = fork();
	struct session s;

	(void)state;
	if (!gone)
		_exit(0);
	waitpid(gone, NULL, 0);

	session_init(&s, "cpu-clock");
	s.config.pids = &gone;
	s.config.n_pids = 1;
	assert_int_equal(session_open(&s), -ESRCH);
	assert_non_null(s.d.what);
	session_release(&s);

	session_init(&s, "cpu-clock");
	s.config.tids = &gone;
	s.config.n_tids = 1;
	assert_int_equal(session_open(&s), -ESRCH);
	session_release(&s);

	session_init(&s, "cpu-clock");
	s.config.pids = &self;
	s.config.n_pids = 1;
	s.config.freq_given = true;
	s.config.freq_hz = (uint64_t)host.perf_event_max_sample_rate + 1;
	assert_int_equal(session_open(&s), -EINVAL);
	assert_non_null(strstr(s.d.why, "kernel.perf_event_max_sample_rate"));
	session_release(&s);

	/* The second event is refused after the first was opened. */
	session_init(&s, "cpu-clock,r1");
	s.specs.v[1].attr.type = 4711; /* a PMU that is not there */
	s.config.pids = &self;
	s.config.n_pids = 1;
	assert_int_equal(session_open(&s), -ENOENT);
	assert_non_null(strstr(s.d.what, "r1"));
	session_release(&s);

	session_init(&s, "cpu-clock");
	s.config.all = true;
	s.config.cpus = (int[]){9999};
	s.config.n_cpus = 1;
	assert_int_equal(session_open(&s), -ENODEV);
	session_release(&s);

	session_init(&s, "cpu-clock:k");
	s.config.all = s.config.user_only = true;
	assert_int_equal(session_open(&s), -EINVAL);
	session_release(&s);

	session_init(&s, "cpu-clock");
	assert_int_equal(session_open(&s), -EINVAL);
	session_release(&s);
	assert_int_equal(open_descriptors(), before);
}

static void test_rate_is_lowered_when_not_given(void **state)
{
	pid_t self = getpid();
	struct session s;

	(void)state;
	session_init(&s, "cpu-clock");
	s.config.pids = &self;
	s.config.n_pids = 1;
	s.config.freq_hz = (uint64_t)host.perf_event_max_sample_rate + 1;
	assert_int_equal(session_open(&s), 0);
	assert_int_equal(s.source->events->events.v[0].attr.sample_freq,
			 host.perf_event_max_sample_rate);
	assert_true(has_note(&s, "max_sample_rate"));
	session_release(&s);

	session_init(&s, "cpu-clock,software/config=0,period=77777/");
	s.config.pids = &self;
	s.config.n_pids = 1;
	s.config.freq_hz = 0;
	s.config.period = 1000000;
	assert_int_equal(session_open(&s), 0);
	assert_int_equal(s.source->events->events.v[0].attr.sample_period, 1000000);
	assert_int_equal(s.source->events->events.v[0].attr.freq, 0);
	assert_int_equal(s.source->events->events.v[1].attr.sample_period, 77777);
	session_release(&s);
}

/* Runs `test` in a child that has become an ordinary user with little. */
static void as_ordinary_user(void (*test)(void))
{
	struct rlimit none = {0, 0};
	int status;
	pid_t pid = fork();

	if (!pid) {
		setrlimit(RLIMIT_MEMLOCK, &none);
		if (setgid(65534) < 0 || setuid(65534) < 0)
			_exit(3);
		/* A process that has changed its user is closed to it, and so are its children. */
		prctl(PR_SET_DUMPABLE, 1);
		host_read(&host, "");
		test();
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

#define CHECK(condition)                                                                           \
	do {                                                                                       \
		if (!(condition)) {                                                                \
			fprintf(stderr, "# line %d: %s\n", __LINE__, #condition);                  \
			_exit(1);                                                                  \
		}                                                                                  \
	} while (0)

static void own_process_as_user(void)
{
	size_t before = open_descriptors();
	struct target t = target_start(burn_some);
	struct session s;
	double clock;

	session_init(&s, "cpu-clock");
	s.config.pids = &t.pid;
	s.config.n_pids = 1;
	s.config.ring_pages = 4096;
	CHECK(session_open(&s) == 0);
	CHECK(has_note(&s, "kernel samples not allowed (perf_event_paranoid=2): user code only"));
	CHECK(has_note(&s, "ring made smaller: 512 KiB per CPU"));
	CHECK(s.notes.n == 2);
	CHECK(str_eq(s.source->events->events.v[0].name, "cpu-clock:u"));
	CHECK(s.source->events->events.v[0].attr.exclude_kernel == 1);
	CHECK(s.source->events->events.v[0].attr.wakeup_watermark == 128 << 10);
	CHECK(s.source->ops->start(s.source, NULL) == 0);
	target_go(&t);
	session_run(&s, 10 * NSEC_PER_SEC);
	clock = target_clock_s(&t);
	target_end(&t);
	CHECK(s.tally.samples > clock * HZ_ASKED * 0.8 &&
	      s.tally.samples < clock * HZ_ASKED * 1.05);
	CHECK(s.tally.kernel == 0);
	session_release(&s);
	CHECK(open_descriptors() == before);
}

static void foreign_process_as_user(void)
{
	pid_t init = 1;
	struct session s;

	session_init(&s, "cpu-clock");
	s.config.pids = &init;
	s.config.n_pids = 1;
	CHECK(session_open(&s) == -EACCES);
	CHECK(s.d.why && s.d.fix);
	session_release(&s);
	session_init(&s, "cpu-clock");
	s.config.all = true;
	CHECK(session_open(&s) == -EACCES);
	CHECK(strstr(s.d.why, "perf_event_paranoid"));
	session_release(&s);
}

static void test_ordinary_user(void **state)
{
	(void)state;
	if (geteuid() != 0 || host.perf_event_paranoid != 2) {
		skip_because("needs root, and perf_event_paranoid 2");
	}
	as_ordinary_user(own_process_as_user);
	as_ordinary_user(foreign_process_as_user);
}

static void few_descriptors(void)
{
	struct rlimit few = {16, 16};
	size_t before = open_descriptors();
	pid_t self = getpid();
	struct session s;

	session_init(&s,
		     "cpu-clock,task-clock,faults,cs,migrations,minor-faults,major-faults,dummy,"
		     "alignment-faults,cgroup-switches");
	setrlimit(RLIMIT_NOFILE, &few);
	host_read(&host, "");
	s.config.pids = &self;
	s.config.n_pids = 1;
	CHECK(session_open(&s) == -EMFILE);
	CHECK(strstr(s.d.why, "limit") != NULL);
	session_release(&s);
	CHECK(open_descriptors() == before);
}

static void test_too_few_descriptors(void **state)
{
	int status;
	pid_t pid = fork();

	(void)state;
	if (!pid) {
		few_descriptors();
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void test_available(void **state)
{
	struct perf_event_attr clock = {.type = PERF_TYPE_SOFTWARE,
					.config = PERF_COUNT_SW_CPU_CLOCK};
	struct perf_event_attr cycles = {.type = PERF_TYPE_HARDWARE};
	struct perf_event_attr none = {.type = 4711};

	(void)state;
	assert_true(perf_event_available(&clock));
	assert_false(perf_event_available(&none));
	assert_int_equal(perf_event_available(&cycles), host.has_pmu);
}

static int setup(void **state)
{
	(void)state;
	host_read(&host, "");
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_refusals_explain_and_leave_nothing_open),
		cmocka_unit_test(test_rate_is_lowered_when_not_given),
		cmocka_unit_test(test_ordinary_user),
		cmocka_unit_test(test_too_few_descriptors),
		cmocka_unit_test(test_available),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, setup, NULL);
}
