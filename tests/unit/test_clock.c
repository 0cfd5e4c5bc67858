/* SPDX-License-Identifier: BSD-2-Clause */
#include <inspect/clock.h>
#include <sys/resource.h>
#include <time.h>

#include <setjmp.h>
#include <stdarg.h>
/* after the headers that it needs */
#include <cmocka.h>

static void test_clocks(void **state UNUSED)
{
	const struct timespec pause = {.tv_nsec = 20000000};
	uint64_t before = clock_now_ns(), cpu = clock_own_cpu_ns(), waited;
	int64_t seconds = (int64_t)(clock_realtime_ns() / NSEC_PER_SEC) - (int64_t)time(NULL);
	struct rusage usage;
	uint64_t used;

	nanosleep(&pause, NULL);
	waited = clock_now_ns() - before;
	assert_true(waited >= 20 * NSEC_PER_MSEC);
	assert_true(waited < 10 * NSEC_PER_SEC);
	assert_true(seconds >= -1 && seconds <= 1);

	while (clock_own_cpu_ns() - cpu < 30 * NSEC_PER_MSEC)
		;
	getrusage(RUSAGE_SELF, &usage);
	used = (uint64_t)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * NSEC_PER_SEC +
	       (uint64_t)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * NSEC_PER_USEC;
	assert_true(clock_own_cpu_ns() + 10 * NSEC_PER_MSEC > used);
	assert_true(clock_own_cpu_ns() < used + 10 * NSEC_PER_MSEC);
}

static void test_duration_parse(void **state UNUSED)
{
	static const struct {
		const char *text;
		uint64_t ns;
	} good[] = {
		{"10", 10 * NSEC_PER_SEC},
		{"10s", 10 * NSEC_PER_SEC},
		{"1.5s", 1500000000},
		{"500ms", 500000000},
		{"5m", 300 * NSEC_PER_SEC},
		{"2h", 7200 * NSEC_PER_SEC},
		{"100us", 100000},
		{"100µs", 100000},
		{"7ns", 7},
		{"0.25", 250000000},
		{".5", 500000000},
		{".5ms", 500000},
		{"1m30s", 90 * NSEC_PER_SEC},
		{"1h0.5m7ms", 3630007000000},
		{"0.1h", 360 * NSEC_PER_SEC},
		{"1.0000000005s", 1000000000},
		{"9223372036.854775807s", INT64_MAX},
	};
	static const char *const bad[] = {
		"",
		"0",
		"0s",
		"-1",
		".",
		".s",
		"1m30",
		"30s1m",
		"1s1s",
		"1m 30s",
		"+1",
		"1.",
		"1.s",
		"s",
		"1x",
		"1 s",
		" 1",
		"1e3",
		"0x10",
		"1,5",
		"1ss",
		"nan",
		"inf",
		"0.1ns",
		"1S",
		"1min",
		"10s ",
		"9223372037",
		"99999999999999999999",
		"18446744073709551615h",
		"0.0000000001",
	};
	uint64_t ns;

	for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
		assert_int_equal(duration_parse(good[i].text, NSEC_PER_SEC, &ns), 0);
		assert_int_equal(ns, good[i].ns);
	}
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		ns = 42;
		assert_int_equal(duration_parse(bad[i], NSEC_PER_SEC, &ns), -EINVAL);
		assert_int_equal(ns, 42);
	}
	assert_int_equal(duration_parse("20", NSEC_PER_MSEC, &ns), 0);
	assert_int_equal(ns, 20 * NSEC_PER_MSEC);
	assert_int_equal(duration_parse("20s", NSEC_PER_MSEC, &ns), 0);
	assert_int_equal(ns, 20 * NSEC_PER_SEC);
}

static void test_duration_format(void **state UNUSED)
{
	static const struct {
		uint64_t ns;
		const char *text;
	} cases[] = {
		{0, "0 ns"},
		{12, "12 ns"},
		{999, "999 ns"},
		{1000, "1.00 µs"},
		{780000, "780 µs"},
		{999499, "999 µs"},
		{999500, "1.00 ms"},
		{9994999, "9.99 ms"},
		{9995000, "10.0 ms"},
		{45600000, "45.6 ms"},
		{99950000, "100 ms"},
		{999999999, "1.00 s"},
		{1230000000, "1.23 s"},
		{3600 * NSEC_PER_SEC, "3600 s"},
		{UINT64_MAX, "18446744074 s"},
	};
	char buf[32];

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		assert_string_equal(duration_format(cases[i].ns, buf, sizeof(buf)), cases[i].text);
}

static void test_bytes_format(void **state UNUSED)
{
	static const struct {
		uint64_t bytes;
		const char *text;
	} cases[] = {
		{0, "0 B"},
		{1023, "1023 B"},
		{1024, "1.0 KiB"},
		{1258291, "1.2 MiB"},
		{1048575, "1.0 MiB"},
		{150ULL << 20, "150 MiB"},
		{1023ULL << 20, "1023 MiB"},
		{3ULL << 39, "1.5 TiB"},
		{UINT64_MAX, "16777216 TiB"},
	};
	char buf[32];

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		assert_string_equal(bytes_format(cases[i].bytes, buf, sizeof(buf)), cases[i].text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_clocks),
		cmocka_unit_test(test_duration_parse),
		cmocka_unit_test(test_duration_format),
		cmocka_unit_test(test_bytes_format),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
