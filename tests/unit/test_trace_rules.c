/* SPDX-License-Identifier: BSD-2-Clause */
/* What trace -c makes of tables that are made up: each rule above and below its limit. */
#include "../../src/cmd/trace.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define SECONDS 2

static void add_calls(struct syscall_table *t, const char *name, uint64_t calls, uint64_t errors,
		      uint64_t total_ns)
{
	struct syscalls_key key = {.fd = -1};
	struct syscall_row *row;

	key.code = (uint32_t)syscall_number(SYSCALL_NATIVE, name);
	row = syscall_table_row(t, &key);
	assert_non_null(row);
	row->calls = calls;
	row->errors = errors;
	row->total_ns = total_ns;
}

static void add_detail(struct syscall_table *t, uint32_t kind, uint32_t id, uint64_t value,
		       uint64_t count, uint64_t sum)
{
	const struct syscall_detail d = {.key = {kind, id, value}, .v = {count, sum, sum, {0}}};

	assert_int_equal(array_push(&t->details, d), 0);
}

/* The rules that speak, by name and a comma each. */
static const char *spoken(const struct syscall_table *t, const struct trace_values *v,
			  struct result *r)
{
	const struct trace_view view = {.v = v, .table = t, .by = SYSCALLS_BY_CALL};
	struct trace_numbers numbers;
	const char *names = "";
	findings f = {0};

	trace_numbers_fill(&view, r, &numbers);
	assert_int_equal(trace_findings(v, &numbers, "-p 1", r, &f), 0);
	for (size_t i = 0; i < f.n; i++)
		names = result_text(r, "%s%s,", names, f.v[i].rule->name);
	array_release(&f);
	return names;
}

static void check(struct syscall_table *t, const char *want)
{
	CLEANUP(result_release) struct result r;
	const struct trace_values v = {0};

	result_init(&r, "test");
	if (!t->elapsed_ns)
		t->elapsed_ns = SECONDS * NSEC_PER_SEC;
	assert_string_equal(spoken(t, &v, &r), want);
	syscall_table_release(t);
	*t = (struct syscall_table){0};
}

static void test_details(void **state UNUSED)
{
	static const struct {
		uint32_t kind;
		uint64_t below, above, sum;
		const char *rule;
	} all[] = {
		{SYSCALLS_YIELD, 20000, 20001, 0, "yield-spin,"},
		{SYSCALLS_BUSY_POLL, 2000, 2001, 0, "busy-poll,"},
		{SYSCALLS_SMALL_WRITE, 2000, 2001, 0, "small-writes,"},
	};
	struct syscall_table t = {0};

	for (size_t i = 0; i < ARRAY_SIZE(all); i++) {
		add_detail(&t, all[i].kind, 7, 3, all[i].below, all[i].sum);
		check(&t, "");
		add_detail(&t, all[i].kind, 7, 3, all[i].above, all[i].sum);
		check(&t, all[i].rule);
	}
	/* One descriptor written to by many threads, and one thread with many descriptors. */
	for (uint32_t tid = 1; tid <= 30; tid++)
		add_detail(&t, SYSCALLS_SMALL_WRITE, tid, 3, 100, 0);
	check(&t, "small-writes,");
	for (uint64_t fd = 1; fd <= 50; fd++)
		add_detail(&t, SYSCALLS_SMALL_WRITE, 7, fd, 100, 0);
	check(&t, "small-writes-by-thread,");
	/* A lock that one thread waits a tenth of its time for. */
	add_detail(&t, SYSCALLS_LOCK, 1, 0x1000, 10, SECONDS * 100 * NSEC_PER_MSEC);
	check(&t, "");
	add_detail(&t, SYSCALLS_LOCK, 1, 0x1000, 10, SECONDS * 101 * NSEC_PER_MSEC);
	check(&t, "lock-contention,");
	add_detail(&t, SYSCALLS_LOCK, 1, 0x1000, 750, 0);
	add_detail(&t, SYSCALLS_LOCK_RACES, 1, 0x1000, 250, 0);
	check(&t, "futex-races,");
	add_detail(&t, SYSCALLS_GPU_IOCTL, 0x2b, 0, 11, 0);
	add_detail(&t, SYSCALLS_GPU_IOCTL, 0x29, 0, 10, 0);
	add_detail(&t, SYSCALLS_GPU_IOCTL, 0x2a, 0, 5000, 0); /* RM_CONTROL */
	check(&t, "gpu-allocations,");
	add_detail(&t, SYSCALLS_GPU_OPEN, 1, 0, 1, 300 * NSEC_PER_MSEC);
	check(&t, "gpu-open,");
}

static void test_memory(void **state UNUSED)
{
	struct syscall_table t = {0};

	/* Pairs of one size and process: what only comes is no churn. */
	add_detail(&t, SYSCALLS_MAP, 1, 4096, 5000, 0);
	add_detail(&t, SYSCALLS_UNMAP, 1, 8192, 5000, 0);
	add_detail(&t, SYSCALLS_UNMAP, 2, 4096, 5000, 0);
	check(&t, "");
	add_detail(&t, SYSCALLS_MAP, 1, 4096, 5000, 0);
	add_detail(&t, SYSCALLS_UNMAP, 1, 4096, 401, 0);
	check(&t, "map-churn,");
	add_calls(&t, "brk", 700, 0, 0);
	add_calls(&t, "madvise", 700, 0, 0);
	add_calls(&t, "mremap", 601, 0, 0);
	check(&t, "heap-churn,");
}

