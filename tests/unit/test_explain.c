/* SPDX-License-Identifier: BSD-2-Clause */
/* Refusals other than perf_event_open's, and what the settings allow. */
#include "explain_host.h"

static void test_allowed(void **state UNUSED)
{
	static const struct {
		int64_t paranoid;
		uint64_t caps;
		bool user_ns, kernel, all;
	} cases[] = {
		{-1, 0, false, true, true},
		{0, 0, false, true, true},
		{1, 0, false, true, false},
		{2, 0, false, false, false},
		{4, 0, false, false, false},
		{HOST_UNKNOWN, 0, false, false, false},
		{4, BIT(CAP_PERFMON), false, true, true},
		{4, BIT(CAP_SYS_ADMIN), false, true, true},
		{4, BIT(CAP_SYS_PTRACE), false, false, false},
		{4, ~0ULL, true, false, false},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct host h = ordinary();

		h.perf_event_paranoid = cases[i].paranoid;
		h.caps_effective = cases[i].caps;
		h.in_user_namespace = cases[i].user_ns;
		assert_int_equal(host_allows_kernel_samples(&h), cases[i].kernel);
		assert_int_equal(host_allows_all_cpus(&h), cases[i].all);
	}
}

static void test_ring(void **state UNUSED)
{
	CLEANUP(diag_release) struct diag refused = {0}, memory = {0};
	struct host h = ordinary();
	char want[64];
	long page_kb = sysconf(_SC_PAGESIZE) / 1024;

	assert_int_equal(explain_ring(-EPERM, 1024, &h, &refused), -EPERM);
	assert_non_null(
		strstr(refused.why, "kernel.perf_event_mlock_kb (516 for each CPU and user)"));
	assert_non_null(strstr(refused.why, "memlock limit (8192 KiB)"));
	assert_true(str_starts(refused.fix, "--mmap-pages 512\nsudo sysctl "));
	/* the new limit holds this ring beside another of the size */
	snprintf(want, sizeof(want), "kernel.perf_event_mlock_kb=%ld ", 2 * 1025 * page_kb);
	assert_non_null(strstr(refused.fix, want));

	explain_ring(-ENOMEM, 1, &h, &memory);
	assert_string_equal(memory.why, "there is not enough memory for it");
	assert_null(memory.fix);
}

static void check_tracepoint(int err, const struct setting *s, const char *what, const char *why,
			     const char *fix)
{
	CLEANUP(diag_release) struct diag d = {0};
	struct host h = host_with(s);

	assert_int_equal(explain_tracepoint(err, "sched:sched_switch", &h, &d), err);
	check_text(what, "what", d.what, what, true);
	check_text(what, "why", d.why, why, false);
	check_text(what, "fix", d.fix, fix, true);
}

static void test_tracepoint(void **state UNUSED)
{
	check_tracepoint(-EACCES, &(struct setting){.kernel = KERNEL_VERSION(6, 1, 0)},
			 "cannot use the tracepoint 'sched:sched_switch': Permission denied",
			 "/sys/kernel/tracing is not readable by this user",
			 "sudo mount -o remount,mode=750,gid=1001 /sys/kernel/tracing\n"
			 "run inspect as root");
	check_tracepoint(-EACCES, &(struct setting){.kernel = KERNEL_VERSION(5, 10, 0)},
			 "cannot use the tracepoint 'sched:sched_switch': Permission denied",
			 "not readable",
			 "sudo mount -o remount,mode=755 /sys/kernel/tracing\nrun inspect as root");
	check_tracepoint(
		-ENOENT, &(struct setting){.no_tracefs = true},
		"cannot use the tracepoint 'sched:sched_switch': No such file or directory",
		"tracefs, which is not mounted", "sudo mount -t tracefs nodev /sys/kernel/tracing");
	check_tracepoint(
		-ENOENT, &(struct setting){.no_tracefs = true, .root = true, .caps = ~0ULL},
		"cannot use the tracepoint 'sched:sched_switch': No such file or directory",
		"not mounted", "mount -t tracefs nodev /sys/kernel/tracing");
	check_tracepoint(
		-ENOENT, &(struct setting){.no_tracefs = true, .root = true, .container = "docker"},
		"cannot use the tracepoint 'sched:sched_switch': No such file or directory",
		"not mounted",
		"mount the host's /sys/kernel/tracing into the container (docker run -v "
		"/sys/kernel/tracing:/sys/kernel/tracing:ro …)");
	check_tracepoint(
		-EPERM,
		&(struct setting){.root = true, .caps = ~0ULL, .lockdown = "confidentiality"},
		"cannot use the tracepoint 'sched:sched_switch': Operation not permitted",
		"kernel lockdown is on (confidentiality)",
		"boot with lockdown=none on the kernel command line");
	check_tracepoint(-ENOENT, &(struct setting){.root = true},
			 "no tracepoint 'sched:sched_switch' in this kernel (6.1.0-18-amd64)", NULL,
			 "ls /sys/kernel/tracing/events/sched      (those of the group)\n"
			 "cat /sys/kernel/tracing/available_events");
	check_tracepoint(-ENOENT, &(struct setting){.root = true, .own_tracefs = true},
			 "no tracepoint 'sched:sched_switch' in this kernel (6.1.0-18-amd64)", NULL,
			 "mount -t tracefs nodev /sys/kernel/tracing\n"
			 "ls /sys/kernel/tracing/events/sched      (those of the group)\n"
			 "cat /sys/kernel/tracing/available_events");
}

