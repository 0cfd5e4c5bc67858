/* SPDX-License-Identifier: BSD-2-Clause */
/* What a cgroup's limit does shows in the host's counters too: it is told of the group alone. */
#include "use_tree.h"

static void put_group(const char *file, const char *text)
{
	char path[256];

	snprintf(path, sizeof(path), "/sys/fs/cgroup/pod/%s", file);
	put(path, text);
}

static void put_pod(void)
{
	put("/proc/mounts", "cgroup2 /sys/fs/cgroup cgroup2 rw,nosuid 0 0\n");
	put_group("memory.current", "1000\n");
	put_group("memory.max", "1000\n");
	put_group("memory.events", "high 0\nmax 0\noom 0\noom_kill 0\n");
}

/* --- kills ------------------------------------------------------------------------------------ */

#define EARLIER "3,1,1,-;Memory cgroup out of memory: Killed process 1 (a)\n"
#define OF_GROUP "3,2,2,-;Memory cgroup out of memory: Killed process 2 (b) total-vm:1kB\n"
#define OF_HOST "3,3,3,-;Out of memory: Killed process 3 (c) total-vm:1kB\n"
#define NOT_THE_KERNEL "12,4,4,-;x: Memory cgroup out of memory: Killed process 4 (d)\n"

static void assert_kills(const char *log, const char *vmstat, double want)
{
	put("/dev/kmsg", EARLIER);
	put("/proc/vmstat", "oom_kill 5\n");
	open_session(NULL);
	put("/dev/kmsg", log);
	put("/proc/vmstat", vmstat);
	close_session();
	assert_value("memory", "", "oom_kills", want);
	use_report_release(&report);
}

static void test_kills_by_log(void **state UNUSED)
{
	assert_kills(EARLIER OF_GROUP OF_GROUP, "oom_kill 7\n", 0);
	assert_kills(EARLIER OF_GROUP OF_HOST, "oom_kill 7\n", 1);
	assert_kills(EARLIER NOT_THE_KERNEL, "oom_kill 6\n", 1);
}

/* Who may not read the log has the groups' counters: one that is no oom of the group is the
 * host's. */
static void test_kills_by_counters(void **state UNUSED)
{
	static const struct {
		const char *events;
		double want;
	} cases[] = {{"high 0\nmax 9\noom 2\noom_kill 2\n", 1},
		     {"high 0\nmax 9\noom 0\noom_kill 2\n", 3}};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		put_pod();
		put("/proc/vmstat", "oom_kill 5\n");
		open_session(NULL);
		put("/proc/vmstat", "oom_kill 8\n");
		put_group("memory.events", cases[i].events);
		close_session();
		assert_value("memory", "", "oom_kills", cases[i].want);
		use_report_release(&report);
	}
}

/* --- pressure --------------------------------------------------------------------------------- */

static enum use_verdict memory_verdict(const char *vmstat)
{
	enum use_verdict ret;

	put("/proc/pressure/memory", "some total=0\nfull total=0\n");
	put("/proc/vmstat", "pgscan_kswapd 5\npgscan_direct 5\n");
	open_session(NULL);
	put("/proc/pressure/memory", "some total=9000000\nfull total=5000000\n");
	put("/proc/vmstat", vmstat);
	close_session();
	assert_value("memory", "", "memory_pressure_percent", 50);
	ret = row_of("memory", "")->verdict;
	use_report_release(&report);
	return ret;
}

static void test_pressure(void **state UNUSED)
{
	assert_int_equal(memory_verdict("pgscan_kswapd 5\npgscan_direct 5\n"), USE_NOT_JUDGED);
	assert_int_equal(memory_verdict("pgscan_kswapd 6\npgscan_direct 5\n"), USE_CRITICAL);
	assert_int_equal(memory_verdict("pgscan_kswapd 5\npgscan_direct 6\n"), USE_CRITICAL);
	assert_int_equal(memory_verdict("pswpin 0\n"), USE_CRITICAL);
}

/* --- quotas ----------------------------------------------------------------------------------- */

static void put_thread(int pid, const char *group, unsigned delay_ms)
{
	char path[128], text[256];

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	snprintf(text, sizeof(text), "%d (a%d) S 1 1 1 0 -1 0 5 0 7 0 1 0 0 0 20 0 1 0 1000 0\n",
		 pid, pid);
	put(path, text);
	snprintf(path, sizeof(path), "/proc/%d/schedstat", pid);
	snprintf(text, sizeof(text), "1000000 %u000000 5\n", delay_ms);
	put(path, text);
	snprintf(path, sizeof(path), "/proc/%d/cgroup", pid);
	put(path, group);
}

