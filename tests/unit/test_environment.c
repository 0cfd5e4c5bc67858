/* SPDX-License-Identifier: BSD-2-Clause */
/* environment_read on small trees that stand for other machines. */
#include "scratch.h"

#include <inspect/environment.h>
#include <math.h>
#include <setjmp.h>

#include <cmocka.h>

static void put(const char *path, const char *text)
{
	FILE *file;

	free(shell("mkdir -p \"$(dirname '%s%s')\"", scratch, path));
	file = fopen(path + 1, "we");
	assert_non_null(file);
	fputs(text, file);
	assert_int_equal(fclose(file), 0);
}

static void test_x86(void **state UNUSED)
{
	struct environment e, end;
	struct noise n;

	put("/proc/cpuinfo", "processor\t: 0\nvendor_id\t: X\nmodel name\t: Some CPU @ 3.00GHz\n"
			     "cpu MHz\t\t: 3000\n");
	put("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "schedutil\n");
	put("/sys/devices/system/cpu/cpu0/cpufreq/scaling_cur_freq", "2000000\n");
	put("/sys/devices/system/cpu/cpu1/cpufreq/scaling_cur_freq", "4000000\n");
	put("/sys/devices/system/cpu/smt/active", "1\n");
	put("/proc/loadavg", "3.50 2.00 1.00 1/100 1234\n");
	put("/proc/stat", "cpu  100 0 50 800 0 0 0 50 0 0\n");
	environment_read(&e, scratch);
	assert_string_equal(e.cpu, "Some CPU @ 3.00GHz");
	assert_string_equal(e.governor, "schedutil");
	assert_int_equal(e.smt, 1);
	assert_true(e.load_1m == 3.5);
	assert_true(e.freq_khz == 3000000);
	/* 20 more ticks of 100 are stolen, and the frequency falls by a tenth. */
	put("/proc/stat", "cpu  140 0 60 830 0 0 0 70 0 0\n");
	put("/sys/devices/system/cpu/cpu1/cpufreq/scaling_cur_freq", "3400000\n");
	environment_read(&end, scratch);
	environment_noise(&e, &end, 4, &n);
	assert_true(fabs(n.load_per_cpu - 0.875) < 1e-9);
	assert_true(fabs(n.steal_percent - 20) < 1e-9);
	assert_true(fabs(n.freq_percent - 10) < 1e-9);
}

static void test_arm(void **state UNUSED)
{
	struct environment e;

	put("/proc/cpuinfo", "processor\t: 0\nBogoMIPS\t: 100.00\nCPU implementer\t: 0x41\n"
			     "CPU architecture: 8\nCPU part\t: 0xd0c\n");
	environment_read(&e, scratch);
	assert_string_equal(e.cpu, "ARM 0x41 part 0xd0c");
}

/* Nothing is there: nothing is made up. */
static void test_unknown(void **state UNUSED)
{
	struct environment e;
	struct noise n;

	environment_read(&e, "/nonexistent");
	assert_string_equal(e.cpu, "");
	assert_string_equal(e.governor, "");
	assert_int_equal(e.smt, -1);
	assert_true(e.load_1m < 0 && e.freq_khz < 0);
	environment_noise(&e, &e, 4, &n);
	assert_true(n.load_per_cpu < 0 && n.steal_percent == 0 && n.freq_percent == 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_x86, scratch_setup, scratch_teardown),
		cmocka_unit_test_setup_teardown(test_arm, scratch_setup, scratch_teardown),
		cmocka_unit_test(test_unknown),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