static void test_target(void **state UNUSED)
{
	CLEANUP(diag_release) struct diag gone = {0}, refused = {0};
	struct host h = ordinary();

	explain_target(-ENOENT, 12, &h, &gone);
	assert_string_equal(gone.what, "cannot read process 12: No such file or directory");
	assert_non_null(strstr(gone.why, "there is no process 12"));
	explain_target(-EACCES, 12, &h, &refused);
	assert_non_null(strstr(refused.why, "CAP_SYS_PTRACE"));
	assert_string_equal(refused.fix, "the same command with sudo\n" SETCAP);
}

static void test_kernel_names(void **state UNUSED)
{
	static const struct {
		int64_t kptr, paranoid;
		uint64_t caps;
		const char *fix; /* NULL: allowed */
	} cases[] = {
		{0, 1, 0, NULL},
		{0, 2, BIT(CAP_SYSLOG), NULL},
		{1, 2, BIT(CAP_SYSLOG), NULL},
		{0, 2, 0, "run inspect as root\n" SYSCTL("1")},
		{1, 1, 0,
		 "run inspect as root\nsudo sysctl kernel.kptr_restrict=0      (until reboot)"},
		{1, 2, 0,
		 "run inspect as root\n"
		 "sudo sysctl kernel.kptr_restrict=0      (until reboot)\n" SYSCTL("1")},
		{2, -1, ~0ULL, "sudo sysctl kernel.kptr_restrict=1      (until reboot)"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		CLEANUP(diag_release) struct diag d = {0};
		struct host h = ordinary();

		h.kptr_restrict = cases[i].kptr;
		h.perf_event_paranoid = cases[i].paranoid;
		h.caps_effective = cases[i].caps;
		assert_int_equal(explain_kernel_names(&h, &d), cases[i].fix ? -EPERM : 0);
		check_text("kernel names", "fix", d.fix, cases[i].fix, true);
	}
}

static void test_btf(void **state UNUSED)
{
	CLEANUP(diag_release) struct diag d = {0};
	struct host h = ordinary();

	assert_int_equal(explain_btf(&h, &d), 0);
	assert_int_equal(d.err, 0);
	h.has_btf = false;
	assert_int_equal(explain_btf(&h, &d), -ENOENT);
	assert_non_null(strstr(d.why, "/sys/kernel/btf/vmlinux is missing"));
	assert_non_null(d.fix);
}

static void test_exec(void **state UNUSED)
{
	static const struct {
		int err;
		const char *argv0, *what, *why, *fix;
	} cases[] = {
		{ENOENT, "nosuch", "cannot run 'nosuch': No such file or directory", "in PATH",
		 NULL},
		{ENOENT, "./nosuch", "cannot run './nosuch': No such file or directory",
		 "the file does not exist, or the interpreter", NULL},
		{ENOENT, "sleep 1", "cannot run 'sleep 1': No such file or directory", "in PATH",
		 "leave out the quotes around the whole command, or use: sh -c '…'"},
		{EACCES, "./data", "cannot run './data': Permission denied", "not executable",
		 "ls -ldL ./data      (its mode: chmod +x a file that lacks the x)"},
		{EACCES, "./a;reboot", "cannot run './a;reboot': Permission denied",
		 "not executable", NULL},
		{ENOEXEC, "./script", "cannot run './script': Exec format error", "#! line",
		 "-- sh ./script      (when it is a script)"},
		{E2BIG, "ls", "cannot run 'ls': Argument list too long", "longer than", NULL},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		CLEANUP(diag_release) struct diag d = {0};

		assert_int_equal(explain_exec(-cases[i].err, cases[i].argv0, &d), -cases[i].err);
		check_text(cases[i].argv0, "what", d.what, cases[i].what, true);
		check_text(cases[i].argv0, "why", d.why, cases[i].why, false);
		check_text(cases[i].argv0, "fix", d.fix, cases[i].fix, true);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_allowed),      cmocka_unit_test(test_ring),
		cmocka_unit_test(test_tracepoint),   cmocka_unit_test(test_target),
		cmocka_unit_test(test_kernel_names), cmocka_unit_test(test_btf),
		cmocka_unit_test(test_exec),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