/* The group's throttling is 4 s of 10: of process 40 it is all delay, of 41 all but 1 s; 42 is in
 * another group. */
static void put_throttled(unsigned k, unsigned other_ms)
{
	char text[128];

	put_stat(2, k * 1000, -1);
	put_thread(40, "0::/pod/app\n", 10 + k * 3900);
	put_thread(41, "0::/pod\n", 10 + k * 5000);
	put_thread(42, "0::/pods\n", 10 + k * other_ms);
	put_group("cpu.max", "50000 100000\n");
	snprintf(text, sizeof(text),
		 "usage_usec 1\nnr_periods 1\nnr_throttled 1\n"
		 "throttled_usec %u\n",
		 5 + k * 4000000);
	put_group("cpu.stat", text);
	snprintf(text, sizeof(text), "cpu0 0 0 0 0 0 0 0 %u000000 0\n", 50 + k * (8900 + other_ms));
	put("/proc/schedstat", text);
	snprintf(text, sizeof(text), "some total=%u\nfull total=0\n", k * 4100000);
	put("/proc/pressure/cpu", text);
}

static void test_quota(void **state UNUSED)
{
	put_pod();
	put_throttled(0, 0);
	open_session(NULL);
	put_throttled(1, 600);
	close_session();
	/* 1 s of 41 and 0.6 s of 42, on two CPUs. */
	assert_value("CPU", "", "run_delay_percent", 8);
	assert_string_equal(value_of("CPU", "", "run_delay_percent")->source,
			    "/proc/schedstat (run_delay), less what cgroups' quotas took");
	assert_value("CPU", "", "cpu_pressure_percent", 41);
	assert_int_equal(value_of("CPU", "", "cpu_pressure_percent")->verdict, USE_NOT_JUDGED);
	assert_value("run queue", "a41/41", "thread_run_delay_percent", 10);
	assert_string_equal(
		value_of("run queue", "a41/41", "thread_run_delay_percent")->source,
		"/proc/PID/schedstat (of first threads), less what a cgroup's quota took: 40 %");
	use_report_release(&report);
}

/* Of the process that is throttled most of the time, in all rows. */
static void test_quota_of_target(void **state UNUSED)
{
	static const pid_t pid = 41;

	put_pod();
	put_throttled(0, 0);
	put("/proc/41/task/41/stat", "41 (a41) S 1 1 1 0 -1 0 5 0 7 0 1 0 0 0 20 0 1 0 1000 0\n");
	put("/proc/41/task/41/schedstat", "1000000 10000000 5\n");
	open_session_of(&pid, 1, NULL);
	put_throttled(1, 600);
	put("/proc/41/task/41/schedstat", "1000000 5010000000 5\n");
	close_session();
	assert_value("hottest thread", "a41/41", "thread_run_delay_percent", 10);
	assert_value("process CPU", "a41/41", "process_run_delay_percent", 10);
	use_report_release(&report);
}

/* --- too little ------------------------------------------------------------------------------- */

static void put_segments(unsigned sent, unsigned again)
{
	char text[256];

	snprintf(text, sizeof(text), "Tcp: OutSegs RetransSegs\nTcp: %u %u\n", sent, again);
	put("/proc/self/net/snmp", text);
}

static const struct use_value *retransmitted(unsigned sent, unsigned again)
{
	put_segments(1000, 1000);
	open_session(NULL);
	put_segments(1000 + sent, 1000 + again);
	close_session();
	return value_of("TCP", "", "retransmitted_percent");
}

static void test_few_segments(void **state UNUSED)
{
	const struct use_value *v = retransmitted(59, 120);

	assert_int_equal(v->verdict, USE_NOT_JUDGED);
	assert_string_equal(v->not_judged, "fewer than 100 segments were sent");
	use_report_release(&report);
	v = retransmitted(59, 0);
	assert_int_equal(v->verdict, USE_OK);
	use_report_release(&report);
	v = retransmitted(100, 50);
	assert_int_equal(v->verdict, USE_CRITICAL);
	assert_null(v->not_judged);
	use_report_release(&report);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		IN_SCRATCH(test_kills_by_log),    IN_SCRATCH(test_kills_by_counters),
		IN_SCRATCH(test_pressure),        IN_SCRATCH(test_quota),
		IN_SCRATCH(test_quota_of_target), IN_SCRATCH(test_few_segments),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