static void test_calls(void **state UNUSED)
{
	struct syscall_table t = {0};

	add_calls(&t, "accept4", 100, 0, 0);
	add_calls(&t, "clone3", 100, 0, 0);
	check(&t, "clone-per-request,");
	add_calls(&t, "clone3", 100, 0, 0); /* no server */
	check(&t, "");
	add_calls(&t, "openat", 1000, 300, 0);
	add_detail(&t, SYSCALLS_ERROR, (uint32_t)syscall_number(SYSCALL_NATIVE, "openat"), ENOENT,
		   300, 0);
	check(&t, "missing-files,");
	add_calls(&t, "close", 1000, 960, 0);
	check(&t, "failing-call,");
	add_calls(&t, "fdatasync", 20, 0, 101 * SECONDS * NSEC_PER_MSEC / 2);
	check(&t, "syncs,");
	/* The same amounts in a tenth of a second are counted over a whole one. */
	add_calls(&t, "close", 90, 90, 0);
	t.elapsed_ns = NSEC_PER_SEC / 10;
	check(&t, "");
}

static void test_limits(void **state UNUSED)
{
	CLEANUP(result_release) struct result r;
	struct trace_limit limit = {"yield-spin", 100};
	struct trace_values v = {.limits = {&limit, 1, 1}};
	struct syscall_table t = {.elapsed_ns = SECONDS * NSEC_PER_SEC};
	struct diag d = {0};

	result_init(&r, "test");
	add_detail(&t, SYSCALLS_YIELD, 7, 0, 300, 0);
	assert_string_equal(spoken(&t, &v, &r), "yield-spin,");
	limit.limit = 200;
	assert_string_equal(spoken(&t, &v, &r), "");
	assert_int_equal(trace_check_limits(&v, &d), 0);
	limit.rule = "yield";
	assert_int_equal(trace_check_limits(&v, &d), -EINVAL);
	diag_release(&d);
	syscall_table_release(&t);
}

/* --- differences of two readings -------------------------------------------------------------- */

static void add_value(struct syscall_table *t, uint32_t code, uint64_t value, uint64_t n)
{
	const struct syscalls_key key = {.code = code, .fd = -1};
	struct syscall_row *row = syscall_table_row(t, &key);

	assert_non_null(row);
	row->calls += n;
	row->total_ns += value * n;
	histogram_add(&row->h, value, n);
}

static void test_since(void **state UNUSED)
{
	struct syscall_table before = {0}, now = {0}, since = {0};

	add_value(&before, 1, 1000000, 5); /* the greatest so far */
	add_value(&before, 2, 100, 7);
	add_value(&now, 1, 1000000, 5);
	add_value(&now, 1, 5000, 3);
	add_value(&now, 2, 100, 7); /* nothing came */
	add_value(&now, 3, 40, 1);
	now.losses.exits_without_enter = 3;
	before.losses.exits_without_enter = 1;
	assert_int_equal(syscall_table_since(&now, &before, &since), 0);
	assert_int_equal(since.rows.n, 2);
	assert_int_equal(since.rows.v[0].calls, 3);
	assert_int_equal(since.rows.v[0].total_ns, 15000);
	assert_int_equal(since.rows.v[0].h.n, 3);
	/* From the slots: 3.2 % off at most. */
	assert_in_range(since.rows.v[0].h.max, 4840, 5160);
	assert_int_equal(since.rows.v[1].key.code, 3);
	assert_int_equal(since.rows.v[1].h.max, 40);
	assert_int_equal(since.losses.exits_without_enter, 2);
	syscall_table_release(&before);
	syscall_table_release(&now);
	syscall_table_release(&since);
}

/* The next command looks at every call that the rule has counted. */
static void test_next(void **state UNUSED)
{
	static const struct {
		const char *rule, *call;
	} counted[] = {
		{"small-writes", "write"},
		{"small-writes", "pwrite64"},
		{"small-writes", "writev"},
		{"small-writes", "pwritev2"},
		{"small-writes", "sendto"},
		{"small-writes", "sendmsg"},
		{"small-writes-by-thread", "pwrite64"},
		{"heap-churn", "brk"},
		{"heap-churn", "mremap"},
		{"syncs", "fdatasync"},
		{"syncs", "sync_file_range"},
		{"syncs", "syncfs"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(counted); i++) {
		size_t n = 0;

		while (n < n_trace_rules && strcmp(trace_rules[n].name, counted[i].rule))
			n++;
		assert_true(n < n_trace_rules);
		assert_non_null(strstr(trace_rules[n].next, counted[i].call));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_details), cmocka_unit_test(test_memory),
		cmocka_unit_test(test_calls),   cmocka_unit_test(test_limits),
		cmocka_unit_test(test_since),   cmocka_unit_test(test_next),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
