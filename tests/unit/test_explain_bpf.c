/* SPDX-License-Identifier: BSD-2-Clause */
/* Why the BPF sampler is not to be had, and what the advice is. */
#include "explain_host.h"

#include <string.h>

static struct host capable(void)
{
	struct host h = ordinary();

	h.caps_effective = BIT(CAP_BPF) | BIT(CAP_PERFMON);
	return h;
}

static void expect(const struct host *h, int err, const char *what, const char *why,
		   const char *fix)
{
	struct diag d = {0};

	assert_int_equal(explain_bpf(h, &d), err);
	assert_int_equal(d.err, err);
	assert_non_null(strstr(d.what, what));
	assert_non_null(strstr(d.why, why));
	if (fix)
		assert_non_null(strstr(d.fix, fix));
	else
		assert_null(d.fix);
	diag_release(&d);
}

static void test_nothing_in_the_way(void **state)
{
	struct host h = capable();
	struct diag d = {0};

	(void)state;
	assert_int_equal(explain_bpf(&h, &d), 0);
	h.caps_effective = BIT(CAP_SYS_ADMIN);
	assert_int_equal(explain_bpf(&h, &d), 0);
	strcpy(h.machine, "x86_64");
	strcpy(h.lockdown_mode, "integrity");
	assert_int_equal(explain_bpf(&h, &d), 0);
	h.kernel_version = KERNEL_VERSION(5, 10, 0);
	assert_int_equal(explain_bpf(&h, &d), 0);
	assert_null(d.what);
}

static void test_programs_on_tracepoints(void **state)
{
	struct host h = capable();
	struct diag d = {0};

	(void)state;
	h.kernel_version = KERNEL_VERSION(5, 13, 0);
	assert_int_equal(explain_bpf_tracing(&h, TRACING_SINCE_5_13, "trace locks", "strace", &d),
			 0);
	h.kernel_version = KERNEL_VERSION(5, 12, 20);
	strcpy(h.kernel_release, "5.12.20");
	assert_int_equal(explain_bpf_tracing(&h, TRACING_SINCE_5_10, "count", "strace", &d), 0);
	assert_int_equal(explain_bpf_tracing(&h, TRACING_SINCE_5_13, "trace locks", "strace", &d),
			 -EOPNOTSUPP);
	assert_string_equal(d.what, "kernel 5.12.20 is too old to trace locks");
	assert_string_equal(d.why, "what the BPF program needs came up to 5.13");
	assert_non_null(strstr(d.fix, "strace"));
	diag_release(&d);
}

static void test_rights(void **state)
{
	struct host h = ordinary();

	(void)state;
	expect(&h, -EPERM, "BPF is not allowed", "missing: CAP_BPF, CAP_PERFMON",
	       "the same command with sudo");
	expect(&h, -EPERM, "BPF is not allowed", "missing", SETCAP);
	h.caps_effective = BIT(CAP_PERFMON);
	expect(&h, -EPERM, "BPF", "missing: CAP_BPF", "sudo");
	h.caps_effective = BIT(CAP_BPF);
	expect(&h, -EPERM, "BPF", "missing: CAP_PERFMON", "sudo");
	/* Root whose bounding set lacks them can't get them back by sudo or setcap. */
	h.euid = 0;
	expect(&h, -EPERM, "BPF", "missing", "CapabilityBoundingSet");
	h = capable();
	h.in_user_namespace = true;
	expect(&h, -EPERM, "BPF", "user namespace", "outside the user namespace");
	h = ordinary();
	strcpy(h.container, "docker");
	expect(&h, -EPERM, "BPF", "missing", "docker run --cap-add");
}

static void test_kernels(void **state)
{
	struct host h = capable();

	(void)state;
	h.kernel_version = KERNEL_VERSION(5, 4, 0);
	strcpy(h.kernel_release, "5.4.0-216-generic");
	expect(&h, -EOPNOTSUPP, "kernel 5.4.0-216-generic is too old", "5.10",
	       "--call-graph dwarf");
	h.kernel_version = KERNEL_VERSION(5, 10, 0);
	h = capable();
	h.has_btf = false;
	expect(&h, -ENOENT, "does not describe its types", "CONFIG_DEBUG_INFO_BTF", "kernel");
	h = capable();
	strcpy(h.lockdown_mode, "confidentiality");
	expect(&h, -EPERM, "read memory", "locked down", NULL);
	h = capable();
	strcpy(h.machine, "riscv64");
	expect(&h, -EOPNOTSUPP, "riscv64", "x86_64 and aarch64", NULL);
}

static void test_loading(void **state)
{
	static const struct {
		int err;
		const char *why;
	} rows[] = {{-EPERM, "masked"},
		    {-ENOMEM, "memory.max"},
		    {-EACCES, "verifier"},
		    {-EINVAL, "does not know"},
		    {-ESRCH, "BTF"}};
	struct host h = capable();

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct diag d = {0};

		assert_int_equal(explain_bpf_load(rows[i].err, &h, &d), rows[i].err);
		assert_non_null(strstr(d.what, "could not be loaded"));
		assert_non_null(strstr(d.why, rows[i].why));
		diag_release(&d);
	}
}

static void test_locked_memory(void **state)
{
	struct host h = capable();
	struct diag d = {0};

	(void)state;
	h.kernel_version = KERNEL_VERSION(5, 10, 0);
	h.memlock_soft_bytes = 64 << 10;
	assert_int_equal(explain_bpf_load(-EPERM, &h, &d), -EPERM);
	assert_non_null(strstr(d.why, "64 KiB"));
	assert_non_null(strstr(d.fix, "ulimit -l"));
	diag_release(&d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nothing_in_the_way),
		cmocka_unit_test(test_programs_on_tracepoints),
		cmocka_unit_test(test_rights),
		cmocka_unit_test(test_kernels),
		cmocka_unit_test(test_loading),
		cmocka_unit_test(test_locked_memory),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
