/* SPDX-License-Identifier: BSD-2-Clause */
/* The CPU's own events: codes as Intel's Software Developer's Manual, volume 3, has them; libpfm4
 * is told which CPU to be. */
#include <inspect/perf_sampler.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include "skip.h"

static const struct host host = {.perf_event_paranoid = 0};

static void test_names(void **state UNUSED)
{
	static const struct {
		const char *name;
		uint64_t config; /* event | umask << 8 */
		bool no_user, no_kernel;
	} table[] = {
		{"INST_RETIRED:ANY_P", 0x00c0, false, false},
		{"inst_retired:any_p:u", 0x00c0, false, true},
		{"BR_MISP_RETIRED:CONDITIONAL:k", 0x01c5, true, false},
		{"skl::L2_RQSTS:MISS", 0x3f24, false, false},
	};

#ifndef __x86_64__
	skip_because("libpfm4 knows the CPUs of its own architecture");
#endif
	for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
		event_specs specs = {0};

		assert_int_equal(event_specs_parse(table[i].name, &host, &specs, NULL), 0);
		assert_int_equal(specs.n, 1);
		assert_string_equal(specs.v[0].name, table[i].name);
		assert_int_equal(specs.v[0].attr.type, PERF_TYPE_RAW);
		assert_int_equal(specs.v[0].attr.config & 0xffff, table[i].config);
		assert_int_equal(specs.v[0].attr.exclude_user, table[i].no_user);
		assert_int_equal(specs.v[0].attr.exclude_kernel, table[i].no_kernel);
		event_specs_release(&specs);
	}
}

/* perf's names come first, and what neither knows is an error with near misses. */
static void test_order(void **state UNUSED)
{
	CLEANUP(diag_release) struct diag d = {0};
	event_specs specs = {0};

	assert_int_equal(event_specs_parse("cycles,instructions:u", &host, &specs, NULL), 0);
	assert_int_equal(specs.v[0].attr.type, PERF_TYPE_HARDWARE);
	event_specs_release(&specs);
	assert_int_equal(event_specs_parse("cycels", &host, &specs, &d), -EINVAL);
	assert_non_null(strstr(d.fix, "cycles"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_order),
	};

	setenv("LIBPFM_FORCE_PMU", "skl", 1);
	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
